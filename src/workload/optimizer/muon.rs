//! Muon: the momentum of a matrix is made orthogonal before it is added; all else goes by Adam [Jordan24].

use super::{Moments, Part, Products, UpdateRule};
use crate::system::kernel::Product;
use crate::workload::matrix::Matrix;

/// Newton-Schulz steps of an update [Jordan24].
const STEPS: f64 = 5.0;

/// See the module.
pub struct Muon;

impl UpdateRule for Muon {
    /// One element a parameter of a matrix; Adam's two of embedding, head and norms [Liu25].
    fn moments(&self, part: Part, moment: f64) -> Moments {
        match part {
            Part::Matrix => Moments::each(moment),
            Part::Table | Part::Vector => Moments::each(2.0 * moment),
        }
    }

    fn products(&self) -> Option<Products> {
        Some(newton_schulz)
    }

    fn summary(&self) -> &'static str {
        "a matrix's momentum made orthogonal by five Newton-Schulz steps; embedding, head and norms by Adam [Jordan24]"
    }

    fn example(&self) -> &'static str {
        "a matrix of 4,096 x 14,336: 4 B a parameter for Adam's 8 B, and 5 (0.48 + 0.14 + 0.48) = 5.5 TFLOP an update"
    }
}

/// Five steps of X to a X + (b A + c A^2) X with A = X X^T, along the shorter side, in bf16:
///
/// ```text
/// 5 (2 m^2 n + 2 m^3 + 2 m^2 n) FLOPs for m x n, m the shorter side                        [Jordan24]
/// ```
///
/// Matrices of one shape go together.
fn newton_schulz(matrix: &Matrix) -> [Product; 3] {
    let (short, long) = (matrix.rows.min(matrix.columns), matrix.rows.max(matrix.columns));
    let count = STEPS * matrix.count;
    let product =
        |columns, depth| Product { rows: short, columns, depth, count, is_cast: false, efficiency: 1.0 };
    [product(short, long), product(short, short), product(long, short)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Kernel;

    #[test]
    fn a_matrix_of_4096_by_14336_takes_5_5_tflop() {
        for (rows, columns) in [(4096.0, 14336.0), (14336.0, 4096.0)] {
            let products = newton_schulz(&Matrix { rows, columns, count: 1.0 });
            let flops: f64 = products.into_iter().map(|product| Kernel::Product(product).flops()).sum();
            // 5 (4 m^2 n + 2 m^3) with m = 4096, n = 14336.
            assert!((flops / 5.498e12 - 1.0).abs() < 1e-3, "{flops}");
        }
    }
}
