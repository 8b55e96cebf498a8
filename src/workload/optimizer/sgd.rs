//! Stochastic gradient descent without anything kept [Naumov19 trains so].

use super::{Moments, Part, UpdateRule};

/// See the module.
pub struct Sgd;

impl UpdateRule for Sgd {
    /// Nothing.
    fn moments(&self, _part: Part, _moment: f64) -> Moments {
        Moments::each(0.0)
    }

    fn summary(&self) -> &'static str {
        "nothing but the master copy: what DLRM's authors train with [Naumov19]"
    }

    fn example(&self) -> &'static str {
        "a master copy of 4 B for Adam's 12 B a parameter; of a table, which is its own, nothing"
    }
}
