//! `GPipe`: all forward passes, then all backward passes, so all microbatches are in flight [Huang19].

use super::{Formula, Pace, PipelineSchedule, Shape, Unit};
use crate::units::Time;
use crate::workload::transformer::Training;
use crate::workload::infeasible::Infeasible;
use crate::workload::program::Phase;

/// See the module.
pub struct Gpipe;

impl PipelineSchedule for Gpipe {
    /// A stage has one chunk: all forward passes of several would be another schedule.
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        super::one_chunk(training)
    }

    fn units(&self, _stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>> {
        let of = move |pass| (0..shape.microbatches).map(move |microbatch| Unit { pass, chunk: 0, microbatch, joined: false });
        Box::new(of(Phase::Forward).chain(of(Phase::Backward)))
    }

    /// All of them.
    fn in_flight(&self, _stage: u64, _chunk: u64, shape: &Shape) -> u64 {
        shape.microbatches
    }

    fn formula(&self) -> Option<&dyn Formula> {
        Some(self)
    }

    fn summary(&self) -> &'static str {
        "all forward passes, then all backward passes: all microbatches in flight [Huang19]"
    }

    fn example(&self) -> &'static str {
        "4 stages of 3 ms, 8 microbatches: the same bubble of 9 ms, and 8 microbatches in flight in place of 4"
    }
}

impl Formula for Gpipe {
    /// The first microbatch goes through all stages, the others follow at the pace of the slowest, there as well as back:
    ///
    /// ```text
    /// sum(F) + sum(B) + (m - 1) (max F + max B) - m max(F + B)                       [Huang19]
    /// ```
    ///
    /// Even stages have the bubble of 1F1B. Worked: p = 4, F + B = 3 ms: 9 ms, however many microbatches there are.
    fn bubble(&self, pace: &Pace, shape: &Shape) -> Time {
        let all = pace.sum().there_and_back() + pace.most().there_and_back() * (shape.microbatches - 1);
        all.saturating_sub(pace.working() * shape.microbatches)
    }
}
