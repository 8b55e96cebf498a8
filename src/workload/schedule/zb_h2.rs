//! ZB-H2: as ZB-H1 with twice the warm-up, so that a stage waits for no backward pass: twice the activations in flight [Qi23].

use super::{Formula, PipelineSchedule, Row, Shape, Unit};
use crate::workload::transformer::Training;
use crate::workload::infeasible::Infeasible;

/// See the module.
pub struct ZbH2;

/// Twice the warm-up of 1F1B.
const ROW: Row = Row(2);

impl PipelineSchedule for ZbH2 {
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

    /// Twice the forward passes of 1F1B to warm up, then forward and backward in turns; stage s makes the weights' gradients of a
    /// microbatch 2 s backward passes later.
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>> {
        Box::new(ROW.units(stage, shape))
    }

    /// On every stage:
    ///
    /// ```text
    /// min(m, 2 p - 1)                                                                  [Qi23]
    /// ```
    fn in_flight(&self, _stage: u64, _chunk: u64, shape: &Shape) -> u64 {
        ROW.in_flight(shape)
    }

    /// The bubble of even stages:
    ///
    /// ```text
    /// (p - 1) (F + B - 2 W)                       if W <= F and m >= 2 p - 1           [Qi23]
    /// ```
    ///
    /// none if that is negative. Worked: p = 4, F = B = 1 ms, W = 0.8 ms: 1.2 ms.
    fn formula(&self) -> Option<&dyn Formula> {
        None
    }

    fn summary(&self) -> &'static str {
        "ZB-H1 with twice the warm-up, so that hardly any bubble is left; 2 p - 1 microbatches in flight [Qi23]"
    }

    fn example(&self) -> &'static str {
        "4 stages of 1 ms forward, 1 back and 0.8 for weights' gradients, 8 microbatches: a bubble of 1.2 ms, 7 in flight"
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bubble, in_flight, ms, order};
    use super::super::Schedule;
    use super::super::zb_h1::ZbH1;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_left_is_what_weights_gradients_do_not_fill() {
        let shape = Shape { stages: 4, chunks: 1, microbatches: 8 };
        let bubble = |parts| bubble(Schedule::ZbH2, parts, shape);
        assert_eq!([[1.0, 1.0, 0.8], [1.0, 1.0, 1.0]].map(bubble), [1.2, 0.0].map(ms));
        assert_eq!(order(Schedule::ZbH2, 2, shape), {
            "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 W0 F7 B5 W1 B6 W2 B7 W3 W4 W5 W6 W7"
        });
    }

    #[test]
    fn microbatches_in_flight_are_those_of_the_units() {
        for (stages, microbatches) in [(1, 3), (2, 8), (4, 8), (4, 2), (8, 8)] {
            in_flight(Schedule::ZbH2, Shape { stages, chunks: 1, microbatches });
        }
    }

    proptest! {
        #[test]
        fn it_never_waits_longer_than_h1_and_never_holds_less(
            parts in [0.1..3.0, 0.1..3.0, 0.1..3.0_f64], stages in 2_u64..17, more in 0_u64..40,
        ) {
            // With fewer it runs out of forward passes.
            let shape = Shape { stages, chunks: 1, microbatches: 2 * stages - 1 + more };
            prop_assert!(bubble(Schedule::ZbH2, parts, shape) <= bubble(Schedule::ZbH1, parts, shape) + ms(1e-6));
            for stage in 0..stages {
                prop_assert!(ZbH2.in_flight(stage, 0, &shape) >= ZbH1.in_flight(stage, 0, &shape));
            }
        }
    }
}
