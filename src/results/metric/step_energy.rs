//! `step_energy`: energy of the NPUs in a step.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct StepEnergy;

impl Metric for StepEnergy {
    fn unit(&self) -> Unit {
        Unit::JOULE
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Step
    }

    fn meaning(&self) -> &'static str {
        "energy of the NPUs in a step: `npus` x `npu.power` x time, hosts and cooling left out; nothing without a power"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.bill.energy(outcome.npus, outcome.seconds()?)
    }
}
