//! `peak_memory`: local memory that the fullest NPU holds at the peak of a step.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct PeakMemory;

impl Metric for PeakMemory {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "local memory that the fullest NPU holds at the peak of a step"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.memory()
    }
}
