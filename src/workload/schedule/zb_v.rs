//! ZB-V: two chunks a stage in the shape of a V, so that first and last layers are on one stage; no bubble if F = B = W [Qi23].

use super::{Formula, Order, PipelineSchedule, Route, Shape, Unit};
use crate::units::real;
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

    /// Which way through the units is longest depends on what they take. The authors give that of even stages:
    ///
    /// ```text
    /// (p - 1) (B - W)      if F <= B and W <= F, nothing if F = B = W                  [Qi23]
    /// ```
    ///
    /// of both chunks. Worked: p = 4, F = 1, B = 1.3, W = 0.7 ms: 1.8 ms, as the walk has it.
    fn formula(&self) -> Option<&dyn Formula> {
        None
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
    use super::super::tests::{bubble, in_flight, ms, order};
    use super::*;
    use crate::units::Time;
    use proptest::prelude::*;

    #[test]
    fn equal_passes_leave_no_bubble() {
        let shape = Shape { stages: 4, chunks: 2, microbatches: 8 };
        let bubble = |parts| bubble(Schedule::ZbV, parts, shape);
        assert_eq!([[0.5, 0.5, 0.5], [0.5, 0.65, 0.35]].map(bubble), [0.0, 1.8].map(ms));
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
            prop_assert_eq!(bubble(Schedule::ZbV, [pass; 3], shape), Time::ZERO);
        }
    }
}
