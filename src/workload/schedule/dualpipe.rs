//! `DualPipe`: microbatches from both ends of the pipeline at once, the forward pass of one beside the backward pass of another [DeepSeek24].

use super::{Formula, Order, PipelineSchedule, Route, Shape, Unit};
use crate::units::real;
use crate::workload::transformer::Training;
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::recompute::Part;

/// See the module. A stage holds a part of the model for each way, so weights, gradients and optimizer states are there twice.
pub struct DualPipe;

impl PipelineSchedule for DualPipe {
    /// Stages and microbatches come in pairs, and there are two microbatches a stage.
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        super::one_chunk(training)?;
        let (stages, microbatches) = (training.plan.pp, training.num_microbatches());
        if !stages.is_multiple_of(2) {
            return Err(Infeasible::new(Reason::StagesInPairs, real(stages), 2.0));
        }
        if !microbatches.is_multiple_of(2) {
            return Err(Infeasible::new(Reason::MicrobatchesInPairs, real(microbatches), 2.0));
        }
        super::at_least(training, 2 * stages)?;
        // At the peak no weights' gradients are late: what is computed again of a layer need not stay for them.
        if training.plan.recompute.parts().any(Part::is_level) {
            return Err(Infeasible::new(Reason::RecomputedInputs, 1.0, 0.0));
        }
        Ok(())
    }

    fn splits(&self) -> bool {
        true
    }

    fn route(&self) -> Route {
        Route::BothWays
    }

    /// The eight steps of the authors' program, of a stage that is r away from its end of the pipeline: forward passes of the
    /// nearer end, then of both; backward passes of the other with forward passes that way; pairs of a forward and a backward pass;
    /// and back. Weights' gradients are made at once but for the first backward passes and the second half of the last.
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>> {
        let Shape { stages, microbatches, .. } = shape;
        let from_end = stage.min(stages - 1 - stage);
        let to_middle = stages / 2 - 1 - from_end;
        let mut order = Order::default();
        (0..2 * to_middle).for_each(|_| order.forward(0));
        for _ in 0..=from_end {
            order.forward(0);
            order.forward(1);
        }
        for _ in 0..to_middle {
            order.backward(1);
            order.weights();
            order.forward(1);
        }
        for k in 0..microbatches + from_end + 1 - stages {
            // In the middle the two ways meet: what the first pair would wait for is this stage's own.
            if k == 0 && to_middle == 0 {
                order.forward(0);
                order.whole(1);
            } else {
                order.pair(0);
            }
            order.pair(1);
        }
        for _ in 0..to_middle {
            order.whole(1);
            order.pair(1);
        }
        let half = from_end.div_ceil(2);
        for k in 0..=from_end {
            let is_late = [k >= half, k > half || k == half && from_end % 2 == 1];
            for (chunk, is_late) in [(1, is_late[1]), (0, is_late[0])] {
                if is_late { order.backward(chunk) } else { order.whole(chunk) }
            }
        }
        for _ in 0..to_middle {
            order.weights();
            order.backward(0);
        }
        while order.weights() {}
        Box::new(order.into_units())
    }

    /// p + 1 on every stage, of one that is r away from its end of the pipeline:
    ///
    /// ```text
    /// p - r of those from that end, r + 1 of the others                                [DeepSeek24, table 2]
    /// ```
    fn in_flight(&self, stage: u64, chunk: u64, shape: &Shape) -> u64 {
        let from_end = stage.min(shape.stages - 1 - stage);
        let of_chunk = if chunk == 0 { shape.stages - from_end } else { from_end + 1 };
        of_chunk.min(shape.microbatches)
    }

    /// The bubble of even stages, with q = p / 2 - 1, is that of their units, where the middle stages do not pair their first two:
    ///
    /// ```text
    /// max((q - 1) F + q B, 2 q F) + q max(0, B - W)
    /// q (F&B + Bf - 3 W)   with F&B = F + Bf, Bf = B + W: as much if F = B = W, F more if F < B [DeepSeek24]
    /// ```
    ///
    /// The second is the authors'. Ends and messages change the longest way, so it is walked. Worked: p = 8, F = B = W = 1 ms: 6 ms.
    fn formula(&self) -> Option<&dyn Formula> {
        None
    }

    fn summary(&self) -> &'static str {
        "microbatches from both ends, forward and backward passes in pairs, two copies of the model; `overlap_ep` hides all-to-alls [DeepSeek24]"
    }

    fn example(&self) -> &'static str {
        "8 stages of 1 ms forward, 1 back and 1 for weights' gradients, 16 microbatches: a bubble of 6 ms, 9 in flight, parameters twice"
    }
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::super::tests::{in_flight, ms, order};
    use super::*;
    use crate::units::{Time, real};
    use proptest::prelude::*;

    /// Of a pipeline with so many microbatches both ways together, a chunk of which takes so long.
    fn bubble(parts: [f64; 3], stages: u64, microbatches: u64) -> Time {
        let shape = Shape { stages, chunks: 2, microbatches: microbatches / 2 };
        super::super::tests::bubble(Schedule::DualPipe, parts, shape)
    }

    #[test]
    fn equal_passes_leave_the_bubble_of_the_authors() {
        // (p / 2 - 1) (3 + 2 - 3).
        assert_eq!([2, 4, 8].map(|stages| bubble([1.0; 3], stages, 4 * stages)), [0.0, 2.0, 6.0].map(ms));
        assert_eq!(bubble([1.0, 1.3, 0.7], 8, 32), ms(7.8));
        assert_eq!(order(Schedule::DualPipe, 1, Shape { stages: 2, chunks: 2, microbatches: 2 }), {
            "F0 f0 F1 b0+w0 f1+B0+W0 b1+w1 B1 W1"
        });
    }

    #[test]
    fn microbatches_in_flight_are_those_of_the_units() {
        for (stages, microbatches) in [(2, 2), (4, 4), (4, 9), (8, 16)] {
            in_flight(Schedule::DualPipe, Shape { stages, chunks: 2, microbatches });
        }
    }

    proptest! {
        #[test]
        fn without_weights_gradients_apart_nothing_fills_the_bubble(
            forward in 1_u64..30, backward in 1_u64..30, half in 1_u64..9,
        ) {
            let [forward, backward, q] = [forward, backward, half - 1].map(real);
            let bubble = |weights| bubble([forward, backward, weights], 2 * half, 4 * half);
            // That of the authors, (p / 2 - 1) (F&B + Bf), is not less if F <= B.
            prop_assert!(bubble(0.0) <= ms(q * (forward + 2.0 * backward)).max(ms(q * (2.0 * forward + backward))));
            prop_assert!(bubble(backward) <= bubble(0.0));
        }
    }
}
