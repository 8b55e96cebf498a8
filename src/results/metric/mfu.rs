//! `mfu`: model FLOPs (causal attention, no recomputation) over time, NPUs and peak.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct Mfu;

impl Metric for Mfu {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Max)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "model FLOPs (causal attention, no recomputation) over time, NPUs and peak [Korthikanti22]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(outcome.model_rate()? / outcome.system.npu.peak.get())
    }
}
