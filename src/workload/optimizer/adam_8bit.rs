//! Adam with moments of 8 bits, each block of which has a scale [Dettmers22].

use super::{Moments, Part, UpdateRule};

/// Bytes of an element: one, and the 4 of a scale over a block of 2,048 [Dettmers22].
const ELEMENT: f64 = 1.0 + 4.0 / 2048.0;

/// See the module.
pub struct Adam8bit;

impl UpdateRule for Adam8bit {
    /// Two elements a parameter; those of embeddings and of small vectors stay as they are [Dettmers22].
    fn moments(&self, part: Part, moment: f64) -> Moments {
        match part {
            Part::Matrix => Moments::each(2.0 * ELEMENT),
            Part::Table | Part::Vector => Moments::each(2.0 * moment),
        }
    }

    fn summary(&self) -> &'static str {
        "Adam with moments of 8 bits, but for those of embedding, head and norms [Dettmers22]"
    }

    fn example(&self) -> &'static str {
        "a master copy of 4 B and two moments of 1.002 B: 6.004 B a parameter of a layer, half of Adam's"
    }
}
