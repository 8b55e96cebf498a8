//! Matrices: the shapes of a layer's weights on one NPU, for what goes by shape and not by the number of parameters.

use arrayvec::ArrayVec;

use super::share::Share;
use super::transformer::{Latent, Training, Transformer};
use crate::units::real;

/// Different matrices of a layer at most: five of attention, three of shared experts, the router, two of routed ones.
const MOST: usize = 12;

/// Matrices of one layer.
pub type Matrices = ArrayVec<Matrix, MOST>;

/// Matrices of one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matrix {
    /// Rows: elements of what goes in.
    pub rows: f64,
    /// Columns: elements of what comes out.
    pub columns: f64,
    /// How many there are.
    pub count: f64,
}

impl Matrix {
    /// Parameters of all of them.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        self.rows * self.columns * self.count
    }

    /// Rows and columns of all of them.
    #[must_use]
    pub fn sides(&self) -> f64 {
        (self.rows + self.columns) * self.count
    }
}

/// The matrices of a layer but for its routed experts, and those of these.
///
/// Each is what tensor parallelism leaves of it: h x a d / t of queries, h x k d of keys, h x k d_v of values, a d_v / t x h behind
/// them; g - 1 of h x f / t and one of f / t x h of an MLP with g matrices; h x E of a router. Latent attention has what its
/// vectors of low rank are made of, and what is made of them [DeepSeek24].
#[must_use]
pub fn of_layer(training: &Training, share: &Share, moe: bool) -> [Matrices; 2] {
    let Training { model, .. } = training;
    let hidden = real(model.hidden);
    let mut matrices = attention(model, share);
    let mut experts = Matrices::new();
    if moe {
        let shared = real(model.shared_experts);
        matrices.extend(mlp(model, real(model.moe_ffn) / share.tensor, shared).into_iter().filter(|_| shared > 0.0));
        matrices.push(Matrix { rows: hidden, columns: real(model.experts), count: 1.0 });
        let width = real(model.moe_ffn) / share.expert_tensor;
        let own = share.experts * share.expert_tensor / model.expert_parameters();
        experts.extend(mlp(model, width, own));
    } else {
        matrices.extend(mlp(model, real(model.ffn) / share.tensor, 1.0));
    }
    [matrices, experts]
}

/// Matrices with those of one shape counted together, whichever side is the longer.
#[must_use]
pub fn by_shape(matrices: &Matrices) -> Matrices {
    let mut shapes = Matrices::new();
    for matrix in matrices {
        let sides = |other: &Matrix| [other.rows.min(other.columns), other.rows.max(other.columns)];
        match shapes.iter_mut().find(|known| sides(known) == sides(matrix)) {
            Some(known) => known.count += matrix.count,
            None => shapes.push(*matrix),
        }
    }
    shapes
}

/// The matrices of attention.
fn attention(model: &Transformer, share: &Share) -> Matrices {
    let hidden = real(model.hidden);
    let heads = real(model.heads) / share.tensor;
    let [query, head, value] = [model.query_dim(), model.head_dim, model.value_dim].map(real);
    let one = |rows, columns| Matrix { rows, columns, count: 1.0 };
    let mut matrices = Matrices::new();
    if let Some(Latent { q_rank, kv_rank, rope_dim }) = model.latent {
        let rank = real(q_rank);
        if q_rank > 0 {
            matrices.push(one(hidden, rank));
        }
        matrices.push(one(if q_rank > 0 { rank } else { hidden }, heads * query));
        matrices.push(one(hidden, real(kv_rank + rope_dim)));
        matrices.push(one(real(kv_rank), heads * (head + value)));
    } else {
        matrices.push(one(hidden, heads * query));
        matrices.push(one(hidden, share.kv_heads * head));
        matrices.push(one(hidden, share.kv_heads * value));
    }
    matrices.push(one(heads * value, hidden));
    matrices
}

/// The matrices of so many MLPs of a width.
fn mlp(model: &Transformer, width: f64, count: f64) -> [Matrix; 2] {
    let hidden = real(model.hidden);
    let inward = real(model.mlp.matrices() - 1);
    [Matrix { rows: hidden, columns: width, count: inward * count }, Matrix { rows: width, columns: hidden, count }]
}
