//! The parallel plan: how a training step is spread over NPUs.

/// How a training step is spread over NPUs. Degrees are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Tensor parallelism.
    pub tp: u64,
    /// Pipeline parallelism.
    pub pp: u64,
    /// Data parallelism.
    pub dp: u64,
    /// Expert parallelism, carved out of tp x dp.
    pub ep: u64,
    /// Model chunks of each pipeline stage (interleaving).
    pub vpp: u64,
    /// Sequences in a microbatch.
    pub micro_batch_size: u64,
    /// ZeRO stage: what data parallelism shards.
    pub zero: u8,
    /// What the backward pass computes again.
    pub recompute: Recompute,
    /// Whether the operations between tensor-parallel ones are split along the sequence.
    pub sequence_parallel: bool,
    /// Whether attention keeps no scores.
    pub flash_attention: bool,
    /// Whether data-parallel traffic runs beside the computation.
    pub overlap_dp: bool,
    /// Whether tensor-parallel traffic runs beside the matrix products that need it.
    pub overlap_tp: bool,
    /// Whether expert-parallel traffic runs beside the layer's computation.
    pub overlap_ep: bool,
    /// Whether each tensor rank sends its part of what stages exchange.
    pub scatter_gather: bool,
    /// The tier that optimizer states live in, by its place in the machine's list; none for the local memory.
    pub offload_optimizer: Option<u8>,
    /// Which degree is innermost.
    pub order: Order,
}

/// What the backward pass computes again instead of keeping it, in Megatron's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recompute {
    /// Nothing.
    None,
    /// The core of attention: scores, softmax, weighted sum.
    Selective,
    /// Every layer from its input.
    Full,
}

impl Recompute {
    /// Every choice, in the order of [`Recompute::NAMES`].
    pub const ALL: [Self; 3] = [Self::None, Self::Selective, Self::Full];
    /// The names that people write.
    pub const NAMES: [&'static str; 3] = ["none", "selective", "full"];
}

/// The order in which degrees take neighbouring NPUs, innermost first. Expert groups lie within tp x dp, so `ep` has no
/// place of its own; the names follow Megatron's `--order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Tensor, data, pipeline.
    TpDpPp,
    /// Tensor, pipeline, data.
    TpPpDp,
    /// Data, tensor, pipeline.
    DpTpPp,
    /// Data, pipeline, tensor.
    DpPpTp,
    /// Pipeline, tensor, data.
    PpTpDp,
    /// Pipeline, data, tensor.
    PpDpTp,
}

impl Order {
    /// Every order, in the order of [`Order::NAMES`].
    pub const ALL: [Self; 6] = [Self::TpDpPp, Self::TpPpDp, Self::DpTpPp, Self::DpPpTp, Self::PpTpDp, Self::PpDpTp];
    /// The names that people write.
    pub const NAMES: [&'static str; 6] = ["tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"];

    /// The distance between neighbours of a tensor, a data and a pipeline group.
    #[must_use]
    pub const fn strides(self, plan: &Plan) -> [u64; 3] {
        let (tp, dp, pp) = (plan.tp, plan.dp, plan.pp);
        match self {
            Self::TpDpPp => [1, tp, tp * dp],
            Self::TpPpDp => [1, tp * pp, tp],
            Self::DpTpPp => [dp, 1, tp * dp],
            Self::DpPpTp => [dp * pp, 1, dp],
            Self::PpTpDp => [pp, pp * tp, 1],
            Self::PpDpTp => [pp * dp, pp, 1],
        }
    }
}
