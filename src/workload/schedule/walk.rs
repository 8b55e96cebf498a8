//! The walk: the units of all stages one by one, each when what it waits for is there; for what no formula tells.

use super::{Route, Schedule, Shape, Unit};
use crate::units::{Time, index, narrow, small};
use crate::workload::program::Phase;

/// Data-parallel traffic of a step that hides beneath passes: weights, which first passes wait for, or gradients, which last ones make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hiding {
    /// What nothing is beside: of the layer that is due first, or ready last; all of it where nothing hides.
    pub alone: Time,
    /// Where it hides, that of all layers, and how many these are.
    pub beside: Time,
    /// See `beside`.
    pub layers: u64,
    /// How many times as long it takes while passes use its dimensions.
    pub slowed: f64,
}

impl Default for Hiding {
    fn default() -> Self {
        Self { alone: Time::ZERO, beside: Time::ZERO, layers: 1, slowed: 1.0 }
    }
}

impl Hiding {
    /// That of so many layers, while passes use its dimensions.
    fn of(&self, layers: u64) -> Time {
        if self.beside == Time::ZERO {
            return Time::ZERO;
        }
        ((self.beside * layers / self.layers).as_delay() * self.slowed).round()
    }

    /// That of the first chunks of v, up to this one, but for the layer that is alone.
    fn up_to(&self, chunk: u64, chunks: u64) -> Time {
        self.of(self.layers_up_to(chunk, chunks).saturating_sub(1))
    }

    /// That of one chunk of v, but for the layer that is alone.
    fn of_chunk(&self, chunk: u64, chunks: u64) -> Time {
        let before = chunk.checked_sub(1).map_or(0, |before| self.layers_up_to(before, chunks));
        self.of(self.layers_up_to(chunk, chunks).saturating_sub(before.max(1)))
    }

    const fn layers_up_to(&self, chunk: u64, chunks: u64) -> u64 {
        self.layers * (chunk + 1) / chunks
    }
}

/// What the units of a stage take, and what it does once a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StageTimes {
    /// A unit of each pass through the first chunk, one of those between, and the last; without messages to other stages.
    pub units: [[Time; 3]; 3],
    /// A message to another stage.
    pub message: Time,
    /// What the stage does before a message that is not beside the computation.
    pub latency: Time,
    /// Weights that first passes wait for.
    pub weights: Hiding,
    /// Gradients that last passes make.
    pub gradients: Hiding,
    /// From the start of a unit of the first chunk to where the first of its layers has its gradients.
    pub first_made: Time,
    /// Whether the end of its step begins when the stage as far from the other end of the pipeline is there too.
    pub meets: bool,
}

impl StageTimes {
    /// The place of a chunk of v among [`Self::units`].
    #[must_use]
    pub const fn place(chunk: u64, chunks: u64) -> usize {
        if chunk == 0 {
            0
        } else if chunk + 1 < chunks {
            1
        } else {
            2
        }
    }
}

/// What came of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// When the last stage of each kind is done with its passes and gradients, from its own first pass on in an open schedule.
    pub done: Vec<Time>,
    /// Data-parallel traffic that a stage of the asked kind waits for.
    pub exposed: Time,
}

impl Walked {
    /// The whole step, where the end of a step takes so long on stages of each kind.
    #[must_use]
    pub fn total(&self, ends: &[Time]) -> Time {
        self.done.iter().zip(ends).map(|(&done, &end)| done + end).max().unwrap_or(Time::ZERO)
    }
}

/// A unit in the walk.
#[derive(Debug, Clone, Copy)]
struct Step {
    stage: u32,
    chunk: u32,
    /// The places of the messages that it waits for and that it sends: [`NONE`] for none.
    awaits: u32,
    sends: u32,
    pass: u8,
    /// See [`StageTimes::place`].
    place: u8,
    /// Whether it runs as one with the unit behind it.
    joined: bool,
    /// Whether it is more than a unit between others.
    mark: Option<Mark>,
}

/// No message: the place of one that is there from the beginning.
const NONE: u32 = 0;

/// What else happens at a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It is the first of its chunk: it waits for weights.
    First,
    /// The gradients of its chunk are whole behind it.
    Last,
    /// The pace is taken behind it.
    Pace,
}

