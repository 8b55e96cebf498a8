//! `dp_busy`: time that data-parallel communication takes, hidden or not.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct DpBusy;

impl Metric for DpBusy {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time that data-parallel communication takes, hidden or not"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.report?.data_busy.as_seconds())
    }
}
