//! A point: its inputs as a job on a system.

use super::algorithm::Written;
use super::fidelity::Fidelity;
use super::inputs::Inputs;
use super::key::{ALGORITHMS, DimId, Id, OF_COLLECTIVE, TierId};
use super::moved::Moved;
use super::recompute;
use crate::system::collective::{Choice, Collective};
use crate::system::dimension_order::DimensionOrder;
use crate::system::hierarchy::MultiDim;
use crate::system::memory::{MAX_TIERS, Tier};
use crate::system::network::Congestion;
use crate::system::queue_order::QueueOrder;
use crate::system::rules::Rules;
use crate::system::software::Keeping;
use crate::system::topology::Topology;
use crate::system::{Collectives, Dimension, Format, Memory, Network, Npu, Software, System};
use crate::units::{Bandwidth, Bytes, Delay, FlopRate, index, narrow, real, whole};
use crate::workload::build::whole_buffer;
use crate::workload::dlrm::{Interaction, Rows, Widths};
use crate::workload::{
    ContextKind, Dispatcher, Dlrm, Infeasible, Job, Latent, LayerSplit, Mlp, Model, Optimizer, Order, Plan, Precision,
    Reason, Schedule, Training, Transformer,
};

pub use super::canonical::{Canonical, ID_LEN, id, id_text};

fn count(inputs: &Inputs, id: Id) -> u64 {
    whole(inputs.key(id))
}

fn flag(inputs: &Inputs, id: Id) -> bool {
    inputs.key(id) == 1.0
}

/// The part of a list that a slot names; the first if it names none.
fn part<T: Copy>(list: &[T], number: f64) -> T {
    list[index(whole(number)).min(list.len() - 1)]
}

/// A missing number as zero.
fn or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// The choice of an algorithm; none if there is no number.
fn choice(number: f64) -> Option<Choice> {
    match Written::of(number)? {
        Written::Word(word) => Choice::of_word(ALGORITHMS.get(word)?),
        Written::ByDimension(_) | Written::Chakra(_) => None,
    }
}

/// A count; none if there is no number.
fn written(number: f64) -> Option<u64> {
    (!number.is_nan()).then(|| whole(number))
}

/// How many messages are under way at once; none if there is no number.
fn window(number: f64) -> Option<u32> {
    written(number).map(narrow)
}

/// What a point runs, and on what.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What.
    pub job: Job,
    /// On what.
    pub system: System,
}

impl Question {
    /// The question of some inputs.
    #[must_use]
    pub fn of(inputs: &Inputs) -> Self {
        Self { job: job(inputs), system: system(inputs) }
    }

    /// Makes the question of the point before that of some inputs, of which no more than this moved since.
    pub fn follow(&mut self, inputs: &Inputs, moved: Moved) {
        match (moved, &mut self.job) {
            (Moved::All, _) => *self = Self::of(inputs),
            (Moved::Plan, Job::Training(training)) => training.plan = plan(inputs),
            (Moved::Order, Job::Training(training)) => training.plan.order = order(inputs),
            // No key of a plan is theirs.
            (Moved::Plan | Moved::Order, Job::Recorded | Job::Collective { .. }) => {}
        }
    }
}

/// What a point runs.
#[must_use]
pub fn job(inputs: &Inputs) -> Job {
    if inputs.is_recorded() {
        return Job::Recorded;
    }
    if inputs.is_collective() {
        let collective = part(&Collective::ALL, inputs.key(Id::Collective));
        let given = Bytes::from_real(inputs.key(Id::Size));
        return Job::Collective { collective, size: whole_buffer(collective, given, count(inputs, Id::Npus)) };
    }
    Job::Training(Training {
        model: model(inputs),
        seq_len: count(inputs, Id::SeqLen),
        global_batch: count(inputs, Id::GlobalBatch),
        precision: Precision {
            compute: part(&Format::ALL, inputs.key(Id::Compute)),
            product_efficiency: inputs.key(Id::ProductEfficiency),
            weight: inputs.key(Id::WeightBytes),
            gradient: inputs.key(Id::GradientBytes),
            master: inputs.key(Id::MasterBytes),
            moment: inputs.key(Id::MomentBytes),
            optimizer: inputs.is_written(Id::OptimizerBytes).then(|| inputs.key(Id::OptimizerBytes)),
            activation: inputs.key(Id::ActivationBytes),
            table: inputs.key(Id::TableBytes),
        },
        optimizer: part(Optimizer::ALL, inputs.key(Id::Optimizer)),
        plan: plan(inputs),
    })
}

