//! Routes: through which stages a microbatch goes, and which part of the model each of them holds.

use super::Shape;
use crate::workload::program::Phase;

/// The way of microbatches through the stages of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// From the first stage to the last, once for each chunk [Narayanan21].
    Round,
    /// From the first stage to the last and, through a second chunk of each, back to the first [Qi23].
    Vee,
    /// Half of them from the first stage to the last, half from the last to the first: a stage has a chunk for those that begin
    /// in its half, and a chunk for the others, so there are two copies of the model [DeepSeek24].
    BothWays,
}

impl Route {
    /// What a pipeline is made of, of one with so many chunks in the plan: those that go the two ways are in chunks of their own.
    #[must_use]
    pub const fn shape(self, shape: Shape) -> Shape {
        match self {
            Self::BothWays => Shape { chunks: 2, microbatches: shape.microbatches / 2, ..shape },
            Self::Round | Self::Vee => shape,
        }
    }

    /// The place of a stage's chunk in the model, which is cut into equal parts.
    ///
    /// Worked: of 4 stages the first holds in two chunks parts 0 and 4 of 8, in a vee 0 and 7 of 8, both ways 0 and 3 of 4.
    #[must_use]
    pub fn place(self, stage: u64, chunk: u64, shape: &Shape) -> u64 {
        let last = shape.stages - 1;
        match (self, chunk) {
            (Self::Vee, 1) => 2 * shape.stages - 1 - stage,
            (Self::Round | Self::Vee, _) => chunk * shape.stages + stage,
            (Self::BothWays, 0) => stage.min(last - stage),
            (Self::BothWays, _) => stage.max(last - stage),
        }
    }

    /// Into how many parts the model is cut.
    #[must_use]
    pub const fn parts(self, shape: &Shape) -> u64 {
        match self {
            Self::BothWays => shape.stages,
            Self::Round | Self::Vee => shape.stages * shape.chunks,
        }
    }

    /// Whether the stage as far from the other end holds the same parts.
    #[must_use]
    pub const fn is_mirrored(self) -> bool {
        matches!(self, Self::BothWays)
    }

    /// The stage and chunk behind one in the forward pass; none at the model's end.
    #[must_use]
    pub fn next(self, stage: u64, chunk: u64, shape: &Shape) -> Option<(u64, u64)> {
        let Shape { stages, chunks, .. } = *shape;
        let last = stages - 1;
        match self {
            Self::Round if stage < last => Some((stage + 1, chunk)),
            Self::Round => (chunk + 1 < chunks).then_some((0, chunk + 1)),
            Self::Vee if chunk == 0 => Some(if stage < last { (stage + 1, 0) } else { (stage, 1) }),
            Self::Vee => stage.checked_sub(1).map(|stage| (stage, 1)),
            Self::BothWays => beyond(stage, chunk, stages, true),
        }
    }

    /// The stage and chunk before one in the forward pass; none at the model's beginning.
    #[must_use]
    pub fn previous(self, stage: u64, chunk: u64, shape: &Shape) -> Option<(u64, u64)> {
        let Shape { stages, .. } = *shape;
        let last = stages - 1;
        match self {
            Self::Round if stage > 0 => Some((stage - 1, chunk)),
            Self::Round => chunk.checked_sub(1).map(|chunk| (last, chunk)),
            Self::Vee if chunk == 0 => stage.checked_sub(1).map(|stage| (stage, 0)),
            Self::Vee => Some(if stage < last { (stage + 1, 1) } else { (stage, 0) }),
            Self::BothWays => beyond(stage, chunk, stages, false),
        }
    }

    /// Messages of a stage to others in a pass of one microbatch through each of its chunks.
    #[must_use]
    pub fn messages(self, stage: u64, pass: Phase, shape: &Shape) -> u64 {
        let is_last = stage + 1 == shape.stages;
        let end = if pass == Phase::Forward { is_last } else { stage == 0 };
        match self {
            Self::Round => shape.chunks - u64::from(end),
            // At the turn nothing is sent.
            Self::Vee => 2 - u64::from(stage == 0) - u64::from(is_last),
            Self::BothWays => 2 - u64::from(stage == 0 || is_last),
        }
    }
}

/// The stage and chunk behind one, or before it, of microbatches that go both ways. In the half of the stages where they begin
/// they go through first chunks.
fn beyond(stage: u64, chunk: u64, stages: u64, forward: bool) -> Option<(u64, u64)> {
    let is_low = |stage: u64| stage < stages / 2;
    let upwards = is_low(stage) == (chunk == 0);
    let beyond = if upwards == forward { Some(stage + 1) } else { stage.checked_sub(1) };
    beyond.filter(|&stage| stage < stages).map(|stage| (stage, u64::from(is_low(stage) != upwards)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_goes_through_all_parts_in_their_order() {
        for (route, stages, chunks) in [
            (Route::Round, 4, 1),
            (Route::Round, 3, 2),
            (Route::Vee, 4, 2),
            (Route::Vee, 1, 2),
            (Route::BothWays, 6, 2),
        ] {
            let shape = Shape { stages, chunks, microbatches: 8 };
            let every = || (0..stages).flat_map(|stage| (0..chunks).map(move |chunk| (stage, chunk)));
            for (stage, chunk) in every() {
                let place = route.place(stage, chunk, &shape);
                let next = route.next(stage, chunk, &shape);
                assert_eq!(next.map(|(stage, chunk)| route.place(stage, chunk, &shape)), {
                    (place + 1 < route.parts(&shape)).then_some(place + 1)
                });
                if let Some((behind, of)) = next {
                    assert_eq!(route.previous(behind, of, &shape), Some((stage, chunk)), "{route:?} {stage} {chunk}");
                }
                assert_eq!(route.previous(stage, chunk, &shape).is_none(), place == 0);
            }
            for stage in 0..stages {
                let others = |to: Option<(u64, u64)>| u64::from(to.is_some_and(|to| to.0 != stage));
                let there = (0..chunks).map(|chunk| others(route.next(stage, chunk, &shape))).sum::<u64>();
                let back = (0..chunks).map(|chunk| others(route.previous(stage, chunk, &shape))).sum::<u64>();
                if stages > 1 {
                    let messages = [Phase::Forward, Phase::Backward].map(|pass| route.messages(stage, pass, &shape));
                    assert_eq!(messages, [there, back], "{route:?} {stage}");
                }
            }
        }
    }
}
