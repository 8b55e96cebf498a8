//! The share of one NPU: what is left of a layer and a microbatch once every strategy has divided it.

use super::Training;
use super::strategy::Strategy;
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
}

/// What one NPU holds and handles: one layer's parameters, one microbatch's tokens, and into how many shards data
/// parallelism cuts the states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Tokens of a microbatch inside tensor-parallel operations.
    pub tokens: f64,
    /// Tokens of a microbatch between them: fewer with sequence parallelism.
    pub outer_tokens: f64,
    /// Token-expert pairs of a microbatch, if experts are evenly loaded.
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
    /// Layers of a model chunk.
    pub layers_per_chunk: u64,
}

/// How many layers of each kind, and which ends of the model, a pipeline stage holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Which one, from 0.
    pub number: u64,
    /// Layers with a dense MLP.
    pub dense: u64,
    /// Layers with routed experts.
    pub moe: u64,
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
        };
        for strategy in Strategy::ALL {
            strategy.part().divide(training, &mut share);
        }
        share
    }

    /// What a stage holds: chunk c of stage i has the layers from (c * p + i) * L / (p v) on [Narayanan21].
    #[must_use]
    pub fn stage(&self, training: &Training, number: u64) -> Stage {
        let Training { model, plan, .. } = training;
        let mut moe = 0;
        for chunk in 0..plan.vpp {
            let begin = (chunk * plan.pp + number) * self.layers_per_chunk;
            moe += model.moe_layers_before(begin + self.layers_per_chunk) - model.moe_layers_before(begin);
        }
        Stage {
            number,
            dense: plan.vpp * self.layers_per_chunk - moe,
            moe,
            first: number == 0,
            last: number + 1 == plan.pp,
        }
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
        Split {
            dense: real(stage.dense) * self.dense_layer()
                + real(stage.moe) * self.moe_layer()
                + copies * self.embedding
                + positions,
            expert: real(stage.moe) * self.experts,
        }
    }
}

/// The stages that stand for all: the first, one in the middle, the last; with how many each stands for.
///
/// Stages in the middle hold the same layers unless the pattern of dense and expert layers has another period than a
/// stage; then the second stage stands for them.
pub fn stages_of(stages: u64) -> impl Iterator<Item = (u64, u64)> {
    let classes = [(0, 1), (1, stages.saturating_sub(2)), (stages - 1, u64::from(stages > 1))];
    classes.into_iter().filter(|class| class.1 > 0)
}
