//! Memory: predicted against allocated bytes, and runs that were measured and do not fit by our account.

use super::Validation;
use super::bars;
use super::predict::{Case, predict};
use super::score::Score;
use crate::run::evaluate::Evaluator;
use crate::sweep::key::Id;
use crate::sweep::recompute;
use crate::units::{Bytes, narrow};
use crate::workload::Recompute;

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

/// A run that does not fit by our account.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The row.
    pub row: String,
    /// Predicted over usable bytes.
    pub share: f64,
    /// Whether the call is false: everything that matters is published, or nothing that is not makes it fit.
    pub is_false: bool,
    /// Why it is not.
    pub why: String,
}

/// The error of the predicted memory of a run, as a share; none if none was measured.
#[must_use]
pub fn error(case: &Case) -> Option<f64> {
    let prediction = case.prediction?;
    let of = |predicted: Bytes, column: &str| Some(predicted.as_real() / (case.run.number(column)? * GIB) - 1.0);
    of(prediction.memory.total(), "memory_gib").or_else(|| of(prediction.on_device, "device_memory_gib"))
}

/// The memory errors of some runs.
pub fn score<'a>(cases: impl Iterator<Item = &'a Case>) -> Option<Score> {
    Score::of(&cases.filter_map(error).collect::<Vec<_>>())
}

/// Every run that does not fit by our account.
#[must_use]
pub fn calls(validation: &Validation) -> Vec<Call> {
    let full = validation.cases.iter().filter(|case| case.prediction.is_some_and(|prediction| !prediction.fits()));
    let mut evaluator = Evaluator::default();
    full.filter_map(|case| call(case, &mut evaluator)).collect()
}

fn call(case: &Case, evaluator: &mut Evaluator) -> Option<Call> {
    let prediction = case.prediction?;
    let impossible = bars::impossible(&case.run.id);
    let why = if let Some(why) = &impossible {
        why.as_str()
    } else if case.run.text("micro_batch").is_none() && case.run.other_family().is_none() {
        "the micro batch is not published"
    } else if case.run.text("recompute").is_none() && fits_somehow(case, evaluator) {
        "it fits with more recomputation, which is not published"
    } else {
        ""
    };
    let share = prediction.memory.total().as_real() / prediction.capacity.as_real();
    Some(Call { row: case.run.id.clone(), share, is_false: why.is_empty(), why: why.to_owned() })
}

/// Whether any recomputation makes a run fit.
fn fits_somehow(case: &Case, evaluator: &mut Evaluator) -> bool {
    let Some(question) = &case.question else { return false };
    let mut sets = (0..Recompute::COUNT).map(Recompute::from_bits).filter(|set| set.is_sound());
    sets.any(|set| {
        let mut inputs = question.inputs.clone();
        inputs.set(narrow(Id::Recompute as u64), recompute::number(set), true);
        inputs.complete();
        predict(&inputs, evaluator).is_ok_and(|prediction| prediction.fits())
    })
}
