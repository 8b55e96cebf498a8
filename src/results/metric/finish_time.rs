//! `finish_time`: the collective, from its start to its end on every rank.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct FinishTime;

impl Metric for FinishTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Collective
    }

    fn meaning(&self) -> &'static str {
        "the collective or the recorded trace, from its start to its end on every rank [ASTRA2]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.report?.total.as_seconds())
    }
}
