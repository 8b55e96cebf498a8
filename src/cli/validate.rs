//! `validate`: predictions against measured runs.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::args::ValidateArgs;
use super::exit::Exit;
use super::render;
use crate::engine::PHYSICS_VERSION;
use crate::input::Remarks;
use crate::run::validate::{Case, GroupScore, Half, Score, Validation};
use crate::units::{Unit, count, human};

/// Reads, predicts and tells.
pub fn validate(args: &ValidateArgs) -> anyhow::Result<Exit> {
    let found = match &args.measurements {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| anyhow::Error::from(error).context(format!("cannot read `{}`", path.display())))?;
            Validation::of(&path.display().to_string(), &text)
        }
        None => Validation::shipped(),
    };
    match found {
        Ok(validation) => {
            tell(&validation, args);
            Ok(Exit::Complete)
        }
        Err(remarks) => Ok(wrong(&remarks)),
    }
}

/// The runs of a table, or those that we ship.
pub fn measured(table: Option<&Path>) -> anyhow::Result<Result<Validation, Remarks>> {
    Ok(match table {
        Some(path) => Validation::of(&path.display().to_string(), &text(path)?),
        None => Validation::shipped(),
    })
}

/// The text of a file.
pub fn text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Says what is wrong with a table.
pub fn wrong(remarks: &Remarks) -> Exit {
    render::remarks(remarks);
    let mistakes = if remarks.errors() == 1 { "mistake" } else { "mistakes" };
    anstream::eprintln!("{} {mistakes}; nothing was predicted", count(remarks.errors() as u64));
    Exit::Usage
}

fn tell(validation: &Validation, args: &ValidateArgs) {
    if args.json {
        anstream::println!("{}", object(validation));
        return;
    }
    let scores: Vec<Vec<String>> = validation.scores().iter().map(score_cells).collect();
    let header = ["group", "half", "rows", "mean", "median", "worst", "bias"].map(str::to_owned);
    anstream::println!("{}", render::table(&header, &scores));
    let all = validation.cases.len();
    let held = validation.cases.iter().filter(|case| case.error().is_some()).count();
    anstream::println!(
        "\n{} rows, of which {} have a measured and a predicted time",
        count(all as u64),
        count(held as u64)
    );
    if args.rows {
        let rows: Vec<Vec<String>> = validation.cases.iter().map(row_cells).collect();
        let header = ["row", "measured", "predicted", "error", "reason"].map(str::to_owned);
        anstream::println!("\n{}", render::table(&header, &rows));
    }
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A share in per cent, with its sign.
pub fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// The name of a half, if it is one.
pub fn half_name(half: Option<Half>) -> &'static str {
    half.map_or("", Half::name)
}

fn score_cells(of: &GroupScore) -> Vec<String> {
    let Score { rows, mean, median, worst, bias } = of.score;
    let shares = [percent(mean), percent(median), percent(worst), signed_percent(bias)];
    [of.group.clone(), half_name(of.half).to_owned(), rows.to_string()].into_iter().chain(shares).collect()
}

fn row_cells(case: &Case) -> Vec<String> {
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |time| human(time, Unit::SECOND));
    let predicted = case.prediction.map(|prediction| prediction.seconds);
    let error = case.error().map_or_else(|| "-".to_owned(), signed_percent);
    let full = case.prediction.filter(|prediction| !prediction.fits()).map(|prediction| {
        let bytes = |bytes: crate::units::Bytes| human(bytes.as_real(), Unit::BYTE);
        format!("it does not fit by our account: {} of {}", bytes(prediction.memory), bytes(prediction.capacity))
    });
    let reason = case.reason.clone().or(full).unwrap_or_default();
    vec![case.run.id.clone(), time(case.measured), time(predicted), error, reason]
}

/// The answer for programs.
fn object(validation: &Validation) -> Value {
    let groups = validation.scores().into_iter().map(|GroupScore { group, half, score }| {
        let Score { rows, mean, median, worst, bias } = score;
        json!({"group": group, "half": half.map(Half::name), "rows": rows,
            "mean_error": mean, "median_error": median, "worst_error": worst, "bias": bias})
    });
    let rows = validation.cases.iter().zip(&validation.halves).map(|(case, half)| {
        let prediction = case.prediction;
        json!({"row_id": case.run.id, "group": case.run.group, "half": half.map(Half::name),
            "measured_s": case.measured, "predicted_s": prediction.map(|it| it.seconds), "error": case.error(),
            "predicted_memory_bytes": prediction.map(|it| it.memory.get()),
            "usable_memory_bytes": prediction.map(|it| it.capacity.get()),
            "fits": prediction.map(|it| it.fits()), "reason": case.reason})
    });
    json!({"physics_version": PHYSICS_VERSION, "groups": groups.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>()})
}
