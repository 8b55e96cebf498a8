//! The memo: what collectives and layers cost at the points before, which their neighbours ask again.
//!
//! A price is a function of what is asked, and that is compared whole: whether it was known changes no number.

use std::collections::VecDeque;

use arrayvec::ArrayVec;

use super::class_cost::ClassCost;
use super::prices::Tally;
use crate::system::System;
use crate::system::collective::Collective;
use crate::system::network::{MAX_DIMS, Spans};
use crate::units::{Bytes, Time, index};
use crate::workload::placement::{Group, Placement};
use crate::workload::program::{Operation, Program, Work};
use crate::workload::schedule::{Schedule, Shape, StageTimes, Walk, Walked};

/// How many collectives are remembered: some times as many as a job has in all orders of its degrees.
const COLLECTIVES: usize = 128;
/// How many layers are remembered: there and back, in some places of their groups.
const LAYERS: usize = 32;

/// How many walks are remembered: those that differ in one knob or two.
const KNOWN_WALKS: usize = 4;
/// How many orders of pipelines' units are remembered.
const WALKS: usize = 16;

/// A collective of a whole buffer of so many bytes.
pub type Question = (Collective, Group, Bytes);

/// How the operations of a layer run: how many the host sends, and whether data-parallel traffic runs beside the others.
pub type Manner = (f64, bool);

/// What one machine charged lately.
#[derive(Debug)]
pub struct Memo {
    /// The machine, and the how manieth it is.
    system: Option<System>,
    machine: u64,
    /// Collectives, each at the place that its hash says, with the machine that was asked.
    collectives: Vec<Option<(u64, Priced)>>,
    /// Layers, the newest in the place of the oldest.
    layers: Vec<Layer>,
    /// How many of them are of this machine, and which of them goes next.
    known: usize,
    oldest: usize,
    /// Room for what rank classes cost: of the slowest so far, and of the next.
    pub(super) costs: Vec<ClassCost>,
    /// What units of the stages of the present program take, by class, each with the number behind its last stage.
    pub(super) stages: Vec<(u64, StageTimes)>,
    /// What the end of a step takes on these.
    pub(super) ends: Vec<Time>,
    /// Orders of pipelines' units, the one used last at the end.
    walks: VecDeque<Walk>,
    /// What was walked lately, and where the newest of it is.
    walked: Vec<KnownWalk>,
    next: usize,
}

/// A collective, and what it costs.
#[derive(Debug, Clone)]
pub struct Priced {
    /// Which one.
    pub question: Question,
    /// Where its group lies.
    pub spans: Spans,
    /// From its start to its end.
    pub time: Time,
    /// Bytes sent in each span, and how long they keep it busy.
    pub sent: ArrayVec<(f64, Time), MAX_DIMS>,
}

/// What was walked, and what came of it.
#[derive(Debug, Default)]
struct KnownWalk {
    /// The schedule, its shape, whether messages are beside the computation, and the class whose traffic is told.
    asked: Option<(Schedule, Shape, bool, usize)>,
    stages: Vec<(u64, StageTimes)>,
    walked: Walked,
}

/// Operations of a layer, and what they cost.
#[derive(Debug)]
struct Layer {
    operations: Vec<Operation>,
    manner: Manner,
    /// Where the groups lie that they name.
    lies: Vec<(Group, Spans)>,
    tally: Tally,
}

impl Default for Memo {
    fn default() -> Self {
        Self::with_places(COLLECTIVES)
    }
}

impl Memo {
    /// For one question.
    #[must_use]
    pub fn of_one() -> Self {
        Self::with_places(1)
    }

    fn with_places(places: usize) -> Self {
        let collectives = vec![None; places];
        Self {
            system: None,
            machine: 0,
            collectives,
            layers: Vec::new(),
            known: 0,
            oldest: 0,
            costs: Vec::new(),
            stages: Vec::new(),
            walks: VecDeque::new(),
            walked: Vec::new(),
            next: 0,
            ends: Vec::new(),
        }
    }

