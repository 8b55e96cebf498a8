//! `memory_margin`: local memory less reserve and peak; below zero where the point does not fit.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct MemoryMargin;

impl Metric for MemoryMargin {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Max)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "local memory less reserve and peak; below zero where the point does not fit"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.system.memory.usable().as_real() - outcome.memory()?)
    }
}
