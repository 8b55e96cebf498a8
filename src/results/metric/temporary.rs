//! `temporary`: what lives for a moment on the fullest NPU.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Temporary;

impl Metric for Temporary {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "what lives for a moment on the fullest NPU: what is computed again in a layer, gradients of its activations and of its widest matrix"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.temporary.as_real())
    }
}
