//! In which order the chunks of a collective take the dimensions, and how they queue within one.
//!
//! Themis [Rashidi22] keeps a load for each dimension and sends each chunk first where the load is least, for a
//! reduce-scatter, or last, for an all-gather; if loads are nearly equal the order is the plain one [ASTRA2].

use std::collections::BTreeMap;

use arrayvec::ArrayVec;

use super::phase::MOST;
use crate::system::collective::Collective;
use crate::system::machine::{Machine, QueueOrder};
use crate::units::{real, whole};

/// The dimensions of a chunk in the order in which it takes them; those that take no part may stand in it twice.
pub type Order = ArrayVec<usize, { 2 * MOST }>;

/// A plan of Themis for one chunk, until every rank has taken it.
#[derive(Debug, Clone)]
struct Planned {
    order: Order,
    bytes: u64,
    taken: u32,
}

/// What Themis knows: one for all ranks.
#[derive(Debug, Default)]
pub struct Themis {
    /// Dimensions and their loads, in an order that stays from chunk to chunk.
    loads: Vec<(usize, f64)>,
    planned: BTreeMap<u64, Planned>,
    last: u64,
    /// How many NPUs take each plan.
    npus: usize,
}

/// Bytes of a mebibyte, the unit of loads.
const MEBIBYTE: f64 = 1_048_576.0;

/// A chunk that is to be planned.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The chunk's number.
    pub chunk: u64,
    /// Bytes of the collective that are left.
    pub left: u64,
    /// Bytes of a chunk as the collective is cut.
    pub bytes: u64,
    /// Which dimensions take part.
    pub takes_part: &'a [bool],
    /// The collective.
    pub collective: Collective,
    /// Whether chunks may be of other sizes.
    pub is_flex: bool,
}

impl Themis {
    /// One that plans for so many NPUs.
    #[must_use]
    pub fn new(npus: usize) -> Self {
        Self { npus, ..Self::default() }
    }

    /// The first rank begins a collective: at a new instant all loads are forgotten.
    pub fn begin(&mut self, now: u64, dimensions: usize) {
        if self.loads.is_empty() || self.last != now {
            self.loads = (0..dimensions).map(|dimension| (dimension, 0.0)).collect();
            self.last = now;
        }
    }

    /// The order of a chunk's dimensions, and its bytes.
    pub fn order(&mut self, machine: &Machine, ask: Ask<'_>) -> (Order, u64) {
        if let Some(planned) = self.planned.get_mut(&ask.chunk) {
            planned.taken += 1;
            let found = (planned.order.clone(), planned.bytes);
            if planned.taken as usize == self.npus {
                self.planned.remove(&ask.chunk);
            }
            return found;
        }
        let (order, stored, bytes) = self.plan(machine, ask);
        if self.npus > 1 {
            self.planned.insert(ask.chunk, Planned { order: stored, bytes, taken: 1 });
        }
        (order, bytes)
    }

    /// A new plan: the order for who asks first, the order for the others, and the chunk's bytes.
    fn plan(&mut self, machine: &Machine, ask: Ask<'_>) -> (Order, Order, u64) {
        let scatters = matches!(ask.collective, Collective::AllReduce | Collective::ReduceScatter);
        if self.loads.len() != ask.takes_part.len() {
            // Another rank asks before the first has begun.
            self.loads = (0..ask.takes_part.len()).map(|dimension| (dimension, 0.0)).collect();
        }
        self.loads.sort_by(|a, b| a.1.total_cmp(&b.1));
        if !scatters {
            self.loads.reverse();
        }
        let dimensions = self.loads.len();
        let mut bytes = ask.left.min(ask.bytes);
        let mut weight = ask.bytes;
        let mut order = Order::new();
        let mut is_first = true;
        for k in 0..dimensions {
            let (dimension, load) = self.loads[k];
            if !ask.takes_part[dimension] {
                order.push(dimension);
                continue;
            }
            if std::mem::take(&mut is_first) {
                let amount = self.difference(machine, ask, k, load, scatters);
                let is_small = if ask.is_flex { amount < ask.bytes } else { amount < ask.bytes / 16 };
                if is_small {
                    if ask.is_flex {
                        weight = bytes;
                    }
                    return self.plain(machine, ask, scatters, bytes, weight);
                }
                if ask.is_flex {
                    weight = amount;
                    bytes = ask.left.min(amount);
                }
            }
            order.push(dimension);
            weight = self.add(machine, k, dimension, weight, scatters);
        }
        (order.clone(), order, bytes)
    }

