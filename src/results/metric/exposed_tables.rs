//! `exposed_tables`: time in which only the all-to-alls of embedding tables go on.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ExposedTables;

impl Metric for ExposedTables {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Family("dlrm")
    }

    fn meaning(&self) -> &'static str {
        "time in which only the all-to-alls of embedding tables go on, of sums of rows and of their gradients [Naumov19]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Tables)
    }
}
