//! `npu_rate`: model FLOPs (causal attention, no recomputation) of an NPU a second.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct NpuRate;

impl Metric for NpuRate {
    fn unit(&self) -> Unit {
        Unit::FLOP_RATE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Max)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "model FLOPs (causal attention, no recomputation) of an NPU a second"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.model_rate()
    }
}
