//! `num_microbatches`: microbatches of a step, per replica.

use super::{Metric, Outcome, Scope};
use crate::column::Dtype;
use crate::units::{Unit, real};

/// See the module.
pub struct NumMicrobatches;

impl Metric for NumMicrobatches {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn dtype(&self) -> Dtype {
        Dtype::Count
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "microbatches of a step, per replica"
    }

    fn is_of_question(&self) -> bool {
        true
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(real(outcome.training()?.num_microbatches()))
    }
}
