//! The keys of a sweep: every one with its path, kind, default and meaning. The manual, the schema and the table's input
//! columns are made from this list, in its order: axes that change the program come first and vary slowest.

use super::fidelity::Fidelity;
use crate::system::collective::{Algorithm, Choice, Collective};
use crate::system::dimension_order::DimensionOrder;
use crate::system::hierarchy::MultiDim;
use crate::system::memory::MAX_TIERS;
use crate::system::network::Congestion;
use crate::system::queue_order::QueueOrder;
use crate::system::rules::Rules;
use crate::system::topology::Topology;
use crate::system::{Format, MAX_DIMS};
use crate::units::Unit;
use crate::workload::dlrm::{Interaction, Rows, Widths};
use crate::workload::{ContextKind, Dispatcher, LayerSplit, Mlp, Model, Optimizer, Order, Schedule};

/// What may be written behind a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number with a unit; more than zero if strict, else zero or more.
    Quantity {
        /// The unit.
        unit: Unit,
        /// Whether zero is refused.
        strict: bool,
    },
    /// A whole number from a least one on. A count of a thing may carry its word: `8192 tok`, `2048 seq`.
    Count {
        /// The least.
        least: u64,
        /// The word it may carry; some counts must: then a bare number is an error.
        unit: Unit,
    },
    /// A share above 0, at most 1; `70 %` or `0.7`.
    Share,
    /// How many times a mean: a number from 1 on.
    Ratio,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// One of the words of [`ALGORITHMS`], or a mapping with more than a word says: see `algorithm.rs`.
    Algorithm,
    /// What the backward pass computes again: see `recompute.rs`.
    Recompute,
    /// The name of a tier of `memory`, or `none`.
    Tier,
    /// A path, in which names in braces are values of the point.
    Path,
    /// Whole numbers with `-` between them: see `sizes.rs`.
    Sizes {
        /// How many there may be.
        most: usize,
    },
}

/// What is in force when a key is not written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// It must be written where its section is used.
    Required,
    /// This value, in base units, a choice by its place.
    Is(f64),
    /// What makes the product come out.
    Rest,
    /// The value of another key.
    Like(&'static str),
    /// Nothing: counts as 0 in expressions.
    Absent,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its path; the last part is its name. Of a line of the network: the field. Of a tier: the field.
    pub path: &'static str,
    /// What may be written.
    pub kind: Kind,
    /// What is in force otherwise.
    pub default: Default,
    /// Its name in tables, without the unit's suffix; none if it has no column of its own.
    pub column: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
}

impl Key {
    /// The unit of its values.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        match self.kind {
            Kind::Quantity { unit, .. } | Kind::Count { unit, .. } => unit,
            Kind::Share
            | Kind::Ratio
            | Kind::Choice(_)
            | Kind::Algorithm
            | Kind::Recompute
            | Kind::Flag
            | Kind::Tier
            | Kind::Path
            | Kind::Sizes { .. } => Unit::NONE,
        }
    }

    /// Its words, if it takes words.
    #[must_use]
    pub const fn words(&self) -> Option<&'static [&'static str]> {
        match self.kind {
            Kind::Choice(words) => Some(words),
            Kind::Algorithm => Some(&ALGORITHMS),
            _ => None,
        }
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// Its name in tables, without the unit's suffix: its own, or else its path.
    #[must_use]
    pub fn column_name(&self) -> String {
        self.column.map_or_else(|| self.path.trim_start_matches("cluster.").replace('.', "_"), str::to_owned)
    }

    /// A value that could be written.
    #[must_use]
    pub fn example(&self) -> String {
        match self.kind {
            Kind::Quantity { unit, .. } | Kind::Count { unit, .. } => unit.example().to_owned(),
            Kind::Share => "70 %".to_owned(),
            Kind::Ratio => "1.2".to_owned(),
            Kind::Choice(words) => words[0].to_owned(),
            Kind::Algorithm => ALGORITHMS[0].to_owned(),
            Kind::Recompute => "selective".to_owned(),
            Kind::Flag => "true".to_owned(),
            Kind::Tier => "none".to_owned(),
            Kind::Path => "\"traces/tp{tp}/w\"".to_owned(),
            Kind::Sizes { .. } => "512-256-128".to_owned(),
        }
    }
}

const fn count(least: u64) -> Kind {
    Kind::Count { least, unit: Unit::NONE }
}

const fn quantity(unit: Unit) -> Kind {
    Kind::Quantity { unit, strict: true }
}

const fn at_least_zero(unit: Unit) -> Kind {
    Kind::Quantity { unit, strict: false }
}

/// The words of an algorithm: `by_block`, and every one by its name.
pub const ALGORITHMS: [&str; 1 + Algorithm::NAMES.len()] = Choice::words();

