//! Pace: how long a microbatch takes through each stage, and what the slowest of them waits for.

use super::Shape;
use crate::units::Time;
use crate::workload::program::{Block, Phase};

/// The parts of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// The forward pass.
    pub forward: Time,
    /// The backward pass; where it is in two halves without the gradients of weights.
    pub backward: Time,
    /// The gradients of weights, where they are made apart.
    pub weights: Time,
}

impl Parts {
    /// Forward and backward.
    #[must_use]
    pub fn there_and_back(self) -> Time {
        self.forward + self.backward
    }

    /// All of it.
    #[must_use]
    pub fn all(self) -> Time {
        self.there_and_back() + self.weights
    }

    /// With another, so many times.
    fn plus(self, other: Self, times: u64) -> Self {
        Self {
            forward: self.forward + other.forward * times,
            backward: self.backward + other.backward * times,
            weights: self.weights + other.weights * times,
        }
    }

    /// Each of them.
    #[must_use]
    pub fn map(self, of: impl Fn(Time) -> Time) -> [Time; 3] {
        [self.forward, self.backward, self.weights].map(of)
    }
}

impl From<[Time; 3]> for Parts {
    fn from([forward, backward, weights]: [Time; 3]) -> Self {
        Self { forward, backward, weights }
    }
}

/// A stage in its pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Its number.
    pub stage: u64,
    /// What a microbatch takes through all stages before it.
    pub before: Parts,
    /// And through this one.
    pub own: Parts,
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
    /// All of it by passes, without messages that run beside the computation.
    pub parts: Parts,
    /// These messages.
    pub messages: Time,
}

impl Passage {
    /// Adds a block that takes so long once, and a message so long beside it; what is done once a step does not count.
    pub fn add(&mut self, once: Time, message: Time, block: &Block) {
        let part = match block.phase {
            Phase::Forward => &mut self.parts.forward,
            Phase::Backward => &mut self.parts.backward,
            Phase::Weights => &mut self.parts.weights,
            Phase::Step => return,
        };
        *part += once * block.repeat;
        self.messages += message * block.repeat;
        let once = once + message;
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
    /// The first stage, the first and the last of the slowest ones, the last.
    standings: [Standing; 4],
    /// Through all stages so far.
    parts: Parts,
    /// Messages beside the computation, of all stages so far.
    messages: Time,
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
        let Passage { whole, first_layers, last_layers, others, back, parts, messages } = passage;
        let mut behind = stages;
        let standing = Standing { stage, before: self.parts, own: parts };
        self.parts = self.parts.plus(parts, stages);
        let last = Standing { stage: stage + stages - 1, before: standing.before.plus(parts, stages - 1), own: parts };
        self.messages += messages * stages;
        if whole > self.slowest {
            (self.standings[1], self.standings[2]) = (standing, last);
            (self.slowest, self.waits) = (whole, self.sum);
            behind -= 1;
        }
        self.waits = [self.waits[0] + last_layers * behind, self.waits[1] + others * behind];
        self.sum = [self.sum[0] + first_layers * stages, self.sum[1] + others * stages];
        self.back = [self.back[0] + back[0] * stages, self.back[1] + back[1] * stages];
        self.all += whole * stages;
        if stage == 0 {
            self.first = whole;
            self.standings[0] = standing;
        }
        self.standings[3] = last;
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

    /// The stages through which the longest way may lead: the first, the first and the last of the slowest, the last.
    #[must_use]
    pub const fn standings(&self) -> [Standing; 4] {
        self.standings
    }

    /// When the last stage so far is done with its passes of a step at best, from the first pass of the first stage on:
    ///
    /// ```text
    /// forward through the stages before it + m (F + B + W)        m = 8 of 1 + 1 + 1 ms on the last of 4: 27 ms
    /// ```
    #[must_use]
    pub fn last_done(&self, microbatches: u64) -> Time {
        let Standing { before, own, .. } = self.standings[3];
        before.forward + own.all() * microbatches
    }

    /// What a microbatch takes through all stages so far, by passes.
    #[must_use]
    pub const fn sum(&self) -> Parts {
        self.parts
    }

    /// What it takes through a stage in the mean.
    #[must_use]
    pub fn mean(&self, shape: &Shape) -> Parts {
        self.parts.map(|time| time / shape.stages).into()
    }

    /// How much more the slowest stage takes than those between the first and the last; in a pipeline of two, than the mean.
    #[must_use]
    pub fn uneven(&self, shape: &Shape) -> Time {
        self.slowest.saturating_sub(self.between.unwrap_or(self.all / shape.stages))
    }

    /// What the slowest stage takes, without messages beside it.
    #[must_use]
    pub fn working(&self) -> Time {
        self.standings[1].own.all()
    }

    /// Messages beside the computation, of one microbatch on all stages.
    #[must_use]
    pub const fn messages(&self) -> Time {
        self.messages
    }
}
