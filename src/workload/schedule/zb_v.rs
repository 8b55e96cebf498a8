//! ZB-V: two chunks a stage in the shape of a V, so that first and last layers are on one stage; no bubble if F = B = W [Qi23].

use std::ops::Range;

use super::{Lead, Order, Pace, Parts, PipelineSchedule, Route, Shape, Unit};
use crate::units::{Time, real};
use crate::workload::transformer::Training;
use crate::workload::infeasible::{Infeasible, Reason};

/// See the module.
pub struct ZbV;

impl PipelineSchedule for ZbV {
    /// A stage has two chunks, and there are microbatches for its warm-up.
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let plan = &training.plan;
        if plan.vpp != 2 {
            return Err(Infeasible::new(Reason::ScheduleTwoChunks, real(plan.vpp), 2.0));
        }
        super::at_least(training, 2 * plan.pp - 1)?;
        super::keeps_inputs(training)
    }

    fn splits(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    fn route(&self) -> Route {
        Route::Vee
    }

    /// Stage s warms up with 2 (p - s) - 1 forward passes of the first chunk, s pairs of both chunks and p - s of the second with
    /// their way back. Then forward and backward of both chunks in turns, with weights' gradients at once; at the end s backward
    /// passes of both and p - s of the first, with weights' gradients where they fill.
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>> {
        let Shape { stages, microbatches, .. } = shape;
        let ahead = stages - stage;
        let mut order = Order::default();
        (1..2 * ahead).for_each(|_| order.forward(0));
        for _ in 0..stage {
            order.forward(1);
            order.forward(0);
        }
        let back = |order: &mut Order, chunk: u64| {
            order.backward(chunk);
            order.weights_of(chunk);
        };
        for _ in 0..ahead {
            order.forward(1);
            back(&mut order, 1);
        }
        while order.forwards(1) < microbatches {
            if order.forwards(0) < microbatches {
                order.forward(0);
            }
            back(&mut order, 0);
            order.forward(1);
            back(&mut order, 1);
        }
        for _ in 0..stage {
            order.backward(0);
            order.backward(1);
        }
        for _ in 0..ahead {
            order.backward(0);
            order.weights_of(0);
        }
        while order.weights_of(1) {}
        while order.weights_of(0) {}
        Box::new(order.into_units())
    }

    /// p of both chunks together on every stage, as 2 p of one:
    ///
    /// ```text
    /// 2 p - s - 1 of the first chunk, s + 1 of the second                              [Qi23]
    /// ```
    fn in_flight(&self, stage: u64, chunk: u64, shape: &Shape) -> u64 {
        let of_chunk = if chunk == 0 { 2 * shape.stages - stage - 1 } else { stage + 1 };
        of_chunk.min(shape.microbatches)
    }

    /// What is longest of the ways through the units of even stages that lead from a stage back to it, less what the stage does
    /// meanwhile:
    ///
    /// ```text
    /// (p - 1) (B - W)      if F <= B and W <= F, nothing if F = B = W                  [Qi23]
    /// ```
    ///
    /// and others if not. Messages of both chunks beside the computation are on the way (6 p - 8) times. An end that is slower
    /// than the stages between makes up for all but p microbatches, but for what it waits for itself. Worked: p = 4, F = 1, B = 1.3, W = 0.7 ms: 1.8 ms.
    fn bubble(&self, pace: &Pace, shape: &Shape) -> Time {
        let p = shape.stages;
        if p == 1 {
            return Time::ZERO;
        }
        let [one, two, n] = [p - 1, 2 * p - 2, p - 2];
        let Parts { forward, backward, weights } = pace.mean(shape);
        let way = |plus: [u64; 3], minus: [u64; 3]| {
            let sum = |times: [u64; 3]| forward * times[0] + backward * times[1] + weights * times[2];
            sum(plus).saturating_sub(sum(minus)) / 2
        };
        let ways = [
            way([0, two, 0], [0, 0, two]),
            way([two, 0, 0], [0, one, one]),
            way([0, one, 0], [one, 0, 0]),
            way([two - 1, 1, 0], [0, 0, two]),
            way([two, 0, 0], [0, 0, two + 1]),
            way([0, 1, n], [one, 0, 0]),
            way([0, 0, n], [n, 0, 0]),
            way([n, 0, 0], [0, n, 0]),
        ];
        let longest = ways.into_iter().max().unwrap_or(Time::ZERO);
        // Each of the 2 p - 2 messages there and as many back once.
        let messages = pace.messages() * (3 * p - 4) / two;
        let even = (longest + messages).saturating_sub(pace.uneven(shape) * shape.microbatches.saturating_sub(p));
        // What the first stage waits for itself: the way back through all others.
        let first = pace.standings()[0].own;
        let others = (pace.sum().backward.saturating_sub(first.backward)) * 2;
        even.max(others.saturating_sub(first.backward * one + first.weights * p) / 2)
    }

    /// All stages end what they do at the same time after they began.
    fn drain(&self, _pace: &Pace, _shape: &Shape) -> Time {
        Time::ZERO
    }

    /// The first stage ends with p backward passes of the first chunk and their weights' gradients, stage s with s passes for these.
    fn lead(&self, stages: Range<u64>, shape: &Shape) -> Lead {
        let forward = 2 * (shape.stages - stages.end) + 1;
        if stages.end == 1 {
            return Lead { forward, backward: shape.stages, weights: shape.stages };
        }
        Lead { forward, backward: 0, weights: stages.start.max(1) }
    }

    fn summary(&self) -> &'static str {
        "two chunks a stage (`vpp: 2`), there and back in a V, weights' gradients apart: no bubble if F = B = W, p in flight [Qi23]"
    }

    fn example(&self) -> &'static str {
        "4 stages of 1 ms forward, 1.3 back and 0.7 for weights' gradients in two chunks: a bubble of 1.8 ms, where ZB-H1 has 4.8; 4 in flight"
    }
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::super::tests::{even, in_flight, ms, order};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_passes_leave_no_bubble() {
        let shape = Shape { stages: 4, chunks: 2, microbatches: 8 };
        let bubble = |parts| ZbV.bubble(&even(parts, &shape), &shape);
        assert_eq!([[1.0, 1.0, 1.0], [1.0, 1.3, 0.7]].map(bubble), [0.0, 1.8].map(ms));
        assert_eq!(order(Schedule::ZbV, 1, Shape { stages: 2, microbatches: 4, ..shape }), {
            "F0 f0 F1 f1 b0 w0 F2 B0 W0 f2 b1 w1 F3 B1 W1 f3 b2 w2 B2 b3 B3 W2 w3 W3"
        });
    }

    #[test]
    fn microbatches_in_flight_are_those_of_the_units() {
        for (stages, microbatches) in [(1, 3), (2, 3), (4, 8), (8, 30)] {
            in_flight(Schedule::ZbV, Shape { stages, chunks: 2, microbatches });
        }
    }

    proptest! {
        #[test]
        fn equal_passes_leave_no_bubble_in_any_pipeline(pass in 0.1..10.0_f64, stages in 2_u64..33) {
            let shape = Shape { stages, chunks: 2, microbatches: 2 * stages };
            prop_assert_eq!(ZbV.bubble(&even([pass; 3], &shape), &shape), Time::ZERO);
        }
    }
}
