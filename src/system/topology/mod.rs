//! Building blocks: how one dimension is wired, so what it makes of each pattern of traffic.

use super::collective::Algorithm;
use super::network::Span;
use crate::registry::registry;

/// What every member of a group sends in one step of a collective.
///
/// An algorithm emits patterns and a building block carries them; neither knows the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One message to the next member: a step of a ring, one half each way round where there are two ways.
    Shift,
    /// One message to a partner so many members away, who sends one back.
    Exchange {
        /// How many members away.
        distance: u32,
    },
    /// An equal part to every other member at once.
    Spread,
    /// One message to a member so far away, over one way only, while no other crosses its way: a send.
    Send {
        /// How many members away.
        distance: u32,
    },
    /// A message each from two members, one on either side, to the one so far away between them.
    Meet {
        /// How many members away.
        distance: u32,
    },
    /// A message each to two members so far away, one on either side.
    Part {
        /// How many members away.
        distance: u32,
    },
}

/// How a building block carries a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carry {
    /// Hops on the longest way of the step.
    pub hops: f64,
    /// The share of an NPU's bandwidth in the dimension that carries its bytes when the whole group, and every like
    /// group of the dimension, sends at once.
    pub share: f64,
}

/// A way to wire one dimension.
pub trait BuildingBlock {
    /// Its letter in the paper's notation of a shape.
    fn symbol(&self) -> &'static str;
    /// The algorithm that fits it.
    fn algorithm(&self) -> Algorithm;
    /// How the part of the dimension that a group takes carries a pattern of at least two members.
    fn carry(&self, pattern: Pattern, span: &Span) -> Carry;
    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;
}

registry! {
    /// How one network dimension is wired.
    pub enum Topology: BuildingBlock {
        ring::Ring,
        fully_connected::FullyConnected,
        switch::Switch,
    }
}
