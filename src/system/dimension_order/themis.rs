//! Themis: chunks go first where the load is least [Rashidi22].
//!
//! Loads are kept for each dimension; a chunk goes first where the load is least, for a reduce-scatter, or last, for an all-gather; if
//! loads are nearly equal the order is the plain one [ASTRA2].

use std::collections::BTreeMap;

use super::{Ask, Memory, Order, Ordering};
use crate::units::{real, small, whole};

/// See the module.
pub struct Themis;

impl Ordering for Themis {
    fn order(&self, ask: &Ask<'_>, memory: Memory<'_>) -> (Order, u64) {
        memory.loads.order(ask, false)
    }

    fn is_by_load(&self) -> bool {
        true
    }

    fn summary(&self) -> &'static str {
        "chunk by chunk, first where the load is least [Rashidi22]"
    }
}

/// A plan of Themis for one chunk, until every rank has taken it.
#[derive(Debug, Clone)]
struct Planned {
    order: Order,
    bytes: u64,
    taken: u32,
}

/// What Themis knows: one for all ranks.
#[derive(Debug, Default)]
pub struct Loads {
    /// Dimensions and their loads, in an order that stays from chunk to chunk.
    by_dimension: Vec<(usize, f64)>,
    planned: BTreeMap<u64, Planned>,
    last: u64,
    /// How many NPUs take each plan.
    npus: usize,
}

/// Bytes of a mebibyte, the unit of loads.
const MEBIBYTE: f64 = 1_048_576.0;

impl Loads {
    /// One that plans for so many NPUs.
    #[must_use]
    pub fn new(npus: usize) -> Self {
        Self { npus, ..Self::default() }
    }

    /// The first rank begins a collective: at a new instant all loads are forgotten.
    pub fn begin(&mut self, now: u64, dimensions: usize) {
        if self.by_dimension.is_empty() || self.last != now {
            self.by_dimension = (0..dimensions).map(|dimension| (dimension, 0.0)).collect();
            self.last = now;
        }
    }

    /// The order of a chunk's dimensions, and its bytes.
    pub fn order(&mut self, ask: &Ask<'_>, is_flex: bool) -> (Order, u64) {
        if let Some(planned) = self.planned.get_mut(&ask.chunk) {
            planned.taken += 1;
            let found = (planned.order.clone(), planned.bytes);
            if planned.taken as usize == self.npus {
                self.planned.remove(&ask.chunk);
            }
            return found;
        }
        let (order, stored, bytes) = self.plan(ask, is_flex);
        if self.npus > 1 {
            self.planned.insert(ask.chunk, Planned { order: stored, bytes, taken: 1 });
        }
        (order, bytes)
    }

    /// A new plan: the order for who asks first, the order for the others, and the chunk's bytes.
    fn plan(&mut self, ask: &Ask<'_>, is_flex: bool) -> (Order, Order, u64) {
        // What is cut into parts on its way out goes first where the load is least.
        let scatters = ask.collective.halves().is_some() || ask.collective.scatters();
        if self.by_dimension.len() != ask.takes_part.len() {
            // Another rank asks before the first has begun.
            self.by_dimension = (0..ask.takes_part.len()).map(|dimension| (dimension, 0.0)).collect();
        }
        self.by_dimension.sort_by(|a, b| a.1.total_cmp(&b.1));
        if !scatters {
            self.by_dimension.reverse();
        }
        let dimensions = self.by_dimension.len();
        let mut bytes = ask.left.min(ask.bytes);
        let mut weight = ask.bytes;
        let mut order = Order::new();
        let mut is_first = true;
        for k in 0..dimensions {
            let (dimension, load) = self.by_dimension[k];
            if !ask.takes_part[dimension] {
                order.push(small(dimension));
                continue;
            }
            if std::mem::take(&mut is_first) {
                let amount = self.difference(ask, k, load, scatters);
                let is_small = if is_flex { amount < ask.bytes } else { amount < ask.bytes / 16 };
                if is_small {
                    if is_flex {
                        weight = bytes;
                    }
                    return self.plain(ask, is_flex, scatters, bytes, weight);
                }
                if is_flex {
                    weight = amount;
                    bytes = ask.left.min(amount);
                }
            }
            order.push(small(dimension));
            weight = self.add(ask, k, dimension, weight, scatters);
        }
        (order.clone(), order, bytes)
    }

    /// The bytes that would level the load of the first dimension with that of the last.
    fn difference(&self, ask: &Ask<'_>, first: usize, load: f64, scatters: bool) -> u64 {
        let relative = |dimension: usize| ask.dimensions[dimension].bandwidth / ask.dimensions[0].bandwidth;
        let size = |dimension: usize| f64::from(ask.dimensions[dimension].size);
        if scatters {
            let dimension = self.by_dimension[first].0;
            let gap = (self.by_dimension[self.by_dimension.len() - 1].1 - load).abs();
            let share = (size(dimension) - 1.0) / size(dimension);
            return whole(gap * relative(dimension) / share * MEBIBYTE);
        }
        let takes_part = |k: &usize| ask.takes_part[self.by_dimension[*k].0];
        let last = (0..self.by_dimension.len()).rev().find(takes_part).unwrap_or(first);
        let dimension = self.by_dimension[last].0;
        let gap = (self.by_dimension[last].1 - load).abs();
        let amount = whole(gap * relative(dimension) / (size(dimension) - 1.0) * MEBIBYTE);
        let between = (first..last).rev().filter(takes_part);
        between.fold(amount, |amount, k| amount / u64::from(ask.dimensions[self.by_dimension[k].0].size))
    }

    /// The plain order, with its loads. In the reference an all-gather goes innermost first too, and its loads to the dimension at the
    /// mirrored place.
    fn plain(
        &mut self,
        ask: &Ask<'_>,
        is_flex: bool,
        scatters: bool,
        bytes: u64,
        weight: u64,
    ) -> (Order, Order, u64) {
        let dimensions = self.by_dimension.len();
        let stored: Order = (0..small(dimensions)).collect();
        self.by_dimension.sort_by_key(|load| load.0);
        if !scatters && !ask.is_mirrored {
            let order: Order = (0..small(dimensions)).rev().collect();
            let mut weight = weight;
            for k in order.iter().copied().map(usize::from).filter(|&k| ask.takes_part[k]) {
                weight = self.add(ask, k, k, weight, scatters);
            }
            return (order.clone(), order, bytes);
        }
        if !scatters {
            self.by_dimension.reverse();
        }
        let mut order = stored.clone();
        let mut weight = weight;
        for k in 0..dimensions {
            if ask.takes_part[k] {
                weight = self.add(ask, k, k, weight, scatters);
            } else if is_flex {
                order.push(small(k));
            }
        }
        (order, stored, bytes)
    }

    /// Adds the load of some bytes on a dimension to the entry at a place; the bytes that go on.
    fn add(&mut self, ask: &Ask<'_>, place: usize, dimension: usize, bytes: u64, scatters: bool) -> u64 {
        let size = ask.dimensions[dimension].size;
        let relative = ask.dimensions[dimension].bandwidth / ask.dimensions[0].bandwidth;
        let others = f64::from(size - 1);
        let share = if scatters { others / f64::from(size) } else { others };
        self.by_dimension[place].1 += (real(bytes) / MEBIBYTE) * share / relative;
        if scatters { bytes / u64::from(size) } else { bytes * u64::from(size) }
    }
}

