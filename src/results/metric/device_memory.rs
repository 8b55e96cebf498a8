//! `device_memory`: what the tools of the fullest NPU show in use.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct DeviceMemory;

impl Metric for DeviceMemory {
    fn unit(&self) -> Unit {
        Unit::BYTE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "what the tools of the fullest NPU show in use: the peak, `software.cached` of it, and the reserve; at most the capacity"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        let shown = outcome.footprint?.on_device(outcome.system).as_real() + outcome.unseen;
        Some(shown.clamp(0.0, outcome.system.memory.capacity.as_real()))
    }
}
