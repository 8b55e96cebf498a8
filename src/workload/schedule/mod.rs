//! Schedules: in which order a pipeline stage runs the passes of its microbatches, and what that costs.

use super::Training;
use super::infeasible::Infeasible;
use super::program::{Block, Phase};
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

/// How long one microbatch takes through a stage, there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// Through all of it.
    pub whole: Time,
    /// Through the layers of its first chunk.
    pub first_layers: Time,
    /// Through the layers of its last chunk.
    pub last_layers: Time,
    /// Through what is no layer.
    pub others: Time,
    /// Back through the layers of its first chunk, and through what is no layer.
    pub back: [Time; 2],
}

impl Passage {
    /// Adds a block that takes so long once; what is done once a step does not count.
    pub fn add(&mut self, once: Time, block: &Block) {
        if block.phase == Phase::Step {
            return;
        }
        self.whole += once * block.repeat;
        match block.layers {
            Some(layers) => {
                self.first_layers += once * layers.first;
                self.last_layers += once * layers.last;
            }
            None => self.others += once * block.repeat,
        }
        if block.phase == Phase::Backward {
            match block.layers {
                Some(layers) => self.back[0] += once * layers.first,
                None => self.back[1] += once * block.repeat,
            }
        }
    }
}

/// The passages of all stages, and what the slowest of them waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// All stages together.
    pub all: Time,
    /// The first stage.
    pub first: Time,
    /// The slowest of those between; none in a pipeline of two.
    pub between: Option<Time>,
    /// The last stage.
    pub last: Time,
    slowest: Time,
    /// Layers of the first chunk, and what is no layer, of all stages so far.
    sum: [Time; 2],
    /// The way back through these, of all stages so far.
    back: [Time; 2],
    /// What `sum` was of the stages before the slowest, and with the last chunk of those behind it.
    waits: [Time; 2],
}

impl Pace {
    /// Adds `stages` like the one with this number, in a pipeline of this shape; in their order.
    pub fn add(&mut self, passage: Passage, stage: u64, stages: u64, shape: &Shape) {
        let Passage { whole, first_layers, last_layers, others, back } = passage;
        let mut behind = stages;
        if whole > self.slowest {
            (self.slowest, self.waits) = (whole, self.sum);
            behind -= 1;
        }
        self.waits = [self.waits[0] + last_layers * behind, self.waits[1] + others * behind];
        self.sum = [self.sum[0] + first_layers * stages, self.sum[1] + others * stages];
        self.back = [self.back[0] + back[0] * stages, self.back[1] + back[1] * stages];
        self.all += whole * stages;
        if stage == 0 {
            self.first = whole;
        }
        if stage + 1 == shape.stages {
            self.last = whole;
        } else if stage > 0 {
            self.between = self.between.max(Some(whole));
        }
    }

    /// How long the last microbatch goes back through the stages so far, once those behind them are done.
    #[must_use]
    pub fn drain(&self, shape: &Shape) -> Time {
        let [layers, others] = self.back;
        layers + others / shape.chunks
    }

    /// How long the slowest stage waits for the first microbatch: through the first chunk of the stages before it and through the
    /// last of those behind it, there and back. What is no layer is spread over the v chunks.
    #[must_use]
    pub fn idle(&self, shape: &Shape) -> Time {
        let [layers, others] = self.waits;
        layers + others / shape.chunks
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
