//! Predictions: every measured run as a point of a sweep, and what came of it.

use rayon::prelude::*;

use super::known::Known;
use super::measurement::Measurement;
use super::question::{Question, Unasked, question};
use crate::input::Diagnostic;
use crate::run::evaluate::{Evaluation, Evaluator};
use crate::sweep::key::Id;
use crate::sweep::{Inputs, point};
use crate::units::Bytes;
use crate::workload::Footprint;

/// A measured run, and what we make of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The run.
    pub run: Measurement,
    /// Its point, if it is one.
    pub question: Option<Question>,
    /// What was measured: seconds of a step.
    pub measured: Option<f64>,
    /// What we predict.
    pub prediction: Option<Prediction>,
    /// Why there is no prediction, or nothing to hold it to.
    pub reason: Option<String>,
    /// Mistakes in the run's cells.
    pub mistakes: Vec<Diagnostic>,
}

/// What we predict of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Seconds of a step.
    pub seconds: f64,
    /// Bytes on the fullest NPU.
    pub memory: Footprint,
    /// Bytes in use there as its own tools show it.
    pub on_device: Bytes,
    /// Bytes that an NPU has for them.
    pub capacity: Bytes,
}

impl Prediction {
    /// Whether by our account the run fits, as it did.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.memory.total() <= self.capacity
    }
}

impl Case {
    /// Predicted over measured time, less 1; none if one of the two is missing.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some(self.prediction?.seconds / self.measured? - 1.0)
    }
}

/// Asks for every run, on as many threads as there are.
#[must_use]
pub fn cases(runs: Vec<Measurement>, known: &Known) -> Vec<Case> {
    runs.into_par_iter().map_init(Evaluator::default, |evaluator, run| case(run, known, evaluator)).collect()
}

fn case(run: Measurement, known: &Known, evaluator: &mut Evaluator) -> Case {
    let asked = question(&run, known);
    let measured = run
        .step_seconds(asked.as_ref().map_or(f64::NAN, |asked| peak(&asked.inputs)))
        .filter(|seconds| !seconds.is_nan());
    let mut case = Case { run, question: None, measured, prediction: None, reason: None, mistakes: Vec::new() };
    match asked {
        Ok(asked) => {
            match predict(&asked.inputs, evaluator) {
                Ok(prediction) => case.prediction = Some(prediction),
                Err(reason) => case.reason = Some(reason),
            }
            case.question = Some(asked);
        }
        Err(Unasked::Reason(reason)) => case.reason = Some(reason),
        Err(Unasked::Mistakes(found)) => {
            case.reason = found.first().map(|mistake| mistake.message.clone());
            case.mistakes = found;
        }
    }
    if case.reason.is_none() && case.measured.is_none() {
        case.reason = Some("no step time is published".to_owned());
    }
    case
}

/// The peak rate of the format that a point computes in.
fn peak(inputs: &Inputs) -> f64 {
    point::system(inputs).npu.peak.get()
}

/// What we predict of a point.
///
/// # Errors
/// Why it cannot be.
pub fn predict(inputs: &Inputs, evaluator: &mut Evaluator) -> Result<Prediction, String> {
    let (job, system) = Evaluator::question(inputs);
    let evaluation = evaluator.evaluate(&job, &system, point::fidelity(inputs));
    let Evaluation { footprint, report } = evaluation.map_err(|infeasible| infeasible.reason.meaning().to_owned())?;
    // What is usable for the sake of the prediction is more than there is.
    let hbm = Bytes::from_real(inputs.key(Id::Hbm));
    let on_device = footprint.on_device(&system).min(hbm);
    let capacity = Bytes::new(hbm.get().saturating_sub(system.memory.reserve.get()));
    Ok(Prediction { seconds: report.total.as_seconds(), memory: footprint, on_device, capacity })
}
