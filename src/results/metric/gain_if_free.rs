//! `gain_if_free`: how many times as fast the step would be if what binds took no time and all else took as long: T / (T - t).

use super::{Metric, Outcome, Scope};
use crate::units::{Time, Unit};

/// See the module.
pub struct GainIfFree;

impl Metric for GainIfFree {
    fn unit(&self) -> Unit {
        Unit::NONE
    }

    fn scope(&self) -> Scope {
        Scope::Training
    }

    fn meaning(&self) -> &'static str {
        "how many times as fast the step would be if what binds took no time and all else took as long: T / (T - t)"
    }

    fn value(&self, outcome: &Outcome<'_>, _dim: usize) -> Option<f64> {
        let left = outcome.report?.total.saturating_sub(outcome.bound()?.1);
        (left > Time::ZERO).then_some(outcome.seconds()? / left.as_seconds())
    }
}
