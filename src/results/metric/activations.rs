//! `activations`: activations of all microbatches in flight on the fullest NPU.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Activations;

impl Metric for Activations {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "activations of all microbatches in flight on the fullest NPU [Korthikanti22]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.activations.as_real())
    }
}
