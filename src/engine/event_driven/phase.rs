//! Phases: the way of a chunk through the dimensions, and the queue that it takes in each [ASTRA2].

use arrayvec::ArrayVec;

use super::chunk::Npu;
use super::order::{Ask, Order};
use super::token::outcome;
use super::{Refused, Simulation};
use crate::system::collective::Collective;
use crate::system::machine::{DimensionOrder, Entry, Hierarchy, Recipe};
use crate::units::narrow;

/// Which of a dimension's queues a phase takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
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
    /// The place of a trace in the workload's list, where the collective is one.
    pub own: Option<u32>,
}

/// A logical dimension of a collective.
#[derive(Debug, Clone, Copy)]
pub struct Logical {
    entry: Entry,
    dimension: usize,
    members: Members,
    count: u32,
    me: u32,
    pub takes_part: bool,
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
        Phase { queue, recipe, collective, bytes, clockwise, members, count, me, root_is_last, own }
    }

    /// The order in which the next chunk takes its dimensions, and its bytes.
    pub(super) fn order(
        &mut self,
        npu: u32,
        collective: Collective,
        logical: &[Logical],
        left: u64,
        bytes: u64,
    ) -> (Order, u64) {
        let machine = self.machine;
        if machine.dimension_order.is_by_load() && collective != Collective::AllToAll {
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

    /// The logical dimensions of a collective, innermost first.
    pub(super) fn logical(
        &self,
        npu: u32,
        collective: Collective,
        group: Option<u32>,
        involved: u32,
    ) -> ArrayVec<Logical, MOST> {
        let machine = self.machine;
        let npu = self.rank_of(npu);
        let entries = &machine.algorithms[collective as usize];
        if let Some(group) = group {
            let ranks = &self.trace.groups[group as usize].ranks;
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
            found.push(Logical { entry, dimension: k, members, count, me, takes_part: count > 1 && is_involved });
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
        use Collective::{AllGather, AllReduce, ReduceScatter};
        let taking: ArrayVec<&Logical, MOST> =
            order.iter().take(logical.len()).map(|&k| &logical[k]).filter(|logical| logical.takes_part).collect();
        let is_split = collective == AllReduce && self.machine.hierarchy == Hierarchy::ScatterGather;
        let mut plan: ArrayVec<(Collective, &Logical, Turn), { 2 * MOST }> = ArrayVec::new();
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
                own: None,
            });
            bytes = outcome(recipe, part, bytes, logical.count);
        }
        Ok(())
    }
}
