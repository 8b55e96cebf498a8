//! The memory account: bytes that the fullest NPU holds at the peak of a step, by kind.

use super::activation;
use super::share::{Share, Split, Stage, stages_of};
use super::strategy::offload;
use super::transformer::Training;
use crate::system::System;
use crate::system::memory::MAX_TIERS;
use crate::system::software::Keeping;
use crate::units::{Bytes, real};

/// Bytes on the NPU whose memory is fullest, at the moment in which it is.
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
    /// What lives for a moment in a layer's backward pass: what is computed again, and gradients of activations.
    pub temporary: Bytes,
    /// Logits, the loss and their gradients.
    pub logits: Bytes,
    /// What communication needs room for: gathered layers, gradients that are not cut yet, what other ranks send.
    pub buffers: Bytes,
    /// What lives in tiers beyond.
    pub offloaded: Bytes,
    /// The pipeline stage that is fullest.
    pub stage: u64,
}

impl Footprint {
    /// All that is in the local memory.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.weights + self.gradients + self.optimizer + self.activations + self.temporary + self.logits + self.buffers
    }

    /// What the tools of the NPU show in use: the framework's allocator keeps blocks that nothing lies in, and there is the context.
    ///
    /// ```text
    /// min(M, (1 + c) F + R)
    /// ```
    ///
    /// F all of this account, c `software.cached`, R the reserve, M the capacity: before that is full, blocks are given back. Worked: 40 GB
    /// at c = 0.2, 4 GB reserved: 52 GB.
    #[must_use]
    pub fn on_device(&self, system: &System) -> Bytes {
        let held = Bytes::from_real((1.0 + system.software.keeping.cached) * self.total().as_real());
        (held + system.memory.reserve).min(system.memory.capacity)
    }

    /// The account of the fullest stage.
    #[must_use]
    pub fn of(training: &Training, share: &Share, keeping: &Keeping) -> Self {
        let accounts = stages_of(training, share).map(|(number, _)| {
            let stage = share.stage(training, number);
            Self::of_stage(training, share, &stage, keeping)
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
    /// parameters, 64-way, 2 + 2 + 12 bytes: 120 GB, with stages 1, 2, 3: 31.4, 16.6, 1.88 GB. A copy of a microbatch's gradients is whole
    /// until stage 3 scatters them layer by layer: DeepSpeed's own estimate is 4 P + 16 P / n in stage 2, 18 P / n in stage 3.
    ///
    /// Activations are at their most when the last forward pass of the warm-up is done. On the last stage logits come to them; then
    /// these die, and what is computed again and gradients of activations do: the larger of the two moments counts.
    #[must_use]
    pub fn of_stage(training: &Training, share: &Share, stage: &Stage, keeping: &Keeping) -> Self {
        let Training { precision, plan, model, .. } = training;
        let held = share.parameters(training, stage);
        let states = |bytes: f64, shards: Split| bytes * (held.dense / shards.dense + held.expert / shards.expert);
        let copies = keeping.gradient_copy && precision.gradient > precision.weight && plan.zero < 3;
        let copied = if copies { states(precision.weight, Split::both(1.0)) } else { 0.0 };
        let parts = parts(training, share, stage, keeping);
        let local = offload::local(training, share, stage, parts);
        let [weights, activations, optimizer] = local.map(Bytes::from_real);

        let words = if stage.last { real(model.vocab) / share.tensor } else { 0.0 };
        let logits = keeping.logit * share.tokens * words;
        let backward = share.kept.working + share.kept.gradients + whole_gradient(training, share, keeping);
        let (logits, temporary) = if logits > backward { (logits, 0.0) } else { (0.0, backward) };

        Self {
            weights,
            gradients: Bytes::from_real(states(precision.gradient, share.gradient_shards)) + Bytes::from_real(copied),
            optimizer,
            activations,
            temporary: Bytes::from_real(temporary),
            logits: Bytes::from_real(logits),
            buffers: Bytes::from_real(buffers(training, share, stage, keeping)),
            offloaded: offload::beyond(plan, parts, local).into_iter().sum(),
            stage: stage.number,
        }
    }
}

/// What a stage holds of what may be offloaded.
fn parts(training: &Training, share: &Share, stage: &Stage, keeping: &Keeping) -> offload::Parts {
    let Training { precision, plan, .. } = training;
    let (held, shards) = (share.parameters(training, stage), share.weight_shards);
    // Where the master copy lives in a tier, weights have a copy of their own, which passes read.
    let is_master = keeping.master_only && plan.zero == 3 && plan.offload_optimizer.is_none();
    let weight = if is_master { 0.0 } else { precision.weight };
    [
        weight * (held.dense / shards.dense + held.expert / shards.expert),
        in_flight(training, share, stage, keeping),
        training.optimizer.state(training, share, stage),
    ]
}

/// What an NPU holds of each tier at most, in whichever stage.
#[must_use]
pub fn in_tiers(training: &Training, share: &Share, keeping: &Keeping) -> [Bytes; MAX_TIERS] {
    let mut most = [Bytes::ZERO; MAX_TIERS];
    if training.plan.tiers().iter().all(Option::is_none) {
        return most;
    }
    for (number, _) in stages_of(training, share) {
        let stage = share.stage(training, number);
        let parts = parts(training, share, &stage, keeping);
        let local = offload::local(training, share, &stage, parts);
        for (most, held) in most.iter_mut().zip(offload::beyond(&training.plan, parts, local)) {
            *most = held.max(*most);
        }
    }
    most
}

/// The gradient of the widest matrix of a dense layer, before it is added to those of more bytes: gate and up are one matrix.
fn whole_gradient(training: &Training, share: &Share, keeping: &Keeping) -> f64 {
    let Training { precision, plan, model, .. } = training;
    let is_whole = plan.zero >= 2 || keeping.gradient_copy || precision.gradient <= precision.weight;
    let matrices = real(model.mlp.matrices());
    if is_whole { 0.0 } else { precision.weight * share.mlp * (matrices - 1.0) / matrices }
}

/// What communication needs room for.
///
/// ZeRO-3 gathers the layer in use and the next, if that is asked for ahead, and ZeRO-2 and 3 hold a layer's gradients before they are cut. Where that is done in
/// buckets, a matrix may be larger than one: two buckets and a matrix are gathered, and a bucket and a matrix of gradients held; ZeRO-1
/// reduces a bucket, or all that it has. Keys and values that other ranks send live as long as one layer's core.
///
/// Worked: layers of 5.0e9 parameters, of which a matrix of the MLP has 1.68e9, in 2 bytes: 20.1 GB gathered and 10.1 GB of
/// gradients; in buckets of 5e8 parameters 5.4 GB and 4.4 GB.
fn buffers(training: &Training, share: &Share, stage: &Stage, keeping: &Keeping) -> f64 {
    let Training { precision, plan, model, .. } = training;
    let ends = if stage.first || stage.last { share.embedding } else { 0.0 };
    let moe = if stage.moe.all > 0 { share.moe_layer() + share.experts } else { 0.0 };
    let dense = if stage.dense.all > 0 { share.dense_layer() } else { 0.0 };
    let largest = ends.max(dense).max(moe);
    let matrix = ends.max(share.mlp.max(share.experts) / real(model.mlp.matrices()));
    let at_once = |layers: f64| {
        let whole = layers * largest;
        keeping.bucket.map_or(whole, |bucket| (layers * bucket + matrix).min(whole))
    };
    let gathered = if share.weight_shards.dense > 1.0 {
        precision.weight * at_once(if plan.prefetch { 2.0 } else { 1.0 })
    } else {
        0.0
    };
    let held = share.parameters(training, stage);
    let reduced = match plan.zero {
        _ if share.optimizer_shards.dense <= 1.0 => 0.0,
        0 => 0.0,
        1 => precision.gradient * keeping.bucket.unwrap_or(0.0).min(held.dense + held.expert),
        _ => precision.gradient * at_once(1.0),
    };
    gathered + reduced + share.kept.received
}

/// Activations of all microbatches in flight: those of each chunk's layers, as often as the schedule holds them at once.
///
/// The first stage keeps the mask of the embedding's dropout.
///
/// Worked: L = 96 layers, p = 8, 1F1B: the first stage holds 8 microbatches of 12 layers, 96 layers' activations; interleaved with v = 3,
/// 96 (1 + 7 / 24) = 124 [Korthikanti22].
fn in_flight(training: &Training, share: &Share, stage: &Stage, keeping: &Keeping) -> f64 {
    let (plan, shape) = (&training.plan, training.shape());
    let vector = share.outer_tokens * real(training.model.hidden);
    let sent = if keeping.sent && !stage.last { training.precision.activation * vector } else { 0.0 };
    let masked = if stage.first && training.model.dropout { activation::MASK * vector } else { 0.0 };
    let of_chunk = |chunk: u64| {
        let dense = real(stage.dense.of_chunk(chunk, shape.chunks)) * share.kept.dense;
        let moe = real(stage.moe.of_chunk(chunk, shape.chunks)) * share.kept.moe;
        real(plan.schedule.part().in_flight(stage.number, chunk, &shape))
            * (dense + moe + sent + if chunk == 0 { masked } else { 0.0 })
    };
    (0..shape.chunks).map(of_chunk).sum()
}
