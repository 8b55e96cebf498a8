//! DLRM: recommendation by embedding tables, which are spread over NPUs, and two MLPs, which every NPU has [Naumov19].
//!
//! A sample is a vector of dense features and, for each table, the numbers of a few of its rows. The bottom MLP makes a vector of the
//! dense features; of each table the sum of the rows is taken; the interaction brings these vectors together for the top MLP, which
//! gives one number. A sample counts as one token.

pub mod memory;
pub mod share;
pub mod step;

pub use share::Share;

use super::Family;
use crate::system::System;
use crate::units::real;
use crate::workload::Sizes;
use crate::workload::check::fits;
use crate::workload::footprint::Footprint;
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::matrix::Matrix;
use crate::workload::program::Program;

/// Widths of an MLP.
pub type Widths = Sizes<12>;
/// Rows of tables that differ.
pub type Rows = Sizes<32>;

/// A step of training a DLRM.
pub type Training = crate::workload::Training<Dlrm>;

/// How the vectors of a sample come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interaction {
    /// The products of every two of them, beside the vector of the dense features.
    Dot,
    /// One behind the other.
    Cat,
}

impl Interaction {
    /// Every kind, in the order of [`Interaction::NAMES`].
    pub const ALL: [Self; 2] = [Self::Dot, Self::Cat];
    /// The names that people write: those of the authors' `--arch-interaction-op`.
    pub const NAMES: [&'static str; 2] = ["dot", "cat"];
}

/// A deep learning recommendation model. Symbols: T tables, d the embedding dimension, P the pooling factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dlrm {
    /// T.
    pub tables: u64,
    /// Rows of a table, if all have as many; or of each.
    pub rows: Rows,
    /// d.
    pub embedding_dim: u64,
    /// P: rows of a table that a sample names, in the mean of samples and tables.
    pub pooling: f64,
    /// Dense features of a sample.
    pub dense_features: u64,
    /// Widths of the bottom MLP behind its input.
    pub bottom_mlp: Widths,
    /// Widths of the top MLP behind its input.
    pub top_mlp: Widths,
    /// How their vectors come together.
    pub interaction: Interaction,
}

/// Operations of a product for each pair of factors.
const FLOPS_PER_PRODUCT: f64 = 2.0;
/// A step multiplies three times what its forward pass does: backward for the gradients of both factors [Naumov19].
const PASSES: f64 = 3.0;

impl Dlrm {
    /// Rows of all tables.
    #[must_use]
    pub fn all_rows(&self) -> f64 {
        if self.rows.len() == 1 { real(self.tables) * real(self.rows.last()) } else { real(self.rows.iter().sum()) }
    }

    /// Vectors that the interaction brings together: F = T + 1.
    #[must_use]
    pub fn vectors(&self) -> f64 {
        real(self.tables + 1)
    }

    /// Elements of all of them.
    #[must_use]
    pub fn gathered(&self) -> f64 {
        real(self.tables * self.embedding_dim + self.bottom_mlp.last())
    }

    /// What the interaction gives the top MLP: F (F - 1) / 2 + d products and elements, or all elements.
    ///
    /// Worked: 26 tables of 128, dot: 27 * 26 / 2 + 128 = 479, as the authors' benchmark has it.
    #[must_use]
    pub fn interacted(&self) -> u64 {
        let vectors = self.tables + 1;
        match self.interaction {
            Interaction::Dot => vectors * (vectors - 1) / 2 + self.bottom_mlp.last(),
            Interaction::Cat => self.tables * self.embedding_dim + self.bottom_mlp.last(),
        }
    }

    /// The matrices of the bottom MLP: what goes in by what comes out of each layer.
    pub fn bottom(&self) -> impl Layers + '_ {
        layers(self.dense_features, &self.bottom_mlp)
    }

    /// The matrices of the top MLP.
    pub fn top(&self) -> impl Layers + '_ {
        layers(self.interacted(), &self.top_mlp)
    }

    /// Weights and biases of both MLPs.
    ///
    /// Worked: 13-512-256-128 and 479-1024-1024-512-256-1: 171,392 + 2,197,505 = 2,368,897.
    #[must_use]
    pub fn dense_parameters(&self) -> f64 {
        self.bottom().chain(self.top()).map(|matrix| matrix.parameters() + matrix.columns).sum()
    }

    /// Arithmetic of the interaction forward, a sample: products of every two vectors, both ways: 2 F^2 d.
    #[must_use]
    pub fn interaction_flops(&self) -> f64 {
        match self.interaction {
            Interaction::Dot => FLOPS_PER_PRODUCT * self.vectors() * self.vectors() * real(self.embedding_dim),
            Interaction::Cat => 0.0,
        }
    }
}

/// The matrices of an MLP, from its input on.
pub trait Layers: DoubleEndedIterator<Item = Matrix> + ExactSizeIterator {}

impl<I: DoubleEndedIterator<Item = Matrix> + ExactSizeIterator> Layers for I {}

