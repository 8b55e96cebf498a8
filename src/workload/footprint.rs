//! The memory account: bytes that the fullest NPU holds at the peak of a step, by kind.

use super::Training;
use super::share::{Share, Split, Stage, stages_of};
use crate::units::{Bytes, real};

/// Logits are fp32, and a copy in the activations' format lives beside them.
const LOGIT: f64 = 4.0;

/// Bytes on the NPU whose memory is fullest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Parameters as the forward pass reads them.
    pub weights: Bytes,
    /// Gradients.
    pub gradients: Bytes,
    /// Optimizer states in the local memory.
    pub optimizer: Bytes,
    /// Activations of the microbatches in flight.
    pub activations: Bytes,
    /// What lives for a moment: a layer computed again, logits, layers gathered by ZeRO.
    pub temporary: Bytes,
    /// What lives in a tier beyond.
    pub offloaded: Bytes,
    /// The pipeline stage that is fullest.
    pub stage: u64,
}

impl Footprint {
    /// All that is in the local memory.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.weights + self.gradients + self.optimizer + self.activations + self.temporary
    }

    /// The account of the fullest stage.
    #[must_use]
    pub fn of(training: &Training, share: &Share) -> Self {
        let accounts = stages_of(training, share).map(|(number, _)| {
            let stage = share.stage(training, number);
            Self::of_stage(training, share, &stage)
        });
        accounts.fold(Self::default(), |most, next| if next.total() > most.total() { next } else { most })
    }

    /// The account of one stage.
    ///
    /// ```text
    /// weights     w P / shards,  gradients g P / shards,  optimizer o P / shards     [Rajbhandari20]
    /// ```
    ///
    /// P parameters of the stage before data parallelism; w, g, o bytes a parameter. ZeRO's textbook point: 7.5e9
    /// parameters, 64-way, 2 + 2 + 12 bytes: 120 GB, with stages 1, 2, 3: 31.4, 16.6, 1.88 GB.
    #[must_use]
    pub fn of_stage(training: &Training, share: &Share, stage: &Stage) -> Self {
        let Training { precision, plan, model, .. } = training;
        let held = share.parameters(training, stage);
        let states = |bytes: f64, shards: Split| {
            Bytes::from_real(bytes * (held.dense / shards.dense + held.expert / shards.expert))
        };
        let optimizer = states(precision.optimizer, share.optimizer_shards);
        let offloaded = plan.offload_optimizer.is_some();

        let ends = if stage.first || stage.last { share.embedding } else { 0.0 };
        let largest =
            ends.max(share.dense_layer()).max(if stage.moe.all > 0 { share.moe_layer() + share.experts } else { 0.0 });
        // ZeRO-3 gathers the layer in use and the next; ZeRO-2 and 3 hold one layer's gradients before they are cut.
        let gathered = if share.weight_shards.dense > 1.0 { 2.0 * precision.weight * largest } else { 0.0 };
        let uncut = if share.gradient_shards.dense > 1.0 { precision.gradient * largest } else { 0.0 };
        let vocabulary = real(model.vocab) / share.tensor;
        let logits = if stage.last { (LOGIT + precision.activation) * share.tokens * vocabulary } else { 0.0 };
        // Logits die before the last stage's first backward layer is computed again.
        let momentary = logits.max(share.kept.working);

        Self {
            weights: states(precision.weight, share.weight_shards),
            gradients: states(precision.gradient, share.gradient_shards),
            optimizer: if offloaded { Bytes::ZERO } else { optimizer },
            activations: Bytes::from_real(in_flight(training, share, stage)),
            temporary: Bytes::from_real(gathered + uncut + momentary),
            offloaded: if offloaded { optimizer } else { Bytes::ZERO },
            stage: stage.number,
        }
    }
}

/// Activations of all microbatches in flight: those of each chunk's layers, as often as the schedule holds them at once.
///
/// Worked: L = 96 layers, p = 8, 1F1B: the first stage holds 8 microbatches of 12 layers, 96 layers' activations; interleaved with v = 3,
/// 96 (1 + 7 / 24) = 124 [Korthikanti22].
fn in_flight(training: &Training, share: &Share, stage: &Stage) -> f64 {
    let (plan, shape) = (&training.plan, training.shape());
    let of_chunk = |chunk: u64| {
        let dense = real(stage.dense.of_chunk(chunk, plan.vpp)) * share.kept.dense;
        let moe = real(stage.moe.of_chunk(chunk, plan.vpp)) * share.kept.moe;
        real(plan.schedule.part().in_flight(stage.number, chunk, &shape)) * (dense + moe)
    };
    (0..plan.vpp).map(of_chunk).sum()
}
