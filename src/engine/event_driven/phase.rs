//! Phases: the way of a chunk through the dimensions, and the queue that it takes in each [ASTRA2].

use arrayvec::ArrayVec;

use super::chunk::Npu;
use super::fabric::Steps;
use super::order::{Ask, Order};
use super::token::outcome;
use super::{Refused, Simulation};
use crate::system::collective::Collective;
use crate::system::machine::{DimensionOrder, Entry, Hierarchy, Recipe};
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

/// Dimensions at most: each has two members at least.
pub const MOST: usize = 32;

/// The members of a phase, in the order of their ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// Ranks so far apart, from the first.
    Every { first: u32, stride: u32 },
    /// The ranks of a group.
    Group(u32),
}

/// A chunk's way through one dimension.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    pub queue: u32,
    pub recipe: Recipe,
    pub collective: Collective,
    pub bytes: u64,
    pub clockwise: bool,
    pub members: Members,
    pub count: u32,
    pub me: u32,
    pub root_is_last: bool,
    /// The place of the dimension.
    pub dimension: usize,
    /// What it does on the fabric, if it runs there.
    pub steps: Option<Steps>,
    /// The place of a trace in the workload's list, where the collective is one.
    pub own: Option<u32>,
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
        let recipe = Recipe::Ring;
        let own = Some(own);
        let (queue, bytes, clockwise, root_is_last) = (0, 0, true, false);
        let (dimension, steps) = (0, None);
        Phase { queue, recipe, collective, bytes, clockwise, members, count, me, root_is_last, dimension, steps, own }
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
        if collective != Collective::AllToAll && self.is_by_load(group, logical) {
            let takes_part: ArrayVec<bool, MOST> = logical.iter().map(|logical| logical.takes_part).collect();
            let is_flex = machine.dimension_order == DimensionOrder::ThemisFlex;
            let chunk = self.npus[npu as usize].made;
            let ask = Ask { chunk, left, bytes, takes_part: &takes_part, collective, is_flex };
            return self.themis.order(machine, ask);
        }
        let mut order: Order = (0..logical.len()).collect();
        if collective == Collective::AllGather {
            order.reverse();
        }
        if machine.dimension_order == DimensionOrder::RoundRobin {
            let turn = &mut self.npus[npu as usize].turn;
            order.rotate_left(*turn % logical.len());
            *turn = (*turn + 1) % order.len();
        }
        (order, bytes)
    }

    /// Whether chunks of a collective go by load: Themis plans for all ranks together, in all dimensions.
    pub(super) fn is_by_load(&self, group: Option<u32>, logical: &[Logical]) -> bool {
        let is_everywhere = self.fabric.is_none() || logical.len() == self.machine.dimensions.len();
        self.machine.dimension_order.is_by_load() && group.is_none() && is_everywhere
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
                let only = if let [only] = entries.as_slice() { only.recipe } else { Recipe::Ring };
                let me = ranks.iter().position(|&rank| rank == npu).unwrap_or(0);
                let mut found = ArrayVec::new();
                found.push(Logical {
                    entry: Entry { recipe: only, whole: false },
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

    /// The phases of the next chunk.
    pub(super) fn phases(
        &mut self,
        npu: u32,
        collective: Collective,
        bytes: u64,
        (logical, order): (&[Logical], &[usize]),
        phases: &mut Vec<Phase>,
    ) -> Result<(), Refused> {
        let plan = self.plan(collective, logical, order);
        let mut bytes = bytes;
        for (part, logical, turn) in plan {
            let state = &mut self.npus[npu as usize];
            let (queue, clockwise) = state.queue(logical.dimension, turn, self.machine.queues);
            let recipe = logical.entry.recipe;
            let mut root_is_last = false;
            if recipe == Recipe::DoubleBinaryTree {
                if !logical.count.is_power_of_two() {
                    return Err(Refused::NoPower { members: logical.count });
                }
                if part != Collective::AllReduce && !self.machine.rules.has(Quirk::TreesReduceAll) {
                    return Err(Refused::Trace("a double binary tree does all-reduces alone"));
                }
                let trees = &mut state.trees[logical.dimension][collective as usize];
                root_is_last = trees.is_multiple_of(2);
                *trees += 1;
            }
            phases.push(Phase {
                queue,
                recipe,
                collective: part,
                bytes,
                clockwise,
                members: logical.members,
                count: logical.count,
                me: logical.me,
                root_is_last,
                dimension: logical.dimension,
                steps: None,
                own: None,
            });
            bytes = outcome(recipe, part, bytes, logical.count);
        }
        Ok(())
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
            let entry = Entry { recipe: Recipe::Ring, whole: false };
            let (members, count) = (Members::Group(group.unwrap_or(0)), narrow(ranks.len() as u64));
            let (me, takes_part) = (narrow(me as u64), count > 1);
            found.push(Logical { entry, dimension: 0, members, count, me, takes_part, span: None });
            return found;
        };
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
                let entry = entry.unwrap_or(Entry { recipe: Recipe::Ring, whole: false });
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
        order: &[usize],
    ) -> ArrayVec<(Collective, &'l Logical, Turn), { 2 * MOST }> {
        use Collective::{AllGather, AllReduce, ReduceScatter};
        let taking: ArrayVec<&'l Logical, MOST> =
            order.iter().take(logical.len()).map(|&k| &logical[k]).filter(|logical| logical.takes_part).collect();
        let is_split = collective == AllReduce && self.machine.hierarchy == Hierarchy::ScatterGather;
        let mut plan: ArrayVec<(Collective, &'l Logical, Turn), { 2 * MOST }> = ArrayVec::new();
        match (collective, taking.split_last()) {
            (AllReduce, _) if is_split && self.machine.dimension_order.is_by_load() => {
                plan.extend(taking.iter().map(|&logical| (ReduceScatter, logical, Turn::Inward)));
                plan.extend(taking.iter().rev().map(|&logical| (AllGather, logical, Turn::Back)));
            }
            (AllReduce, Some((last, inner))) if is_split => {
                plan.extend(inner.iter().map(|&logical| (ReduceScatter, logical, Turn::Inward)));
                plan.push((AllReduce, last, Turn::Inward));
                plan.extend(inner.iter().rev().map(|&logical| (AllGather, logical, Turn::Back)));
            }
            _ => plan.extend(taking.iter().map(|&logical| (collective, logical, Turn::Any))),
        }
        plan
    }
}
