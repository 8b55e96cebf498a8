//! Dimension orders: in which order the chunks of a collective take the dimensions.

use arrayvec::ArrayVec;

use super::collective::Collective;
use super::machine::Dimension;
use crate::registry::registry;
use themis::Loads;

/// Dimensions at most: each has two members at least.
pub const MOST: usize = 32;

/// The dimensions of a chunk in the order in which it takes them; those that take no part may stand in it twice.
pub type Order = ArrayVec<u8, { 2 * MOST }>;

/// A chunk that is to be given its order.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The network.
    pub dimensions: &'a [Dimension],
    /// The chunk's number.
    pub chunk: u64,
    /// Bytes of the collective that are left.
    pub left: u64,
    /// Bytes of a chunk as the collective is cut.
    pub bytes: u64,
    /// Which of the collective's dimensions take part.
    pub takes_part: &'a [bool],
    /// The collective.
    pub collective: Collective,
    /// Whether Themis takes all-gathers for scatters where loads are level, and mirrors their loads.
    pub is_mirrored: bool,
}

impl Ask<'_> {
    /// The plain order: innermost first; outermost first for an all-gather.
    #[must_use]
    pub fn plain(&self) -> Order {
        let count = crate::units::small(self.takes_part.len());
        if self.collective == Collective::AllGather { (0..count).rev().collect() } else { (0..count).collect() }
    }
}

/// What is kept from chunk to chunk.
#[derive(Debug)]
pub struct Memory<'a> {
    /// How many turns an NPU has taken.
    pub turn: &'a mut usize,
    /// The loads of dimensions, of all NPUs together.
    pub loads: &'a mut Loads,
}

/// A way to order the dimensions of chunks.
pub trait Ordering {
    /// The order of a chunk's dimensions, and its bytes.
    fn order(&self, ask: &Ask<'_>, memory: Memory<'_>) -> (Order, u64);

    /// Whether chunks go by load, which is kept for all NPUs together.
    fn is_by_load(&self) -> bool {
        false
    }

    /// Whether chunks may be of other sizes than they were cut in.
    fn is_flexible(&self) -> bool {
        false
    }

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;
}

registry! {
    /// In which order a chunk takes the dimensions; the first holds where nothing is said.
    pub enum DimensionOrder: Ordering {
        ascending::Ascending,
        round_robin::RoundRobin,
        themis::Themis,
        themis_flex::ThemisFlex,
    }
}
