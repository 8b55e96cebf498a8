//! `dp_busy`: time in which data-parallel communication goes on, hidden or not.
//!
//! Its latencies, and its chunks on their way through the dimensions, those of weights that are not asked for ahead too. What it
//! waits for does not count: a dimension that other traffic uses, gradients that are not there yet, weights that are not needed
//! yet. Nor does the time that computations lose beside it.

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
        "time in which data-parallel communication goes on, hidden or not; not what it waits for"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.report?.data_busy.as_seconds())
    }
}
