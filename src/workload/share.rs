//! The share of one NPU: what is left of a layer and a microbatch once every strategy has divided it.

use super::layers::Layers;
use super::strategy::Strategy;
use super::transformer::Training;
use crate::units::real;

/// A number for the dense part of a model and one for its routed experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// For everything but routed experts.
    pub dense: f64,
    /// For routed experts.
    pub expert: f64,
}

impl Split {
    /// The same for both.
    #[must_use]
    pub const fn both(value: f64) -> Self {
        Self { dense: value, expert: value }
    }
}

/// Bytes of activations that one microbatch leaves behind in one layer until its backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Kept {
    /// In a layer with a dense MLP.
    pub dense: f64,
    /// In a layer with routed experts.
    pub moe: f64,
    /// What is alive for a moment while a layer is computed again, in the larger of the two.
    pub working: f64,
    /// Gradients of a layer's activations that are there at once.
    pub gradients: f64,
    /// Keys and values that came from other ranks of a context group, of one layer.
    pub received: f64,
}

/// What one NPU holds and handles: one layer's parameters, one microbatch's tokens, and into how many shards data
/// parallelism cuts the states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Tokens of a microbatch inside tensor-parallel operations.
    pub tokens: f64,
    /// Tokens of a microbatch between them: fewer with sequence parallelism.
    pub outer_tokens: f64,
    /// Token-expert pairs of a microbatch on the busiest NPU of an expert group.
    pub routed: f64,
    /// By how much tensor parallelism divides matrices.
    pub tensor: f64,
    /// By how much context parallelism divides the tokens of a microbatch, and the work of attention's core.
    pub context: f64,
    /// By how much expert tensor parallelism divides the matrices of routed experts.
    pub expert_tensor: f64,
    /// Key and value heads of an NPU.
    pub kv_heads: f64,
    /// Parameters of attention, a layer.
    pub attention: f64,
    /// Parameters of a dense MLP, a layer.
    pub mlp: f64,
    /// Parameters of shared experts and the router, a layer.
    pub shared: f64,
    /// Parameters of routed experts, a layer.
    pub experts: f64,
    /// Parameters of norms and biases, a layer.
    pub norms: f64,
    /// Parameters of the embedding, and as many of the head.
    pub embedding: f64,
    /// Into how many shards weights, gradients and optimizer states are cut.
    pub weight_shards: Split,
    /// See `weight_shards`.
    pub gradient_shards: Split,
    /// See `weight_shards`.
    pub optimizer_shards: Split,
    /// Activations left behind.
    pub kept: Kept,
    /// Layers that a model chunk has room for.
    pub layers_per_chunk: u64,
    /// Layers that are missing in the first chunk of the model.
    pub missing_first: u64,
}

/// How many layers of each kind, and which ends of the model, a pipeline stage holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Which one, from 0.
    pub number: u64,
    /// Layers with a dense MLP.
    pub dense: Layers,
    /// Layers with routed experts.
    pub moe: Layers,
    /// Whether it embeds.
    pub first: bool,
    /// Whether it predicts.
    pub last: bool,
}

impl Share {
    /// The whole model on one NPU, divided by every strategy in turn.
    #[must_use]
    pub fn of(training: &Training) -> Self {
        let Training { model, seq_len, plan, .. } = training;
        let tokens = real(plan.micro_batch_size * seq_len);
        let mut share = Self {
            tokens,
            outer_tokens: tokens,
            routed: tokens * real(model.topk),
            tensor: 1.0,
            context: 1.0,
            expert_tensor: 1.0,
            kv_heads: real(model.kv_heads),
            attention: model.attention_parameters(),
            mlp: model.mlp_parameters(),
            shared: real(model.shared_experts) * model.expert_parameters() + model.router_parameters(),
            experts: real(model.experts) * model.expert_parameters(),
            norms: model.norm_parameters(),
            embedding: model.embedding_parameters(),
            weight_shards: Split::both(1.0),
            gradient_shards: Split::both(1.0),
            optimizer_shards: Split::both(1.0),
            kept: Kept::default(),
            layers_per_chunk: model.layers,
            missing_first: 0,
        };
        for strategy in Strategy::ALL {
            strategy.part().divide(training, &mut share);
        }
        share
    }

