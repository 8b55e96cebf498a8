//! `exposed_tp`: time in which only tensor-parallel communication goes on.

use super::{Metric, Outcome, Scope};
use crate::column::{Dtype};
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ExposedTp;

impl Metric for ExposedTp {
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
        "time in which only tensor-parallel communication goes on"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.exposed(Account::Tensor)
    }
}
