//! Phases: the way of a chunk through the dimensions, and the queue that it takes in each [ASTRA2].

use arrayvec::ArrayVec;

use super::chunk::Npu;
use super::fabric::Steps;
use super::{Refused, Simulation};
use crate::system::collective::{Algorithm, Collective, Part};
use crate::system::dimension_order::{Ask, DimensionOrder, MOST, Memory, Order};
use crate::system::machine::{Entry, Hierarchy, Machine};
use crate::system::network::Span;
use crate::system::rules::Quirk;
use crate::units::narrow;

/// Which of a dimension's queues a phase takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Any,
    Inward,
    Back,
}

/// The members of a phase, in the order of their ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// Ranks so far apart, from the first.
    Every { first: u32, stride: u32 },
    /// The ranks of a group.
    Group(u32),
}

/// How a phase is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Message by message, as the algorithm's members send them.
    Messages,
    /// Step by step on the fabric.
    Steps(Steps),
    /// As a trace of its own, at a place of the workload's list.
    Own(u32),
}

/// A chunk's way through one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    pub bytes: u64,
    pub queue: u32,
    pub algorithm: Algorithm,
    pub collective: Collective,
    pub clockwise: bool,
    /// Whether it goes by the second of two trees.
    pub is_odd: bool,
    /// How many messages are under way at once.
    pub window: u32,
    pub members: Members,
    pub count: u32,
    pub me: u32,
    /// The place of the dimension.
    pub dimension: u32,
    pub course: Course,
}

impl Phase {
    /// The phase as one member's part.
    #[must_use]
    pub const fn part(&self) -> Part {
        Part {
            collective: self.collective,
            bytes: self.bytes,
            me: self.me,
            members: self.count,
            step: if self.clockwise { 1 } else { self.count - 1 },
            window: self.window,
            is_group: matches!(self.members, Members::Group(_)),
        }
    }
}

/// A logical dimension of a collective.
#[derive(Debug, Clone, Copy)]
pub struct Logical {
    pub entry: Entry,
    pub dimension: usize,
    pub members: Members,
    pub count: u32,
    pub me: u32,
    pub takes_part: bool,
    /// The part of the dimension, where it is a regular one.
    pub span: Option<Span>,
}

impl Npu {
    /// The queue of a phase in a dimension, and whether it goes clockwise.
    fn queue(&mut self, dimension: usize, turn: Turn, queues: u32) -> (u32, bool) {
        let [any, inward, back] = &mut self.turns[dimension];
        let half = queues / 2;
        let (queue, clockwise) = match turn {
            Turn::Any => {
                let queue = *any;
                *any = (*any + 1) % queues;
                (queue, queues == 1 || queue < half)
            }
            Turn::Inward => {
                let queue = *inward;
                *inward = if queue + 1 >= half { 0 } else { queue + 1 };
                (queue, true)
            }
            Turn::Back => {
                let queue = *back;
                *back = if queue + 1 >= queues { half } else { queue + 1 };
                (queue, false)
            }
        };
        (narrow(dimension as u64) * queues + queue, clockwise)
    }
}