/// Declares the list and a name for each slot in one go.
macro_rules! keys {
    (
        $(#[$doc:meta])*
        $list:ident, $ids:ident;
        $($id:ident = $path:literal, $kind:expr, $default:expr, $column:expr, $text:literal;)+
    ) => {
        /// The places of the keys in their list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $ids {
            $(#[doc = $text] $id,)+
        }

        $(#[$doc])*
        pub const $list: &[Key] = &[
            $(Key { path: $path, kind: $kind, default: $default, column: $column, doc: $text },)+
        ];
    };
}

keys! {
    /// The keys that have one value at a point.
    KEYS, Id;
    Collective = "workload.collective", Kind::Choice(&Collective::NAMES), Default::Absent, Some("collective"),
        "run one collective over all NPUs, in place of `model` and `plan`";
    Size = "workload.size", quantity(Unit::BYTE), Default::Absent, Some("size"),
        "its size on each rank: what a rank starts with (of an all_gather: its shard)";
    Chakra = "workload.chakra", Kind::Path, Default::Absent, Some("chakra"),
        "a recorded execution trace in place of `model`: the path of its files without `.RANK.et`; needs `fidelity: event_driven` [ASTRA2]";
    CommGroups = "workload.comm_groups", Kind::Path, Default::Absent, Some("comm_groups"), "the file of its communicator groups";
    RemoteMemory = "workload.remote_memory", Kind::Tier, Default::Absent, Some("remote_memory"),
        "the tier of `memory` that the trace's loads and stores use; not written: the only one, if there is one";
    Family = "model.family", Kind::Choice(Model::NAMES), Default::Is(0.0), None,
        "family of the model: which of these keys it has; `dlrm` has those from `tables` to `interaction` [Naumov19]";
    Layers = "model.layers", count(1), Default::Required, None, "layers";
    Hidden = "model.hidden", count(1), Default::Required, None, "width of a token's vector";
    Heads = "model.heads", count(1), Default::Required, None, "query heads of attention";
    KvHeads = "model.kv_heads", count(1), Default::Like("model.heads"), None, "key and value heads: fewer than `heads` for grouped-query attention";
    HeadDim = "model.head_dim", count(1), Default::Like("hidden / heads"), None, "width of a head";
    ValueDim = "model.value_dim", count(1), Default::Like("model.head_dim"), None, "width of a head of values, where it is another";
    KvRank = "model.kv_rank", count(0), Default::Is(0.0), None,
        "latent attention: rank of the vector that keys and values are made of (`kv_lora_rank`); 0 for none [DeepSeek24]";
    QRank = "model.q_rank", count(0), Default::Is(0.0), None,
        "latent attention: rank of the vector that queries are made of (`q_lora_rank`); 0 if they are made of the token's [DeepSeek24]";
    RopeDim = "model.rope_dim", count(0), Default::Is(0.0), None,
        "latent attention: elements of a head that carry the position, beside `head_dim` [DeepSeek24]";
    AttentionWindow = "model.window", count(1), Default::Absent, None, "tokens that a token sees in layers with a sliding window";
    FullEvery = "model.full_attention_every", count(0), Default::Is(0.0), None,
        "every how many layers one sees all tokens, where there is a `window`; 0 if none does";
    ParallelBlock = "model.parallel_block", Kind::Flag, Default::Is(0.0), None, "whether attention and MLP stand beside each other, behind one norm [Chowdhery22]";
    Ffn = "model.ffn", count(1), Default::Required, None, "width of the MLP";
    Mlp = "model.mlp", Kind::Choice(&Mlp::NAMES), Default::Required, None, "kind of the MLP: gelu and relu2 have two matrices, gated has three";
    Vocab = "model.vocab", count(1), Default::Required, None, "words of the vocabulary";
    Tied = "model.tied_embeddings", Kind::Flag, Default::Is(0.0), None, "whether the output head is the embedding";
    Learned = "model.learned_positions", Kind::Flag, Default::Is(0.0), None, "whether positions are learned vectors";
    Dropout = "model.dropout", Kind::Flag, Default::Is(0.0), None, "whether dropout masks are kept for the backward pass";
    Experts = "model.experts", count(0), Default::Is(0.0), None, "routed experts of a mixture-of-experts layer; 0 for a dense model";
    Topk = "model.topk", count(1), Default::Is(1.0), None, "experts that a token is sent to";
    Shared = "model.shared_experts", count(0), Default::Is(0.0), None, "experts that every token passes";
    MoeFfn = "model.moe_ffn", count(1), Default::Like("model.ffn"), None, "width of an expert";
    MoeEvery = "model.moe_every", count(1), Default::Is(1.0), None, "every how many layers one has experts";
    DenseLayers = "model.dense_layers", count(0), Default::Is(0.0), None, "leading layers without experts";
    CapacityFactor = "model.capacity_factor", quantity(Unit::NONE), Default::Absent, None,
        "room of an expert over the mean of its tokens: all of it is computed, tokens beyond are dropped; not written: none is dropped [Fedus22]";
    Tables = "model.tables", count(1), Default::Required, None, "embedding tables of a `dlrm`: sparse features";
    Rows = "model.rows", Kind::Sizes { most: Rows::MOST }, Default::Required, None, "rows of a table, if all have as many; or of each, up to 32: `1000-20-300`";
    EmbeddingDim = "model.embedding_dim", count(1), Default::Required, None, "columns of a table: elements of an embedding";
    Pooling = "model.pooling", quantity(Unit::NONE), Default::Is(1.0), None, "rows of a table that a sample names and whose sum is taken, the mean (pooling factor)";
    DenseFeatures = "model.dense_features", count(1), Default::Required, None, "dense features of a sample: what the bottom MLP begins with";
    BottomMlp = "model.bottom_mlp", Kind::Sizes { most: Widths::MOST }, Default::Required, None, "widths of the layers of the bottom MLP, behind its input";
    TopMlp = "model.top_mlp", Kind::Sizes { most: Widths::MOST }, Default::Required, None, "widths of the layers of the top MLP, behind its input, which the interaction gives";
    Interaction = "model.interaction", Kind::Choice(&Interaction::NAMES), Default::Is(0.0), None,
        "how the vectors of a sample come together: products of every two of them, or one behind the other [Naumov19]";
    Parameters = "model.parameters", count(1), Default::Absent, None, "published number of parameters: for reference, nothing is computed from it";
    SeqLen = "seq_len", Kind::Count { least: 1, unit: Unit::TOKEN }, Default::Required, Some("seq_len"), "tokens of a sequence";
    GlobalBatch = "global_batch", Kind::Quantity { unit: Unit::SEQUENCE, strict: true }, Default::Required, Some("global_batch"),
        "sequences of a step, `2048 seq` (of a `dlrm` samples, `65536 samples`); or tokens, `4194304 tok`, which the sequence length must divide";
    Optimizer = "optimizer", Kind::Choice(Optimizer::NAMES), Default::Is(0.0), Some("optimizer"),
        "how weights follow from gradients: what is kept of each parameter, and what an update costs";
    Compute = "precision.compute", Kind::Choice(&Format::NAMES), Default::Is(0.0), None, "format of matrix products: which rate of the NPU counts";
    ProductEfficiency = "precision.product_efficiency", Kind::Share, Default::Is(1.0), None,
        "share of the NPU's `gemm_efficiency` that matrix products in this format reach";
    WeightBytes = "precision.weight", quantity(Unit::BYTE), Default::Is(2.0), None, "bytes of a parameter as the forward pass reads it";
    GradientBytes = "precision.gradient", quantity(Unit::BYTE), Default::Is(4.0), None, "bytes of a gradient as it is accumulated and reduced";
    MasterBytes = "precision.master", at_least_zero(Unit::BYTE), Default::Is(4.0), None, "bytes of the master copy of a parameter; 0 where the weight is its own";
    MomentBytes = "precision.moment", quantity(Unit::BYTE), Default::Is(4.0), None, "bytes of an element of an optimizer's moment, if the optimizer does not say it";
    OptimizerBytes = "precision.optimizer", at_least_zero(Unit::BYTE), Default::Like("master + moments"), None,
        "bytes of optimizer state a parameter, master copy and moments, whatever the `optimizer` keeps";
    ActivationBytes = "precision.activation", quantity(Unit::BYTE), Default::Is(2.0), None, "bytes of an element of an activation";
    TableBytes = "precision.table", quantity(Unit::BYTE), Default::Is(4.0), None, "bytes of an element of the tables of a `dlrm`, which are their own master copy";
    Npus = "cluster.npus", count(1), Default::Rest, Some("npus"), "how many NPUs; not written: the product of the network's sizes";
    Tp = "plan.tp", count(1), Default::Is(1.0), Some("tp"), "tensor parallelism";
    Cp = "plan.cp", count(1), Default::Is(1.0), Some("cp"), "context parallelism: ranks that share the tokens of every sequence";
    CpKind = "plan.cp_kind", Kind::Choice(&ContextKind::NAMES), Default::Is(0.0), Some("cp_kind"),
        "how keys and values come to the other context ranks: they go round, are gathered, or heads are exchanged for tokens";
    Pp = "plan.pp", count(1), Default::Is(1.0), Some("pp"), "pipeline parallelism: stages";
    Dp = "plan.dp", count(1), Default::Rest, Some("dp"), "data parallelism: replicas";
    Ep = "plan.ep", count(1), Default::Is(1.0), Some("ep"), "expert parallelism, carved out of tp x cp x dp / etp";
    Etp = "plan.etp", count(1), Default::Is(1.0), Some("etp"), "tensor parallelism inside routed experts, carved out of tp x cp x dp";
    Vpp = "plan.vpp", count(1), Default::Is(1.0), Some("vpp"), "model chunks of a pipeline stage (interleaving)";
    Schedule = "plan.schedule", Kind::Choice(Schedule::NAMES), Default::Is(0.0), Some("schedule"),
        "in which order a pipeline stage runs the passes of its microbatches; `1f1b` is interleaved where `vpp` is more than 1";
    LayerSplit = "plan.layer_split", Kind::Choice(&LayerSplit::NAMES), Default::Is(0.0), Some("layer_split"),
        "how layers are spread over stages and chunks: as many in each, or fewer at the ends of the model, whose places embedding and head take";
    MicroBatch = "plan.micro_batch_size", Kind::Count { least: 1, unit: Unit::SEQUENCE }, Default::Is(1.0), Some("micro_batch_size"),
        "sequences of a microbatch";
    Zero = "plan.zero", Kind::Choice(&["0", "1", "2", "3"]), Default::Is(0.0), Some("zero"),
        "ZeRO stage: data parallelism shards optimizer states (1), gradients too (2), weights too (3); Megatron's distributed optimizer is 1, FSDP is 3";
    ZeroShard = "plan.zero_shard", count(1), Default::Absent, Some("zero_shard"),
        "among how many ranks of a data x context group ZeRO shards, the group being copies of these (HSDP); not written: all";
    Recompute = "plan.recompute", Kind::Recompute, Default::Is(0.0), Some("recompute"),
        "what the backward pass computes again: `selective` the core of attention, `full` each layer, `alternate` every second linear layer and what is element-wise, \
         or Megatron's modules, several with `+` between them: `layernorm+moe_act`";
    SequenceParallel = "plan.sequence_parallel", Kind::Flag, Default::Is(1.0), Some("sequence_parallel"),
        "whether operations between tensor-parallel ones are split along the sequence";
    FlashAttention = "plan.flash_attention", Kind::Flag, Default::Is(1.0), Some("flash_attention"), "whether attention keeps no scores";
    OverlapDp = "plan.overlap_dp", Kind::Flag, Default::Is(1.0), Some("overlap_dp"), "whether data-parallel traffic runs beside the computation";
    Prefetch = "plan.prefetch", Kind::Flag, Default::Is(1.0), Some("prefetch"),
        "whether sharded weights are asked for ahead, and gathered beside the computation where data-parallel traffic may be; `false`: each layer waits for its own";
    ScatterGradients = "plan.reduce_scatter", Kind::Flag, Default::Is(1.0), Some("reduce_scatter"),
        "whether a rank gets the sum of its shard of the gradients alone; `false`: the sum of all of them, twice the bytes, of which it keeps its shard [Rajbhandari20]";
    OverlapTp = "plan.overlap_tp", Kind::Flag, Default::Is(0.0), Some("overlap_tp"),
        "whether tensor-parallel traffic runs beside the matrix products that need it";
    OverlapTpBackward = "plan.overlap_tp_backward", Kind::Flag, Default::Is(1.0), Some("overlap_tp_backward"),
        "whether in the backward pass it runs beside the products that give the weights' gradients: Megatron's default since 2022 [Korthikanti22]";
    OverlapEp = "plan.overlap_ep", Kind::Flag, Default::Is(0.0), Some("overlap_ep"),
        "whether the all-to-alls of experts run beside the layer's computation";
    OverlapPp = "plan.overlap_pp", Kind::Flag, Default::Is(1.0), Some("overlap_pp"),
        "whether messages between stages of several chunks run beside the computation; stages of one chunk wait for theirs";
    Dispatcher = "plan.dispatcher", Kind::Choice(&Dispatcher::NAMES), Default::Is(0.0), Some("dispatcher"),
        "how tokens reach their experts: `alltoall` sends a copy for each expert, `flex` one for each rank that holds some of them";
    ExpertImbalance = "plan.expert_imbalance", Kind::Ratio, Default::Is(1.0), Some("expert_imbalance"),
        "tokens of the busiest expert over the mean; all experts of the busiest NPU count as that busy, and none has more than all tokens";
    ScatterGather = "plan.scatter_gather", Kind::Flag, Default::Is(1.0), Some("scatter_gather"),
        "whether each tensor rank sends its part of what stages exchange, which the next stage gathers; with `sequence_parallel` it holds no more [Narayanan21]";
    OffloadWeights = "plan.offload_weights", Kind::Tier, Default::Is(-1.0), Some("offload_weights"),
        "the tier of `memory` in which weights of layers live, or `none`: they stream in beside the layer before";
    OffloadActivations = "plan.offload_activations", Kind::Tier, Default::Is(-1.0), Some("offload_activations"),
        "the tier of `memory` in which activations live until their backward pass, or `none`: they stream out and in beside layers";
    OffloadOptimizer = "plan.offload_optimizer", Kind::Tier, Default::Is(-1.0), Some("offload_optimizer"),
        "the tier of `memory` in which optimizer states live, or `none`";
    Order = "plan.order", Kind::Choice(&Order::NAMES), Default::Is(0.0), Some("order"),
        "which degree takes neighbouring NPUs, innermost first; cp lies directly behind tp, ep within tp x cp x dp";
    TableShards = "plan.table_shards", count(1), Default::Is(1.0), Some("table_shards"),
        "into how many parts of fewer columns each table of a `dlrm` is cut, so that more ranks than tables have a part [Mudigere22]";
    OverlapEmbeddings = "plan.overlap_embeddings", Kind::Flag, Default::Is(1.0), Some("overlap_embeddings"),
        "whether the all-to-alls of embeddings of a `dlrm` run beside its bottom MLP [Naumov19]";
    Bf16 = "cluster.npu.bf16", quantity(Unit::FLOP_RATE), Default::Absent, None, "peak rate of dense bf16 matrix products";
    Fp16 = "cluster.npu.fp16", quantity(Unit::FLOP_RATE), Default::Absent, None, "peak rate of dense fp16 matrix products";
    Fp8 = "cluster.npu.fp8", quantity(Unit::FLOP_RATE), Default::Absent, None, "peak rate of dense fp8 matrix products";
    Fp32 = "cluster.npu.fp32", quantity(Unit::FLOP_RATE), Default::Absent, None, "peak rate of dense fp32 matrix products";
    Fp4 = "cluster.npu.fp4", quantity(Unit::FLOP_RATE), Default::Absent, None, "peak rate of dense fp4 matrix products";
    GemmEfficiency = "cluster.npu.gemm_efficiency", Kind::Share, Default::Is(0.75), None,
        "share of the peak that large matrix products reach in whole tiles; the default lies between what is fitted on A100 and H100, 0.69 to 0.79 [StepFit]";
    AttentionEfficiency = "cluster.npu.attention_efficiency", Kind::Share, Default::Is(0.5), None,
        "share of the 16-bit peak that fused causal attention reaches forward, with heads of 128 [StepFit]";
    PortedAttention = "cluster.npu.ported_attention_efficiency", Kind::Share, Default::Like("cluster.npu.attention_efficiency"), None,
        "the same of kernels that were written for the generation before [StepFit]";
    Units = "cluster.npu.units", count(1), Default::Absent, None,
        "units that compute a tile of a matrix product each (streaming multiprocessors): products run in whole waves of tiles";
    KernelLatency = "cluster.npu.kernel_latency", at_least_zero(Unit::SECOND), Default::Is(5e-6), None,
        "from the end of a kernel until the next one computes [StepFit]";
    Hbm = "cluster.npu.hbm", quantity(Unit::BYTE), Default::Absent, None, "capacity of the memory on the NPU";
    HbmBandwidth = "cluster.npu.hbm_bandwidth", quantity(Unit::BANDWIDTH), Default::Absent, None, "bandwidth of the memory on the NPU";
    MemoryEfficiency = "cluster.npu.memory_efficiency", Kind::Share, Default::Is(0.8), None,
        "share of the memory bandwidth that large streams reach [StepFit]";
    Power = "cluster.npu.power", at_least_zero(Unit::WATT), Default::Absent, None, "power of an NPU under load";
    Price = "cluster.npu.price", at_least_zero(Unit::DOLLAR), Default::Absent, None, "price of an NPU";
    Rent = "cluster.npu.rent", at_least_zero(Unit::DOLLAR_RATE), Default::Absent, None, "what an NPU costs by time, if it is rented, all included";
    Lifetime = "cluster.lifetime", quantity(Unit::SECOND), Default::Absent, None,
        "time in which what is bought is paid off: prices of NPUs, of bandwidth, of shares of tiers; not written: prices enter no cost";
    EnergyPrice = "cluster.energy_price", at_least_zero(Unit::DOLLAR_PER_JOULE), Default::Absent, None, "what the energy of the NPUs costs";
    Reserve = "cluster.memory_reserve", at_least_zero(Unit::BYTE), Default::Is(4e9), Some("memory_reserve"),
        "what is kept free of each NPU's memory: context, communication buffers, fragmentation";
    Congestion = "cluster.congestion", Kind::Choice(&Congestion::NAMES), Default::Is(0.0), Some("congestion"),
        "whether messages share links: `unaware` of each other, or `aware`, one message at a time on a link, device by device; `aware` needs `fidelity: event_driven`, and under `rules: astra_sim` a network of one dimension [ASTRA2]";
    Capacity = "memory.local.capacity", quantity(Unit::BYTE), Default::Like("cluster.npu.hbm"), Some("local_capacity"), "capacity of the local memory";
    LocalBandwidth = "memory.local.bandwidth", quantity(Unit::BANDWIDTH), Default::Like("cluster.npu.hbm_bandwidth"), Some("local_bandwidth"),
        "bandwidth of the local memory";
    KernelFactor = "software.kernel_factor", quantity(Unit::NONE), Default::Is(1.0), None,
        "how much longer kernels take than those of the best tuned frameworks, gaps between them included [StepFit]";
    ElementWise = "software.element_wise", quantity(Unit::NONE), Default::Is(1.0), None,
        "local memory traffic of element-wise operations against that of fused kernels [StepFit]";
    NativeAttention = "software.native_attention", Kind::Flag, Default::Is(1.0), None,
        "whether its fused attention is written for the generation of the NPU: `attention_efficiency`, or else `ported_attention_efficiency`";
    AttentionShare = "software.attention", quantity(Unit::NONE), Default::Is(1.0), None,
        "share of these that its fused attention reaches [StepFit]";
    OddHeads = "software.odd_heads", quantity(Unit::NONE), Default::Is(5.8), None,
        "how much longer products of unfused attention take for heads of a size that is no multiple of 8 [StepFit]";
    Dispatch = "software.dispatch", at_least_zero(Unit::SECOND), Default::Is(1e-5), None,
        "time in which the host sends one operation to the NPU [StepFit]";
    CollectiveLatency = "software.collective_latency", at_least_zero(Unit::SECOND), Default::Is(2e-5), None,
        "what a collective, or a message between stages, of a training step costs before its first step; a B200 node was fitted with 22 to 26 us";
    OverlapTraffic = "software.overlap_traffic", at_least_zero(Unit::NONE), Default::Is(5.3), None,
        "local memory traffic that a byte sent beside computations is worth to these, the units included that it takes from them [StepFit]";
    Accumulation = "software.accumulation", at_least_zero(Unit::BYTE), Default::Is(4.0), None,
        "bytes a parameter that adding a microbatch's gradients to those before moves [StepFit]";
    EarlyStop = "software.early_stop", Kind::Flag, Default::Is(0.0), None,
        "whether computing a layer again ends with the last thing that its backward pass needs: the last product of a dense MLP, which gives the next layer's input, is left out, as PyTorch's checkpoints without re-entry do";
    Logit = "software.logit", at_least_zero(Unit::BYTE), Default::Is(6.0), None,
        "bytes of a logit and of its gradient while the loss is computed: 4 and a copy of 2, or less where the loss is fused";
    GradientCopy = "software.gradient_copy", Kind::Flag, Default::Is(0.0), None,
        "whether a microbatch's gradients lie, in the weights' format, beside those of more bytes that they are added to";
    MasterOnly = "software.master_only", Kind::Flag, Default::Is(0.0), None,
        "whether weights that `zero: 3` shards are kept as the optimizer's master copy alone, and cast when they are gathered [Zhao23]";
    KeepsSent = "software.keeps_sent", Kind::Flag, Default::Is(0.0), None,
        "whether a stage keeps what it sent to the next until its backward pass";
    Bucket = "software.bucket", count(1), Default::Absent, None,
        "parameters of a bucket in which ZeRO reduces gradients, and of which `zero: 3` gathers two; not written: layer by layer";
    Cached = "software.cached", at_least_zero(Unit::NONE), Default::Is(0.195), None,
        "memory that the framework's allocator holds and nothing lies in, as a share of what something does; it gives it back before memory is full (measured: tests/VALIDATION.md)";
    Algorithm = "collectives.algorithm", Kind::Algorithm, Default::Is(0.0), Some("algorithm"),
        "how collectives run: `by_block` takes ring, direct or halving_doubling by the building block of each dimension; `direct(4)` is `direct` with a `window` of 4; `{by_dimension: [ring, direct]}` is an algorithm for each dimension, innermost first; `{chakra: mine/allreduce}` is a trace a rank, of the collective that runs or of a recorded trace's all-reduce, and needs `fidelity: event_driven` [ASTRA2]";
AllReduce = "collectives.all_reduce_algorithm", Kind::Algorithm, Default::Absent, Some("all_reduce_algorithm"),
        "how an all_reduce runs, whatever `algorithm` and the dimensions say";
    ReduceScatter = "collectives.reduce_scatter_algorithm", Kind::Algorithm, Default::Absent, Some("reduce_scatter_algorithm"),
        "how a reduce_scatter runs, whatever `algorithm` and the dimensions say";
    AllGather = "collectives.all_gather_algorithm", Kind::Algorithm, Default::Absent, Some("all_gather_algorithm"),
        "how an all_gather runs, whatever `algorithm` and the dimensions say";
    AllToAll = "collectives.all_to_all_algorithm", Kind::Algorithm, Default::Absent, Some("all_to_all_algorithm"),
        "how an all_to_all runs, whatever `algorithm` and the dimensions say";
    Broadcast = "collectives.broadcast_algorithm", Kind::Algorithm, Default::Absent, Some("broadcast_algorithm"),
        "how a broadcast runs, whatever `algorithm` and the dimensions say";
    Scatter = "collectives.scatter_algorithm", Kind::Algorithm, Default::Absent, Some("scatter_algorithm"),
        "how a scatter runs, whatever `algorithm` and the dimensions say";
    Window = "collectives.window", count(1), Default::Absent, Some("window"),
        "messages of a `direct` exchange under way at once; all of them if it is not written [ASTRA2]";
    MultiDim = "collectives.multi_dim", Kind::Choice(&MultiDim::NAMES), Default::Is(0.0), Some("multi_dim"),
        "how a collective runs over several dimensions: `hierarchical` reduces inwards out and gathers back, `per_dimension` does all of it in one dimension after the other, `flat` runs over all NPUs at once, by the algorithm of the innermost dimension, and needs `fidelity: event_driven` [ASTRA2]";
    Chunks = "collectives.chunks", count(1), Default::Is(4.0), Some("chunks"),
        "into how many chunks a collective is cut; they pipeline through the dimensions. The default is that of the reference's tutorials [ASTRA2]";
    ActiveChunks = "collectives.active_chunks", count(1), Default::Is(1.0), Some("active_chunks"),
        "chunks under way at once in a dimension; more than 1 needs `fidelity: event_driven` [ASTRA2]";
    Queues = "collectives.queues", count(1), Default::Is(1.0), Some("queues"),
        "queues of a dimension, each with its own active chunks; more than 1 needs `fidelity: event_driven` [ASTRA2]";
    Rendezvous = "collectives.rendezvous", Kind::Flag, Default::Is(0.0), Some("rendezvous"),
        "whether a receiver asks for a message before it is sent; needs `fidelity: event_driven` [ASTRA2]";
    EndpointDelay = "collectives.endpoint_delay", at_least_zero(Unit::SECOND), Default::Is(1e-8), Some("endpoint_delay"),
        "what an NPU needs before each step of a collective; the default is the reference's [ASTRA2]";
    LocalReduction = "collectives.local_reduction", Kind::Flag, Default::Is(1.0), Some("local_reduction"),
        "whether reducing a received block costs local memory bandwidth";
    DimensionOrder = "collectives.dimension_order", Kind::Choice(DimensionOrder::NAMES), Default::Is(0.0), Some("dimension_order"),
        "in which order chunks take the dimensions: innermost first, each chunk one further, or by load (`themis`); all but `ascending` need `fidelity: event_driven` [ASTRA2]";
    ChunkOrder = "collectives.chunk_order", Kind::Choice(QueueOrder::NAMES), Default::Is(0.0), Some("chunk_order"),
        "which chunk that waits for a dimension goes first; all but `fifo` need `fidelity: event_driven` [ASTRA2]";
    Rules = "rules", Kind::Choice(&Rules::NAMES), Default::Is(0.0), Some("rules"),
        "`ours`: bandwidth is conserved, times are whole picoseconds; `astra_sim`: the reference simulator's, to the cycle; needs `fidelity: event_driven` [ASTRA2]";
    Fidelity = "fidelity", Kind::Choice(&Fidelity::NAMES), Default::Is(0.0), Some("fidelity"),
        "what evaluates a point: `closed_form` in microseconds, or `event_driven`, which executes the whole graph; a list of both compares them";
}

keys! {
    /// The keys of a line of the network, behind `cluster.network.<name>`.
    DIM_KEYS, DimId;
    Block = "block", Kind::Choice(Topology::NAMES), Default::Required, Some("block"), "how the dimension is wired";
    Size = "size", count(1), Default::Required, Some("size"), "how many NPUs, or groups of the inner dimensions, it connects; `rest` for what is left of `npus`";
    Bandwidth = "bandwidth", quantity(Unit::BANDWIDTH), Default::Required, Some("bandwidth"),
        "what one NPU can send in this dimension: all its links, one way";
    HopLatency = "hop_latency", at_least_zero(Unit::SECOND), Default::Is(0.0), Some("hop_latency"),
        "latency of one hop; a path through a switch has two";
    Efficiency = "efficiency", Kind::Share, Default::Is(1.0), Some("efficiency"), "share of the bandwidth that large messages reach";
    Price = "price", at_least_zero(Unit::DOLLAR_PER_BANDWIDTH), Default::Absent, None, "price of a NPU's bandwidth in this dimension";
    Algorithm = "algorithm", Kind::Choice(&ALGORITHMS), Default::Absent, Some("algorithm"),
        "how collectives run in this dimension, if not as `collectives` says; `direct(4)` with a window";
    Window = "window", count(1), Default::Absent, Some("window"),
        "messages of a `direct` exchange under way at once in this dimension, if not as `collectives` says";
}

keys! {
    /// The keys of a tier beyond the local memory, behind `memory.<name>`.
    TIER_KEYS, TierId;
    Capacity = "capacity", quantity(Unit::BYTE), Default::Required, None, "capacity of the whole tier";
    Bandwidth = "bandwidth", quantity(Unit::BANDWIDTH), Default::Required, None, "bandwidth of the whole tier, each way";
    Latency = "latency", at_least_zero(Unit::SECOND), Default::Is(0.0), None, "what a transfer costs before its first byte";
    SharedBy = "shared_by", count(1), Default::Is(1.0), None, "how many NPUs share capacity and bandwidth";
    Price = "price", at_least_zero(Unit::DOLLAR), Default::Absent, None, "price of an NPU's share";
}

/// The key of the algorithm of one collective, in the order of [`Collective::ALL`].
pub const OF_COLLECTIVE: [Id; Collective::ALL.len()] =
    [Id::AllReduce, Id::ReduceScatter, Id::AllGather, Id::AllToAll, Id::Broadcast, Id::Scatter];

/// The keys of what a plan offloads.
pub const OFFLOADS: [Id; 3] = [Id::OffloadWeights, Id::OffloadActivations, Id::OffloadOptimizer];

/// Where the value of a key is kept at a point.
pub type Slot = u32;

/// Slots of one-valued keys, then of the dimensions, of the tiers, of the names.
pub const DIMS_FROM: usize = KEYS.len();
/// The first slot of the tiers.
pub const TIERS_FROM: usize = DIMS_FROM + (MAX_DIMS + 1) * DIM_KEYS.len();
/// The pseudo dimension that holds what `each_dimension` says.
pub const EACH: usize = MAX_DIMS;
/// The first slot of the names of alternatives.
pub const NAMES_FROM: usize = TIERS_FROM + MAX_TIERS * TIER_KEYS.len();
/// The sections whose alternatives have names in fixed slots.
pub const NAMED: &[&str] = &[
    "workload",
    "model",
    "precision",
    "cluster",
    "npu",
    "network",
    "software",
    "memory",
    "plan",
    "collectives",
    "framework",
];
/// The first slot of the names of dimensions.
pub const DIM_NAMES_FROM: usize = NAMES_FROM + NAMED.len();
/// The first slot of the names of tiers.
pub const TIER_NAMES_FROM: usize = DIM_NAMES_FROM + MAX_DIMS;
/// The first slot of the names of zipped rows.
pub const ZIPS_FROM: usize = TIER_NAMES_FROM + MAX_TIERS;
/// How many zips a sweep may have.
pub const MAX_ZIPS: usize = 4;
/// How many slots there are.
pub const SLOTS: usize = ZIPS_FROM + MAX_ZIPS;

/// The slot of a field of a dimension.
#[must_use]
pub const fn dim_slot(dim: usize, field: DimId) -> usize {
    DIMS_FROM + dim * DIM_KEYS.len() + field as usize
}

/// The slot of a field of a tier.
#[must_use]
pub const fn tier_slot(tier: usize, field: TierId) -> usize {
    TIERS_FROM + tier * TIER_KEYS.len() + field as usize
}

/// The first slot of the tier, or of the dimension, that a slot belongs to; of other slots the slot itself.
#[must_use]
pub const fn line_of(slot: usize) -> usize {
    let (from, keys) = match slot {
        DIMS_FROM..TIERS_FROM => (DIMS_FROM, DIM_KEYS.len()),
        TIERS_FROM..NAMES_FROM => (TIERS_FROM, TIER_KEYS.len()),
        _ => return slot,
    };
    slot - (slot - from) % keys
}

/// The key of a slot, if it is no name.
#[must_use]
pub fn key_of(slot: usize) -> Option<&'static Key> {
    if slot < DIMS_FROM {
        KEYS.get(slot)
    } else if slot < TIERS_FROM {
        DIM_KEYS.get((slot - DIMS_FROM) % DIM_KEYS.len())
    } else if slot < NAMES_FROM {
        TIER_KEYS.get((slot - TIERS_FROM) % TIER_KEYS.len())
    } else {
        None
    }
}