/// The matrices of an MLP.
fn layers(input: u64, widths: &Widths) -> impl Layers + '_ {
    (0..widths.len()).map(move |layer| {
        let before = if layer == 0 { input } else { widths.get(layer - 1) };
        Matrix { rows: real(before), columns: real(widths.get(layer)), count: 1.0 }
    })
}

impl Family for Dlrm {
    /// Tables fill it.
    const LEVERS: &'static [&'static str] = &["npus", "table_shards", "precision.table", "optimizer"];

    const HAS_SEQUENCES: bool = false;

    fn check(&self) -> Result<(), Infeasible> {
        let listed = self.rows.len() as u64;
        if listed > 1 && listed != self.tables {
            return Err(Infeasible::new(Reason::RowsPerTable, real(listed), real(self.tables)));
        }
        if self.interaction == Interaction::Dot && self.bottom_mlp.last() != self.embedding_dim {
            let (last, dim) = (real(self.bottom_mlp.last()), real(self.embedding_dim));
            return Err(Infeasible::new(Reason::WidthOfDenseVector, last, dim));
        }
        Ok(())
    }

    /// Of the tables, and of the MLPs.
    fn parameters(&self, _seq_len: u64) -> f64 {
        self.all_rows() * real(self.embedding_dim) + self.dense_parameters()
    }

    /// Of a sample: three times 2 i o for each layer of the MLPs from i to o, and the products of the interaction. Sums of rows are
    /// traffic and count nothing.
    ///
    /// Worked: 13-512-256-128, 479-1024-1024-512-256-1 and 27 vectors of 128: 3 * 2 * (170,496 + 2,194,688 + 93,312) = 14.75 MFLOP.
    fn flops_per_token(&self, _seq_len: u64) -> f64 {
        let weights: f64 = self.bottom().chain(self.top()).map(|matrix| matrix.parameters()).sum();
        PASSES * (FLOPS_PER_PRODUCT * weights + self.interaction_flops())
    }

    fn fits(training: &Training, system: &System) -> Result<Footprint, Infeasible> {
        share::check(training)?;
        fits(memory::footprint(training, &Share::of(training)), Default::default, system)
    }

    fn build(training: &Training, program: &mut Program) {
        step::write(training, &Share::of(training), program);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// MLPerf's DLRM on Criteo's logs of a terabyte, indices below 40 million.
    pub(crate) const CRITEO: [u64; 26] = [
        39_884_406, 39_043, 17_289, 7_420, 20_263, 3, 7_120, 1_543, 63, 38_532_951, 2_953_546, 403_346, 10, 2_208, 11_938,
        155, 4, 976, 14, 39_979_771, 25_641_295, 39_664_984, 585_935, 12_972, 108, 36,
    ];

    pub(crate) fn mlperf() -> Dlrm {
        Dlrm {
            tables: 26,
            rows: Rows::of(&CRITEO),
            embedding_dim: 128,
            pooling: 1.0,
            dense_features: 13,
            bottom_mlp: Widths::of(&[512, 256, 128]),
            top_mlp: Widths::of(&[1024, 1024, 512, 256, 1]),
            interaction: Interaction::Dot,
        }
    }

    #[test]
    fn mlps_of_the_benchmark_have_2_37_million_parameters() {
        let model = mlperf();
        assert_eq!(model.interacted(), 479);
        // 13*512+512 + 512*256+256 + 256*128+128; 479*1024+1024 + 1024*1024+1024 + 1024*512+512 + 512*256+256 + 256+1.
        assert_eq!(model.dense_parameters(), 171_392.0 + 2_197_505.0);
        // 187,767,399 rows of 128.
        assert_eq!(model.all_rows(), 187_767_399.0);
        assert_eq!(Family::parameters(&model, 1), 187_767_399.0 * 128.0 + 2_368_897.0);
    }

    #[test]
    fn a_sample_takes_14_75_million_operations() {
        assert_eq!(mlperf().flops_per_token(1), 3.0 * 2.0 * (170_496.0 + 2_194_688.0 + 93_312.0));
        let cat = Dlrm { interaction: Interaction::Cat, ..mlperf() };
        assert_eq!((cat.interacted(), cat.interaction_flops()), (27 * 128, 0.0));
    }

    #[test]
    fn rows_are_said_once_or_for_each_table() {
        let of = |rows: &[u64]| Dlrm { rows: Rows::of(rows), ..mlperf() };
        assert_eq!(of(&[1000]).all_rows(), 26_000.0);
        assert_eq!(Family::check(&of(&[1000])), Ok(()));
        assert_eq!(Family::check(&of(&[1000, 2000])).map_err(|refused| refused.reason), Err(Reason::RowsPerTable));
        let wide = Dlrm { bottom_mlp: Widths::of(&[512, 64]), ..mlperf() };
        assert_eq!(Family::check(&wide).map_err(|refused| refused.reason), Err(Reason::WidthOfDenseVector));
        assert_eq!(Family::check(&Dlrm { interaction: Interaction::Cat, ..wide }), Ok(()));
    }
}