/// The model of a point.
pub(super) fn model(inputs: &Inputs) -> Model {
    if Model::NAMES.get(inputs.family()) == Some(&"dlrm") {
        Model::Dlrm(dlrm(inputs))
    } else {
        Model::Transformer(transformer(inputs))
    }
}

/// A model with embedding tables.
fn dlrm(inputs: &Inputs) -> Dlrm {
    Dlrm {
        tables: count(inputs, Id::Tables),
        rows: Rows::of(inputs.sizes(Id::Rows as usize)),
        embedding_dim: count(inputs, Id::EmbeddingDim),
        pooling: inputs.key(Id::Pooling),
        dense_features: count(inputs, Id::DenseFeatures),
        bottom_mlp: Widths::of(inputs.sizes(Id::BottomMlp as usize)),
        top_mlp: Widths::of(inputs.sizes(Id::TopMlp as usize)),
        interaction: part(&Interaction::ALL, inputs.key(Id::Interaction)),
    }
}

/// A transformer.
fn transformer(inputs: &Inputs) -> Transformer {
    Transformer {
        layers: count(inputs, Id::Layers),
        hidden: count(inputs, Id::Hidden),
        heads: count(inputs, Id::Heads),
        kv_heads: count(inputs, Id::KvHeads),
        head_dim: count(inputs, Id::HeadDim),
        value_dim: count(inputs, Id::ValueDim),
        latent: latent(inputs),
        window: Some(inputs.key(Id::AttentionWindow)).filter(|window| !window.is_nan()).map(whole),
        full_attention_every: count(inputs, Id::FullEvery),
        parallel_block: flag(inputs, Id::ParallelBlock),
        ffn: count(inputs, Id::Ffn),
        mlp: part(&Mlp::ALL, inputs.key(Id::Mlp)),
        vocab: count(inputs, Id::Vocab),
        tied_embeddings: flag(inputs, Id::Tied),
        learned_positions: flag(inputs, Id::Learned),
        dropout: flag(inputs, Id::Dropout),
        experts: count(inputs, Id::Experts),
        topk: count(inputs, Id::Topk),
        shared_experts: count(inputs, Id::Shared),
        moe_ffn: count(inputs, Id::MoeFfn),
        moe_every: count(inputs, Id::MoeEvery).max(1),
        dense_layers: count(inputs, Id::DenseLayers),
        capacity_factor: Some(inputs.key(Id::CapacityFactor)).filter(|factor| !factor.is_nan()),
    }
}

/// Latent attention, where keys and values have a rank.
fn latent(inputs: &Inputs) -> Option<Latent> {
    let [kv_rank, q_rank, rope_dim] = [Id::KvRank, Id::QRank, Id::RopeDim].map(|id| count(inputs, id));
    (kv_rank > 0).then_some(Latent { q_rank, kv_rank, rope_dim })
}

