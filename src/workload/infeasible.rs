//! Infeasible: every way in which a design point can fail to exist, as data: what it needs, what there is, what would help.

use super::footprint::Footprint;

/// Why a point cannot exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The model's heads do not divide its width, and the width of a head is not given.
    WidthPerHead,
    /// The model's key and value heads do not divide its query heads.
    HeadsPerKvHead,
    /// The model sends a token to more experts than it has.
    ExpertsPerToken,
    /// The model has experts and no layer that uses them.
    LayersWithExperts,
    /// Tensor parallelism does not divide the attention heads.
    HeadsPerTensor,
    /// Tensor parallelism does not divide the width of the MLP.
    MlpPerTensor,
    /// Sequence parallelism does not divide the sequence.
    SequencePerTensor,
    /// Context parallelism does not divide the sequence.
    SequencePerContext,
    /// Context parallelism does not divide the heads of an NPU.
    HeadsPerContext,
    /// Experts need sequence parallelism beside tensor parallelism: else every tensor rank would route the same tokens.
    ExpertsNeedSequenceParallel,
    /// Expert tensor parallelism does not divide the width of an expert.
    ExpertPerTensor,
    /// Expert parallelism does not divide the experts.
    ExpertsPerGroup,
    /// Expert parallelism and expert tensor parallelism do not fit into tensor x context x data.
    ExpertGroup,
    /// Pipeline stages and their chunks do not divide the layers.
    LayersPerStage,
    /// The ends of a model have not the layers that an uneven split leaves out.
    LayersAtEnds,
    /// The schedule runs one chunk a stage.
    ScheduleChunks,
    /// A stage has no more layers than stay in the local memory where weights are offloaded.
    LayersToOffload,
    /// The schedule runs two chunks a stage.
    ScheduleTwoChunks,
    /// The schedule takes stages in pairs.
    StagesInPairs,
    /// The schedule takes microbatches in pairs.
    MicrobatchesInPairs,
    /// The schedule runs more microbatches before it waits for any than there are.
    MicrobatchesAhead,
    /// Inputs of linear layers are computed again, and needed once more when their weights' gradients are made.
    RecomputedInputs,
    /// ZeRO's shards do not divide data x context.
    ShardGroup,
    /// Data parallelism and the microbatch do not divide the global batch.
    BatchPerReplica,
    /// Interleaving needs a multiple of `pp` microbatches.
    MicrobatchesPerStage,
    /// A group does not line up with the dimensions of the network.
    Placement,
    /// The fullest stage does not fit into the local memory.
    Memory,
    /// What is offloaded does not fit into its tier.
    TierMemory,
    /// The NPU has no rate for the format of the job.
    NoRate,
    /// There are more or fewer algorithms by dimension than the network has dimensions.
    Algorithms,
    /// Messages share links in a network of several dimensions, which the reference's rules do not know.
    Congestion,
    /// The result is longer than time can be counted (213 days).
    TimeRange,
    /// The simulation takes more events than one point may.
    Limit,
    /// The recorded trace is not there, or cannot run on the machine.
    Trace,
    /// The recorded trace loads or stores, and it is not said where.
    RemoteMemory,
    /// An algorithm takes a power of two of members.
    PowerOfTwo,
    /// Operations of the recorded trace wait for ever.
    Deadlock,
    /// There are as many numbers of rows as tables, or one.
    RowsPerTable,
    /// The bottom MLP of a DLRM gives a vector of another size than the rows of its tables.
    WidthOfDenseVector,
    /// A DLRM is spread over data-parallel ranks alone.
    DegreesOfTables,
    /// The MLPs of a DLRM are small, and their weights stay whole.
    ZeroOfTables,
    /// Nothing of a DLRM is computed again or offloaded.
    LayersOfTables,
    /// The parts of a table do not divide its columns.
    ColumnsPerShard,
    /// There are more ranks than parts of tables.
    TablesPerRank,
}

