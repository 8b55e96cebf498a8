//! `token_energy`: energy of a step over its tokens.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;

/// See the module.
pub struct TokenEnergy;

impl Metric for TokenEnergy {
    fn unit(&self) -> Unit {
        Unit::JOULE_PER_TOKEN
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "energy of a step over its tokens"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.per_token(outcome.bill.energy(outcome.npus, outcome.seconds()?)?)
    }
}