    /// Forgets what another machine charged, and the program before.
    pub fn turn_to(&mut self, system: &System) {
        self.stages.clear();
        self.ends.clear();
        if self.system.as_ref() != Some(system) {
            self.system = Some(system.clone());
            self.machine += 1;
            (self.known, self.oldest) = (0, 0);
        }
    }

    /// Walks the units of the present program, unless they are some that were walked lately; `class` is the one whose traffic is told.
    pub(super) fn walk(&mut self, program: &Program, class: usize) -> &Walked {
        let (schedule, shape) = (program.schedule, program.shape());
        let asked = (schedule, shape, program.overlap_sends, class);
        let known = self.walked.iter().position(|known| known.asked == Some(asked) && known.stages == self.stages);
        let place = known.unwrap_or_else(|| {
            self.next = (self.next + 1) % KNOWN_WALKS;
            self.walked.resize_with(KNOWN_WALKS, KnownWalk::default);
            let known = &mut self.walked[self.next];
            let place = self.walks.iter().position(|walk| walk.is_of(schedule, &shape));
            let mut walk = place.and_then(|place| self.walks.remove(place));
            let walk_now = walk.get_or_insert_with(|| Walk::of(schedule, &shape));
            walk_now.go(&self.stages, program.overlap_sends, program.microbatches, class, &mut known.walked);
            if self.walks.len() == WALKS {
                self.walks.pop_front();
            }
            self.walks.extend(walk);
            known.asked = Some(asked);
            known.stages.clone_from(&self.stages);
            self.next
        });
        &self.walked[place].walked
    }

    /// What a collective costs; `price` says it if it is not known.
    pub fn collective(&mut self, question: Question, spans: &Spans, price: impl FnOnce() -> Priced) -> &Priced {
        let (machine, places) = (self.machine, self.collectives.len());
        // A power of two.
        let place = &mut self.collectives[index(hash(question, spans)) & (places - 1)];
        let is_known =
            |(asked, known): &(u64, Priced)| *asked == machine && known.question == question && known.spans == *spans;
        if !place.as_ref().is_some_and(is_known) {
            *place = None;
        }
        &place.get_or_insert_with(|| (machine, price())).1
    }

    /// What a layer costs, if it is known.
    pub(super) fn layer(&self, operations: &[Operation], manner: Manner, placement: &Placement) -> Option<&Tally> {
        let is_same = |layer: &&Layer| {
            layer.manner == manner
                && layer.lies.iter().all(|(group, spans)| placement.spans(*group) == spans)
                && layer.operations == operations
        };
        self.layers[..self.known].iter().find(is_same).map(|layer| &layer.tally)
    }

    /// Remembers what a layer costs, in the place of the oldest.
    pub(super) fn keep(&mut self, operations: &[Operation], manner: Manner, placement: &Placement, tally: &Tally) {
        let place = self.oldest;
        if self.layers.len() <= place {
            self.layers.push(Layer { operations: Vec::new(), manner, lies: Vec::new(), tally: tally.clone() });
        }
        let layer = &mut self.layers[place];
        layer.operations.clear();
        layer.operations.extend_from_slice(operations);
        layer.lies.clear();
        for operation in operations {
            let group = match operation.work {
                Work::Collective { group, .. } => group,
                Work::Send { .. } => Group::Pipeline,
                Work::Compute(_) | Work::Transfer { .. } => continue,
            };
            if layer.lies.iter().all(|known| known.0 != group) {
                layer.lies.push((group, placement.spans(group).clone()));
            }
        }
        (layer.manner, layer.tally) = (manner, tally.clone());
        self.known = self.known.max(place + 1);
        self.oldest = (self.oldest + 1) % LAYERS;
    }
}

/// A number that is rarely the same for two collectives.
fn hash((collective, group, size): Question, spans: &Spans) -> u64 {
    /// 2^64 over the golden ratio: its multiples are spread evenly.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(SPREAD).rotate_left(32);
    let places = spans.iter().flat_map(|span| [span.dim as u64, span.members.into(), span.stride.into()]);
    places.fold(mix(mix(size.get(), collective as u64), group as u64), mix)
}
