//! Removals: why a combination of values is no point, is not tried and has no row.

use super::family;
use super::key::Id;

/// Why a combination of values is no point: it is not tried and has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Removal {
    /// The sizes of the network do not make `npus`.
    NetworkSize,
    /// tp x cp x pp x dp do not make `npus`.
    WorldSize,
    /// A batch in tokens is no whole number of sequences.
    BatchTokens,
    /// Chunks of a pipeline of one stage.
    VppWithoutPp,
    /// A schedule, or a split of the layers, of a pipeline of one stage.
    PipelineWithoutPp,
    /// Expert parallelism of a model without experts.
    EpWithoutExperts,
    /// Tensor parallelism of experts that there are not.
    EtpWithoutExperts,
    /// A kind of context parallelism that there is not.
    CpKindWithoutCp,
    /// Sequence parallelism without tensor parallelism.
    SequenceParallelWithoutTp,
    /// Overlap of tensor-parallel traffic that does not exist.
    OverlapWithoutTp,
    /// Overlap of messages between stages of one chunk.
    OverlapWithoutVpp,
    /// Overlap of expert-parallel traffic that does not exist.
    OverlapWithoutEp,
    /// A way to experts that are on every rank.
    DispatcherWithoutEp,
    /// Uneven load of experts that are all on one NPU, or have all the same room.
    ImbalanceWithoutEp,
    /// Parts of messages of whole NPUs, or of none.
    ScatterWithoutTp,
    /// ZeRO without data parallelism.
    ZeroWithoutDp,
    /// A number of shards where nothing is sharded.
    ZeroShardWithoutZero,
    /// How shards are gathered and summed up where there are none.
    ShardKeysWithoutZero,
    /// Overlap of data-parallel traffic that does not exist.
    OverlapWithoutDp,
    /// Offload to a tier, or a trace's use of one, that the memory does not have.
    OffloadWithoutTier,
    /// Experts' keys of a model without experts.
    ExpertKeysWithoutExperts,
    /// An order of degrees of which at most one is above 1.
    OrderOfOneDegree,
    /// What a tier is like that nothing uses.
    UnusedTier,
    /// The closed form of chunks that queue.
    ClosedFormOfQueues,
    /// The closed form of the reference's rules.
    ClosedFormOfRules,
    /// The closed form of what only single messages show.
    ClosedFormOfMessages,
    /// Parts of optimizer states that are said whole.
    PartsOfWrittenStates,
    /// What models of another family have.
    KeysOfAnotherFamily,
    /// Overlap of all-to-alls of embeddings that do not exist.
    OverlapWithoutTables,
    /// Modules to be computed again that the model lacks, beside the same without them.
    ModulesOfAnotherModel,
    /// Offload of weights where the master copy is the weights.
    OffloadOfNoWeights,
}

impl Removal {
    /// Every removal, in the order in which they are counted.
    pub const ALL: [Self; 31] = [
        Self::NetworkSize,
        Self::WorldSize,
        Self::BatchTokens,
        Self::VppWithoutPp,
        Self::PipelineWithoutPp,
        Self::EpWithoutExperts,
        Self::EtpWithoutExperts,
        Self::CpKindWithoutCp,
        Self::SequenceParallelWithoutTp,
        Self::OverlapWithoutTp,
        Self::OverlapWithoutVpp,
        Self::OverlapWithoutEp,
        Self::DispatcherWithoutEp,
        Self::ImbalanceWithoutEp,
        Self::ScatterWithoutTp,
        Self::ZeroWithoutDp,
        Self::ZeroShardWithoutZero,
        Self::ShardKeysWithoutZero,
        Self::OverlapWithoutDp,
        Self::OffloadWithoutTier,
        Self::ExpertKeysWithoutExperts,
        Self::OrderOfOneDegree,
        Self::UnusedTier,
        Self::ClosedFormOfQueues,
        Self::ClosedFormOfRules,
        Self::ClosedFormOfMessages,
        Self::PartsOfWrittenStates,
        Self::KeysOfAnotherFamily,
        Self::OverlapWithoutTables,
        Self::ModulesOfAnotherModel,
        Self::OffloadOfNoWeights,
    ];

