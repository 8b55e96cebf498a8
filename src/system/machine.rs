//! The machine as events happen on it: dimensions with their links, how collectives are cut and queued, the memories.

use std::collections::BTreeMap;

use thiserror::Error;

use super::System;
use super::collective::{Algorithm, Collective};
use super::dimension_order::DimensionOrder;
use super::hierarchy::MultiDim;
pub use super::network::Congestion;
use super::network::{self, MAX_DIMS, Span, Spans};
use super::queue_order::QueueOrder;
use super::rules::{Quirk, Rules};
use super::topology::Topology;
use crate::units::{Delay, Time, narrow, real, whole};

/// A dimension of the network, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// How it is wired.
    pub block: Topology,
    /// NPUs, or groups of the inner dimensions, that it connects.
    pub size: u32,
    /// Bytes a nanosecond of one link, one way.
    pub bandwidth: f64,
    /// Nanoseconds of one hop.
    pub latency: f64,
}

/// An algorithm of a list: on its dimension, or over all NPUs as if they were one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How many messages of a direct exchange are under way at once; all if there is none.
    pub window: Option<u32>,
    /// Whether it runs over all NPUs at once, in place of its dimension and those that follow.
    pub whole: bool,
}

impl Entry {
    /// An algorithm on its dimension, with all messages at once where it has windows.
    #[must_use]
    pub const fn of(algorithm: Algorithm) -> Self {
        Self { algorithm, window: None, whole: false }
    }

    /// A direct exchange with so many messages under way at once.
    #[must_use]
    pub const fn direct(window: u32) -> Self {
        Self { algorithm: Algorithm::Direct, window: Some(window), whole: false }
    }
}

/// The shape of an all-reduce over several dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// A whole all-reduce in each dimension.
    PerDimension,
    /// Reduce-scatter inwards out, all-reduce on the last, all-gather back.
    ScatterGather,
}

/// The times of a shared memory bus, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bus {
    /// Latency.
    pub latency: u64,
    /// Overhead of an end.
    pub overhead: u64,
    /// Gap between two sends.
    pub gap: u64,
    /// Nanoseconds of a byte.
    pub per_byte: f64,
    /// Nanoseconds of a hundred bytes that are processed.
    pub processing: u64,
}

/// Where the memory beyond the NPU's own is, and who waits for whom at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Every NPU has its own.
    PerNpu,
    /// So many neighbouring NPUs share one, and are served one after the other.
    PerNode {
        /// How many.
        npus: u32,
    },
    /// All NPUs share one, and are served one after the other.
    Pool,
}

/// A memory beyond the NPU's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemoteMemory {
    /// Where it is.
    pub place: Place,
    /// Nanoseconds before the first byte.
    pub latency: f64,
    /// Bytes a nanosecond.
    pub bandwidth: f64,
}

/// How long operations take on an NPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As long as was recorded, a computation; communication is simulated.
    Recorded,
    /// As long as was recorded, whatever it is: nothing is simulated but who waits for whom.
    Replayed,
    /// A computation as long as the roofline says.
    Roofline {
        /// Operations a second at most.
        peak: f64,
        /// Bytes a second of the local memory.
        memory: f64,
    },
}

/// Everything that the event-driven engine knows of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The network, innermost first.
    pub dimensions: Vec<Dimension>,
    /// Whether messages share links.
    pub congestion: Congestion,
    /// The algorithm of each dimension, by collective in the order of [`Collective::ALL`].
    pub algorithms: [Vec<Entry>; Collective::ALL.len()],
    /// Collectives that run as a trace of their own, by their place in the trace's list.
    pub own: Own,
    /// The shape of an all-reduce over several dimensions.
    pub hierarchy: Hierarchy,
    /// Into how many chunks a collective is cut.
    pub chunks: u64,
    /// Chunks under way at once in a dimension.
    pub active_chunks: u32,
    /// Queues of a dimension.
    pub queues: u32,
    /// Nanoseconds that an endpoint takes before a message.
    pub endpoint_delay: f64,
    /// Bytes a second of the local memory, by which reductions are charged.
    pub memory_bandwidth: f64,
    /// How long operations take.
    pub pace: Pace,
    /// The memory beyond the NPU's own, if there is one.
    pub remote: Option<RemoteMemory>,
    /// The bus to the network adapter, if messages share one; endpoint delays are then its times.
    pub bus: Option<Bus>,
    /// Whether a receiver asks for a message before it is sent.
    pub rendezvous: bool,
    /// In which order chunks take the dimensions.
    pub dimension_order: DimensionOrder,
    /// Which chunk of a queue goes first.
    pub queue_order: QueueOrder,
    /// Which quirks of the reference are in force.
    pub rules: Rules,
}

