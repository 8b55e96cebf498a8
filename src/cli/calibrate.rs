//! `calibrate`: constants fitted to measured runs.

use serde_json::{Value, json};

use super::args::CalibrateArgs;
use super::exit::{Exit, WrongFlag};
use super::render;
use super::validate::{half_name, measured, score, text, wrong};
use crate::engine::PHYSICS_VERSION;
use crate::run::calibrate::constant::read;
use crate::run::calibrate::{
    Ask, Calibration, GroupErrors, Unfit, calibrate as fit, our_constants, usual_constants, written,
};
use crate::run::validate::sections::{percent, signed_percent};
use crate::run::validate::{Half, Score};
use crate::units::count;

/// Reads, fits and tells.
pub fn calibrate(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let validation = match measured(args.measurements.as_deref())? {
        Ok(validation) => validation,
        Err(remarks) => return Ok(wrong(&remarks)),
    };
    let constants = match (&args.constants, &args.measurements) {
        (Some(path), _) => read(&path.display().to_string(), &text(path)?),
        (None, None) => our_constants(),
        (None, Some(_)) => Ok(usual_constants(&validation)),
    };
    let constants = match constants {
        Ok(constants) => constants,
        Err(remarks) => return Ok(wrong(&remarks)),
    };
    let ask = Ask { half: args.half, leave_out: args.leave_out.clone(), leaves_each_out: args.leave_one_source_out };
    let calibration = fit(&validation, &constants, &ask).map_err(|unfit| unfitted(&unfit))?;
    if args.json {
        anstream::println!("{}", object(&calibration));
    } else {
        tell(&calibration);
    }
    Ok(Exit::Complete)
}

/// Why nothing was fitted, as a flag or a file that is wrong.
fn unfitted(unfit: &Unfit) -> anyhow::Error {
    let help = match unfit {
        Unfit::NoRuns => "`starsweep validate --rows` says of each row why",
        Unfit::NoConstants => "name presets that the runs use, in the file of `--constants`",
        Unfit::Zero(_) => "leave it out of the constants",
        Unfit::NoHalves => "leave out `--half`",
        Unfit::NoGroup(_) => "`starsweep validate` has all groups",
    };
    WrongFlag { message: unfit.to_string(), help: Some(help.to_owned()) }.into()
}

fn tell(calibration: &Calibration) {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let constants: Vec<Vec<String>> = calibration
        .constants
        .iter()
        .map(|fitted| {
            let value = |value: f64| written(&fitted.constant, value);
            let runs = count(fitted.runs as u64);
            vec![value(fitted.before), value(fitted.after), percent(fitted.spread), runs, fitted.constant.name()]
        })
        .collect();
    anstream::println!("{}\n", render::table(&words(&["before", "after", "spread", "runs", "constant"]), &constants));
    let line = |name: &str, score: &Score| {
        vec![
            name.to_owned(),
            percent(score.mean),
            percent(score.median),
            percent(score.worst),
            signed_percent(score.bias),
        ]
    };
    let mut errors = vec![line("before", &calibration.before), line("after", &calibration.after)];
    errors.extend(calibration.one_by_one.iter().map(|score| line("each without itself", score)));
    anstream::println!("errors of the {} runs of the fit\n", count(calibration.after.rows as u64));
    anstream::println!("{}\n", render::table(&words(&["", "mean", "median", "worst", "bias"]), &errors));
    let groups: Vec<Vec<String>> = calibration
        .groups
        .iter()
        .map(|of| {
            let fitted = if of.is_fitted { "yes" } else { "no" };
            let name =
                vec![of.group.clone(), half_name(of.half).to_owned(), fitted.to_owned(), of.after.rows.to_string()];
            let shares = [of.before.mean, of.after.mean, of.after.median, of.after.worst].map(percent);
            name.into_iter().chain(shares).chain([signed_percent(of.after.bias)]).collect()
        })
        .collect();
    let header = ["group", "half", "fitted", "rows", "mean before", "mean", "median", "worst", "bias"];
    anstream::println!("{}\n", render::table(&words(&header), &groups));
    if !calibration.without_group.is_empty() {
        let rows: Vec<Vec<String>> =
            calibration.without_group.iter().map(|(group, score)| line(group, score)).collect();
        anstream::println!("errors of each group where it takes no part in the fit\n");
        anstream::println!("{}\n", render::table(&words(&["group", "mean", "median", "worst", "bias"]), &rows));
    }
    anstream::println!("in a sweep:\n\n{}", calibration.presets());
}

/// The answer for programs.
fn object(calibration: &Calibration) -> Value {
    let constants = calibration.constants.iter().map(|fitted| {
        let constant = &fitted.constant;
        json!({"key": constant.key, "kind": constant.kind, "presets": constant.presets, "before": fitted.before,
            "after": fitted.after, "spread": fitted.spread, "rows": fitted.runs})
    });
    let groups = calibration.groups.iter().map(|of: &GroupErrors| {
        json!({"group": of.group, "half": of.half.map(Half::name), "fitted": of.is_fitted,
            "before": score(&of.before), "after": score(&of.after)})
    });
    let without = calibration.without_group.iter().map(|(group, of)| json!({"group": group, "error": score(of)}));
    json!({"physics_version": PHYSICS_VERSION, "constants": constants.collect::<Vec<_>>(),
        "before": score(&calibration.before), "after": score(&calibration.after),
        "leave_one_out": calibration.one_by_one.as_ref().map(score), "groups": groups.collect::<Vec<_>>(),
        "leave_one_source_out": without.collect::<Vec<_>>(), "sweep": calibration.presets()})
}
