//! `iteration_time`: one optimizer step, from start to end.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct IterationTime;

impl Metric for IterationTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Step
    }

    fn meaning(&self) -> &'static str {
        "one optimizer step, or the recorded trace, from start to end: all accounts and the bubble [Narayanan21]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.report?.total.as_seconds())
    }
}
