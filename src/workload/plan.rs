//! The parallel plan: how a training step is spread over NPUs.

use super::recompute::Recompute;
use super::schedule::Schedule;

use crate::units::real;

/// How a training step is spread over NPUs. Degrees are at least 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Tensor parallelism.
    pub tp: u64,
    /// Context parallelism.
    pub cp: u64,
    /// How the ranks of a context group come to the keys and values of each other's tokens.
    pub cp_kind: ContextKind,
    /// Pipeline parallelism.
    pub pp: u64,
    /// Data parallelism.
    pub dp: u64,
    /// Expert parallelism, carved out of tp x cp x dp.
    pub ep: u64,
    /// Tensor parallelism inside routed experts, carved out of tp x cp x dp, too.
    pub etp: u64,
    /// Model chunks of each pipeline stage (interleaving).
    pub vpp: u64,
    /// In which order a pipeline stage runs its passes.
    pub schedule: Schedule,
    /// How the layers are spread over stages and chunks.
    pub layer_split: LayerSplit,
    /// Sequences in a microbatch.
    pub micro_batch_size: u64,
    /// ZeRO stage: what data parallelism shards.
    pub zero: u8,
    /// Among how many ranks of a data x context group ZeRO cuts states, of which the group then has several copies; none for all.
    pub zero_shard: Option<u64>,
    /// What the backward pass computes again.
    pub recompute: Recompute,
    /// Whether computing a layer again ends with the last thing that its backward pass needs.
    pub early_stop: bool,
    /// Whether the operations between tensor-parallel ones are split along the sequence.
    pub sequence_parallel: bool,
    /// Whether attention keeps no scores.
    pub flash_attention: bool,
    /// Whether data-parallel traffic runs beside the computation.
    pub overlap_dp: bool,
    /// Whether sharded weights are asked for ahead; else each layer waits for its own.
    pub prefetch: bool,
    /// Whether a rank gets the sum of its shard of the gradients alone; else that of all of them.
    pub reduce_scatter: bool,
    /// Whether tensor-parallel traffic runs beside the matrix products that need it.
    pub overlap_tp: bool,
    /// Whether in the backward pass it runs beside the products that give the weights' gradients.
    pub overlap_tp_backward: bool,
    /// Whether expert-parallel traffic runs beside the layer's computation.
    pub overlap_ep: bool,
    /// Whether messages between stages of several chunks run beside the computation.
    pub overlap_pp: bool,
    /// How tokens reach their experts.
    pub dispatcher: Dispatcher,
    /// Tokens of the busiest expert over the mean.
    pub expert_imbalance: f64,
    /// Whether each tensor rank sends its part of what stages exchange.
    pub scatter_gather: bool,
    /// The tier that the weights of layers live in; see `offload_optimizer`.
    pub offload_weights: Option<u8>,
    /// The tier that activations live in until their backward pass; see `offload_optimizer`.
    pub offload_activations: Option<u8>,
    /// The tier that optimizer states live in, by its place in the machine's list; none for the local memory.
    pub offload_optimizer: Option<u8>,
    /// Which degree is innermost.
    pub order: Order,
    /// Into how many parts of fewer columns each embedding table is cut.
    pub table_shards: u64,
    /// Whether all-to-alls of embeddings run beside the MLP that waits for none of them.
    pub overlap_embeddings: bool,
}

impl Plan {
    /// Ranks that hold the same weights of all but routed experts, for other tokens: data x context.
    #[must_use]
    pub const fn replicas(&self) -> u64 {
        self.dp * self.cp
    }

    /// Ranks of each context and data group among which states are cut, context ranks first; none if they do not fit.
    #[must_use]
    pub fn shard_ranks(&self) -> Option<[u64; 2]> {
        take(self.zero_shard.unwrap_or(self.replicas()), &mut [self.cp, self.dp])
    }

    /// How many ranks of each tensor, context and data group the groups of routed experts take; none if they do not fit.
    ///
    /// The tensor group of an expert takes the ranks of tensor groups first, then those of the context, then of the data group: whole
    /// groups, and a part of the last. The expert group takes what is left, in the same order. With tp 2, cp 2, dp 8, etp 2 and
    /// ep 8 these are the tensor group, and 2 x 4; 2 ranks of the data group hold the same experts.
    ///
    /// ```text
    /// expert-data = tp cp dp / (ep etp)                                         [Shoeybi19]
    /// ```
    ///
    /// Where states are cut among fewer ranks, all of this happens among the ranks of one copy.
    #[must_use]
    pub fn expert_ranks(&self) -> Option<ExpertRanks> {
        let [context, data] = self.shard_ranks()?;
        let mut left = [self.tp, context, data];
        let tensor = take(self.etp, &mut left)?;
        let expert = take(self.ep, &mut left)?;
        Some(ExpertRanks { tensor, expert, data: left })
    }
}

