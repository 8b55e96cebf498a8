//! The inputs of one point: a value for every slot, and the ones that follow from others.

use std::sync::Arc;

use super::algorithm::Written;
use super::bits::Bits;
use super::expression::Environment;
use super::family::IDLE;
use super::fidelity;
use super::key::{self, Default, DimId, EACH, Id, SLOTS, Slot, TierId, dim_slot, tier_slot};
use super::recompute;
use super::removal::Removal;
use super::sizes::Lists;
use super::steps::Steps;
use crate::system::MAX_DIMS;
use crate::system::memory::MAX_TIERS;
use crate::units::{index, real, whole};
use crate::workload::{Model, Optimizer, Recompute};

/// "What makes the product come out."
pub const REST: f64 = f64::INFINITY;
/// "Not written."
pub const ABSENT: f64 = f64::NAN;

/// The values of one point.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// As written.
    given: Box<[f64]>,
    /// As they count: `rest` worked out, defaults that follow other keys in place.
    value: Box<[f64]>,
    /// The keys, also of tiers and dimensions, whose axes are at their first values.
    first: Bits,
    /// The keys that expressions read: they may matter though the machine does not use them.
    read: Bits,
    /// How many dimensions the network has.
    dims: usize,
    /// The removals that apply: a bit each.
    removed: u32,
    /// The sizes that names are.
    lists: Lists,
    /// The sets of what is computed again that are tried beside each other.
    sets: Arc<[Recompute]>,
}

const _: () = assert!(key::NAMES_FROM <= Bits::CAPACITY, "a bit for each key");

/// What a model without experts does not use.
const OF_EXPERTS: Bits = Bits::of(&[
    Id::Topk as usize,
    Id::Shared as usize,
    Id::MoeFfn as usize,
    Id::MoeEvery as usize,
    Id::DenseLayers as usize,
    Id::CapacityFactor as usize,
]);

/// What optimizer states are made of.
const OF_STATES: Bits = Bits::of(&[Id::MasterBytes as usize, Id::MomentBytes as usize]);

/// What a job does not use of a tier that holds nothing of it. A price is paid all the same.
const OF_TIERS: [Bits; MAX_TIERS] = {
    let mut tiers = [Bits::NONE; MAX_TIERS];
    let mut tier = 0;
    while tier < MAX_TIERS {
        tiers[tier] = Bits::of(&[
            tier_slot(tier, TierId::Capacity),
            tier_slot(tier, TierId::Bandwidth),
            tier_slot(tier, TierId::Latency),
            tier_slot(tier, TierId::SharedBy),
        ]);
        tier += 1;
    }
    tiers
};

impl Inputs {
    /// With the values that hold wherever no axis says otherwise.
    #[must_use]
    pub fn new(base: &[f64]) -> Self {
        debug_assert_eq!(base.len(), SLOTS);
        Self {
            given: base.into(),
            value: base.into(),
            first: Bits::ALL,
            read: Bits::NONE,
            dims: 0,
            removed: 0,
            lists: Lists::default(),
            sets: Arc::default(),
        }
    }

    /// With the sizes that names are.
    #[must_use]
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// With the sets of what is computed again that are tried beside each other.
    #[must_use]
    pub fn with_sets(self, sets: Arc<[Recompute]>) -> Self {
        Self { sets, ..self }
    }

    /// The sizes that stand at a key.
    #[must_use]
    pub fn sizes(&self, slot: usize) -> &[u64] {
        self.lists.get(self.value[slot])
    }

    /// The family of the model, by its place.
    #[must_use]
    pub fn family(&self) -> usize {
        index(whole(self.written(Id::Family)))
    }

    /// See [`crate::workload::model::Family::HAS_SEQUENCES`].
    fn has_sequences(&self) -> bool {
        Model::HAS_SEQUENCES.get(self.family()).is_none_or(|&has| has)
    }

    /// Keeps all values of a key that an expression reads.
    pub const fn keep(&mut self, slot: usize) {
        self.read = self.read.with(slot);
    }

    /// Whether an expression reads a key, all of whose values are kept.
    #[must_use]
    pub const fn is_read(&self, slot: usize) -> bool {
        self.read.has(slot)
    }

