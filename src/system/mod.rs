//! The machine: an NPU, the network between NPUs, the memories around them, as data and closed forms.

pub mod collective;
pub mod hierarchy;
pub mod machine;
pub mod memory;
pub mod network;
pub mod npu;
pub mod rules;
pub mod topology;

use collective::Choice;
use machine::{DimensionOrder, QueueOrder};
pub use memory::Memory;
pub use network::{Dimension, MAX_DIMS, Network, Span, Spans};
pub use npu::{Format, Npu};
use rules::Rules;

use crate::units::Delay;

/// A machine: what one design point runs on.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The device that computes, and its local memory.
    pub npu: Npu,
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
    /// Into how many chunks a collective is cut; chunks pipeline through the dimensions.
    pub chunks: u64,
    /// Chunks under way at once in a dimension; the closed form has one.
    pub active_chunks: u32,
    /// What an NPU needs before each step of a collective.
    pub endpoint_delay: Delay,
    /// Whether reducing a received block costs local memory bandwidth (two reads and a write a byte).
    pub local_reduction: bool,
    /// In which order chunks take the dimensions; the closed form knows `ascending` alone.
    pub dimension_order: DimensionOrder,
    /// Which chunk of a dimension's queue goes first; the closed form has no queue.
    pub queue_order: QueueOrder,
}