/// Where a stage is.
#[derive(Debug, Clone, Copy, Default)]
struct Stand {
    /// Its kind.
    class: usize,
    /// What it has done until now.
    now: Time,
    /// When the last message that it sent is through.
    sent: Time,
    /// When the last of its gradients that went out are through.
    summed: Time,
    /// Data-parallel traffic that it waited for.
    exposed: Time,
    /// What it waited for before its first pass.
    waited: Time,
}

impl Stand {
    /// A message goes out behind those before: when it is through.
    fn send(&mut self, times: &StageTimes, is_beside: bool) -> Time {
        let now = if is_beside { self.now } else { self.now + times.latency };
        self.sent = self.sent.max(now) + times.message;
        if !is_beside {
            self.now = self.sent;
        }
        self.sent
    }

    /// Waits for data-parallel traffic that is through at `then` if it is slowed all the while; when the stage waits it is not.
    fn meet(&mut self, then: Time, slowed: f64) {
        if then > self.now {
            let wait = (then.saturating_sub(self.now).as_delay() * slowed.recip()).round();
            (self.now, self.exposed) = (self.now + wait, self.exposed + wait);
        }
    }
}

/// The units of all stages of a pipeline in an order in which each stands behind those that it waits for. That is the same whatever
/// they take; memory is used again.
#[derive(Debug)]
pub struct Walk {
    schedule: Schedule,
    /// What is walked.
    shape: Shape,
    steps: Vec<Step>,
    /// When each message is there.
    arrived: Vec<Time>,
    stands: Vec<Stand>,
}

/// How many microbatches are walked, by stages: those beyond take as long as the last of these that went in. So a schedule that is
/// walked takes them in at the pace at which it is done with them.
const MICROBATCHES: u64 = 6;
/// So many where a formula knows the others of its kind: they soon keep a pace.
const WITH_FORMULA: u64 = 4;
/// So many at least: few stages are soon walked.
const LEAST: u64 = 24;
/// Of how many of them the pace is taken, by stages.
const PACED: u64 = 1;

impl Walk {
    /// The units of a pipeline in their order.
    #[must_use]
    pub fn of(schedule: Schedule, shape: &Shape) -> Self {
        Self::whole(schedule, Self::walked(schedule, shape))
    }

    /// All of them.
    fn whole(schedule: Schedule, shape: Shape) -> Self {
        let part = schedule.part();
        let made = if part.splits() { Phase::Weights } else { Phase::Backward };
        let mut lines: Vec<_> = (0..shape.stages).map(|stage| part.units(stage, shape)).collect();
        // Of each stage the units that run next, as one.
        let mut next: Vec<Vec<Step>> = vec![Vec::new(); lines.len()];
        let messages = index(2 * shape.stages * shape.chunks * shape.microbatches) + 1;
        let mut is_sent = vec![false; messages];
        is_sent[NONE as usize] = true;
        let mut steps = Vec::new();
        loop {
            let before = steps.len();
            for (stage, (line, group)) in (0..).zip(lines.iter_mut().zip(&mut next)) {
                loop {
                    while group.last().is_none_or(|last: &Step| last.joined) {
                        let Some(unit) = line.next() else { break };
                        group.push(step(stage, unit, made, part.route(), &shape));
                    }
                    if group.is_empty() || !group.iter().all(|step| is_sent[step.awaits as usize]) {
                        break;
                    }
                    for step in &*group {
                        is_sent[step.sends as usize] = true;
                    }
                    steps.append(group);
                }
            }
            if steps.len() == before {
                break;
            }
        }
        let stands = vec![Stand::default(); lines.len()];
        Self { schedule, shape, steps, arrived: vec![Time::ZERO; messages], stands }
    }

    /// Whether this is the order of a pipeline.
    #[must_use]
    pub fn is_of(&self, schedule: Schedule, shape: &Shape) -> bool {
        self.schedule == schedule && self.shape == Self::walked(schedule, shape)
    }

    /// What is walked of a pipeline.
    fn walked(schedule: Schedule, shape: &Shape) -> Shape {
        Shape { microbatches: shape.microbatches.min(most(schedule, shape.stages)), ..*shape }
    }

