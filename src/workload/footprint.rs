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
        let accounts = stages_of(training.plan.pp).map(|(number, _)| {
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
        let in_flight = layers_in_flight(training, share, stage);
        let layers = real(stage.dense + stage.moe);
        let kept = (real(stage.dense) * share.kept.dense + real(stage.moe) * share.kept.moe) / layers;

        let largest = share.dense_layer().max(if stage.moe > 0 { share.moe_layer() + share.experts } else { 0.0 });
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
            activations: Bytes::from_real(kept * in_flight),
            temporary: Bytes::from_real(gathered + uncut + momentary),
            offloaded: if offloaded { optimizer } else { Bytes::ZERO },
            stage: stage.number,
        }
    }
}

/// Layers times microbatches whose activations a stage holds at once, with m microbatches, p stages, v chunks:
///
/// ```text
/// 1F1B         min(m, p - i) * L / p                                            [Narayanan21]
/// interleaved  min(m v, (v - 1) p + 2 (p - i - 1) + 1) * L / (p v)              [Narayanan21]
/// ```
///
/// The first stage (i = 0) of an interleaved pipeline then holds L (1 + (p - 1) / (p v)) [Korthikanti22].
fn layers_in_flight(training: &Training, share: &Share, stage: &Stage) -> f64 {
    let plan = &training.plan;
    let microbatches = training.num_microbatches();
    let behind = plan.pp - stage.number;
    let chunks = if plan.vpp == 1 {
        microbatches.min(behind)
    } else {
        (microbatches * plan.vpp).min((plan.vpp - 1) * plan.pp + 2 * (behind - 1) + 1)
    };
    real(chunks * share.layers_per_chunk)
}