impl Reason {
    /// Every reason, in the order in which points are checked.
    pub const ALL: [Self; 44] = [
        Self::Algorithms,
        Self::Congestion,
        Self::PowerOfTwo,
        Self::NoRate,
        Self::WidthPerHead,
        Self::HeadsPerKvHead,
        Self::ExpertsPerToken,
        Self::LayersWithExperts,
        Self::RowsPerTable,
        Self::WidthOfDenseVector,
        Self::DegreesOfTables,
        Self::ZeroOfTables,
        Self::LayersOfTables,
        Self::ColumnsPerShard,
        Self::TablesPerRank,
        Self::HeadsPerTensor,
        Self::MlpPerTensor,
        Self::SequencePerTensor,
        Self::SequencePerContext,
        Self::HeadsPerContext,
        Self::ExpertsNeedSequenceParallel,
        Self::ExpertsPerGroup,
        Self::ExpertGroup,
        Self::ExpertPerTensor,
        Self::LayersPerStage,
        Self::LayersAtEnds,
        Self::BatchPerReplica,
        Self::ScheduleChunks,
        Self::MicrobatchesPerStage,
        Self::ScheduleTwoChunks,
        Self::StagesInPairs,
        Self::MicrobatchesInPairs,
        Self::MicrobatchesAhead,
        Self::RecomputedInputs,
        Self::ShardGroup,
        Self::LayersToOffload,
        Self::Memory,
        Self::TierMemory,
        Self::Placement,
        Self::TimeRange,
        Self::Limit,
        Self::Trace,
        Self::RemoteMemory,
        Self::Deadlock,
    ];

