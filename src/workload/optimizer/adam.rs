//! Adam, with decoupled weight decay or without: the mean of gradients and that of their squares [Kingma15].

use super::{Moments, Part, UpdateRule};

/// See the module.
pub struct Adam;

impl UpdateRule for Adam {
    /// Two elements a parameter.
    fn moments(&self, _part: Part, moment: f64) -> Moments {
        Moments::each(2.0 * moment)
    }

    fn summary(&self) -> &'static str {
        "a mean of gradients and one of their squares [Kingma15]"
    }

    fn example(&self) -> &'static str {
        "a master copy and two moments of 4 B: 12 B a parameter; an update moves 2 x 12 B, the gradient of 4 B, the weight of 2 B"
    }
}
