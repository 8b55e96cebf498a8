//! 1F1B: forward passes to warm up, then one forward and one backward in turns; interleaved if a stage has several chunks [Narayanan21].

use super::{Formula, Pace, PipelineSchedule, Shape, Standing, Unit};
use crate::units::{Time, real};
use crate::workload::transformer::Training;
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::program::Phase;

/// See the module.
pub struct OneFOneB;

/// So many stages are few: messages hold them up.
const FEW: u64 = 8;

impl PipelineSchedule for OneFOneB {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let (plan, microbatches) = (&training.plan, training.num_microbatches());
        if plan.vpp > 1 && !microbatches.is_multiple_of(plan.pp) {
            return Err(Infeasible::new(Reason::MicrobatchesPerStage, real(microbatches), real(plan.pp)));
        }
        Ok(())
    }

    /// Warm-up forward passes, then one forward and one backward in turns, then what is left backward. With v chunks a stage runs
    /// p microbatches through each chunk in turn, and warms up with 2 (p - s - 1) + (v - 1) p passes [Narayanan21].
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>> {
        let Shape { stages, chunks, microbatches } = shape;
        let all = microbatches * chunks;
        let warm_up = warm_up(stage, &shape);
        let unit = move |pass: Phase, k: u64| {
            let chunk = k / stages % chunks;
            let chunk = if pass == Phase::Backward { chunks - 1 - chunk } else { chunk };
            let microbatch = if chunks == 1 { k } else { k / (stages * chunks) * stages + k % stages };
            Unit { pass, chunk: if chunks == 1 { 0 } else { chunk }, microbatch, joined: false }
        };
        let forward = move |k| unit(Phase::Forward, k);
        let backward = move |k| unit(Phase::Backward, k);
        let steady = (0..all - warm_up).flat_map(move |k| [forward(warm_up + k), backward(k)]);
        Box::new((0..warm_up).map(forward).chain(steady).chain((all - warm_up..all).map(backward)))
    }

    /// The warm-up and the forward pass behind it, of which p go through each chunk in turn:
    ///
    /// ```text
    /// 1F1B         min(m, p - s)                                                    [Narayanan21]
    /// interleaved  of the first min(m v, (v - 1) p + 2 (p - s - 1) + 1) passes those of the chunk
    /// ```
    ///
    /// The first stage (s = 0) of an interleaved pipeline then holds L (1 + (p - 1) / (p v)) layers [Korthikanti22]. Worked: p = 4,
    /// v = 2, m = 8: 11 passes, 7 of the first chunk and 4 of the second.
    fn in_flight(&self, stage: u64, chunk: u64, shape: &Shape) -> u64 {
        let Shape { stages, chunks, microbatches } = *shape;
        let passes = (warm_up(stage, shape) + 1).min(microbatches * chunks);
        if chunks == 1 {
            return passes;
        }
        let round = stages * chunks;
        passes / round * stages + (passes % round).saturating_sub(chunk * stages).min(stages)
    }

    fn formula(&self) -> Option<&dyn Formula> {
        Some(self)
    }

    fn summary(&self) -> &'static str {
        "forward passes to warm up, then forward and backward in turns; with vpp chunks interleaved [Narayanan21]"
    }

    fn example(&self) -> &'static str {
        "4 stages of 3 ms, 8 microbatches: 24 ms and a bubble of 9 ms; interleaved with `vpp: 3` of 3 ms"
    }
}

impl Formula for OneFOneB {
    /// The first microbatch goes through all stages, the others follow at the pace of the slowest:
    ///
    /// ```text
    /// sum(F + B) - max(F + B), of one chunk each                                 [Narayanan21]
    /// ```
    ///
    /// These are the first chunks of the stages before the slowest, and the last of those behind it. Worked: p = 4, v = 1,
    /// F + B = 3 ms: 9 ms. Where a stage has one chunk and stages are uneven, passes ahead fill part of it (`in_a_row`).
    ///
    /// Interleaved, p microbatches go round all stages in the warm-up before a stage can begin its next chunk with the first of them, and in
    /// the end as many go back. Messages beside the computation are on that way, and what the first stage has beside its layers is there
    /// for each of these microbatches, but for what hides beneath a message; while others come, it is where that stage would wait:
    ///
    /// ```text
    /// 2 p (v - 1) messages                     p = 8, v = 5, 3.95 ms each: 253 ms
    /// min(m, p) E - m E                        p = 4, m = 8, E = 0.1 ms on the first stage alone: 0.4 ms longer, 0.8 of them its own
    /// ```
    fn bubble(&self, pace: &Pace, shape: &Shape) -> Time {
        let Shape { stages, chunks, microbatches } = *shape;
        if chunks == 1 {
            return in_a_row(pace, shape);
        }
        let message = pace.message(shape);
        let rounds = message * (2 * stages * (chunks - 1));
        let begin: Time = pace.begin().into_iter().map(|begin| begin.saturating_sub(message)).sum();
        let all = pace.idle(shape) + rounds + begin * microbatches.min(stages);
        all.saturating_sub(pace.slower() * microbatches)
    }