fn plan(inputs: &Inputs) -> Plan {
    Plan {
        tp: count(inputs, Id::Tp),
        cp: count(inputs, Id::Cp),
        cp_kind: part(&ContextKind::ALL, inputs.key(Id::CpKind)),
        pp: count(inputs, Id::Pp),
        dp: count(inputs, Id::Dp),
        ep: count(inputs, Id::Ep),
        etp: count(inputs, Id::Etp),
        vpp: count(inputs, Id::Vpp),
        schedule: part(Schedule::ALL, inputs.key(Id::Schedule)),
        layer_split: part(&LayerSplit::ALL, inputs.key(Id::LayerSplit)),
        micro_batch_size: count(inputs, Id::MicroBatch),
        zero: u8::try_from(count(inputs, Id::Zero)).unwrap_or(0),
        zero_shard: written(inputs.key(Id::ZeroShard)),
        recompute: recompute::of(inputs.key(Id::Recompute)),
        early_stop: flag(inputs, Id::EarlyStop),
        sequence_parallel: flag(inputs, Id::SequenceParallel),
        flash_attention: flag(inputs, Id::FlashAttention),
        overlap_dp: flag(inputs, Id::OverlapDp),
        prefetch: flag(inputs, Id::Prefetch),
        reduce_scatter: flag(inputs, Id::ScatterGradients),
        overlap_tp: flag(inputs, Id::OverlapTp),
        overlap_tp_backward: flag(inputs, Id::OverlapTpBackward),
        overlap_ep: flag(inputs, Id::OverlapEp),
        overlap_pp: flag(inputs, Id::OverlapPp),
        dispatcher: part(&Dispatcher::ALL, inputs.key(Id::Dispatcher)),
        expert_imbalance: inputs.key(Id::ExpertImbalance),
        scatter_gather: flag(inputs, Id::ScatterGather),
        offload_weights: tier(inputs.key(Id::OffloadWeights)),
        offload_activations: tier(inputs.key(Id::OffloadActivations)),
        offload_optimizer: tier(inputs.key(Id::OffloadOptimizer)),
        order: order(inputs),
        table_shards: count(inputs, Id::TableShards),
        overlap_embeddings: flag(inputs, Id::OverlapEmbeddings),
    }
}

fn order(inputs: &Inputs) -> Order {
    part(&Order::ALL, inputs.key(Id::Order))
}

