//! `bubble`: idle for want of a microbatch.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct Bubble;

impl Metric for Bubble {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "idle for want of a microbatch [Narayanan21]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.report?.bubble.as_seconds())
    }
}
