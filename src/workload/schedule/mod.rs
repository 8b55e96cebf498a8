//! Schedules: in which order a pipeline stage runs the passes of its microbatches, and what that costs.

use super::Training;
use super::infeasible::Infeasible;
use super::program::Phase;
use crate::registry::registry;
use crate::units::Time;

/// What a pipeline is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pipeline stages, p.
    pub stages: u64,
    /// Model chunks of a stage, v.
    pub chunks: u64,
    /// Microbatches in a step, m.
    pub microbatches: u64,
}

/// A pass of one microbatch through one chunk of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Forward or backward.
    pub pass: Phase,
    /// Which chunk of the stage.
    pub chunk: u64,
    /// Which microbatch.
    pub microbatch: u64,
}

/// How long stages take for one microbatch, there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// The first stage.
    pub first: Time,
    /// The slowest of those between; none in a pipeline of two.
    pub between: Option<Time>,
    /// The last stage.
    pub last: Time,
    /// All stages together.
    pub all: Time,
}

impl Pace {
    /// Adds `stages` like the one with this number, in a pipeline of this shape.
    pub fn add(&mut self, time: Time, stage: u64, stages: u64, shape: &Shape) {
        self.all += time * stages;
        if stage == 0 {
            self.first = time;
        }
        if stage + 1 == shape.stages {
            self.last = time;
        } else if stage > 0 {
            self.between = self.between.max(Some(time));
        }
    }

    /// The slowest stage.
    #[must_use]
    pub fn slowest(&self) -> Time {
        self.first.max(self.last).max(self.between.unwrap_or(Time::ZERO))
    }
}

/// An order of the passes of a stage.
pub trait PipelineSchedule {
    /// Whether it goes together with the rest of a plan.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self, _training: &Training) -> Result<(), Infeasible> {
        Ok(())
    }

    /// The units of a stage in their order.
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>>;

    /// Of how many microbatches a stage holds the activations of one of its chunks, at the peak.
    fn in_flight(&self, stage: u64, chunk: u64, shape: &Shape) -> u64;

    /// How long the slowest stage waits for microbatches in a step.
    fn bubble(&self, pace: &Pace, shape: &Shape) -> Time;

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;

    /// What it comes to in a small case, worked out by hand.
    fn example(&self) -> &'static str;
}

registry! {
    /// The schedules; the first holds where nothing is said.
    pub enum Schedule: PipelineSchedule {
        one_f_one_b::OneFOneB as "1f1b",
        gpipe::Gpipe,
    }
}

#[expect(clippy::derivable_impls, reason = "the enum is written by the macro")]
impl Default for Schedule {
    fn default() -> Self {
        Self::OneFOneB
    }
}
