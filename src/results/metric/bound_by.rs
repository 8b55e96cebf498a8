//! `bound_by`: the part of a step that takes longest.

use super::{Metric, Outcome, Scope};
use crate::column::Dtype;
use crate::units::{Unit, real};
use crate::workload::program::Account;

/// The parts of a step's time: its accounts, in their order, the bubble, the local memory.
const WORDS: [&str; Account::COUNT + 2] =
    [
    "compute",
    "recompute",
    "tp",
    "cp",
    "ep",
    "pp",
    "dp",
    "gather",
    "optimizer",
    "offload",
    "host",
    "tables",
    "bubble",
    "memory",
];

/// See the module.
pub struct BoundBy;

impl Metric for BoundBy {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn dtype(&self) -> Dtype {
        Dtype::Text
    }

    fn words(&self) -> &'static [&'static str] {
        &WORDS
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "what binds, the longest part of the time: arithmetic (compute), the local memory beneath it (memory), recompute, exposed traffic of tp, cp, ep, pp or dp, weights that are not asked for ahead (gather), the optimizer, offload, the host, all-to-alls of tables, the bubble"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        Some(real(outcome.bound()?.0 as u64))
    }
}
