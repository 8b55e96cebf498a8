//! Strategies: how each kind of parallelism divides a layer, and what it makes NPUs say to each other.

use super::infeasible::Infeasible;
use super::program::Program;
use super::share::{Share, Stage};
use super::transformer::Training;
use crate::registry::registry;

/// A pass over the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// From the embedding to the loss.
    Forward,
    /// Back; without the gradients of weights where these are made apart.
    Backward,
    /// The gradients of weights, where a schedule has them apart.
    Weights,
}

/// A place in a pass at which a strategy may add operations, in the order of the forward pass in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the start of a layer; the flag says whether it has routed experts.
    Layer {
        /// Whether the layer has routed experts.
        moe: bool,
    },
    /// At the end of a layer.
    LayerEnd {
        /// Whether the layer has routed experts.
        moe: bool,
    },
    /// Before attention.
    Attention,
    /// Before the core of attention.
    Core,
    /// Behind it.
    CoreEnd,
    /// Behind attention.
    AttentionEnd,
    /// Before a dense MLP, or shared experts.
    Mlp,
    /// Behind it.
    MlpEnd,
    /// Before routed experts.
    Experts,
    /// Before the matrices of routed experts: tokens have come to the ranks that hold their experts.
    ExpertMatrices,
    /// Behind them.
    ExpertMatricesEnd,
    /// Behind routed experts.
    ExpertsEnd,
    /// At the embedding.
    Embedding,
    /// At the output head.
    Head,
}

/// One kind of parallelism, or another way to trade memory for time.
pub trait ParallelStrategy {
    /// Whether its degrees divide what they must.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self, _training: &Training) -> Result<(), Infeasible> {
        Ok(())
    }

    /// Divides an NPU's share.
    fn divide(&self, _training: &Training, _share: &mut Share) {}

    /// Adds what happens at a place of a pass.
    fn emit(&self, _place: Place, _pass: Pass, _training: &Training, _share: &Share, _program: &mut Program) {}

    /// Adds what happens once a step on the NPUs of a stage, as blocks of its own.
    fn emit_step(&self, _stage: &Stage, _training: &Training, _share: &Share, _program: &mut Program) {}

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;

    /// What it comes to in a small case, worked out by hand.
    fn example(&self) -> &'static str;
}

registry! {
    /// The strategies, in the order in which they divide a job.
    pub enum Strategy: ParallelStrategy {
        tensor::Tensor,
        context::Context,
        expert::Expert,
        expert_tensor::ExpertTensor,
        recompute::Recomputation,
        pipeline::Pipeline,
        data::Data,
        offload::Offload,
    }
}
