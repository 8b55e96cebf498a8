//! `dimK_wire_time`: time on the wire in the dimension, by bytes and bandwidth alone.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct DimWire;

impl Metric for DimWire {
    fn unit(&self) -> Unit {
        Unit::SECOND
    }

    fn scope(&self) -> Scope {
        Scope::Dimension("wire_time")
    }

    fn meaning(&self) -> &'static str {
        "time on the wire in the dimension, by bytes and bandwidth alone"
    }

    fn value(&self, outcome: &Outcome<'_>, dim: usize) -> Option<f64> {
        Some(outcome.report?.wire[dim].as_seconds())
    }
}