    /// The value of a slot as it counts; NaN if there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> f64 {
        self.value[slot]
    }

    /// The value of a key as it counts; NaN if there is none.
    #[inline]
    #[must_use]
    pub fn key(&self, id: Id) -> f64 {
        self.value[id as usize]
    }

    /// The value of a field of a dimension.
    #[inline]
    #[must_use]
    pub fn dim(&self, dim: usize, field: DimId) -> f64 {
        self.value[dim_slot(dim, field)]
    }

    /// The value of a field of a tier.
    #[must_use]
    pub fn tier(&self, tier: usize, field: TierId) -> f64 {
        self.value[tier_slot(tier, field)]
    }

    /// Whether a key has a value that does not follow from others.
    #[must_use]
    pub fn is_written(&self, id: Id) -> bool {
        !self.written(id).is_nan()
    }

    /// How many dimensions the network has.
    #[inline]
    #[must_use]
    pub const fn dim_count(&self) -> usize {
        self.dims
    }

    /// For how many dimensions algorithms are written, if they go by dimension.
    #[must_use]
    pub fn by_dimension(&self) -> Option<usize> {
        let written = Written::of(self.given[Id::Algorithm as usize])?;
        let is_there = |&dim: &usize| !self.given[dim_slot(dim, DimId::Algorithm)].is_nan();
        matches!(written, Written::ByDimension(_)).then(|| (0..MAX_DIMS).take_while(is_there).count())
    }

    /// Whether a collective runs in place of training.
    #[must_use]
    pub fn is_collective(&self) -> bool {
        !self.key(Id::Collective).is_nan()
    }

    /// Whether a recorded trace runs in place of training.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        !self.key(Id::Chakra).is_nan()
    }

    /// The removals that apply, a bit each, in the order of [`Removal::ALL`].
    #[must_use]
    pub const fn removed(&self) -> u32 {
        self.removed
    }

    /// Gives a slot a value, the first of its axis or not.
    pub fn set(&mut self, slot: Slot, value: f64, is_first: bool) {
        let k = slot as usize;
        self.given[k] = value;
        self.value[k] = value;
        if k < Bits::CAPACITY {
            self.first.put(k, is_first);
        }
    }

    /// Works out what follows from the values as written: `rest`, defaults that are other keys, knobs that do not matter.
    pub fn complete(&mut self) {
        self.follow(Steps::ALL);
    }

    /// Works out what follows from values that moved, by the steps that these decide. What they decide of the job is always
    /// worked out.
    pub fn follow(&mut self, steps: Steps) {
        if steps.has(Steps::NETWORK) {
            self.removed &= !Self::OF_NETWORK;
            self.network();
        }
        if steps.has(Steps::LIKES) {
            self.likes();
        }
        if steps.has(Steps::TIERS) {
            self.tiers();
        }
        if steps.has(Steps::BEYOND) {
            self.removed &= !Self::OF_EVALUATORS;
            self.beyond_the_closed_form();
        }
        self.removed &= Self::OF_NETWORK | Self::OF_EVALUATORS;
        if self.is_recorded() {
            self.world();
            self.remote_memory();
        } else if !self.is_collective() {
            self.world();
            self.knobs();
        }
        self.unused_tiers();
    }

    /// What the network removes.
    const OF_NETWORK: u32 = 1 << Removal::NetworkSize as u8;
    /// What the evaluators remove.
    const OF_EVALUATORS: u32 = 1 << Removal::ClosedFormOfQueues as u8
        | 1 << Removal::ClosedFormOfRules as u8
        | 1 << Removal::ClosedFormOfMessages as u8;

    fn remove(&mut self, removal: Removal) {
        self.removed |= 1 << removal as u8;
    }

    #[inline]
    fn put(&mut self, id: Id, value: f64) {
        self.value[id as usize] = value;
    }

    #[inline]
    fn written(&self, id: Id) -> f64 {
        self.given[id as usize]
    }

    /// Sizes and `npus`: the product of all sizes is `npus`; one of them may be `rest`.
    fn network(&mut self) {
        self.dims = (0..MAX_DIMS).find(|&k| self.given[dim_slot(k, DimId::Block)].is_nan()).unwrap_or(MAX_DIMS);
        for (field, key) in key::DIM_KEYS.iter().enumerate() {
            let each = self.given[key::DIMS_FROM + EACH * key::DIM_KEYS.len() + field];
            let otherwise = if let Default::Is(value) = key.default { value } else { ABSENT };
            for k in 0..self.dims {
                let slot = key::DIMS_FROM + k * key::DIM_KEYS.len() + field;
                let own = if each.is_nan() { self.given[slot] } else { each };
                self.value[slot] = if own.is_nan() { otherwise } else { own };
            }
        }
        let mut known = 1.0;
        let mut open = None;
        for k in 0..self.dims {
            let size = self.dim(k, DimId::Size);
            if size == REST {
                open = Some(k);
            } else {
                known *= size;
            }
        }
        let written = self.written(Id::Npus);
        let npus = if written == REST { known } else { written };
        self.put(Id::Npus, npus);
        match open {
            Some(k) => {
                let rest = npus / known;
                let whole = written != REST && rest >= 1.0 && rest.fract() == 0.0;
                self.value[dim_slot(k, DimId::Size)] = if whole { rest } else { 1.0 };
                if !whole {
                    self.remove(Removal::NetworkSize);
                }
            }
            None if known != npus => self.remove(Removal::NetworkSize),
            None => {}
        }
    }

    /// Defaults that are the values of other keys.
    fn likes(&mut self) {
        let like = |this: &mut Self, id: Id, value: f64| {
            let written = this.written(id);
            this.put(id, if written.is_nan() { value } else { written });
        };
        like(self, Id::Capacity, self.written(Id::Hbm));
        like(self, Id::LocalBandwidth, self.written(Id::HbmBandwidth));
        like(self, Id::KvHeads, self.written(Id::Heads));
        // A width of 0 says that there is none.
        let width = self.written(Id::Hidden) / self.written(Id::Heads);
        like(self, Id::HeadDim, if width.fract() > 0.0 { 0.0 } else { width });
        like(self, Id::MoeFfn, self.written(Id::Ffn));
        like(self, Id::PortedAttention, self.written(Id::AttentionEfficiency));
        like(self, Id::ValueDim, self.key(Id::HeadDim));
        let optimizer =
            Optimizer::ALL.get(index(whole(self.written(Id::Optimizer)))).copied().unwrap_or(Optimizer::Adam);
        let [master, moment] = [Id::MasterBytes, Id::MomentBytes].map(|id| self.written(id));
        like(self, Id::OptimizerBytes, optimizer.of_parameter(master, moment));
    }

    /// Defaults of the tiers that are there.
    fn tiers(&mut self) {
        for tier in 0..MAX_TIERS {
            let is_there = !self.given[tier_slot(tier, TierId::Capacity)].is_nan();
            for field in [TierId::Latency, TierId::SharedBy] {
                let slot = tier_slot(tier, field);
                let written = self.given[slot];
                self.value[slot] = match key::TIER_KEYS[field as usize].default {
                    Default::Is(value) if is_there && written.is_nan() => value,
                    _ => written,
                };
            }
        }
    }

    /// `dp` and the batch: tp x cp x pp x dp make `npus`.
    fn world(&mut self) {
        let npus = self.key(Id::Npus);
        let others = self.written(Id::Tp) * self.written(Id::Cp) * self.written(Id::Pp);
        let written = self.written(Id::Dp);
        let rest = npus / others;
        let fits = if written == REST { rest >= 1.0 && rest.fract() == 0.0 } else { others * written == npus };
        self.put(Id::Dp, if written == REST { rest.floor().max(1.0) } else { written });
        if !fits {
            self.remove(Removal::WorldSize);
        }
        let batch = self.written(Id::GlobalBatch);
        // A batch in tokens is kept below zero.
        if batch < 0.0 {
            let length = if self.has_sequences() { self.written(Id::SeqLen) } else { 1.0 };
            let sequences = -batch / length;
            self.put(Id::GlobalBatch, sequences.floor().max(1.0));
            if sequences.fract() != 0.0 || sequences < 1.0 {
                self.remove(Removal::BatchTokens);
            }
        }
    }

    /// A knob that cannot matter at a point stands at its neutral value, and only the first value of its axis is tried.
    fn knobs(&mut self) {
        let (tp, cp, pp, dp) = (self.written(Id::Tp), self.written(Id::Cp), self.written(Id::Pp), self.key(Id::Dp));
        let dense = self.written(Id::Experts) == 0.0;
        self.neutral(pp == 1.0, Id::Vpp, 1.0, Removal::VppWithoutPp);
        self.neutral(pp == 1.0, Id::Schedule, 0.0, Removal::PipelineWithoutPp);
        self.neutral(pp == 1.0, Id::LayerSplit, 0.0, Removal::PipelineWithoutPp);
        self.neutral(dense, Id::Ep, 1.0, Removal::EpWithoutExperts);
        self.neutral(dense, Id::Etp, 1.0, Removal::EtpWithoutExperts);
        self.neutral(cp == 1.0, Id::CpKind, 0.0, Removal::CpKindWithoutCp);
        self.neutral(tp == 1.0, Id::SequenceParallel, 0.0, Removal::SequenceParallelWithoutTp);
        self.neutral(tp == 1.0, Id::OverlapTp, 0.0, Removal::OverlapWithoutTp);
        let all = tp == 1.0 || self.key(Id::OverlapTp) == 1.0;
        self.neutral(all, Id::OverlapTpBackward, 1.0, Removal::OverlapWithoutTp);
        self.neutral(self.key(Id::Ep) == 1.0, Id::OverlapEp, 0.0, Removal::OverlapWithoutEp);
        self.neutral(self.key(Id::Ep) == 1.0, Id::Dispatcher, 0.0, Removal::DispatcherWithoutEp);
        self.neutral(self.key(Id::Vpp) == 1.0, Id::OverlapPp, 0.0, Removal::OverlapWithoutVpp);
        let even = self.key(Id::Ep) == 1.0 || !self.written(Id::CapacityFactor).is_nan();
        self.neutral(even, Id::ExpertImbalance, 1.0, Removal::ImbalanceWithoutEp);
        let whole = tp == 1.0 || pp == 1.0 || self.key(Id::SequenceParallel) == 1.0;
        self.neutral(whole, Id::ScatterGather, 1.0, Removal::ScatterWithoutTp);
        let expert_ranks = self.key(Id::Ep) * self.key(Id::Etp);
        let alone = dp * cp == 1.0 && (dense || tp == expert_ranks);
        self.neutral(alone, Id::Zero, 0.0, Removal::ZeroWithoutDp);
        let zero = self.key(Id::Zero);
        self.neutral(zero == 0.0, Id::ZeroShard, ABSENT, Removal::ZeroShardWithoutZero);
        self.neutral(zero == 0.0, Id::ScatterGradients, 1.0, Removal::ShardKeysWithoutZero);
        self.neutral(zero < 3.0, Id::Prefetch, 1.0, Removal::ShardKeysWithoutZero);
        self.neutral(alone, Id::OverlapDp, 0.0, Removal::OverlapWithoutDp);
        let none = self.tiers_there().next().is_none();
        for id in key::OFFLOADS {
            let lacks = self.lacks_tier(self.written(id)) || none;
            self.neutral(lacks, id, -1.0, Removal::OffloadWithoutTier);
        }
        self.weights_of_their_own();
        self.unused(dense, OF_EXPERTS, Removal::ExpertKeysWithoutExperts);
        self.unused(self.is_written(Id::OptimizerBytes), OF_STATES, Removal::PartsOfWrittenStates);
        self.modules();
        self.other_families(dp);
        let alone = [tp * cp, pp, dp].iter().filter(|&&degree| degree > 1.0).count() <= 1;
        self.neutral(alone, Id::Order, 0.0, Removal::OrderOfOneDegree);
    }

    /// Where the master copy is cut like the weights and stays, a framework may keep no other: then there are no weights to offload.
    fn weights_of_their_own(&mut self) {
        let is_master = self.key(Id::MasterOnly) == 1.0 && self.key(Id::Zero) == 3.0;
        if is_master && self.key(Id::OffloadOptimizer) < 0.0 {
            self.neutral(true, Id::OffloadWeights, -1.0, Removal::OffloadOfNoWeights);
        }
    }

    /// Modules to be computed again that the model lacks: a set that comes to another of its axis is not tried beside it.
    fn modules(&mut self) {
        let written = recompute::of(self.written(Id::Recompute));
        if written.done(Recompute::MODULES) == written || self.read.has(Id::Recompute as usize) {
            return;
        }
        let done = written.done(recompute::lacking(self));
        if done != written && self.has_sequences() && self.sets.contains(&done) {
            self.remove(Removal::ModulesOfAnotherModel);
        }
    }

    /// Keys of other families of models. Without sequences a sample is one token, and all of a replica's are one microbatch.
    fn other_families(&mut self, dp: f64) {
        let idle = IDLE[self.family().min(IDLE.len() - 1)];
        let is_idle = |id: Id| idle.has(id as usize);
        self.unused(true, idle, Removal::KeysOfAnotherFamily);
        let has_sequences = self.has_sequences();
        self.neutral(!has_sequences, Id::SeqLen, 1.0, Removal::KeysOfAnotherFamily);
        let samples = (self.key(Id::GlobalBatch) / dp).floor().max(1.0);
        self.neutral(!has_sequences, Id::MicroBatch, samples, Removal::KeysOfAnotherFamily);
        self.neutral(is_idle(Id::FlashAttention), Id::FlashAttention, 0.0, Removal::KeysOfAnotherFamily);
        self.neutral(is_idle(Id::TableShards), Id::TableShards, 1.0, Removal::KeysOfAnotherFamily);
        let alone = is_idle(Id::OverlapEmbeddings) || dp == 1.0;
        self.neutral(alone, Id::OverlapEmbeddings, 1.0, Removal::OverlapWithoutTables);
    }

    /// The tiers that are there, as they are written.
    fn tiers_there(&self) -> impl Iterator<Item = f64> {
        (0..MAX_TIERS).filter(|&k| !self.tier(k, TierId::Capacity).is_nan()).map(|k| real(k as u64))
    }

    /// Whether a tier is named that is not there.
    fn lacks_tier(&self, named: f64) -> bool {
        named >= 0.0 && !self.tiers_there().any(|tier| tier == named)
    }

    /// The tier that a recorded trace loads from and stores to: the one that is named, or else the only one.
    fn remote_memory(&mut self) {
        let written = self.written(Id::RemoteMemory);
        if written.is_nan() {
            let mut there = self.tiers_there();
            let only = there.next().filter(|_| there.next().is_none());
            drop(there);
            self.put(Id::RemoteMemory, only.unwrap_or(ABSENT));
        } else {
            self.neutral(self.lacks_tier(written), Id::RemoteMemory, -1.0, Removal::OffloadWithoutTier);
        }
    }

    /// What the closed form does not know is not tried with it, where a sweep has both evaluators.
    fn beyond_the_closed_form(&mut self) {
        if self.written(Id::Fidelity) == 0.0 {
            for (ids, removal) in [
                (&fidelity::QUEUE_KEYS[..], Removal::ClosedFormOfQueues),
                (&[Id::Rules], Removal::ClosedFormOfRules),
                (&fidelity::MESSAGE_KEYS, Removal::ClosedFormOfMessages),
            ] {
                if ids.iter().any(|&id| fidelity::is_beyond(id, self.written(id))) {
                    self.remove(removal);
                }
            }
        }
    }

    /// What the tiers are like that hold nothing of the job.
    fn unused_tiers(&mut self) {
        let users = if self.is_recorded() { &[Id::RemoteMemory][..] } else { &key::OFFLOADS };
        for (tier, of_tier) in OF_TIERS.into_iter().enumerate() {
            let is_used = users.iter().any(|&id| self.key(id) == real(tier as u64));
            self.unused(!is_used, of_tier, Removal::UnusedTier);
        }
    }

    /// Keys that cannot matter at a point keep their values, of which only the first is tried.
    const fn unused(&mut self, inactive: bool, keys: Bits, removal: Removal) {
        if inactive && self.first.lack_one(self.read, keys) {
            self.removed |= 1 << removal as u8;
        }
    }

    fn neutral(&mut self, inactive: bool, id: Id, value: f64, removal: Removal) {
        let written = self.written(id);
        self.put(id, if inactive { value } else { written });
        if inactive && !self.first.has(id as usize) {
            self.remove(removal);
        }
    }
}

impl Environment for Inputs {
    fn value(&self, slot: u32) -> f64 {
        let value = self.value[slot as usize];
        if value.is_nan() { 0.0 } else { value }
    }

    fn dims(&self) -> u32 {
        crate::units::narrow(self.dims as u64)
    }

    fn dim_value(&self, dim: u32, field: u32) -> f64 {
        let value = self.value[key::DIMS_FROM + dim as usize * key::DIM_KEYS.len() + field as usize];
        if value.is_nan() { 0.0 } else { value }
    }
}