/// Ranks of each tensor, context and data group in the groups of routed experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertRanks {
    /// Those that split the matrices of an expert.
    pub tensor: [u64; 3],
    /// Those that share the experts of a layer.
    pub expert: [u64; 3],
    /// Those that hold the same experts, and cut their states.
    pub data: [u64; 3],
}

/// Takes `ranks` from groups with so many left, innermost first; none if they are neither whole groups nor part of one.
fn take<const N: usize>(ranks: u64, left: &mut [u64; N]) -> Option<[u64; N]> {
    let mut open = ranks;
    let taken = left.map(|size| {
        let part = if open.is_multiple_of(size) { size } else { open };
        open /= part;
        part
    });
    let fits = open == 1 && left.iter().zip(taken).all(|(size, part)| size.is_multiple_of(part));
    for (size, part) in left.iter_mut().zip(taken) {
        *size /= part;
    }
    fits.then_some(taken)
}

/// How the layers are spread over pipeline stages and their chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerSplit {
    /// As many in every chunk.
    Even,
    /// As many in every chunk but for the ends of the model: embedding and head take places of layers there.
    LightEnds,
}

impl LayerSplit {
    /// Every way, in the order of [`LayerSplit::NAMES`].
    pub const ALL: [Self; 2] = [Self::Even, Self::LightEnds];
    /// The names that people write.
    pub const NAMES: [&'static str; 2] = ["even", "light_ends"];
}

/// How tokens reach their experts, in Megatron's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dispatcher {
    /// A copy for each expert.
    AllToAll,
    /// A copy for each rank that holds some of them.
    Flex,
}

impl Dispatcher {
    /// Every dispatcher, in the order of [`Dispatcher::NAMES`].
    pub const ALL: [Self; 2] = [Self::AllToAll, Self::Flex];
    /// The names that people write.
    pub const NAMES: [&'static str; 2] = ["alltoall", "flex"];

    /// The share of copies that are sent, of those of `topk` experts on `ranks` ranks, evenly chosen.
    ///
    /// ```text
    /// r (1 - (1 - 1 / r)^k) / k          r = 8, k = 8: 5.25 of 8                                    [Zhao25]
    /// ```
    #[must_use]
    pub fn sent(self, ranks: u64, topk: u64) -> f64 {
        match self {
            Self::AllToAll => 1.0,
            Self::Flex => {
                let missed = (0..topk).fold(1.0, |missed, _| missed * (1.0 - 1.0 / real(ranks)));
                real(ranks) * (1.0 - missed) / real(topk.max(1))
            }
        }
    }
}

/// How the ranks of a context group come to the keys and values of each other's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContextKind {
    /// They go round from rank to rank [Liu23].
    Ring,
    /// All of them are gathered [Dubey24].
    AllGather,
    /// Each rank gets all tokens of some heads [Jacobs23].
    AllToAll,
}

impl ContextKind {
    /// Every kind, in the order of [`ContextKind::NAMES`].
    pub const ALL: [Self; 3] = [Self::Ring, Self::AllGather, Self::AllToAll];
    /// The names that people write.
    pub const NAMES: [&'static str; 3] = ["ring", "all_gather", "all_to_all"];
}

/// The order in which degrees take neighbouring NPUs, innermost first. Context groups lie directly behind tensor groups and
/// expert groups within tp x cp x dp, so `cp` and `ep` have no place of their own; the names follow Megatron's `--order`.
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

    /// The distance between neighbours of a tensor, a context, a data and a pipeline group.
    #[must_use]
    pub const fn strides(self, plan: &Plan) -> [u64; 4] {
        // What lies between neighbours of other groups is a tensor group of all context ranks.
        let (inner, dp, pp) = (plan.tp * plan.cp, plan.dp, plan.pp);
        let [tensor, data, pipeline] = match self {
            Self::TpDpPp => [1, inner, inner * dp],
            Self::TpPpDp => [1, inner * pp, inner],
            Self::DpTpPp => [dp, 1, inner * dp],
            Self::DpPpTp => [dp * pp, 1, dp],
            Self::PpTpDp => [pp, pp * inner, 1],
            Self::PpDpTp => [pp * dp, pp, 1],
        };
        [tensor, tensor * plan.tp, data, pipeline]
    }
}
