//! `memory_time`: of computing, what the bandwidth of the local memory bounds.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct MemoryTime;

impl Metric for MemoryTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "of `compute_time`, what kernels take that the bandwidth of the local memory bounds and not arithmetic [Williams09]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.training()?;
        Some(outcome.report?.memory_bound.as_seconds())
    }
}