/// Which collectives run as a trace of their own: the place of the trace in the workload's list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// By collective, in the order of [`Collective::ALL`].
    pub of_collective: [Option<u32>; Collective::ALL.len()],
    /// By the number of the operation, before the other.
    pub of_operation: BTreeMap<u64, u32>,
}

/// A machine contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Contradiction(pub &'static str);

impl Machine {
    /// A machine of some dimensions, each with an algorithm of its own, whatever the collective, and nothing that costs time but
    /// its links: in one chunk, without delays, reductions and congestion, under our rules.
    #[must_use]
    pub fn plain(dimensions: Vec<Dimension>, algorithms: &[Entry]) -> Self {
        Self {
            dimensions,
            congestion: Congestion::Unaware,
            algorithms: std::array::from_fn(|_| algorithms.to_vec()),
            own: Own::default(),
            hierarchy: Hierarchy::ScatterGather,
            chunks: 1,
            active_chunks: 1,
            queues: 1,
            endpoint_delay: 0.0,
            memory_bandwidth: f64::INFINITY,
            pace: Pace::Recorded,
            remote: None,
            bus: None,
            rendezvous: false,
            dimension_order: DimensionOrder::Ascending,
            queue_order: QueueOrder::Fifo,
            rules: Rules::OURS,
        }
    }

    /// A system as the event-driven engine sees it, with the tier that its jobs stream through, if they do.
    #[must_use]
    pub fn of(system: &System, tier: Option<u8>) -> Self {
        let collectives = &system.collectives;
        let dimension = |dim: &network::Dimension| {
            let mut dimension = Dimension {
                block: dim.block,
                size: dim.size,
                bandwidth: 1.0,
                latency: dim.hop_latency.as_nanoseconds(),
            };
            // One member of a dimension has no link.
            let links = if dim.size > 1 { dimension.npu_bandwidth() } else { 1.0 };
            dimension.bandwidth = dim.bandwidth.get() / 1e9 / links;
            dimension
        };
        let whole = collectives.multi_dim == MultiDim::Flat;
        let entry = |collective: Collective, dim: &network::Dimension| Entry {
            algorithm: system.algorithm(collective, dim),
            window: dim.window.or(collectives.window),
            whole,
        };
        let dims = || system.network.dims.iter().take(if whole { 1 } else { MAX_DIMS });
        let entries = |collective: Collective| dims().map(|dim| entry(collective, dim)).collect();
        let npu = &system.npu;
        let remote = tier.and_then(|tier| system.memory.tiers.get(usize::from(tier)));
        let is_cut = system.rules.has(Quirk::WholeMemoryBandwidth);
        let rate = |gigabytes: f64| if is_cut { gigabytes.trunc() } else { gigabytes };
        Self {
            dimensions: system.network.dims.iter().map(dimension).collect(),
            congestion: system.network.congestion,
            algorithms: Collective::ALL.map(entries),
            own: Own::default(),
            hierarchy: match collectives.multi_dim {
                MultiDim::PerDimension => Hierarchy::PerDimension,
                MultiDim::Hierarchical | MultiDim::Flat => Hierarchy::ScatterGather,
            },
            chunks: collectives.chunks,
            active_chunks: collectives.active_chunks,
            queues: collectives.queues,
            endpoint_delay: collectives.endpoint_delay.as_nanoseconds(),
            memory_bandwidth: if collectives.local_reduction { npu.memory_bandwidth.get() } else { f64::INFINITY },
            pace: if npu.peak.get() > 0.0 {
                Pace::Roofline {
                    peak: npu.peak.get() * npu.gemm_efficiency,
                    memory: npu.memory_bandwidth.get() * npu.memory_efficiency,
                }
            } else {
                // A collective alone needs no NPU that computes.
                Pace::Recorded
            },
            remote: remote.map(|tier| RemoteMemory {
                place: Place::PerNpu,
                latency: tier.latency.as_nanoseconds(),
                bandwidth: rate(tier.bandwidth.get() / 1e9 / real(tier.shared_by.max(1))),
            }),
            bus: None,
            rendezvous: collectives.rendezvous,
            dimension_order: collectives.dimension_order,
            queue_order: collectives.queue_order,
            rules: system.rules,
        }
    }

