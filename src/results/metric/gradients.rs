//! `gradients`: gradients on the fullest NPU.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Gradients;

impl Metric for Gradients {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "gradients on the fullest NPU [Rajbhandari20]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.gradients.as_real())
    }
}
