//! The network: dimensions, innermost first, and the part of each that a group of NPUs takes.

use arrayvec::ArrayVec;

use super::collective::Choice;
use super::topology::Topology;
use crate::units::{Bandwidth, Delay};

/// How many dimensions a network may have: 2^16 NPUs when each has two.
pub const MAX_DIMS: usize = 16;

/// A hierarchical network: NPU r has the address (r mod n0, r / n0 mod n1, ...), dimension 0 innermost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Network {
    /// The dimensions, innermost first.
    pub dims: ArrayVec<Dimension, MAX_DIMS>,
    /// What messages make of each other; the closed form has no messages.
    pub congestion: Congestion,
}

/// One level of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dimension {
    /// How it is wired.
    pub block: Topology,
    /// How many NPUs, or groups of the inner dimensions, it connects.
    pub size: u32,
    /// What one NPU can send in it: all its links, one way.
    pub bandwidth: Bandwidth,
    /// Latency of one hop.
    pub hop_latency: Delay,
    /// How collectives run in it, if it is not as everywhere.
    pub algorithm: Option<Choice>,
    /// How many messages of a direct exchange are under way at once in it, if it is not as everywhere.
    pub window: Option<u32>,
}

/// What messages make of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Congestion {
    /// Every message sees an idle network.
    #[default]
    Unaware,
    /// A link carries one message at a time, whole, device by device; in one dimension alone under the reference's rules.
    Aware,
}

impl Congestion {
    /// Both; the first holds where nothing is said.
    pub const ALL: [Self; 2] = [Self::Unaware, Self::Aware];
    /// The names that people write, in the same order.
    pub const NAMES: [&'static str; 2] = ["unaware", "aware"];
}

/// The part of one dimension that a group of NPUs takes: `members` of its `size` positions, `stride` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Which dimension.
    pub dim: usize,
    /// The size of the whole dimension.
    pub size: u32,
    /// How many positions the group takes in it.
    pub members: u32,
    /// The distance between neighbours of the group.
    pub stride: u32,
}

impl Span {
    /// The whole of a dimension.
    #[must_use]
    pub const fn whole(dim: usize, size: u32) -> Self {
        Self { dim, size, members: size, stride: 1 }
    }

    /// Whether the last member's neighbour is the first one: a ring closes only then.
    #[must_use]
    pub const fn closes(&self) -> bool {
        self.members * self.stride == self.size
    }
}

/// Where a group lies: its span in each dimension in which it has more than one member, innermost first.
pub type Spans = ArrayVec<Span, MAX_DIMS>;

impl Network {
    /// How many NPUs the network connects.
    #[must_use]
    pub fn npus(&self) -> u64 {
        self.dims.iter().map(|dim| u64::from(dim.size)).product()
    }

    /// The group of all NPUs.
    #[must_use]
    pub fn everyone(&self) -> Spans {
        let spans = self.dims.iter().enumerate().map(|(k, dim)| Span::whole(k, dim.size));
        spans.filter(|span| span.members > 1).collect()
    }

    /// The shape in the paper's notation, innermost first: `R(16)_FC(8)_SW(4)` [ASTRA2].
    #[must_use]
    pub fn shape(&self) -> String {
        let parts: Vec<_> =
            self.dims.iter().map(|dim| format!("{}({})", dim.block.part().symbol(), dim.size)).collect();
        parts.join("_")
    }
}
