//! `recompute_time`: time of arithmetic done again in the backward pass.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct RecomputeTime;

impl Metric for RecomputeTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time of arithmetic done again in the backward pass"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Recompute)
    }
}
