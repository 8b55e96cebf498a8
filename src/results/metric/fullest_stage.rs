//! `fullest_stage`: the pipeline stage whose memory is fullest.

use super::{Metric, Outcome, Scope};
use crate::column::Dtype;
use crate::units::{Unit, real};

/// See the module.
pub struct FullestStage;

impl Metric for FullestStage {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn dtype(&self) -> Dtype {
        Dtype::Count
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "the pipeline stage whose memory is fullest"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(real(outcome.footprint?.stage))
    }
}
