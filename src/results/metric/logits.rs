//! `logits`: logits, the loss and their gradients, on the fullest NPU.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Logits;

impl Metric for Logits {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "logits, the loss and their gradients on the fullest NPU, where its memory is fullest while they are there"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.logits.as_real())
    }
}
