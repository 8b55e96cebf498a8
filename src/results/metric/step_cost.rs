//! `step_cost`: cost of a step, as far as it is said.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct StepCost;

impl Metric for StepCost {
    fn unit(&self) -> Unit {
        Unit::DOLLAR
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Step
    }

    fn meaning(&self) -> &'static str {
        "cost of a step, as far as it is said: `npus` x time x (`npu.rent` + prices / `lifetime`) + energy x `energy_price`; prices: of an NPU, its bandwidth, its share of tiers"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.bill.cost(outcome.npus, outcome.seconds()?)
    }
}
