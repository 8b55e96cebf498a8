//! `dimK_sent`: bytes that an NPU sends in the dimension.

use super::{Metric, Outcome, Scope};
use crate::units::{Unit, real};

/// See the module.
pub struct DimSent;

impl Metric for DimSent {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Dimension("sent")
    }

    fn meaning(&self) -> &'static str {
        "bytes that an NPU sends in the dimension: of each collective what its busiest member sends"
    }

    fn value(&self, outcome: &Outcome<'_>, dim: usize) -> Option<f64> {
        Some(real(outcome.report?.sent[dim]))
    }
}
