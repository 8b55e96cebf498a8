//! A row of stages whose backward passes are in two halves: what ZB-H1 and ZB-H2 have in common [Qi23].

use super::{Pace, Shape, Standing, Unit};
use crate::units::Time;
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

    /// How much longer the step is than the passes of the slowest stage: the longest way through any stage k,
    ///
    /// ```text
    /// T(k) = m (F + B + W) + max(0, there - w F) + max(0, there min(w, n) / n - w (B + W)) + max(0, before + W0 - (d + 1) W)
    /// ```
    ///
    /// n = p - 1 - k stages behind it, w = min(m - 1, a n) forward passes ahead, d = min(m - 1, a k) weights' gradients late;
    /// `there` is F + B of the stages behind it, `before` that of the stages before it, W0 the first stage's. What a stage waits
    /// for before its first backward pass, and before its last; and how much later the first stage is done than it, as a stage begins the
    /// next step when it is done with this one.
    ///
    /// Worked: p = 4, m = 8, a = 1, F = B = W = 1: k = 0 gives 24 + (6 - 3) + (6 - 6) + 0 = 27.
    #[must_use]
    pub fn bubble(self, pace: &Pace, shape: &Shape) -> Time {
        let most = shape.microbatches.saturating_sub(1);
        let first = pace.standings()[0].own;
        let longest = pace.standings().map(|Standing { stage, before, own }| {
            let behind = shape.stages - 1 - stage;
            let ahead = most.min(self.0 * behind);
            let late = most.min(self.0 * stage);
            let there = pace.sum().there_and_back().saturating_sub(before.there_and_back() + own.there_and_back());
            let begin = there.saturating_sub(own.forward * ahead);
            let back = there * ahead.min(behind) / behind.max(1);
            let last = back.saturating_sub((own.backward + own.weights) * ahead);
            let end = (before.there_and_back() + first.weights).saturating_sub(own.weights * (late + 1));
            own.all() * shape.microbatches + begin + last + end
        });
        let longest = longest.into_iter().max().unwrap_or(Time::ZERO);
        longest.saturating_sub(pace.working() * shape.microbatches)
    }

    /// How much earlier than the first stage the next one is done with the passes of a step, both from their first pass on: what
    /// the stages so far take there and back, less the weights' gradients that it makes meanwhile.
    #[must_use]
    pub fn drain(self, pace: &Pace, _shape: &Shape) -> Time {
        pace.sum().there_and_back().saturating_sub(pace.sum().weights * self.0)
    }
}
