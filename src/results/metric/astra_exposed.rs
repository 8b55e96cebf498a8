//! `astra_exposed`: of a recorded trace, what the reference calls exposed communication: the end of a rank less its computations [ASTRA2].

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;
use crate::workload::Job;
use crate::workload::program::Account;

/// See the module.
pub struct AstraExposed;

impl Metric for AstraExposed {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Recorded
    }

    fn meaning(&self) -> &'static str {
        "of a recorded trace: the end of the rank that is last, less its computations; memory and waiting are part of it [ASTRA2]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        if *outcome.job == Job::Recorded { outcome.exposed(Account::Data) } else { None }
    }
}