    /// The name in a preview.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetworkSize => "network size",
            Self::WorldSize => "world size",
            Self::BatchTokens => "global_batch % seq_len",
            Self::VppWithoutPp => "vpp at pp = 1",
            Self::PipelineWithoutPp => "keys of a pipeline at pp = 1",
            Self::EpWithoutExperts => "ep without experts",
            Self::EtpWithoutExperts => "etp without experts",
            Self::CpKindWithoutCp => "cp_kind at cp = 1",
            Self::SequenceParallelWithoutTp => "sequence_parallel at tp = 1",
            Self::OverlapWithoutTp => "overlap_tp at tp = 1",
            Self::OverlapWithoutVpp => "overlap_pp at vpp = 1",
            Self::OverlapWithoutEp => "overlap_ep at ep = 1",
            Self::DispatcherWithoutEp => "dispatcher at ep = 1",
            Self::ImbalanceWithoutEp => "expert_imbalance at ep = 1, or beside capacity_factor",
            Self::ScatterWithoutTp => "scatter_gather without tp and pp, or with sequence_parallel",
            Self::ZeroWithoutDp => "zero at dp = 1",
            Self::ZeroShardWithoutZero => "zero_shard at zero = 0",
            Self::ShardKeysWithoutZero => "reduce_scatter at zero = 0, or prefetch below 3",
            Self::OverlapWithoutDp => "overlap_dp at dp = 1",
            Self::OffloadWithoutTier => "a tier that is not there",
            Self::ExpertKeysWithoutExperts => "keys of experts without experts",
            Self::OrderOfOneDegree => "order of one degree",
            Self::UnusedTier => "keys of a tier that nothing uses",
            Self::ClosedFormOfQueues => "closed_form of chunks that queue",
            Self::ClosedFormOfRules => "closed_form of astra_sim's rules",
            Self::ClosedFormOfMessages => "closed_form of single messages",
            Self::PartsOfWrittenStates => "master and moment beside precision.optimizer",
            Self::KeysOfAnotherFamily => "keys of another family of models",
            Self::OverlapWithoutTables => "overlap_embeddings at dp = 1",
            Self::ModulesOfAnotherModel => "recompute of modules that the model lacks",
            Self::OffloadOfNoWeights => {
                "offload_weights where the master copy is the weights (software.master_only, zero = 3)"
            }
        }
    }

    /// The keys that decide it, besides those that decide `npus` and `dp`.
    #[must_use]
    pub const fn keys(self) -> &'static [Id] {
        match self {
            Self::NetworkSize => &[Id::Npus],
            Self::WorldSize => &[Id::Npus, Id::Tp, Id::Cp, Id::Pp, Id::Dp, Id::Collective, Id::Chakra],
            Self::BatchTokens => &[Id::GlobalBatch, Id::SeqLen],
            Self::VppWithoutPp => &[Id::Vpp, Id::Pp],
            Self::PipelineWithoutPp => &[Id::Schedule, Id::LayerSplit, Id::Pp],
            Self::EpWithoutExperts => &[Id::Ep, Id::Experts],
            Self::EtpWithoutExperts => &[Id::Etp, Id::Experts],
            Self::CpKindWithoutCp => &[Id::CpKind, Id::Cp],
            Self::SequenceParallelWithoutTp => &[Id::SequenceParallel, Id::Tp],
            Self::OverlapWithoutTp => &[Id::OverlapTp, Id::OverlapTpBackward, Id::Tp],
            Self::OverlapWithoutVpp => &[Id::OverlapPp, Id::Vpp, Id::Pp],
            Self::OverlapWithoutEp => &[Id::OverlapEp, Id::Ep, Id::Experts],
            Self::DispatcherWithoutEp => &[Id::Dispatcher, Id::Ep, Id::Experts],
            Self::ImbalanceWithoutEp => &[Id::ExpertImbalance, Id::Ep, Id::Experts, Id::CapacityFactor],
            Self::ScatterWithoutTp => &[Id::ScatterGather, Id::Tp, Id::Pp, Id::SequenceParallel],
            Self::ZeroWithoutDp => &[Id::Zero, Id::Dp, Id::Cp, Id::Tp, Id::Ep, Id::Etp, Id::Experts],
            Self::ZeroShardWithoutZero => {
                &[Id::ZeroShard, Id::Zero, Id::Dp, Id::Cp, Id::Tp, Id::Ep, Id::Etp, Id::Experts]
            }
            Self::ShardKeysWithoutZero => {
                &[Id::Prefetch, Id::ScatterGradients, Id::Zero, Id::Dp, Id::Cp, Id::Tp, Id::Ep, Id::Etp, Id::Experts]
            }
            Self::OverlapWithoutDp => &[Id::OverlapDp, Id::Dp, Id::Cp, Id::Tp, Id::Ep, Id::Etp, Id::Experts],
            Self::OffloadWithoutTier | Self::UnusedTier => {
                &[Id::OffloadWeights, Id::OffloadActivations, Id::OffloadOptimizer, Id::RemoteMemory, Id::Chakra]
            }
            Self::ExpertKeysWithoutExperts => {
                &[Id::Experts, Id::Topk, Id::Shared, Id::MoeFfn, Id::MoeEvery, Id::DenseLayers, Id::CapacityFactor]
            }
            Self::OrderOfOneDegree => &[Id::Order, Id::Tp, Id::Cp, Id::Pp, Id::Dp],
            Self::ClosedFormOfQueues => {
                &[Id::Fidelity, Id::ActiveChunks, Id::Queues, Id::DimensionOrder, Id::ChunkOrder]
            }
            Self::ClosedFormOfRules => &[Id::Fidelity, Id::Rules],
            Self::ClosedFormOfMessages => &[
                Id::Fidelity,
                Id::Congestion,
                Id::Algorithm,
                Id::AllReduce,
                Id::ReduceScatter,
                Id::AllGather,
                Id::AllToAll,
                Id::Broadcast,
                Id::Scatter,
                Id::MultiDim,
                Id::Rendezvous,
            ],
            Self::PartsOfWrittenStates => &[Id::OptimizerBytes, Id::MasterBytes, Id::MomentBytes],
            Self::KeysOfAnotherFamily => &family::ALL,
            Self::OverlapWithoutTables => &[Id::OverlapEmbeddings, Id::Family, Id::Dp],
            Self::ModulesOfAnotherModel => {
                &[Id::Recompute, Id::Family, Id::Experts, Id::Shared, Id::MoeEvery, Id::DenseLayers, Id::KvRank]
            }
            Self::OffloadOfNoWeights => &[Id::OffloadWeights, Id::OffloadOptimizer, Id::MasterOnly, Id::Zero],
        }
    }
}
