//! Row-wise Adagrad: of a table the mean square of each row's gradients; of all else Adagrad's sum for each parameter [Mudigere22].

use super::{Moments, Part, UpdateRule};

/// See the module.
pub struct RowwiseAdagrad;

impl UpdateRule for RowwiseAdagrad {
    /// One element a row of a table (its columns, a few hundred, count too), else one a parameter.
    fn moments(&self, part: Part, moment: f64) -> Moments {
        match part {
            Part::Table => Moments { parameter: 0.0, side: moment },
            Part::Matrix | Part::Vector => Moments::each(moment),
        }
    }

    fn summary(&self) -> &'static str {
        "a mean square for each row of a table, one for each parameter of all else [Mudigere22]"
    }

    fn example(&self) -> &'static str {
        "a row of 128 elements: 4 B for the 512 B of Adagrad's moment of each, and for Adam's 1,024 B"
    }
}