    /// How long passes and gradients of so many microbatches take, of stages of these kinds, each with the number behind its last,
    /// into `walked`; messages are beside the computation or not. `asked` is the kind whose traffic is told.
    ///
    /// A unit begins when the one before it is done and what it waits for has come; its message goes out behind those that the stage
    /// sent before. Weights come chunk by chunk from the start on: a pass through the first chunk ends, others begin, when theirs
    /// are there. Gradients go out when the last pass of their chunk has made them, those of the first but one layer by layer.
    ///
    /// Worked: ZB-V, p = 4, m = 8, F = 1 ms, B = 1.3, W = 0.7 of both chunks: 24 ms and (p - 1) (B - W) = 1.8 ms.
    pub fn go(
        &mut self,
        classes: &[(u64, StageTimes)],
        is_beside: bool,
        microbatches: u64,
        asked: usize,
        into: &mut Walked,
    ) {
        let Shape { stages, chunks, microbatches: walked } = self.shape;
        let is_open = self.schedule.part().is_open();
        let mut class = 0;
        for (number, stand) in (0..).zip(&mut self.stands) {
            while class + 1 < classes.len() && classes[class].0 <= number {
                class += 1;
            }
            let alone = classes[class].1.weights.alone;
            *stand = Stand { class, now: alone, exposed: alone, ..Stand::default() };
        }
        let mut marks = [Time::ZERO; 2];
        let mut steps = self.steps.as_slice();
        while let Some(step) = steps.first() {
            let stand = &mut self.stands[step.stage as usize];
            let times = &classes[stand.class].1;
            if !step.joined && step.mark.is_none() {
                let begin = stand.now.max(self.arrived[step.awaits as usize]);
                stand.now = begin + times.units[usize::from(step.pass)][usize::from(step.place)];
                if step.sends != NONE {
                    self.arrived[step.sends as usize] = stand.send(times, is_beside);
                }
                steps = &steps[1..];
                continue;
            }
            let together = steps.iter().position(|step| !step.joined).map_or(steps.len(), |last| last + 1);
            let (group, behind) = steps.split_at(together);
            steps = behind;
            for step in group {
                let then = self.arrived[step.awaits as usize];
                if step.mark == Some(Mark::First) {
                    if step.chunk > 0 {
                        let Hiding { alone, slowed, .. } = times.weights;
                        stand.meet(alone + times.weights.up_to(step.chunk.into(), chunks), slowed);
                    } else if is_open {
                        stand.waited = then.saturating_sub(stand.now);
                    }
                }
                stand.now = stand.now.max(then);
            }
            for step in group {
                if step.mark == Some(Mark::Last) && step.chunk == 0 {
                    let begin = stand.summed.max(stand.now + times.first_made);
                    stand.summed = begin + times.gradients.of_chunk(0, chunks);
                }
                stand.now += times.units[usize::from(step.pass)][usize::from(step.place)];
            }
            for step in group {
                if step.mark == Some(Mark::First) && step.chunk == 0 {
                    let Hiding { alone, slowed, .. } = times.weights;
                    stand.meet(alone + times.weights.up_to(0, chunks), slowed);
                }
                if step.sends != NONE {
                    self.arrived[step.sends as usize] = stand.send(times, is_beside);
                }
                match step.mark {
                    Some(Mark::Last) if step.chunk > 0 => {
                        let begin = stand.summed.max(stand.now);
                        stand.summed = begin + times.gradients.of_chunk(step.chunk.into(), chunks);
                    }
                    Some(Mark::Pace) => marks = [marks[1], stand.now],
                    _ => {}
                }
            }
        }
        for stand in &mut self.stands {
            let Hiding { alone, slowed, .. } = classes[stand.class].1.gradients;
            stand.meet(stand.summed, slowed);
            (stand.now, stand.exposed) = (stand.now + alone, stand.exposed + alone);
        }
        let route = self.schedule.part().route();
        let work = |(number, stand): (u64, &Stand)| {
            let times = &classes[stand.class].1;
            let of_pass = |units: &[Time; 3]| units[0] + units[1] * chunks.saturating_sub(2) + units[2];
            let sends: u64 =
                [Phase::Forward, Phase::Backward].iter().map(|&pass| route.messages(number, pass, &self.shape)).sum();
            let sent = if is_beside { Time::ZERO } else { (times.message + times.latency) * sends };
            times.units.iter().map(of_pass).sum::<Time>() + sent
        };
        // In the long run no faster than the slowest stage, though it may not yet be what holds up the others.
        let slowest = (0..).zip(&self.stands).map(work).max().unwrap_or(Time::ZERO);
        let pace = (marks[1].saturating_sub(marks[0]) / (PACED * stages)).max(slowest);
        let beyond = pace * microbatches.saturating_sub(walked);
        into.done.clear();
        into.done.resize(classes.len(), Time::ZERO);
        for (stand, other) in self.stands.iter().zip(self.stands.iter().rev()) {
            let met = if classes[stand.class].1.meets { stand.now.max(other.now) } else { stand.now };
            let done = &mut into.done[stand.class];
            *done = (*done).max(met.saturating_sub(stand.waited) + beyond);
        }
        let exposed = self.stands.iter().filter(|stand| stand.class == asked).map(|stand| stand.exposed).max();
        into.exposed = exposed.unwrap_or(Time::ZERO);
    }
}