/// What a point runs on.
#[must_use]
pub fn system(inputs: &Inputs) -> System {
    let rates = [Id::Bf16, Id::Fp16, Id::Fp8, Id::Fp32, Id::Fp4];
    let format = part(&Format::ALL, inputs.key(Id::Compute));
    let rate = |id: Id| FlopRate::flops_per_second(or_zero(inputs.key(id)));
    let peak = rate(rates[format as usize]);
    let half_peak = if format.is_cast() { rate(Id::Bf16) } else { peak };
    let units = Some(inputs.key(Id::Units)).filter(|units| !units.is_nan()).map(whole);
    let dims = (0..inputs.dim_count()).map(|k| Dimension {
        block: part(Topology::ALL, inputs.dim(k, DimId::Block)),
        size: narrow(whole(inputs.dim(k, DimId::Size))),
        bandwidth: Bandwidth::bytes_per_second(inputs.dim(k, DimId::Bandwidth) * inputs.dim(k, DimId::Efficiency)),
        hop_latency: Delay::seconds(inputs.dim(k, DimId::HopLatency)),
        algorithm: choice(inputs.dim(k, DimId::Algorithm)),
        window: window(inputs.dim(k, DimId::Window)),
    });
    // A tier that is not there keeps its place, empty.
    let tiers = (0..MAX_TIERS).map(|k| Tier {
        capacity: Bytes::from_real(or_zero(inputs.tier(k, TierId::Capacity))),
        bandwidth: Bandwidth::bytes_per_second(or_zero(inputs.tier(k, TierId::Bandwidth))),
        latency: Delay::seconds(or_zero(inputs.tier(k, TierId::Latency))),
        shared_by: whole(inputs.tier(k, TierId::SharedBy)).max(1),
    });
    System {
        npu: Npu {
            peak,
            half_peak,
            gemm_efficiency: inputs.key(Id::GemmEfficiency),
            attention_efficiency: inputs.key(if flag(inputs, Id::NativeAttention) {
                Id::AttentionEfficiency
            } else {
                Id::PortedAttention
            }),
            units,
            half_depth: Npu::half_depth_of(half_peak, units),
            memory_bandwidth: Bandwidth::bytes_per_second(or_zero(inputs.key(Id::LocalBandwidth))),
            memory_efficiency: inputs.key(Id::MemoryEfficiency),
            kernel_latency: Delay::seconds(inputs.key(Id::KernelLatency)),
        },
        software: Software {
            kernel_factor: inputs.key(Id::KernelFactor),
            element_wise: inputs.key(Id::ElementWise),
            attention: inputs.key(Id::AttentionShare),
            odd_heads: inputs.key(Id::OddHeads),
            dispatch: Delay::seconds(inputs.key(Id::Dispatch)),
            collective_latency: Delay::seconds(inputs.key(Id::CollectiveLatency)),
            overlap_traffic: inputs.key(Id::OverlapTraffic),
            accumulation: inputs.key(Id::Accumulation),
            keeping: Keeping {
                logit: inputs.key(Id::Logit),
                gradient_copy: flag(inputs, Id::GradientCopy),
                master_only: flag(inputs, Id::MasterOnly),
                sent: flag(inputs, Id::KeepsSent),
                bucket: written(inputs.key(Id::Bucket)).map(real),
                cached: inputs.key(Id::Cached),
            },
        },
        network: Network { dims: dims.collect(), congestion: part(&Congestion::ALL, inputs.key(Id::Congestion)) },
        memory: Memory {
            capacity: Bytes::from_real(or_zero(inputs.key(Id::Capacity))),
            reserve: Bytes::from_real(inputs.key(Id::Reserve)),
            tiers: tiers.collect(),
        },
        collectives: Collectives {
            algorithm: choice(inputs.key(Id::Algorithm)).unwrap_or(Choice::ByBlock),
            by_collective: OF_COLLECTIVE.map(|id| choice(inputs.key(id))),
            window: window(inputs.key(Id::Window)),
            multi_dim: part(&MultiDim::ALL, inputs.key(Id::MultiDim)),
            chunks: count(inputs, Id::Chunks),
            endpoint_delay: Delay::seconds(inputs.key(Id::EndpointDelay)),
            local_reduction: flag(inputs, Id::LocalReduction),
            active_chunks: narrow(count(inputs, Id::ActiveChunks)),
            dimension_order: part(DimensionOrder::ALL, inputs.key(Id::DimensionOrder)),
            queue_order: part(QueueOrder::ALL, inputs.key(Id::ChunkOrder)),
            queues: narrow(count(inputs, Id::Queues)),
            rendezvous: flag(inputs, Id::Rendezvous),
        },
        rules: part(&Rules::NAMED, inputs.key(Id::Rules)),
    }
}

/// The tier that a point's recorded trace loads from and stores to, if there is one.
#[must_use]
pub fn remote_memory(inputs: &Inputs) -> Option<u8> {
    tier(inputs.key(Id::RemoteMemory))
}

/// A tier by its number, unless it is none.
fn tier(number: f64) -> Option<u8> {
    if number >= 0.0 { u8::try_from(whole(number)).ok() } else { None }
}

/// What evaluates a point.
#[must_use]
pub fn fidelity(inputs: &Inputs) -> Fidelity {
    part(&Fidelity::ALL, inputs.key(Id::Fidelity))
}

/// Makes a point of the closed form an event-driven one.
pub fn refine(inputs: &mut Inputs) {
    inputs.set(narrow(Id::Fidelity as u64), Fidelity::EventDriven.number(), true);
    inputs.complete();
}

/// Whether a point's algorithms by dimension are as many as its dimensions.
///
/// # Errors
/// [`Reason::Algorithms`] if they are not.
pub fn fits(inputs: &Inputs) -> Result<(), Infeasible> {
    match inputs.by_dimension() {
        Some(count) if count != inputs.dim_count() => {
            Err(Infeasible::new(Reason::Algorithms, real(count as u64), real(inputs.dim_count() as u64)))
        }
        _ => Ok(()),
    }
}
