//! `busiest_dim`: the dimension that is longest on the wire, by its name.

use super::{Metric, Outcome, Scope};
use crate::column::Dtype;
use crate::units::{Unit, real};

/// See the module.
pub struct BusiestDim;

impl Metric for BusiestDim {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn dtype(&self) -> Dtype {
        Dtype::Text
    }

    fn scope(&self) -> Scope {
        Scope::Both
    }

    fn meaning(&self) -> &'static str {
        "the dimension that is longest on the wire, by its name"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(real(outcome.report?.busiest()? as u64))
    }
}
