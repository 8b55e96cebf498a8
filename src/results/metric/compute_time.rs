//! `compute_time`: time of the model's own arithmetic on the busiest stage, by roofline.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ComputeTime;

impl Metric for ComputeTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Step
    }

    fn meaning(&self) -> &'static str {
        "time of the model's own arithmetic on the busiest stage, by roofline; of a recorded trace, of all computations of the rank that \
         ends last [Williams09]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Compute)
    }
}
