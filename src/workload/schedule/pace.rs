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

    /// The more of each.
    fn max(self, other: Self) -> Self {
        Self {
            forward: self.forward.max(other.forward),
            backward: self.backward.max(other.backward),
            weights: self.weights.max(other.weights),
        }
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
    /// Through what is no layer, messages that are not beside the computation too.
    pub others: Time,
    /// What is neither a layer nor a message, there and back.
    pub ends: [Time; 2],
    /// Back through the layers of its first chunk, and through what is no layer.
    pub back: [Time; 2],
    /// All of it by passes, without messages that run beside the computation.
    pub parts: Parts,
    /// These messages.
    pub messages: Time,
    /// The longest message, beside the computation or not.
    pub longest: Time,
}

impl Passage {
    /// Adds a block that takes so long once, and a message so long beside it; whether it is a message itself. What is done once a step
    /// does not count.
    pub fn add(&mut self, once: Time, message: Time, block: &Block, is_message: bool) {
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
        if is_message {
            self.longest = self.longest.max(once);
        } else if block.layers.is_none() {
            self.ends[usize::from(block.phase != Phase::Forward)] += once * block.repeat;
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
    slowest: Time,
    /// The most that a pass takes on any stage.
    most: Parts,
    /// Layers of the slowest chunk, first or last of its stage, and of the fastest.
    chunks: Option<[Time; 2]>,
    /// The longest message.
    longest: Time,
    /// The shorter of the passes through the layers of a chunk.
    unit: Option<Time>,
    /// What the first stage has beside layers and messages, there and back, and what the slowest takes without that.
    begin: [Time; 2],
    behind: Time,
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
    /// Adds `stages` like the one with this number; in their order.
    pub fn add(&mut self, passage: Passage, stage: u64, stages: u64) {
        let Passage { whole, first_layers, last_layers, others, ends, back, parts, messages, longest } = passage;
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
        self.most = self.most.max(parts);
        if stage == 0 {
            (self.standings[0], self.begin) = (standing, ends);
        }
        self.standings[3] = last;
        self.behind = self.behind.max(if stage == 0 { whole.saturating_sub(ends[0] + ends[1]) } else { whole });
        self.longest = self.longest.max(longest);
        let unit = back[0].min(first_layers.saturating_sub(back[0]));
        self.unit = Some(self.unit.map_or(unit, |known| known.min(unit)));
        let [most, least] = self.chunks.unwrap_or([first_layers; 2]);
        self.chunks = Some([most.max(first_layers).max(last_layers), least.min(first_layers).min(last_layers)]);
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

    /// What a microbatch takes through all stages so far, by passes.
    #[must_use]
    pub const fn sum(&self) -> Parts {
        self.parts
    }

    /// The most that a pass takes on any stage.
    #[must_use]
    pub const fn most(&self) -> Parts {
        self.most
    }

    /// What the slowest stage takes, without messages beside it.
    #[must_use]
    pub fn working(&self) -> Time {
        self.standings[1].own.all()
    }

    /// The longest message, beside the computation or not.
    #[must_use]
    pub const fn longest(&self) -> Time {
        self.longest
    }

    /// The shorter of the passes through the layers of a chunk, of any stage.
    #[must_use]
    pub fn unit(&self) -> Time {
        self.unit.unwrap_or_default()
    }

    /// Whether chunks are even: their layers differ by no more than half a percent of what a stage takes.
    #[must_use]
    pub fn is_even(&self) -> bool {
        let [most, least] = self.chunks.unwrap_or_default();
        most.saturating_sub(least) * 200 <= self.slowest
    }

    /// What the first stage has beside layers and messages, there and back.
    #[must_use]
    pub const fn begin(&self) -> [Time; 2] {
        self.begin
    }

    /// How much slower than all others that makes it.
    #[must_use]
    pub fn slower(&self) -> Time {
        self.slowest.saturating_sub(self.behind)
    }

    /// A message beside the computation: each of the p v - 1 there and as many back is sent once.
    #[must_use]
    pub fn message(&self, shape: &Shape) -> Time {
        self.messages / (2 * (shape.stages * shape.chunks).saturating_sub(1)).max(1)
    }
}
