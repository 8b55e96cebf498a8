//! The machine: an NPU, the network between NPUs, the memories around them, as data and closed forms.

pub mod bill;
pub mod collective;
pub mod dimension_order;
pub mod hierarchy;
pub mod kernel;
pub mod machine;
pub mod memory;
pub mod network;
pub mod npu;
pub mod queue_order;
pub mod rules;
pub mod software;
pub mod topology;

use collective::{Algorithm, Choice, Collective};
use dimension_order::DimensionOrder;
use hierarchy::MultiDim;
pub use kernel::Kernel;
pub use memory::Memory;
pub use network::{Dimension, MAX_DIMS, Network, Span, Spans};
pub use npu::{Format, Npu};
use queue_order::QueueOrder;
use rules::Rules;
pub use software::Software;

use crate::units::{Delay, Time};

/// A machine: what one design point runs on.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The device that computes, and its local memory.
    pub npu: Npu,
    /// How the framework drives it.
    pub software: Software,
    /// The dimensions between NPUs, innermost first.
    pub network: Network,
    /// The local memory and the tiers beyond it.
    pub memory: Memory,
    /// How collectives run on the network.
    pub collectives: Collectives,
    /// Which of the reference simulator's quirks are in force; the closed form knows ours alone.
    pub rules: Rules,
}

/// How collectives run: the same for every group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collectives {
    /// By the building block of each dimension, or one algorithm everywhere.
    pub algorithm: Choice,
    /// What some collectives have in its place, and in that of a dimension, in the order of [`Collective::ALL`].
    pub by_collective: [Option<Choice>; Collective::ALL.len()],
    /// How many messages of a direct exchange are under way at once, where a dimension does not say; all if there is none.
    pub window: Option<u32>,
    /// How a collective runs over several dimensions.
    pub multi_dim: MultiDim,
    /// Into how many chunks a collective is cut; chunks pipeline through the dimensions.
    pub chunks: u64,
    /// Chunks under way at once in a dimension; the closed form has one.
    pub active_chunks: u32,
    /// Queues of a dimension; the closed form has one.
    pub queues: u32,
    /// What an NPU needs before each step of a collective.
    pub endpoint_delay: Delay,
    /// Whether reducing a received block costs local memory bandwidth (two reads and a write a byte).
    pub local_reduction: bool,
    /// In which order chunks take the dimensions; the closed form knows `ascending` alone.
    pub dimension_order: DimensionOrder,
    /// Which chunk of a dimension's queue goes first; the closed form has no queue.
    pub queue_order: QueueOrder,
    /// Whether a receiver asks for a message before it is sent; the closed form knows no receivers.
    pub rendezvous: bool,
}

impl Default for Collectives {
    /// What holds where nothing is said.
    fn default() -> Self {
        Self {
            algorithm: Choice::ByBlock,
            by_collective: Default::default(),
            window: None,
            multi_dim: MultiDim::Hierarchical,
            chunks: 4,
            active_chunks: 1,
            queues: 1,
            endpoint_delay: Delay::nanoseconds(10.0),
            local_reduction: true,
            dimension_order: DimensionOrder::Ascending,
            queue_order: QueueOrder::Fifo,
            rendezvous: false,
        }
    }
}

impl System {
    /// What communication that hides beneath computations costs these.
    ///
    /// ```text
    /// min(h, q S / (bw e_m) h / T)                                                                          [StepFit]
    /// ```
    ///
    /// h of its time T hidden, S bytes that an NPU sends in all of it, q the traffic that each is worth, bw and e_m of the local
    /// memory. Worked: 1 GB in 10 ms, 8 ms of them hidden, q = 6 B at 2,000 GB/s: 3 ms * 0.8 = 2.4 ms.
    ///
    /// Not more than h: who hides nothing is not slower. So nothing is gained where links are so fast that q S / T is all of the
    /// memory's bandwidth: at 300 GB/s and q = 5.3 B 1,590 GB/s.
    #[must_use]
    pub fn paid(&self, hidden: Time, of: Time, sent: f64) -> Time {
        self.slowed(hidden, of, self.software.overlap_traffic * sent)
    }

    /// What a transfer that hides beneath a layer costs it: `moved` bytes of local memory traffic, in the part of the time that is
    /// hidden.
    ///
    /// Worked: 1 GB in 10 ms, 8 ms of them hidden, at 2,000 GB/s: 0.5 ms * 0.8 = 0.4 ms.
    #[must_use]
    pub fn slowed(&self, hidden: Time, of: Time, moved: f64) -> Time {
        if hidden == Time::ZERO {
            return Time::ZERO;
        }
        let memory = self.npu.memory_bandwidth.get() * self.npu.memory_efficiency;
        Delay::seconds(moved / memory * hidden.as_seconds() / of.as_seconds()).round().min(hidden)
    }

    /// The algorithm of a collective on a dimension: as the collective says, or the dimension, or all of them together.
    #[must_use]
    pub fn algorithm(&self, collective: Collective, dimension: &Dimension) -> Algorithm {
        let Collectives { algorithm, by_collective, .. } = self.collectives;
        let choice = by_collective[collective as usize].or(dimension.algorithm).unwrap_or(algorithm);
        choice.of(dimension.block, collective)
    }
}
