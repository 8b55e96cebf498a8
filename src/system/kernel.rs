//! Kernels: what an NPU is asked to do at once, by its shape.

use crate::units::Bytes;

/// What an NPU is asked to do at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// Products of matrices.
    Product(Product),
    /// The core of attention in one kernel, which keeps no scores.
    Attention(Attention),
    /// The core of attention, scores and softmax through the local memory.
    Scores(Scores),
    /// Norms, activation functions, residuals: bytes read and written that a framework may fuse more or less.
    ElementWise {
        /// Bytes, where they are fused.
        moved: Bytes,
        /// By how many kernels.
        launches: f64,
    },
    /// Adds the gradients of a microbatch to those before.
    Accumulation {
        /// Of so many parameters.
        parameters: f64,
    },
    /// Reads and writes of the local memory.
    Stream {
        /// Bytes.
        moved: Bytes,
    },
}

/// `count` products of rows x depth by depth x columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    /// Rows of the result.
    pub rows: f64,
    /// Columns of the result.
    pub columns: f64,
    /// What is summed over.
    pub depth: f64,
    /// How many in one kernel.
    pub count: f64,
    /// Whether it runs in the format of linear layers, not in 16 bits.
    pub is_cast: bool,
    /// Share of the NPU's own efficiency that its format leaves.
    pub efficiency: f64,
}

/// Fused attention of one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Arithmetic, without what causality or a window hides.
    pub flops: f64,
    /// Size of a head.
    pub head: f64,
    /// By how many kernels.
    pub launches: f64,
}

/// Unfused attention of one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Arithmetic of all pairs.
    pub flops: f64,
    /// Bytes of scores, probabilities and masks read and written.
    pub moved: f64,
    /// Size of a head.
    pub head: f64,
    /// By how many kernels.
    pub launches: f64,
}

impl Kernel {
    /// Arithmetic operations of matrix products.
    #[must_use]
    pub fn flops(&self) -> f64 {
        match self {
            Self::Product(product) => 2.0 * product.rows * product.columns * product.depth * product.count,
            Self::Attention(attention) => attention.flops,
            Self::Scores(scores) => scores.flops,
            Self::ElementWise { .. } | Self::Accumulation { .. } | Self::Stream { .. } => 0.0,
        }
    }
}
