//! `throughput`: tokens of a step over its time.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::{Unit, real};

/// See the module.
pub struct Throughput;

impl Metric for Throughput {
    fn unit(&self) -> Unit {
        Unit::TOKEN_RATE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Max)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "tokens of a step over its time"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(real(outcome.training()?.tokens()) / outcome.report?.total.as_seconds())
    }
}
