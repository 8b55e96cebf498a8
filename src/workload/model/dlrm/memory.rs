//! The memory account of a DLRM: tables of the fullest NPU, MLPs, and what a batch leaves behind in both.

use super::share::Share;
use super::{Dlrm, Interaction, Training};
use crate::units::{Bytes, real};
use crate::workload::footprint::Footprint;
use crate::workload::matrix::Matrix;
use crate::workload::optimizer::Part;

/// Bytes of the number of a row, as samples name it.
pub const INDEX: f64 = 8.0;

/// The account of the fullest NPU.
///
/// ```text
/// weights      w D + e R d / s                 D weights of the MLPs, R rows of the fullest NPU in s parts, e bytes an element
/// gradients    g D / shards                    none of tables: a row is updated where its gradient is made      [Mudigere22]
/// optimizer    o D / shards + R (m_p d / s + m_r)    m_p, m_r bytes an element, and a row, that the optimizer keeps of a table
/// activations  a b (x + sum of widths + T d + i + k) + 8 P B T_r        k = 2 F d + F^2 of dot, nothing of cat
/// temporary    a b (F d + i)                   gradients of what the interaction takes and gives
/// buffers      a B T_r d / s                   sums of rows that go out, and their gradients that come in
/// ```
///
/// b samples of the NPU, B of the batch, x dense features, i what the interaction gives, T_r tables of the busiest NPU. The fullest NPU
/// is taken to be the busiest. A table is its own master copy. Dot keeps the vectors as both factors of its products, and these; cat
/// writes the vectors once, one behind the other, and that is what it gives.
///
/// Worked: 26 tables of Criteo in 4 B on 8 NPUs: 39,983,522 rows of 128 are 20.47 GB. A sample of 13-512-256-128 and
/// 1024-1024-512-256-1 with cat, i = 27 * 128: 13 + 3,713 + 26 * 128 + 3,456 = 10,510 elements.
#[must_use]
pub fn footprint(training: &Training, share: &Share) -> Footprint {
    let Training { model, plan, precision, .. } = training;
    let ranks = real(share.ranks);
    let dense = model.dense_parameters();
    let shards = |stage: u8| if plan.zero >= stage { ranks } else { 1.0 };
    let elements = share.rows * share.columns;
    let received = real(model.tables * model.embedding_dim);
    let sums = precision.activation * share.all_samples * share.tables * share.columns;
    let indices = INDEX * model.pooling * share.all_samples * share.tables;
    let interacted = real(model.interacted());
    let gradients = precision.activation * share.samples * (model.gathered() + interacted);
    Footprint {
        weights: Bytes::from_real(precision.weight * dense + precision.table * elements),
        gradients: Bytes::from_real(precision.gradient * dense / shards(2)),
        optimizer: Bytes::from_real(dense_state(training) / shards(1) + table_state(training, share)),
        activations: Bytes::from_real(precision.activation * share.samples * (received + kept(model)) + indices),
        temporary: Bytes::from_real(gradients),
        buffers: Bytes::from_real(if share.ranks > 1 { sums } else { 0.0 }),
        ..Footprint::default()
    }
}

/// Elements that a sample leaves behind on its NPU, the sums of rows that came in aside.
fn kept(model: &Dlrm) -> f64 {
    let widths: u64 = model.bottom_mlp.iter().chain(model.top_mlp.iter()).sum();
    let vectors = model.vectors();
    let products = match model.interaction {
        Interaction::Dot => 2.0 * model.gathered() + vectors * vectors,
        Interaction::Cat => 0.0,
    };
    real(model.dense_features + widths + model.interacted()) + products
}

/// Bytes of optimizer states of both MLPs.
#[must_use]
pub fn dense_state(training: &Training) -> f64 {
    let Training { model, precision, optimizer, .. } = training;
    if let Some(bytes) = precision.optimizer {
        return bytes * model.dense_parameters();
    }
    let of = |part| optimizer.part().moments(part, precision.moment);
    let (matrix, vector) = (of(Part::Matrix), of(Part::Vector));
    let of_layer = |layer: Matrix| {
        matrix.parameter * layer.parameters() + matrix.side * layer.sides() + vector.parameter * layer.columns
    };
    precision.master * model.dense_parameters() + model.bottom().chain(model.top()).map(of_layer).sum::<f64>()
}

/// Bytes of optimizer states of a row of a table's part, those of its columns aside, which all rows share.
#[must_use]
pub fn row_state(training: &Training, share: &Share) -> f64 {
    let moments = training.optimizer.part().moments(Part::Table, training.precision.moment);
    moments.parameter * share.columns + moments.side
}

/// Bytes of optimizer states of the tables of the fullest NPU.
fn table_state(training: &Training, share: &Share) -> f64 {
    share.rows * row_state(training, share)
}

#[cfg(test)]
mod tests {
    use super::super::tests::mlperf;
    use super::*;

    #[test]
    fn vectors_that_stand_behind_each_other_are_kept_once() {
        // 13 features; 512 + 256 + 128 and 1024 + 1024 + 512 + 256 + 1 widths; 27 vectors of 128, whose sums that came in are not here.
        let widths = 13.0 + 896.0 + 2817.0;
        assert_eq!(kept(&Dlrm { interaction: Interaction::Cat, ..mlperf() }), widths + 3456.0);
        // Both factors of the products, 27 by 27 of these, and the 479 that are taken.
        assert_eq!(kept(&mlperf()), widths + 2.0 * 3456.0 + 729.0 + 479.0);
    }
}