    /// What a stage holds: each of its chunks is a part of the model, of n layers, n = ceil(L / (p v)) [Narayanan21]; what that is
    /// more than L is missing at the ends of the model.
    #[must_use]
    pub fn stage(&self, training: &Training, number: u64) -> Stage {
        let Training { model, plan, .. } = training;
        let layer = |place: u64| place.saturating_sub(self.missing_first).min(model.layers);
        let (mut dense, mut moe) = (Layers::default(), Layers::default());
        let (route, shape) = (plan.schedule.part().route(), training.shape());
        let (mut first, mut last) = (false, false);
        for chunk in 0..shape.chunks {
            let part = route.place(number, chunk, &shape);
            (first, last) = (first || part == 0, last || part + 1 == route.parts(&shape));
            let place = part * self.layers_per_chunk;
            let (begin, end) = (layer(place), layer(place + self.layers_per_chunk));
            let mixtures = model.moe_layers_before(end) - model.moe_layers_before(begin);
            moe.add(mixtures, chunk, shape.chunks);
            dense.add(end - begin - mixtures, chunk, shape.chunks);
        }
        Stage { number, dense, moe, first, last }
    }

    /// Stages that hold leading dense layers of a model with experts.
    fn leading(&self, training: &Training) -> u64 {
        let Training { model, plan, .. } = training;
        let dense = if model.experts > 0 { model.dense_layers } else { 0 };
        (dense + self.missing_first).div_ceil(self.layers_per_chunk).min(plan.pp)
    }

    /// Parameters of a layer with a dense MLP.
    #[must_use]
    pub fn dense_layer(&self) -> f64 {
        self.attention + self.norms + self.mlp
    }

    /// Parameters of a layer with routed experts, without these.
    #[must_use]
    pub fn moe_layer(&self) -> f64 {
        self.attention + self.norms + self.shared
    }

    /// Parameters of a stage, before data parallelism cuts them.
    #[must_use]
    pub fn parameters(&self, training: &Training, stage: &Stage) -> Split {
        let [words, positions] = self.ends(training, stage);
        Split {
            dense: real(stage.dense.all) * self.dense_layer()
                + real(stage.moe.all) * self.moe_layer()
                + words
                + positions,
            expert: real(stage.moe.all) * self.experts,
        }
    }

    /// Of them those of embedding, head and learned positions.
    #[must_use]
    pub fn tables(&self, training: &Training, stage: &Stage) -> f64 {
        self.ends(training, stage).iter().sum()
    }

    /// Parameters of embedding and head, and of learned positions.
    fn ends(&self, training: &Training, stage: &Stage) -> [f64; 2] {
        let alone = stage.first && stage.last;
        let copies = match (stage.first, stage.last) {
            (true, true) if training.model.tied_embeddings => 1.0,
            (true, true) => 2.0,
            (true, false) | (false, true) => 1.0,
            (false, false) => 0.0,
        };
        let positions = if training.model.learned_positions && (stage.first || alone) {
            real(training.seq_len * training.model.hidden)
        } else {
            0.0
        };
        [copies * self.embedding, positions]
    }
}

/// The stages that stand for all: the first, others with leading dense layers, one of those between, the last, and where stages
/// mirror each other as many at that end; with how many each stands for.
///
/// Stages between hold the same layers unless the pattern of dense and expert layers has another period than a stage; then the
/// first of them stands for all.
pub fn stages_of(training: &Training, share: &Share) -> impl Iterator<Item = (u64, u64)> {
    let stages = training.plan.pp;
    let alone = share.leading(training).clamp(1, stages);
    let at_end = if training.plan.schedule.part().route().is_mirrored() { alone } else { 1 };
    let behind = alone.max(stages.saturating_sub(at_end));
    let between = (alone, behind - alone);
    let single = |stage| (stage, 1);
    (0..alone).map(single).chain([between]).chain((behind..stages).map(single)).filter(|class| class.1 > 0)
}
