//! `exposed_comm`: time in which only communication goes on.

use super::{Metric, Outcome, Scope};
use crate::column::Direction;
use crate::units::Unit;
use crate::workload::program::Account;

/// See the module.
pub struct ExposedComm;

impl Metric for ExposedComm {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn better(&self) -> Option<Direction> {
        Some(Direction::Min)
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "time in which only communication goes on: tp, cp, ep, pp and dp, and of embedding tables, together"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        let data = [Account::Data, Account::Gather, Account::Tables];
        let others = [Account::Tensor, Account::Context, Account::Expert, Account::Pipeline];
        others.into_iter().chain(data).map(|account| outcome.exposed(account)).sum()
    }
}
