//! Stochastic gradient descent with momentum: one moving sum of gradients [Polyak64].

use super::{Moments, Part, UpdateRule};

/// See the module.
pub struct SgdMomentum;

impl UpdateRule for SgdMomentum {
    /// One element a parameter.
    fn moments(&self, _part: Part, moment: f64) -> Moments {
        Moments::each(moment)
    }

    fn summary(&self) -> &'static str {
        "a moving sum of gradients [Polyak64]"
    }

    fn example(&self) -> &'static str {
        "a master copy and a momentum of 4 B: 8 B a parameter, two thirds of Adam's"
    }
}
