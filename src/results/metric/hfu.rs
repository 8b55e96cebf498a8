//! `hfu`: MFU with the FLOPs that recomputation adds.

use super::{Metric, Outcome, Scope};
use crate::units::Unit;

/// See the module.
pub struct Hfu;

impl Metric for Hfu {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "model FLOPs and those that recomputation adds (full: all layers forward again; selective: the core of attention) over time, NPUs and peak [Korthikanti22]"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        let training = outcome.training()?;
        let again = training.flops_again() / outcome.seconds()? / outcome.npus;
        Some((outcome.model_rate()? + again) / outcome.system.npu.peak.get())
    }
}
