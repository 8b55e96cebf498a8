//! `optimizer`: optimizer states in the local memory of the fullest NPU.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Optimizer;

impl Metric for Optimizer {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "optimizer states in the local memory of the fullest NPU [Rajbhandari20]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.optimizer.as_real())
    }
}