    /// How many NPUs there are.
    #[must_use]
    pub fn npus(&self) -> u32 {
        self.dimensions.iter().map(|dimension| dimension.size).product()
    }

    /// Whether a collective is not sent, but lasts as long as was recorded.
    #[must_use]
    pub fn is_delay(&self, collective: Collective) -> bool {
        collective == Collective::Broadcast && self.rules.has(Quirk::BroadcastIsADelay)
    }

    /// Whether the machine can be simulated.
    ///
    /// # Errors
    /// What contradicts itself, first of all.
    pub fn check(&self) -> Result<(), Contradiction> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let is_delay = |delay: f64| delay.is_finite() && delay >= 0.0;
        let sizes = self.dimensions.iter().try_fold(1_u32, |all, dimension| all.checked_mul(dimension.size));
        let entries = || self.algorithms.iter().flatten();
        let npus = sizes.unwrap_or_default();
        let says = [
            (npus > 0, "the network has no NPU, or more than can be counted"),
            (self.dimensions.iter().all(|it| it.size > 0), "a dimension has no member"),
            (self.dimensions.iter().all(|it| is_rate(it.bandwidth)), "a bandwidth is not above zero"),
            (self.dimensions.iter().all(|it| is_delay(it.latency)), "a latency is below zero"),
            (self.memory_bandwidth > 0.0, "the memory's bandwidth is not above zero"),
            (
                !matches!(self.pace, Pace::Roofline { peak, .. } if !is_rate(peak)),
                "the peak of the roofline is not above zero",
            ),
            (
                self.remote.is_none_or(|remote| remote.bandwidth > 0.0),
                "the remote memory's bandwidth is not above zero",
            ),
            (!matches!(self.remote, Some(RemoteMemory { place: Place::PerNode { npus: 0 }, .. })), "a node has no NPU"),
            (self.chunks > 0, "a collective is cut into no chunk"),
            (self.active_chunks > 0, "no chunk may be under way"),
            (self.queues > 0, "a dimension has no queue"),
            (self.queues <= 65_536, "a dimension has more than 65,536 queues"),
            (
                self.congestion == Congestion::Unaware
                    || self.dimensions.len() == 1
                    || !self.rules.has(Quirk::LowestDimension),
                "a network that is aware of congestion has one dimension under the reference's rules",
            ),
            (
                self.algorithms.iter().all(|list| list.len() <= self.dimensions.len()),
                "a collective has more algorithms than there are dimensions",
            ),
            (entries().all(|entry| entry.window != Some(0)), "an algorithm has no message under way"),
        ];
        match says.into_iter().find(|says| !says.0) {
            Some((_, what)) => Err(Contradiction(what)),
            None => Ok(()),
        }
    }
}

/// The way of a message: the dimension that it takes, and how many hops there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The place of the dimension.
    pub dimension: u32,
    /// Hops.
    pub hops: u32,
}

impl Way {
    /// The way as one number.
    #[must_use]
    pub const fn key(self) -> u64 {
        (self.dimension as u64) << 32 | self.hops as u64
    }
}

impl Machine {
    /// The way between two NPUs: in the lowest dimension in which they differ [ASTRA2].
    #[must_use]
    pub fn way(&self, from: u32, to: u32) -> Way {
        let (mut from, mut to) = (from, to);
        for (dimension, k) in self.dimensions.iter().zip(0..) {
            let (a, b) = (from % dimension.size, to % dimension.size);
            if a != b {
                return Way { dimension: k, hops: dimension.hops(a, b) };
            }
            (from, to) = (from / dimension.size, to / dimension.size);
        }
        Way { dimension: 0, hops: 0 }
    }

    /// The ways of a message through every dimension in which its ends differ, innermost first.
    pub fn ways(&self, from: u32, to: u32) -> impl Iterator<Item = Way> {
        let mut below = 1;
        self.dimensions.iter().zip(0..).filter_map(move |(dimension, k)| {
            let [a, b] = [from, to].map(|rank| rank / below % dimension.size);
            below *= dimension.size;
            (a != b).then(|| Way { dimension: k, hops: dimension.hops(a, b) })
        })
    }

    /// Ticks of a message between two NPUs over an idle network, whose way in the lowest dimension is known.
    #[must_use]
    pub fn delay_on(&self, way: Way, (from, to): (u32, u32), bytes: u64) -> u64 {
        if self.rules.has(Quirk::LowestDimension) {
            self.message(way, bytes)
        } else {
            self.ways(from, to).map(|way| self.message(way, bytes)).fold(0, u64::saturating_add)
        }
    }

