//! `parameters`: parameters of the model, counted from its shape.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Parameters;

impl Metric for Parameters {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "parameters of the model, counted from its shape"
    }

    fn is_of_question(&self) -> bool {
        true
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        outcome.training().map(|training| training.model.parameters(training.seq_len))
    }
}
