//! `exposed_dp`: time in which only data-parallel communication goes on.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ExposedDp;

impl Metric for ExposedDp {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time in which only data-parallel communication goes on"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        [Account::Data, Account::Gather].into_iter().map(|account| outcome.exposed(account)).sum()
    }
}
