//! `exposed_pp`: time in which only messages between stages go on.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ExposedPp;

impl Metric for ExposedPp {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time in which only messages between stages go on"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Pipeline)
    }
}
