//! `buffers`: room for communication on the fullest NPU.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Buffers;

impl Metric for Buffers {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "room for communication on the fullest NPU: gathered layers, gradients that are not cut yet, keys and values of other ranks"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.buffers.as_real())
    }
}
