//! Orders: the units of a stage put down one after the other, for schedules that no short rule gives.

use std::collections::VecDeque;

use super::Unit;
use crate::workload::program::Phase;

/// Units in their order; each pass takes the microbatches of a chunk in turn.
#[derive(Debug, Default)]
pub struct Order {
    units: Vec<Unit>,
    /// Passes so far: forward, backward and for the weights' gradients, by chunk.
    counts: [[u64; 2]; 3],
    /// Chunks whose weights' gradients are still to be made.
    late: VecDeque<u64>,
}

impl Order {
    /// The next microbatch of a chunk, forward.
    pub fn forward(&mut self, chunk: u64) {
        self.unit(Phase::Forward, chunk, false);
    }

    /// The next microbatch of a chunk back, its weights' gradients at another time.
    pub fn backward(&mut self, chunk: u64) {
        self.unit(Phase::Backward, chunk, false);
        self.late.push_back(chunk);
    }

    /// The next microbatch of a chunk back with its weights' gradients, as one.
    pub fn whole(&mut self, chunk: u64) {
        self.unit(Phase::Backward, chunk, true);
        self.unit(Phase::Weights, chunk, false);
    }

    /// The next microbatch of a chunk forward and the next of the other back, as one.
    pub fn pair(&mut self, chunk: u64) {
        self.unit(Phase::Forward, chunk, true);
        self.whole(1 - chunk);
    }

    /// The weights' gradients that are still to be made for longest; whether there were any.
    pub fn weights(&mut self) -> bool {
        let chunk = self.late.pop_front();
        if let Some(chunk) = chunk {
            self.unit(Phase::Weights, chunk, false);
        }
        chunk.is_some()
    }

    /// The weights' gradients of a chunk that are still to be made for longest; whether there were any.
    pub fn weights_of(&mut self, chunk: u64) -> bool {
        let place = self.late.iter().position(|&late| late == chunk);
        if let Some(place) = place {
            self.late.remove(place);
            self.unit(Phase::Weights, chunk, false);
        }
        place.is_some()
    }

    /// How many microbatches of a chunk have gone forward.
    #[must_use]
    pub const fn forwards(&self, chunk: u64) -> u64 {
        self.counts[0][if chunk == 0 { 0 } else { 1 }]
    }

    /// All of them.
    pub fn into_units(self) -> impl Iterator<Item = Unit> {
        self.units.into_iter()
    }

    fn unit(&mut self, pass: Phase, chunk: u64, joined: bool) {
        let count = &mut self.counts[pass as usize][usize::from(chunk > 0)];
        self.units.push(Unit { pass, chunk, microbatch: *count, joined });
        *count += 1;
    }
}
