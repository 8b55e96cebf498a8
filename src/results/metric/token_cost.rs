//! `token_cost`: cost of a step over its tokens.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct TokenCost;

impl Metric for TokenCost {
    fn unit(&self) -> Unit {
        Unit::DOLLAR_PER_TOKEN
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "cost of a step over its tokens"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.per_token(outcome.bill.cost(outcome.npus, outcome.seconds()?)?)
    }
}
