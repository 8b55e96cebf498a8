//! `optimizer_time`: time of the optimizer's update.

use super::{Metric, Outcome, Scope};
use crate::column::{Dtype};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct OptimizerTime;

impl Metric for OptimizerTime {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn dtype(&self) -> Dtype {
        Dtype::Real
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time of the optimizer's update"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Optimizer)
    }
}