    /// A delay as ticks of the clock: whole nanoseconds, cut off, or picoseconds, rounded.
    #[must_use]
    pub fn ticks(&self, nanoseconds: f64) -> u64 {
        if self.rules.has(Quirk::WholeNanoseconds) {
            whole(nanoseconds)
        } else {
            Delay::nanoseconds(nanoseconds).round().as_picoseconds()
        }
    }

    /// Ticks of the clock as a time.
    #[must_use]
    pub fn time(&self, ticks: u64) -> Time {
        let picoseconds = if self.rules.has(Quirk::WholeNanoseconds) { 1000 } else { 1 };
        Time::picoseconds(ticks.saturating_mul(picoseconds))
    }

    /// The last tick that is a time: what is beyond does not fit.
    #[must_use]
    pub const fn last_tick(&self) -> u64 {
        if self.rules.has(Quirk::WholeNanoseconds) { u64::MAX / 1000 } else { u64::MAX - 1 }
    }

    /// Whole nanoseconds as ticks of the clock.
    #[must_use]
    pub const fn whole_ticks(&self, nanoseconds: u64) -> u64 {
        if self.rules.has(Quirk::WholeNanoseconds) { nanoseconds } else { nanoseconds.saturating_mul(1000) }
    }

    /// Ticks of a message over an idle network: hops and bytes, rounded once.
    ///
    /// ```text
    /// T(S) = floor(hops * latency + S / bandwidth)      32,768 B over one hop of 500 ns at 50 GiB/s: 1,110 ns
    /// ```
    #[must_use]
    pub fn message(&self, way: Way, bytes: u64) -> u64 {
        let dimension = &self.dimensions[way.dimension as usize];
        self.ticks(f64::from(way.hops) * dimension.latency + real(bytes) / dimension.bandwidth)
    }

    /// Ticks of a reduction: two reads and a write of so many bytes, each rounded [ASTRA2].
    ///
    /// ```text
    /// R(S) = 3 * floor(S / (GB/s * 1e9) * 1e9)      32,768 B at 1600 GB/s: 3 * 20 ns = 60 ns
    /// ```
    #[must_use]
    pub fn reduction(&self, bytes: u64) -> u64 {
        self.ticks(real(bytes) / self.memory_bandwidth * 1e9).saturating_mul(3)
    }
}

impl Dimension {
    /// Links of an NPU: to both neighbours, to all others, or to the switch [ASTRA2].
    #[must_use]
    pub const fn links(&self) -> u32 {
        match self.block {
            Topology::Ring if self.size > 2 => 2,
            Topology::FullyConnected => self.size.saturating_sub(1),
            Topology::Ring | Topology::Switch => 1,
        }
    }

    /// Bytes a nanosecond that one NPU can send over all its links.
    #[must_use]
    pub fn npu_bandwidth(&self) -> f64 {
        self.bandwidth * f64::from(self.links())
    }
}

impl Machine {
    /// The parts of dimensions that ranks take, innermost first; none if they are no regular part of the network.
    #[must_use]
    pub fn spans(&self, ranks: &[u32]) -> Option<Spans> {
        if self.dimensions.len() > MAX_DIMS {
            return None;
        }
        let mut spans = Spans::new();
        let mut found = 1;
        let mut below = 1;
        for (dim, dimension) in self.dimensions.iter().enumerate() {
            let mut taken: Vec<u32> = ranks.iter().map(|rank| rank / below % dimension.size).collect();
            taken.sort_unstable();
            taken.dedup();
            below *= dimension.size;
            if let [first, second, ..] = taken[..] {
                let stride = second - first;
                if taken.windows(2).any(|pair| pair[1] - pair[0] != stride) {
                    return None;
                }
                let members = narrow(taken.len() as u64);
                found *= taken.len();
                spans.push(Span { dim, size: dimension.size, members, stride });
            }
        }
        (found == ranks.len()).then_some(spans)
    }
}

impl Dimension {
    /// Hops of the shortest way between two positions.
    #[must_use]
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match self.block {
            Topology::Ring => {
                let way = (to + self.size - from) % self.size;
                way.min(self.size - way)
            }
            Topology::FullyConnected => 1,
            Topology::Switch => 2,
        }
    }
}
