//! ZB-H1: 1F1B whose weights' gradients are made later, where a stage would wait; as many microbatches in flight [Qi23].

use super::{Formula, PipelineSchedule, Row, Shape, Unit};
use crate::workload::transformer::Training;
use crate::workload::infeasible::Infeasible;

/// See the module.
pub struct ZbH1;

/// Warm-up as that of 1F1B.
const ROW: Row = Row(1);

impl PipelineSchedule for ZbH1 {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        super::one_chunk(training)?;
        super::keeps_inputs(training)
    }

    fn splits(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    /// Forward passes to warm up as 1F1B has them, then forward and backward in turns; stage s makes the weights' gradients of a
    /// microbatch s backward passes later.
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>> {
        Box::new(ROW.units(stage, shape))
    }

    /// On every stage as many as on the first stage of 1F1B, as what weights' gradients are made of waits for them:
    ///
    /// ```text
    /// min(m, p)                                                                        [Qi23]
    /// ```
    fn in_flight(&self, _stage: u64, _chunk: u64, shape: &Shape) -> u64 {
        ROW.in_flight(shape)
    }

    /// The bubble of even stages, of passes F and B and of W for the weights' gradients:
    ///
    /// ```text
    /// (p - 1) (F + B - W)                         if W <= F and m >= p                 [Qi23]
    /// ```
    ///
    /// in general (p - 1) (F + B) - (min(m, p) - 1) min(F, W). Worked: p = 4, F = B = W = 1 ms: 3 ms, where
    /// 1F1B waits for 9.
    fn formula(&self) -> Option<&dyn Formula> {
        None
    }

    fn summary(&self) -> &'static str {
        "1F1B with weights' gradients apart, made where a stage would wait; no more in flight than its first stage has [Qi23]"
    }

    fn example(&self) -> &'static str {
        "4 stages of 1 ms forward, 1 back and 1 for weights' gradients, 8 microbatches: a bubble of 3 ms in place of 9, 4 in flight"
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bubble, in_flight, ms, order};
    use super::super::Schedule;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_third_of_the_bubble_of_1f1b_is_left_where_all_passes_are_equal() {
        let shape = Shape { stages: 4, chunks: 1, microbatches: 8 };
        assert_eq!(bubble(Schedule::ZbH1, [1.0, 1.0, 1.0], shape), ms(3.0));
        assert_eq!(order(Schedule::ZbH1, 0, shape), "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7");
        assert_eq!(order(Schedule::ZbH1, 3, Shape { microbatches: 4, ..shape }), "F0 B0 F1 B1 F2 B2 F3 B3 W0 W1 W2 W3");
    }

    #[test]
    fn microbatches_in_flight_are_those_of_the_units() {
        for (stages, microbatches) in [(1, 3), (2, 8), (4, 8), (4, 2), (8, 8)] {
            in_flight(Schedule::ZbH1, Shape { stages, chunks: 1, microbatches });
        }
    }

    proptest! {
        #[test]
        fn it_never_waits_longer_than_1f1b(
            parts in [0.1..3.0, 0.1..3.0, 0.1..3.0_f64], stages in 2_u64..17, microbatches in 1_u64..40,
        ) {
            let shape = Shape { stages, chunks: 1, microbatches };
            let [forward, backward, weights] = parts;
            let straight = bubble(Schedule::OneFOneB, [forward, backward + weights, 0.0], shape);
            prop_assert!(bubble(Schedule::ZbH1, parts, shape) <= straight + ms(1e-6));
        }
    }
}