    /// The text of the column `reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WidthPerHead => "hidden % heads",
            Self::HeadsPerKvHead => "heads % kv_heads",
            Self::ExpertsPerToken => "topk > experts",
            Self::LayersWithExperts => "no layer with experts",
            Self::HeadsPerTensor => "heads % tp",
            Self::MlpPerTensor => "ffn % tp",
            Self::SequencePerTensor => "seq_len % tp",
            Self::SequencePerContext => "seq_len % cp",
            Self::HeadsPerContext => "heads % (tp * cp)",
            Self::ExpertsNeedSequenceParallel => "experts need sequence_parallel",
            Self::ExpertsPerGroup => "experts % ep",
            Self::ExpertGroup => "tp * cp * dp % (ep * etp)",
            Self::ExpertPerTensor => "moe_ffn % etp",
            Self::LayersPerStage => "layers % (pp * vpp)",
            Self::LayersAtEnds => "layers at the ends",
            Self::ScheduleChunks => "schedule of one chunk",
            Self::ScheduleTwoChunks => "schedule of two chunks",
            Self::StagesInPairs => "pp % 2",
            Self::MicrobatchesInPairs => "num_microbatches % 2",
            Self::MicrobatchesAhead => "num_microbatches of the schedule",
            Self::RecomputedInputs => "recompute of the schedule",
            Self::ShardGroup => "cp * dp % zero_shard",
            Self::LayersToOffload => "layers to offload",
            Self::BatchPerReplica => "global_batch % (dp * micro_batch_size)",
            Self::MicrobatchesPerStage => "num_microbatches % pp",
            Self::Placement => "placement",
            Self::Memory => "memory",
            Self::TierMemory => "tier memory",
            Self::NoRate => "no rate for precision",
            Self::Algorithms => "algorithms by dimension",
            Self::Congestion => "congestion",
            Self::TimeRange => "time range",
            Self::Limit => "events",
            Self::Trace => "trace",
            Self::RemoteMemory => "remote memory",
            Self::PowerOfTwo => "power of two",
            Self::Deadlock => "deadlock",
            Self::RowsPerTable => "rows per table",
            Self::WidthOfDenseVector => "bottom_mlp ends in embedding_dim",
            Self::DegreesOfTables => "tp * cp * pp of a dlrm",
            Self::ZeroOfTables => "zero of a dlrm",
            Self::LayersOfTables => "recompute or offload of a dlrm",
            Self::ColumnsPerShard => "embedding_dim % table_shards",
            Self::TablesPerRank => "tables * table_shards < dp",
        }
    }

    /// What it means, for the column dictionary.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::WidthPerHead => "the heads do not divide the width of a token's vector, and no `head_dim` is given",
            Self::HeadsPerKvHead => "the key and value heads do not divide the query heads",
            Self::ExpertsPerToken => "a token is sent to more experts than there are",
            Self::LayersWithExperts => "the first layer with experts would come behind the last layer",
            Self::HeadsPerTensor => "tensor parallelism does not divide the attention heads",
            Self::MlpPerTensor => "tensor parallelism does not divide the width of the MLP",
            Self::SequencePerTensor => "sequence parallelism does not divide the sequence",
            Self::SequencePerContext => {
                "context parallelism does not divide the sequence: into two parts a rank, which even out what causality hides, \
                 but for `all_to_all`; each rank's part again by `tp` with sequence parallelism"
            }
            Self::HeadsPerContext => {
                "context parallelism by `all_to_all` does not divide the attention heads of an NPU"
            }
            Self::ExpertsNeedSequenceParallel => "every tensor rank would route the same tokens",
            Self::ExpertsPerGroup => "expert parallelism does not divide the experts",
            Self::ExpertGroup => {
                "`etp`, or `ep` of what it leaves, is no part of tensor x context x data (with `zero_shard` of one copy) that takes whole groups, innermost first"
            }
            Self::ExpertPerTensor => "expert tensor parallelism does not divide the width of an expert",
            Self::LayersPerStage => "pipeline stages and their chunks do not divide the layers",
            Self::LayersAtEnds => "with `light_ends` more layers are missing at an end of the model than a chunk has",
            Self::ScheduleChunks => "the schedule runs one chunk a stage, and `vpp` is more",
            Self::ScheduleTwoChunks => "the schedule runs two chunks a stage, and `vpp` is not 2",
            Self::StagesInPairs => "the schedule takes stages in pairs, and `pp` is odd",
            Self::MicrobatchesInPairs => {
                "the schedule takes microbatches in pairs, one from each end, and their number is odd"
            }
            Self::MicrobatchesAhead => "the schedule runs more microbatches than there are before it waits for any",
            Self::RecomputedInputs => {
                "the schedule makes weights' gradients later: `recompute` would have to compute their inputs once more, `offload_activations` to bring them back once more"
            }
            Self::ShardGroup => "`zero_shard` is no part of context x data that takes whole groups, innermost first",
            Self::LayersToOffload => {
                "with `offload_weights` the layer in use and the next stay in the local memory, and a stage has no more"
            }
            Self::BatchPerReplica => "data parallelism and the microbatch do not divide the global batch",
            Self::MicrobatchesPerStage => "interleaving needs a multiple of pp microbatches",
            Self::Placement => "a group does not line up with the dimensions of the network",
            Self::Memory => "the fullest stage does not fit into the local memory less its reserve",
            Self::TierMemory => "what is offloaded does not fit into an NPU's share of its tier",
            Self::NoRate => "the NPU has no rate for the format of the job",
            Self::Algorithms => "`by_dimension` has more or fewer algorithms than the network has dimensions",
            Self::Congestion => "under `rules: astra_sim` a network that is aware of congestion has one dimension",
            Self::TimeRange => "the result is longer than time can be counted, 213 days",
            Self::Trace => {
                "the recorded trace is missing or broken for some rank, or the machine has not what it asks for: \
                 `starsweep simulate` says what"
            }
            Self::RemoteMemory => {
                "the recorded trace loads or stores, and `memory` has no tier for that, or several and none is named"
            }
            Self::PowerOfTwo => {
                "an algorithm takes a power of two of members: under the reference simulator's rules in a dimension, over all NPUs at once always"
            }
            Self::Deadlock => "operations of the recorded trace wait for ever: `starsweep simulate` says which",
            Self::RowsPerTable => "`rows` has another number of sizes than there are `tables`, and more than one",
            Self::WidthOfDenseVector => {
                "products of vectors (`interaction: dot`) need vectors of one size, and the last width of `bottom_mlp` is not `embedding_dim`"
            }
            Self::DegreesOfTables => {
                "a `dlrm` is spread by `dp` alone: its tables over all ranks, its MLPs on each of them; `tp`, `cp` and `pp` divide nothing of it"
            }
            Self::ZeroOfTables => {
                "the MLPs of a `dlrm` have `zero` 0 to 2 over all ranks: stage 3, or `zero_shard`, would cut what is small, and cuts no table"
            }
            Self::LayersOfTables => {
                "a `dlrm` has no layers that `recompute` makes again, or whose weights, activations or states offload streams"
            }
            Self::ColumnsPerShard => "`table_shards` does not divide the columns of a table",
            Self::TablesPerRank => "there are more ranks than tables, or parts of them, and some would have none",
            Self::Limit => {
                "an event-driven simulation of the point takes more events than one point may: its status is `limit`"
            }
        }
    }

    /// What would make it fit, one knob each.
    #[must_use]
    pub const fn levers(self) -> &'static [&'static str] {
        match self {
            Self::WidthPerHead => &["heads", "hidden", "head_dim"],
            Self::HeadsPerKvHead => &["kv_heads", "heads"],
            Self::ExpertsPerToken => &["topk", "experts"],
            Self::LayersWithExperts => &["dense_layers", "moe_every", "layers"],
            Self::HeadsPerTensor | Self::MlpPerTensor => &["tp"],
            Self::SequencePerTensor => &["tp", "sequence_parallel"],
            Self::SequencePerContext => &["cp", "sequence_parallel"],
            Self::HeadsPerContext => &["cp", "cp_kind", "tp"],
            Self::ExpertsNeedSequenceParallel => &["sequence_parallel", "tp"],
            Self::ExpertsPerGroup => &["ep"],
            Self::ExpertGroup => &["ep", "etp", "tp", "cp", "dp"],
            Self::ExpertPerTensor => &["etp"],
            Self::StagesInPairs => &["schedule", "pp"],
            Self::MicrobatchesInPairs | Self::MicrobatchesAhead => {
                &["schedule", "global_batch", "micro_batch_size", "dp", "pp"]
            }
            Self::RecomputedInputs => &["schedule", "recompute", "offload_activations"],
            Self::ShardGroup => &["zero_shard", "cp", "dp"],
            Self::LayersToOffload => &["pp", "offload_weights"],
            Self::LayersPerStage => &["pp", "vpp", "layer_split"],
            Self::LayersAtEnds => &["pp", "vpp"],
            Self::ScheduleChunks | Self::ScheduleTwoChunks => &["schedule", "vpp"],
            Self::BatchPerReplica => &["global_batch", "micro_batch_size", "dp"],
            Self::MicrobatchesPerStage => &["vpp", "micro_batch_size", "global_batch"],
            Self::Placement => &["tp", "order", "network sizes"],
            Self::Memory => &[
                "zero",
                "recompute",
                "tp",
                "pp",
                "micro_batch_size",
                "offload_optimizer",
                "offload_weights",
                "offload_activations",
            ],
            Self::TierMemory => {
                &["capacity of the tier", "zero", "offload_optimizer", "offload_weights", "offload_activations"]
            }
            Self::RowsPerTable => &["rows", "tables"],
            Self::WidthOfDenseVector => &["bottom_mlp", "embedding_dim", "interaction"],
            Self::DegreesOfTables => &["tp", "cp", "pp"],
            Self::ZeroOfTables => &["zero", "zero_shard"],
            Self::LayersOfTables => &["recompute", "offload_weights", "offload_activations", "offload_optimizer"],
            Self::ColumnsPerShard => &["table_shards"],
            Self::TablesPerRank => &["table_shards", "dp"],
            Self::NoRate => &["precision", "npu"],
            Self::Algorithms => &["algorithm", "network"],
            Self::Congestion => &["congestion", "rules", "network sizes"],
            Self::TimeRange => &["bandwidth", "global_batch"],
            Self::PowerOfTwo => &["algorithm", "network sizes"],
            Self::Limit => &["chunks", "micro_batch_size", "fidelity"],
            Self::RemoteMemory => &["remote_memory", "memory"],
            Self::Trace | Self::Deadlock => &["chakra", "comm_groups", "network sizes"],
        }
    }
}

/// A point that cannot exist: what it needs against what there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Infeasible {
    /// Why.
    pub reason: Reason,
    /// What the point needs: bytes for memory, otherwise what is to be divided.
    pub demand: f64,
    /// What there is: bytes for memory, otherwise what it is to be divided by.
    pub bound: f64,
    /// The memory account, where the point came as far as that.
    pub footprint: Option<Footprint>,
}

impl Infeasible {
    /// With no memory account.
    #[must_use]
    pub const fn new(reason: Reason, demand: f64, bound: f64) -> Self {
        Self { reason, demand, bound, footprint: None }
    }
}