/// How many microbatches are walked at most: so many of each stage.
fn most(schedule: Schedule, stages: u64) -> u64 {
    let of_stage = if schedule.part().formula().is_some() { WITH_FORMULA } else { MICROBATCHES };
    stages * of_stage.max(LEAST.div_ceil(stages))
}

/// A unit as a step of the walk.
fn step(stage: u64, unit: Unit, made: Phase, route: Route, shape: &Shape) -> Step {
    let Unit { pass, chunk, microbatch, joined } = unit;
    let ways = match pass {
        Phase::Forward => [route.previous(stage, chunk, shape), route.next(stage, chunk, shape)],
        Phase::Backward => [route.next(stage, chunk, shape), route.previous(stage, chunk, shape)],
        Phase::Weights | Phase::Step => [None, None],
    };
    // What stays on the stage is no message. One has the place of the unit that waits for it.
    let [before, behind] = ways.map(|way| way.filter(|(other, _)| *other != stage));
    let place = |(stage, chunk): (u64, u64)| {
        narrow(((pass as u64 * shape.stages + stage) * shape.chunks + chunk) * shape.microbatches + microbatch + 1)
    };
    let last = shape.microbatches - 1;
    let is_entry = pass == Phase::Forward && stage == 0 && chunk == 0;
    let mark = if pass == Phase::Forward && microbatch == 0 {
        Some(Mark::First)
    } else if pass == made && microbatch == last {
        Some(Mark::Last)
    } else if is_entry && [last, last.saturating_sub(PACED * shape.stages)].contains(&microbatch) {
        Some(Mark::Pace)
    } else {
        None
    };
    Step {
        stage: narrow(stage),
        chunk: narrow(chunk),
        awaits: before.map_or(NONE, |_| place((stage, chunk))),
        sends: behind.map_or(NONE, place),
        pass: small(pass as usize),
        place: small(StageTimes::place(chunk, shape.chunks)),
        joined,
        mark,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ms;
    use super::super::{Pace, Parts, Passage};
    use super::*;
    use proptest::prelude::*;

    /// Stages of which each chunk takes so long forward, back and for the weights' gradients.
    fn stages(parts: [f64; 3], shape: &Shape) -> Vec<(u64, StageTimes)> {
        vec![(shape.stages, StageTimes { units: parts.map(|part| [ms(part); 3]), ..StageTimes::default() })]
    }

    /// The first stage, those between and the last, the ends longer in the chunk that holds an end of the model.
    fn uneven(parts: [f64; 3], ends: [f64; 2], shape: &Shape) -> Vec<(u64, StageTimes)> {
        let stage = |place: usize, more: f64| {
            let mut times = stages(parts, shape)[0].1;
            for units in times.units.iter_mut().filter(|units| units[0] > Time::ZERO) {
                units[place] += ms(more);
            }
            times
        };
        let last = if shape.chunks == 1 { 0 } else { 2 };
        let mut classes =
            vec![(1, stage(0, ends[0])), (shape.stages - 1, stage(0, 0.0)), (shape.stages, stage(last, ends[1]))];
        // Of two stages none is between.
        classes.dedup_by_key(|class| class.0);
        classes
    }

    /// The same stages as formulas see them: what is longer at the ends is no layer.
    fn pace(parts: [f64; 3], ends: [f64; 2], shape: &Shape) -> Pace {
        let (mut pace, mut begin) = (Pace::default(), 0);
        for &(end, StageTimes { units, .. }) in &uneven(parts, ends, shape) {
            let chunk = parts.map(ms);
            let layers: Time = chunk.into_iter().sum();
            let passes =
                units.map(|units| (0..shape.chunks).map(|chunk| units[StageTimes::place(chunk, shape.chunks)]).sum());
            let whole: Time = passes.into_iter().sum();
            let others = whole.saturating_sub(layers * shape.chunks);
            let passage = Passage {
                whole,
                first_layers: layers,
                last_layers: layers,
                others,
                ends: [others / 2; 2],
                back: [chunk[1], others / 2],
                parts: Parts::from(passes),
                ..Passage::default()
            };
            pace.add(passage, begin, end - begin);
            begin = end;
        }
        pace
    }

    /// What a walk comes to.
    fn walked(mut walk: Walk, classes: &[(u64, StageTimes)], is_beside: bool, microbatches: u64) -> Walked {
        let mut walked = Walked::default();
        walk.go(classes, is_beside, microbatches, 0, &mut walked);
        walked
    }

    fn total(schedule: Schedule, shape: Shape, classes: &[(u64, StageTimes)]) -> Time {
        let ends = vec![Time::ZERO; classes.len()];
        walked(Walk::of(schedule, &shape), classes, false, shape.microbatches).total(&ends)
    }

    /// In units of a hundredth of a millisecond, so that nothing is rounded.
    fn hundredths(parts: [u32; 3]) -> [f64; 3] {
        parts.map(|part| f64::from(part) / 100.0)
    }

    #[test]
    fn messages_wait_for_those_before_and_what_is_beside_them_goes_on() {
        // F0, a message, B0 behind it, a message back: 1 + 2 + (1 + 2) + 2 + 2 ms.
        let shape = Shape { stages: 2, chunks: 1, microbatches: 1 };
        let mut classes = stages([1.0, 2.0, 0.0], &shape);
        classes[0].1.message = ms(2.0);
        assert_eq!(total(Schedule::OneFOneB, shape, &classes), ms(10.0));
        classes[0].1.latency = ms(0.25);
        assert_eq!(total(Schedule::OneFOneB, shape, &classes), ms(10.5));
        // Of three forward passes of 1 ms beside messages of 2 ms the last is there after 7 ms; behind it are 1 + 3 * 2 + 2 + 2 ms.
        classes[0].1.latency = Time::ZERO;
        let shape = Shape { microbatches: 3, ..shape };
        let all = |is_beside| walked(Walk::of(Schedule::Gpipe, &shape), &classes, is_beside, 3).total(&[ms(0.5)]);
        assert_eq!([true, false].map(all), [18.5, 24.5].map(ms));
    }

    #[test]
    fn traffic_hides_beneath_passes_but_for_one_layer() {
        // 4 layers of 0.25 ms forward and 0.5 back; weights and gradients of 1 ms a layer.
        let shape = Shape { stages: 1, chunks: 1, microbatches: 2 };
        let mut classes = stages([1.0, 2.0, 0.0], &shape);
        let hiding = Hiding { alone: ms(1.0), beside: ms(4.0), layers: 4, slowed: 1.0 };
        (classes[0].1.weights, classes[0].1.first_made) = (hiding, ms(0.5));
        // The first pass ends with the weights of the fourth layer, at 4 ms: 4 + 2 + 1 + 2.
        assert_eq!(total(Schedule::OneFOneB, shape, &classes), ms(9.0));
        // Gradients go out from 7.5 ms on, three of them until 10.5, the fourth behind it.
        classes[0].1.gradients = hiding;
        let all = walked(Walk::of(Schedule::OneFOneB, &shape), &classes, false, 2);
        assert_eq!(all, Walked { done: vec![ms(11.5)], exposed: ms(1.0 + 2.0 + 1.5 + 1.0) });
        // Half as fast beside passes: 6 ms from 7.5 on, of which at 9 ms 4.5 are left, 2.25 of them alone.
        classes[0].1.gradients.slowed = 2.0;
        assert_eq!(total(Schedule::OneFOneB, shape, &classes), ms(9.0 + 2.25 + 1.0));
        // Where nothing hides, all is before and behind.
        let alone = Hiding { alone: ms(4.0), ..Hiding::default() };
        (classes[0].1.weights, classes[0].1.gradients) = (alone, alone);
        assert_eq!(total(Schedule::OneFOneB, shape, &classes), ms(14.0));
    }

    #[test]
    fn ends_that_meet_wait_for_each_other() {
        let shape = Shape { stages: 2, chunks: 1, microbatches: 1 };
        let mut classes = uneven([1.0, 2.0, 0.0], [0.0, 0.0], &shape);
        classes[1].1.meets = true;
        let all = |classes: &[(u64, StageTimes)]| {
            walked(Walk::of(Schedule::OneFOneB, &shape), classes, false, 1).total(&[ms(0.0), ms(3.0)])
        };
        // The last stage is done at 4 ms, the first at 6.
        assert_eq!(all(&classes), ms(9.0));
        classes[1].1.meets = false;
        assert_eq!(all(&classes), ms(7.0));
    }

    proptest! {
        #[test]
        fn formulas_take_what_units_take_wherever_they_hold(
            parts in [1_u32..100, 1..100, 1..100], ends in [0_u32..60, 0..60], stages in 2_u64..9, chunks in 1_u64..5,
            microbatches in 1_u64..50,
        ) {
            let [parts, [first, last, _]] = [parts, [ends[0], ends[1], 0]].map(hundredths);
            for &schedule in Schedule::ALL {
                let (part, chunks) = (schedule.part(), if schedule == Schedule::OneFOneB { chunks } else { 1 });
                let Some(formula) = part.formula() else { continue };
                let microbatches = if chunks == 1 { microbatches } else { microbatches.div_ceil(stages) * stages };
                let shape = Shape { stages, chunks, microbatches };
                let parts = if part.splits() { parts } else { [parts[0], parts[1], 0.0] };
                for ends in [[0.0, 0.0], [0.0, last], [first, 0.0], [first, last]] {
                    let classes = uneven(parts, ends, &shape);
                    let pace = pace(parts, ends, &shape);
                    let holds = formula.holds(&pace, &shape, Time::ZERO);
                    let must = ends[0] == 0.0 && parts[1] >= parts[0] || chunks == 1 && microbatches >= stages;
                    prop_assert!(holds || !must || part.splits(), "{:?} {:?} {:?}", schedule, shape, ends);
                    if holds {
                        let by_formula = pace.working() * microbatches + formula.bubble(&pace, &shape);
                        let ends = vec![Time::ZERO; classes.len()];
                        let walked = walked(Walk::whole(schedule, shape), &classes, false, microbatches).total(&ends);
                        let ratio = by_formula.as_seconds() / walked.as_seconds();
                        prop_assert!((ratio - 1.0).abs() < 0.01, "{:?} {:?} {:?} {}", schedule, shape, ends, ratio);
                    }
                }
            }
        }

        #[test]
        fn microbatches_beyond_those_walked_take_as_long_as_the_last_of_these(
            parts in [90_u32..110, 80..250, 50..150], ends in [0_u32..100, 0..100], half in 1_u64..4, more in 1_u64..40,
        ) {
            let [parts, [first, last, _]] = [parts, [ends[0], ends[1], 0]].map(hundredths);
            for schedule in [Schedule::OneFOneB, Schedule::ZbV, Schedule::DualPipe] {
                let chunks = 2;
                let stages = 2 * half;
                let shape = Shape { stages, chunks, microbatches: most(schedule, stages) + more * stages };
                let parts = if schedule.part().splits() { parts } else { [parts[0], parts[1], 0.0] };
                let classes = uneven(parts, [first, last], &shape);
                let ends = vec![Time::ZERO; classes.len()];
                let whole = walked(Walk::whole(schedule, shape), &classes, false, shape.microbatches).total(&ends).as_seconds();
                let cut = total(schedule, shape, &classes).as_seconds();
                prop_assert!((cut / whole - 1.0).abs() < 0.01, "{:?} {:?} {} {}", schedule, shape, cut, whole);
            }
        }
    }
}