    /// Not for a few microbatches whose way back is shorter than that there, or where the first stage has hardly layers. Not for
    /// interleaved stages if their chunks are uneven, if a message is not short beside a unit, as it may hold up the next (among
    /// many stages it does so less), or if
    /// what the first stage has beside its layers is not short beside the step, or makes it alone so slow that it hardly waits; nor if late
    /// traffic is, as stages wait for each other's.
    fn holds(&self, pace: &Pace, shape: &Shape, left: Time) -> bool {
        if shape.chunks == 1 {
            let begin = pace.begin()[0] + pace.begin()[1];
            let is_long = pace.most().forward <= pace.most().backward && begin * 2 <= pace.working();
            return shape.microbatches >= shape.stages || is_long;
        }
        // Once at most it is beneath what the last stage has beside its own.
        let is_light = pace.begin()[0].max(pace.begin()[1]) * 200 <= pace.working() * shape.microbatches;
        is_light
            && left * 10 <= pace.working() * shape.microbatches
            && pace.slower() * (3 * shape.microbatches) <= pace.idle(shape)
            && pace.is_even()
            && pace.longest() * if shape.stages > FEW { 4 } else { 10 } <= pace.unit()
    }
}

/// How much longer the step is than the passes of the slowest of stages of one chunk each: the longest way through any stage k,
///
/// ```text
/// T(k) = m (F + B) + max(0, there - w F) + max(0, there min(w, n) / n - w B) + before
/// ```
///
/// n = p - 1 - k stages behind it, w = min(m - 1, n) forward passes ahead; `there` is F + B of the stages behind it, `before` that of the
/// stages before it. What a stage waits for before its first backward pass, and before its last; and the way to it and back. It is exact
/// if m >= p: the walk says so. Worked: p = 4, m = 8, F = 1, B = 2: k = 0 gives 24 + (9 - 3) + (9 - 6) + 0 = 33.
fn in_a_row(pace: &Pace, shape: &Shape) -> Time {
    let longest = pace.standings().map(|Standing { stage, before, own }| {
        let behind = shape.stages - 1 - stage;
        let ahead = (shape.microbatches - 1).min(behind);
        let there = pace.sum().there_and_back().saturating_sub(before.there_and_back() + own.there_and_back());
        let begin = there.saturating_sub(own.forward * ahead);
        let last = (there * ahead / behind.max(1)).saturating_sub(own.backward * ahead);
        own.there_and_back() * shape.microbatches + begin + last + before.there_and_back()
    });
    let longest = longest.into_iter().max().unwrap_or(Time::ZERO);
    longest.saturating_sub(pace.working() * shape.microbatches)
}

/// Forward passes before the first backward pass follows one.
fn warm_up(stage: u64, shape: &Shape) -> u64 {
    let ahead = shape.stages - stage - 1;
    let passes = if shape.chunks == 1 { ahead } else { 2 * ahead + (shape.chunks - 1) * shape.stages };
    passes.min(shape.microbatches * shape.chunks)
}

#[cfg(test)]
mod tests {
    use super::super::{Passage, Parts};
    use super::*;

    /// At most so many passes of some chunks are between their forward and their backward unit.
    fn most(stage: u64, shape: Shape, counts: impl Fn(u64) -> bool) -> u64 {
        let mut open = 0_u64;
        let count = |unit: Unit| {
            open = if unit.pass == Phase::Forward { open + 1 } else { open - 1 };
            open
        };
        OneFOneB.units(stage, shape).filter(|unit| counts(unit.chunk)).map(count).max().unwrap_or(0)
    }

    #[test]
    fn microbatches_in_flight_are_those_of_the_units() {
        for (stages, chunks, microbatches) in [(4, 1, 8), (4, 1, 2), (4, 2, 8), (4, 3, 4), (2, 4, 2), (1, 1, 3)] {
            let shape = Shape { stages, chunks, microbatches };
            for stage in 0..stages {
                let formula: Vec<u64> = (0..chunks).map(|chunk| OneFOneB.in_flight(stage, chunk, &shape)).collect();
                assert_eq!(formula.iter().sum::<u64>(), most(stage, shape, |_| true), "{shape:?} {stage}");
                for (chunk, &formula) in (0..).zip(&formula) {
                    assert!(formula <= most(stage, shape, |other| other == chunk), "{shape:?} {stage} {chunk}");
                }
            }
        }
        let shape = Shape { stages: 4, chunks: 2, microbatches: 8 };
        assert_eq!([0, 1].map(|chunk| OneFOneB.in_flight(0, chunk, &shape)), [7, 4]);
    }

    #[test]
    fn even_stages_wait_for_p_minus_1_passes() {
        let pass = Time::picoseconds(3_000_000_000);
        let bubble = |chunks: u64| {
            let shape = Shape { stages: 4, chunks, microbatches: 8 };
            let layers = pass / chunks;
            let parts = Parts { forward: pass / 3, backward: pass / 3 * 2, weights: Time::ZERO };
            let passage = Passage { whole: pass, first_layers: layers, last_layers: layers, parts, ..Passage::default() };
            let mut pace = Pace::default();
            for (stage, stages) in [(0, 1), (1, 2), (3, 1)] {
                pace.add(passage, stage, stages);
            }
            OneFOneB.bubble(&pace, &shape)
        };
        assert_eq!([1, 3].map(bubble), [pass * 3, pass]);
    }
}