    /// The bytes that would level the load of the first dimension with that of the last.
    fn difference(&self, machine: &Machine, ask: Ask<'_>, first: usize, load: f64, scatters: bool) -> u64 {
        let relative = |dimension: usize| machine.dimensions[dimension].bandwidth / machine.dimensions[0].bandwidth;
        let size = |dimension: usize| f64::from(machine.dimensions[dimension].size);
        if scatters {
            let dimension = self.loads[first].0;
            let gap = (self.loads[self.loads.len() - 1].1 - load).abs();
            let share = (size(dimension) - 1.0) / size(dimension);
            return whole(gap * relative(dimension) / share * MEBIBYTE);
        }
        let takes_part = |k: &usize| ask.takes_part[self.loads[*k].0];
        let last = (0..self.loads.len()).rev().find(takes_part).unwrap_or(first);
        let dimension = self.loads[last].0;
        let gap = (self.loads[last].1 - load).abs();
        let amount = whole(gap * relative(dimension) / (size(dimension) - 1.0) * MEBIBYTE);
        let between = (first..last).rev().filter(takes_part);
        between.fold(amount, |amount, k| amount / u64::from(machine.dimensions[self.loads[k].0].size))
    }

    /// The plain order, with its loads; those of an all-gather go to the dimension at the mirrored place.
    fn plain(
        &mut self,
        machine: &Machine,
        ask: Ask<'_>,
        scatters: bool,
        bytes: u64,
        weight: u64,
    ) -> (Order, Order, u64) {
        let dimensions = self.loads.len();
        let stored: Order = (0..dimensions).collect();
        self.loads.sort_by_key(|load| load.0);
        if !scatters {
            self.loads.reverse();
        }
        let mut order = stored.clone();
        let mut weight = weight;
        for k in 0..dimensions {
            if ask.takes_part[k] {
                weight = self.add(machine, k, k, weight, scatters);
            } else if ask.is_flex {
                order.push(k);
            }
        }
        (order, stored, bytes)
    }

    /// Adds the load of some bytes on a dimension to the entry at a place; the bytes that go on.
    fn add(&mut self, machine: &Machine, place: usize, dimension: usize, bytes: u64, scatters: bool) -> u64 {
        let size = machine.dimensions[dimension].size;
        let relative = machine.dimensions[dimension].bandwidth / machine.dimensions[0].bandwidth;
        let others = f64::from(size - 1);
        let share = if scatters { others / f64::from(size) } else { others };
        self.loads[place].1 += (real(bytes) / MEBIBYTE) * share / relative;
        if scatters { bytes / u64::from(size) } else { bytes * u64::from(size) }
    }
}

/// A chunk in a queue, as its order sees it.
#[derive(Debug, Clone, Copy)]
pub struct Queued {
    /// Whether it is under way.
    pub is_running: bool,
    /// What its phase is.
    pub collective: Collective,
    /// The larger of the bytes that enter and leave its phase.
    pub bytes: u64,
    /// Phases behind this one.
    pub to_go: usize,
}

/// The place of a new chunk in a queue.
pub fn place(order: QueueOrder, queue: impl ExactSizeIterator<Item = Queued> + Clone, new: Queued) -> usize {
    let end = queue.len();
    let alternates = matches!(new.collective, Collective::ReduceScatter | Collective::AllGather);
    let before = |goes_first: &dyn Fn(&Queued) -> bool| {
        queue.clone().position(|other| !other.is_running && goes_first(&other)).unwrap_or(end)
    };
    match order {
        _ if !alternates => end,
        QueueOrder::Fifo => end,
        QueueOrder::SmallestFirst if new.to_go == 1 => end,
        QueueOrder::SmallestFirst => before(&|other| other.bytes >= new.bytes),
        QueueOrder::LessRemainingPhaseFirst => before(&|other| other.to_go >= new.to_go),
        QueueOrder::Rg => alternating(&queue.collect::<Vec<_>>()),
    }
}

/// Behind what runs and the one that waits next to it, and behind pairs of a reduce-scatter and an all-gather.
fn alternating(queue: &[Queued]) -> usize {
    let differ = |a: Collective, b: Collective| {
        matches!(
            (a, b),
            (Collective::ReduceScatter, Collective::AllGather) | (Collective::AllGather, Collective::ReduceScatter)
        )
    };
    let mut k = 0;
    let mut last: Option<Collective> = None;
    while let Some(entry) = queue.get(k) {
        let previous = last.replace(entry.collective);
        if entry.is_running {
            k += 1;
            if let Some(next) = queue.get(k).filter(|next| !next.is_running) {
                last = Some(next.collective);
                k += 1;
            }
        } else if previous.is_some_and(|previous| differ(previous, entry.collective)) {
            k += 1;
        } else {
            break;
        }
    }
    k
}
