//! Adafactor: the squares of a matrix's gradients as a mean for each row and one for each column [Shazeer18].

use super::{Moments, Part, UpdateRule};

/// See the module. Without a first moment, which is how it is used to save memory.
pub struct Adafactor;

impl UpdateRule for Adafactor {
    /// An element for each row and each column of what has both; for each parameter of vectors.
    fn moments(&self, part: Part, moment: f64) -> Moments {
        match part {
            Part::Matrix | Part::Table => Moments { parameter: 0.0, side: moment },
            Part::Vector => Moments::each(moment),
        }
    }

    /// For the means of rows and columns, for the size of the update by which it is clipped, for the update
    /// [Shazeer18, algorithm 4].
    fn gradient_reads(&self) -> f64 {
        3.0
    }

    fn summary(&self) -> &'static str {
        "mean squares of gradients by row and by column, no first moment [Shazeer18]"
    }

    fn example(&self) -> &'static str {
        "a matrix of 4,096 x 14,336: 18,432 elements for Adam's 2 x 58.7 million; with a master copy 4.001 B a parameter"
    }
}
