//! `offloaded`: what of the fullest NPU lives in tiers beyond its local memory.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Offloaded;

impl Metric for Offloaded {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "weights, activations and optimizer states of the fullest NPU that live in tiers beyond its local memory"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.footprint?.offloaded.as_real())
    }
}
