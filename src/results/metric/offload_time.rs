//! `offload_time`: time in which there are only transfers between memories, and what those beside layers cost these.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct OffloadTime;

impl Metric for OffloadTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time in which there are only transfers between memories, and what those beside layers cost these [Ren21]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Offload)
    }
}
