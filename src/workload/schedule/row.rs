//! A row of stages whose backward passes are in two halves: what ZB-H1 and ZB-H2 have in common [Qi23].

use super::{Shape, Unit};
use crate::workload::program::Phase;

/// An order of stages in a row, by how many times the warm-up of 1F1B a stage has.
#[derive(Debug, Clone, Copy)]
pub struct Row(pub u64);

impl Row {
    /// Forward passes to warm up, a (p - 1 - s) of them on stage s, then forward and backward in turns; weights' gradients a s
    /// backward passes later, so that those of the last stages are left for the time in which first stages still go back.
    pub fn units(self, stage: u64, shape: Shape) -> impl Iterator<Item = Unit> {
        let microbatches = shape.microbatches;
        let warm_up = (self.0 * (shape.stages - stage - 1)).min(microbatches);
        let late = self.0 * stage;
        let of = |pass| move |microbatch| Unit { pass, chunk: 0, microbatch, joined: false };
        let [forward, backward, weights] = [of(Phase::Forward), of(Phase::Backward), of(Phase::Weights)];
        let turns = (0..microbatches).flat_map(move |k| {
            let ahead = Some(warm_up + k).filter(|&ahead| ahead < microbatches);
            [ahead.map(forward), Some(backward(k)), k.checked_sub(late).map(weights)].into_iter().flatten()
        });
        (0..warm_up).map(forward).chain(turns).chain((microbatches.saturating_sub(late)..microbatches).map(weights))
    }

    /// Microbatches between their forward pass and their weights' gradients, on every stage: a (p - 1) + 1 at most.
    #[must_use]
    pub fn in_flight(self, shape: &Shape) -> u64 {
        (self.0 * (shape.stages - 1) + 1).min(shape.microbatches)
    }
}
