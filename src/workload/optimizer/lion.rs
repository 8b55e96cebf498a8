//! Lion: the sign of a mix of gradient and momentum, so one moment is enough [Chen23].

use super::{Moments, Part, UpdateRule};

/// See the module.
pub struct Lion;

impl UpdateRule for Lion {
    /// One element a parameter.
    fn moments(&self, _part: Part, moment: f64) -> Moments {
        Moments::each(moment)
    }

    fn summary(&self) -> &'static str {
        "the sign of a mix of gradient and momentum [Chen23]"
    }

    fn example(&self) -> &'static str {
        "a master copy of 4 B and a momentum in bf16, `precision: {moment: 2 B}`: 6 B a parameter"
    }
}
