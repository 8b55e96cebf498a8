//! Schedules: in which order a pipeline stage runs the passes of its microbatches, and what that costs.

mod order;
mod pace;
pub mod route;
mod row;
mod walk;

pub use order::Order;
pub use pace::{Pace, Parts, Passage, Standing};
pub use route::Route;
pub use row::Row;
pub use walk::{Hiding, StageTimes, Walk, Walked};

use super::infeasible::{Infeasible, Reason};
use super::program::Phase;
use super::recompute::Part;
use super::transformer::Training;
use crate::registry::registry;
use crate::units::{Time, real};

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
    /// Forward, backward, or for the weights' gradients.
    pub pass: Phase,
    /// Which chunk of the stage.
    pub chunk: u64,
    /// Which microbatch.
    pub microbatch: u64,
    /// Whether it runs as one with the unit behind it: both wait for what comes to either, and send when both are done.
    pub joined: bool,
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

    /// Whether a backward pass is in two halves: the gradients of activations, which the stage before waits for, and those of
    /// weights, which nobody does.
    fn splits(&self) -> bool {
        false
    }

    /// Whether a stage begins the next step when it is done with this one, whatever other stages do: the norm of all gradients
    /// is looked at behind the update, which is undone where it must be (post-validation) [Qi23]. A step then takes as long
    /// as the stage that is longest from its own first pass on.
    fn is_open(&self) -> bool {
        false
    }

    /// The way of microbatches through the stages.
    fn route(&self) -> Route {
        Route::Round
    }

    /// The units of a stage in their order.
    fn units(&self, stage: u64, shape: Shape) -> Box<dyn Iterator<Item = Unit>>;

    /// Of how many microbatches a stage holds the activations of one of its chunks, at the peak.
    fn in_flight(&self, stage: u64, chunk: u64, shape: &Shape) -> u64;

    /// How long a stage waits, by formula; none if its units are to be walked one by one ([`Walk`]).
    fn formula(&self) -> Option<&dyn Formula>;

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;

    /// What it comes to in a small case, worked out by hand.
    fn example(&self) -> &'static str;
}

/// How long stages wait in a schedule, without a look at each unit.
pub trait Formula {
    /// How long the slowest stage waits for microbatches in a step.
    fn bubble(&self, pace: &Pace, shape: &Shape) -> Time;

    /// Whether that holds, if a stage waits so long for data-parallel traffic once a step.
    fn holds(&self, _pace: &Pace, _shape: &Shape, _left: Time) -> bool {
        true
    }

    /// How many passes of its other chunks a stage runs before the one whose weights are needed first is needed again, and behind the
    /// last of one whose gradients are made first. Here there are p microbatches of each chunk at a time [Narayanan21].
    fn lead(&self, shape: &Shape) -> u64 {
        (shape.chunks - 1) * shape.stages
    }
}

registry! {
    /// The schedules; the first holds where nothing is said.
    pub enum Schedule: PipelineSchedule {
        one_f_one_b::OneFOneB as "1f1b",
        gpipe::Gpipe,
        zb_h1::ZbH1,
        zb_h2::ZbH2,
        zb_v::ZbV,
        dualpipe::DualPipe,
    }
}

#[expect(clippy::derivable_impls, reason = "the enum is written by the macro")]
impl Default for Schedule {
    fn default() -> Self {
        Self::OneFOneB
    }
}

/// Whether a stage has one chunk: several would be another schedule.
fn one_chunk(training: &Training) -> Result<(), Infeasible> {
    let vpp = training.plan.vpp;
    if vpp == 1 { Ok(()) } else { Err(Infeasible::new(Reason::ScheduleChunks, real(vpp), 1.0)) }
}

/// Whether there are so many microbatches, which a stage runs before it waits for any.
fn at_least(training: &Training, microbatches: u64) -> Result<(), Infeasible> {
    let there = training.num_microbatches();
    if there >= microbatches {
        return Ok(());
    }
    Err(Infeasible::new(Reason::MicrobatchesAhead, real(microbatches), real(there)))
}

/// Whether the inputs of all linear layers are kept: what the backward pass computes again of them would have to stay until their
/// weights' gradients are made.
fn keeps_inputs(training: &Training) -> Result<(), Infeasible> {
    let mut parts = training.plan.recompute.parts();
    if parts.all(|part| part == Part::CoreAttention) {
        return Ok(());
    }
    Err(Infeasible::new(Reason::RecomputedInputs, 1.0, 0.0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// So many milliseconds.
    pub fn ms(time: f64) -> Time {
        crate::units::Delay::seconds(time * 1e-3).round()
    }

    /// How long stages wait of which each chunk takes so many milliseconds forward, back and for the weights' gradients; as walked.
    pub fn bubble(schedule: Schedule, parts: [f64; 3], shape: Shape) -> Time {
        let units = parts.map(|part| [ms(part); 3]);
        let times = StageTimes { units, ..StageTimes::default() };
        let mut walked = Walked::default();
        Walk::of(schedule, &shape).go(&[(shape.stages, times)], false, shape.microbatches, 0, &mut walked);
        let total = walked.total(&[Time::ZERO]);
        let work: Time = parts.map(ms).into_iter().sum();
        total.saturating_sub(work * shape.chunks * shape.microbatches)
    }

    /// The units of a stage in words: forward F, back B, weights' gradients W, in small letters for the second chunk.
    pub fn order(schedule: Schedule, stage: u64, shape: Shape) -> String {
        let mut text = String::new();
        for Unit { pass, chunk, microbatch, joined } in schedule.part().units(stage, shape) {
            let letter = ["F", "B", "W", ""][pass as usize];
            let letter = if chunk > 0 { letter.to_lowercase() } else { letter.to_owned() };
            text.extend([letter.as_str(), microbatch.to_string().as_str(), if joined { "+" } else { " " }]);
        }
        text.trim_end().to_owned()
    }

    /// Every unit is there once, behind those that it needs on its stage; and in flight are as many as the schedule says: of all
    /// chunks together exactly so many at the peak.
    pub fn in_flight(schedule: Schedule, shape: Shape) {
        let part = schedule.part();
        for stage in 0..shape.stages {
            let most = |counts: &dyn Fn(u64) -> bool| {
                let (mut open, mut peak) = (0_u64, 0_u64);
                let mut done: Vec<(Phase, u64, u64)> = Vec::new();
                for Unit { pass, chunk, microbatch, .. } in part.units(stage, shape) {
                    let needs = [Phase::Forward, Phase::Backward].into_iter().filter(|&needed| needed < pass);
                    for needed in needs {
                        assert!(done.contains(&(needed, chunk, microbatch)), "{schedule:?} {shape:?} {stage}");
                    }
                    assert!(!done.contains(&(pass, chunk, microbatch)), "{schedule:?} {shape:?} {stage}");
                    done.push((pass, chunk, microbatch));
                    match pass {
                        Phase::Forward if counts(chunk) => open += 1,
                        Phase::Weights if counts(chunk) => open -= 1,
                        _ => {}
                    }
                    peak = peak.max(open);
                }
                assert_eq!(done.len() as u64, 3 * shape.chunks * shape.microbatches);
                peak
            };
            let formula: Vec<u64> = (0..shape.chunks).map(|chunk| part.in_flight(stage, chunk, &shape)).collect();
            assert_eq!(formula.iter().sum::<u64>(), most(&|_| true), "{schedule:?} {shape:?} {stage}");
            for (chunk, &formula) in (0..).zip(&formula) {
                assert!(formula <= most(&|other| other == chunk), "{schedule:?} {shape:?} {stage} {chunk}");
            }
        }
    }
}
