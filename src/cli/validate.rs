//! `validate`: predictions against measured runs.

use std::path::Path;

use anyhow::Context as _;
use itertools::Itertools as _;
use serde_json::{Value, json};

use super::args::ValidateArgs;
use super::exit::Exit;
use super::render;
use crate::engine::PHYSICS_VERSION;
use crate::input::Remarks;
use crate::run::validate::sections::{scores, sections, signed_percent};
use crate::run::validate::{Case, GroupScore, Half, Score, Validation, bars, memory, ranks, ratios};
use crate::units::{Bytes, Unit, count, human};
use crate::workload::Footprint;

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
            let is_any = validation.cases.iter().any(|case| case.prediction.is_some());
            Ok(if is_any { Exit::Complete } else { Exit::NothingFeasible })
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
    let table = |header: &[&str], rows: &[Vec<String>]| {
        let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
        render::table(&header, rows)
    };
    for section in sections(validation) {
        anstream::println!("{}\n\n{}\n", section.title, table(&section.header, &section.rows));
    }
    let held = validation.cases.iter().filter(|case| case.error().is_some()).count();
    let all = count(validation.cases.len() as u64);
    anstream::println!("{all} rows, of which {} have a measured and a predicted time", count(held as u64));
    if args.rows {
        let rows: Vec<Vec<String>> = validation.cases.iter().map(row_cells).collect();
        anstream::println!("\n{}", table(&["row", "measured", "predicted", "error", "reason"], &rows));
    }
}

/// The name of a half, if it is one.
pub fn half_name(half: Option<Half>) -> &'static str {
    half.map_or("", Half::name)
}

fn row_cells(case: &Case) -> Vec<String> {
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |time| human(time, Unit::SECOND));
    let predicted = case.prediction.map(|prediction| prediction.seconds);
    let error = case.error().map_or_else(|| "-".to_owned(), signed_percent);
    let full = case.prediction.filter(|prediction| !prediction.fits()).map(|prediction| {
        let bytes = |bytes: Bytes| human(bytes.as_real(), Unit::BYTE);
        format!(
            "it does not fit by our account: {} of {}",
            bytes(prediction.memory.total()),
            bytes(prediction.capacity)
        )
    });
    let reason = case.reason.clone().or(full).unwrap_or_default();
    vec![case.run.id.clone(), time(case.measured), time(predicted), error, reason]
}

/// A score for programs.
pub fn score(score: &Score) -> Value {
    let Score { rows, mean, median, worst, bias } = *score;
    json!({"rows": rows, "mean_error": mean, "median_error": median, "worst_error": worst, "bias": bias})
}

/// The answer for programs: every table as its numbers, then every row.
fn object(validation: &Validation) -> Value {
    let groups = scores(validation).into_iter().map(|of: GroupScore| {
        let peer =
            of.peer.map(|peer| json!({"name": peer.name, "in_sample": peer.is_in_sample, "error": score(&peer.score)}));
        json!({"group": of.group, "half": of.half.map(Half::name), "error": score(&of.score),
            "baseline": of.baseline.as_ref().map(score), "best_peer": peer})
    });
    let rows = validation.cases.iter().zip(&validation.halves).map(|(case, half)| {
        let prediction = case.prediction;
        json!({"row_id": case.run.id, "group": case.run.group, "half": half.map(Half::name),
            "measured_s": case.measured, "predicted_s": prediction.map(|it| it.seconds), "error": case.error(),
            "predicted_memory_bytes": prediction.map(|it| it.memory.total().get()), "predicted_memory_parts": prediction.map(|it| parts(&it.memory)), "memory_error": memory::error(case),
            "usable_memory_bytes": prediction.map(|it| it.capacity.get()),
            "fits": prediction.map(|it| it.fits()), "reason": case.reason})
    });
    let ranks = ranks::ranks(validation).into_iter().map(|of| {
        json!({"group": of.group, "row_id": of.first, "plans": of.plans, "tau_b": of.tau, "regret": of.regret,
            "regret_of_best_of_three": of.best_of_three})
    });
    let ratios = ratios::ratios(validation).into_iter().map(|of| json!({"kind": of.kind, "error": score(&of.score)}));
    let calls = memory::calls(validation)
        .into_iter()
        .map(|of| json!({"row_id": of.row, "share_of_usable": of.share, "false": of.is_false, "why_not": of.why}));
    let bars = bars::bars(validation).into_iter().map(|of| {
        json!({"what": of.what, "half": of.half, "measure": of.measure, "of": of.count, "bar": of.bar,
            "reached": of.reached, "met": of.is_met()})
    });
    let is_ours = validation.halves.iter().any(Option::is_some);
    json!({"physics_version": PHYSICS_VERSION, "groups": groups.collect::<Vec<_>>(),
        "memory": memories(validation), "out_of_memory_calls": calls.collect::<Vec<_>>(),
        "ranks": ranks.collect::<Vec<_>>(), "ratios": ratios.collect::<Vec<_>>(),
        "bars": is_ours.then(|| bars.collect::<Vec<_>>()), "rows": rows.collect::<Vec<_>>()})
}

/// The parts of an account for programs, in bytes.
fn parts(account: &Footprint) -> Value {
    json!({
        "weights": account.weights.get(), "gradients": account.gradients.get(), "optimizer": account.optimizer.get(),
        "activations": account.activations.get(), "temporary": account.temporary.get(), "logits": account.logits.get(),
        "buffers": account.buffers.get(), "stage": account.stage,
    })
}

/// The memory errors of each group for programs.
fn memories(validation: &Validation) -> Vec<Value> {
    let groups = validation.cases.iter().map(|case| case.run.group.as_str()).unique();
    let of = |group: &str| {
        let members = validation.cases.iter().filter(|case| case.run.group == group);
        Some(json!({"group": group, "error": score(&memory::score(members)?)}))
    };
    groups.filter_map(of).collect()
}
