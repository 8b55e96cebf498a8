//! `sample_rate`: samples of a step over its time.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::{Unit, real};

/// See the module.
pub struct SampleRate;

impl Metric for SampleRate {
    fn unit(&self) -> Unit {
        Unit::SEQUENCE_RATE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Max)
    }

    fn scope(&self) -> Scope {
        Scope::Family("dlrm")
    }

    fn meaning(&self) -> &'static str {
        "samples of a step (queries) over its time; a sample of a `dlrm` counts as a sequence of one token, so `throughput` is the same number"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(real(outcome.training()?.global_batch) / outcome.seconds()?)
    }
}
