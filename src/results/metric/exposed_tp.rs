//! `exposed_tp`: time in which only tensor-parallel communication goes on.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ExposedTp;

impl Metric for ExposedTp {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time in which only tensor-parallel communication goes on"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Tensor)
    }
}