impl Simulation<'_> {
    /// The one phase of a collective that is a graph: in the first queue.
    pub(super) fn own_phase(&self, npu: u32, collective: Collective, group: Option<u32>, own: u32) -> Phase {
        let npu = self.rank_of(npu);
        let ranks = group.map(|group| &self.trace.groups[group as usize].ranks);
        // A member's position is its place among the members' numbers, not in their list.
        let me = ranks.map_or(npu, |ranks| narrow(ranks.iter().filter(|&&rank| rank < npu).count() as u64));
        let count = ranks.map_or(self.machine.npus(), |ranks| narrow(ranks.len() as u64));
        let members = group.map_or(Members::Every { first: 0, stride: 1 }, Members::Group);
        // On the fabric its messages wait for the dimensions, which it must not hold itself.
        let queue = if self.fabric.is_some() { self.machine.line(0) } else { 0 };
        Phase {
            bytes: 0,
            queue,
            algorithm: Algorithm::Ring,
            collective,
            clockwise: true,
            is_odd: false,
            window: 1,
            members,
            count,
            me,
            dimension: 0,
            course: Course::Own(own),
        }
    }

    /// The order in which the next chunk takes its dimensions, and its bytes.
    pub(super) fn order(
        &mut self,
        npu: u32,
        (collective, group): (Collective, Option<u32>),
        logical: &[Logical],
        left: u64,
        bytes: u64,
    ) -> (Order, u64) {
        let machine = self.machine;
        let takes_part: ArrayVec<bool, MOST> = logical.iter().map(|logical| logical.takes_part).collect();
        let chunk = self.npus[npu as usize].made;
        let dimensions = &machine.dimensions;
        let is_mirrored = machine.rules.has(Quirk::MirroredLoads);
        let ask = Ask { dimensions, chunk, left, bytes, takes_part: &takes_part, collective, is_mirrored };
        let order = machine.dimension_order;
        let is_planned = collective != Collective::AllToAll && self.is_by_load(group, logical);
        let order = if order.part().is_by_load() && !is_planned { DimensionOrder::Ascending } else { order };
        // Members of a group of another shape take other turns: each group counts for itself, but in the reference.
        let whose = group.filter(|_| self.fabric.is_some());
        let turn = self.npus[npu as usize].turns_of.entry(whose).or_default();
        let memory = Memory { turn, loads: &mut self.loads };
        order.part().order(&ask, memory)
    }

    /// Whether chunks of a collective go by load: Themis plans for all ranks together, in all dimensions.
    pub(super) fn is_by_load(&self, group: Option<u32>, logical: &[Logical]) -> bool {
        let is_everywhere = self.fabric.is_none() || logical.len() == self.machine.dimensions.len();
        self.machine.dimension_order.part().is_by_load() && group.is_none() && is_everywhere
    }

    /// The logical dimensions of a collective, innermost first.
    pub(super) fn logical(
        &self,
        npu: u32,
        collective: Collective,
        group: Option<u32>,
        involved: u32,
    ) -> ArrayVec<Logical, MOST> {
        let machine = self.machine;
        let slot = npu;
        let npu = self.rank_of(npu);
        let entries = &machine.algorithms[collective as usize];
        if let Some(group) = group {
            let ranks = &self.trace.groups[group as usize].ranks;
            if !machine.rules.has(Quirk::FlatGroups) && machine.spans(ranks).is_some() {
                return self.on_spans(slot, collective, Some(group), involved);
            }
            if ranks.len() < machine.npus() as usize {
                let only = machine.flat(collective);
                let me = ranks.iter().position(|&rank| rank == npu).unwrap_or(0);
                let mut found = ArrayVec::new();
                found.push(Logical {
                    entry: only,
                    dimension: 0,
                    members: Members::Group(group),
                    count: narrow(ranks.len() as u64),
                    me: narrow(me as u64),
                    takes_part: ranks.len() > 1,
                    span: None,
                });
                return found;
            }
        }
        let mut found = ArrayVec::new();
        let mut stride = 1;
        for (k, (&entry, dimension)) in entries.iter().zip(&machine.dimensions).enumerate() {
            let is_involved = group.is_some() || involved & (1 << k) != 0;
            let (count, first, me) = if entry.whole {
                (machine.npus(), 0, npu)
            } else {
                let me = npu / stride % dimension.size;
                (dimension.size, npu - me * stride, me)
            };
            let members = Members::Every { first, stride: if entry.whole { 1 } else { stride } };
            let takes_part = count > 1 && is_involved;
            found.push(Logical { entry, dimension: k, members, count, me, takes_part, span: None });
            if entry.whole {
                break;
            }
            stride *= dimension.size;
        }
        found
    }

    /// Makes the phases of the next chunk.
    pub(super) fn phases(
        &mut self,
        npu: u32,
        collective: Collective,
        bytes: u64,
        (logical, order): (&[Logical], &[u8]),
    ) -> Result<(), Refused> {
        let plan = self.plan(collective, logical, order);
        let mut bytes = bytes;
        for (part, logical, turn) in plan {
            let state = &mut self.npus[npu as usize];
            let (queue, clockwise) = state.queue(logical.dimension, turn, self.machine.queues);
            let Entry { algorithm, window, .. } = logical.entry;
            let tree = self.tree_of(npu, (part, collective, None), logical)?;
            self.chunks.made.push(Phase {
                bytes,
                queue,
                algorithm,
                collective: part,
                clockwise,
                is_odd: tree.unwrap_or(false),
                window: algorithm.part().window(window, logical.count),
                members: logical.members,
                count: logical.count,
                me: logical.me,
                dimension: narrow(logical.dimension as u64),
                course: Course::Messages,
            });
            bytes = self.machine.leaves(algorithm, part, bytes, logical.count);
        }
        Ok(())
    }

    /// Whether a phase goes by the second of two trees, which take turns, where its algorithm is a tree.
    pub(super) fn tree_of(
        &mut self,
        npu: u32,
        (part, collective, group): (Collective, Collective, Option<u32>),
        logical: &Logical,
    ) -> Result<Option<bool>, Refused> {
        if !self.machine.goes_by_tree(logical.entry.algorithm, part) {
            return Ok(None);
        }
        if self.fabric.is_none() && !logical.count.is_power_of_two() {
            return Err(Refused::NoPower { algorithm: logical.entry.algorithm.name(), members: logical.count });
        }
        let trees = &mut self.npus[npu as usize].trees;
        let trees = trees.entry((group, logical.dimension, collective)).or_default();
        let is_odd = trees.is_multiple_of(2);
        *trees += 1;
        Ok(Some(is_odd))
    }

    /// The logical dimensions of a collective whose members are a regular part of the network, innermost first.
    pub(super) fn on_spans(
        &self,
        npu: u32,
        collective: Collective,
        group: Option<u32>,
        involved: u32,
    ) -> ArrayVec<Logical, MOST> {
        let machine = self.machine;
        let entries = &machine.algorithms[collective as usize];
        let rank = self.rank_of(npu);
        let known = self.fabric.as_ref().map(|fabric| fabric.spans(group).cloned());
        let spans = match (known, group) {
            (Some(spans), _) => spans,
            (None, Some(group)) => machine.spans(&self.trace.groups[group as usize].ranks),
            (None, None) => None,
        };
        let ranks = group.map_or(&[][..], |group| &self.trace.groups[group as usize].ranks);
        let mut found = ArrayVec::new();
        let Some(spans) = spans else {
            // No regular part: one flat ring, in the queue of the innermost dimension.
            let me = ranks.iter().position(|&other| other == rank).unwrap_or(0);
            let entry = Entry::of(Algorithm::Ring);
            let (members, count) = (Members::Group(group.unwrap_or(0)), narrow(ranks.len() as u64));
            let (me, takes_part) = (narrow(me as u64), count > 1);
            found.push(Logical { entry, dimension: 0, members, count, me, takes_part, span: None });
            return found;
        };
        // Over one dimension that is the dimension.
        if let Some(&entry) = entries.first().filter(|entry| entry.whole && spans.len() > 1) {
            let everyone = (Members::Every { first: 0, stride: 1 }, machine.npus(), rank);
            let (members, count, me) = group.map_or(everyone, |group| {
                let me = ranks.iter().position(|&other| other == rank).unwrap_or(0);
                (Members::Group(group), narrow(ranks.len() as u64), narrow(me as u64))
            });
            found.push(Logical { entry, dimension: 0, members, count, me, takes_part: count > 1, span: None });
            return found;
        }
        let mut stride = 1;
        for (k, dimension) in machine.dimensions.iter().enumerate() {
            let is_involved = group.is_some() || involved & (1 << k) != 0;
            for span in spans.iter().filter(|span| span.dim == k && is_involved) {
                let place = |rank: u32| rank / stride % dimension.size;
                let first = ranks.iter().map(|&rank| place(rank)).min().unwrap_or(0);
                let me = (place(rank).saturating_sub(first) / span.stride).min(span.members - 1);
                let apart = stride * span.stride;
                let members = Members::Every { first: rank.saturating_sub(me * apart), stride: apart };
                let entry = entries.get(k).or(entries.last()).copied();
                let entry = entry.unwrap_or(Entry::of(Algorithm::Ring));
                let count = span.members;
                found.push(Logical { entry, dimension: k, members, count, me, takes_part: true, span: Some(*span) });
            }
            stride *= dimension.size;
        }
        found
    }

    /// The parts of a chunk's way: what is done on which dimension, in order.
    pub(super) fn plan<'l>(
        &self,
        collective: Collective,
        logical: &'l [Logical],
        order: &[u8],
    ) -> ArrayVec<(Collective, &'l Logical, Turn), { 2 * MOST }> {
        let taking: ArrayVec<&'l Logical, MOST> = order
            .iter()
            .take(logical.len())
            .map(|&k| &logical[usize::from(k)])
            .filter(|logical| logical.takes_part)
            .collect();
        let halves = collective.halves().filter(|_| self.machine.hierarchy == Hierarchy::ScatterGather);
        let mut plan: ArrayVec<(Collective, &'l Logical, Turn), { 2 * MOST }> = ArrayVec::new();
        match (halves, taking.split_last()) {
            (Some((out, back)), _) if self.machine.dimension_order.part().is_by_load() => {
                plan.extend(taking.iter().map(|&logical| (out, logical, Turn::Inward)));
                plan.extend(taking.iter().rev().map(|&logical| (back, logical, Turn::Back)));
            }
            (Some((out, back)), Some((last, inner))) => {
                plan.extend(inner.iter().map(|&logical| (out, logical, Turn::Inward)));
                plan.push((collective, last, Turn::Inward));
                plan.extend(inner.iter().rev().map(|&logical| (back, logical, Turn::Back)));
            }
            _ => plan.extend(taking.iter().map(|&logical| (collective, logical, Turn::Any))),
        }
        plan
    }
}

impl Machine {
    /// How a collective runs over members that are no regular part of the network: by its only algorithm, else as a ring.
    #[must_use]
    pub fn flat(&self, collective: Collective) -> Entry {
        match self.algorithms[collective as usize].as_slice() {
            &[only] => Entry { whole: false, ..only },
            _ => Entry::of(Algorithm::Ring),
        }
    }

    /// Whether members pass bytes up and down a tree: those that sum or give all to all, or all of them in the reference.
    #[must_use]
    pub fn goes_by_tree(&self, algorithm: Algorithm, collective: Collective) -> bool {
        let is_for_trees = collective.halves().is_some() || self.rules.has(Quirk::TreesReduceAll);
        is_for_trees && algorithm.part().branch(0, 2, false).is_some()
    }

    /// Bytes that leave a phase: the members of a tree give each other all that they have.
    #[must_use]
    pub fn leaves(&self, algorithm: Algorithm, collective: Collective, bytes: u64, members: u32) -> u64 {
        if self.goes_by_tree(algorithm, collective) { bytes } else { collective.outcome(bytes, members) }
    }
}
