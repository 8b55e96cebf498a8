//! Ranks: what each does by itself, made of what its stage does: whom it names, and its groups among those of all.

use itertools::Itertools as _;

use super::step::Step;
use crate::engine::event_driven::TAGS;
use crate::system::Spans;
use crate::units::narrow;
use crate::workload;
use crate::workload::members::Members;
use crate::workload::trace::{Graph, Group, Node, Trace, Work};
use crate::workload::unfold::Stage;

/// What becomes of a computation.
pub type Price<'a> = &'a dyn Fn(&Node) -> Work;

/// All ranks of a step.
#[derive(Debug)]
pub struct Ranks<'a> {
    /// How many there are.
    pub count: u32,
    /// The groups of all of them; a group of everybody is none.
    pub groups: Vec<Group>,
    /// Of each kind of group the place of every rank's among all; none where there is none of its own.
    places: Vec<Option<Vec<u32>>>,
    stages: &'a [Stage],
    pipeline: Members<'a>,
}

impl<'a> Ranks<'a> {
    /// The ranks of a step, of which these are the stages.
    #[must_use]
    pub fn of(step: &'a Step, stages: &'a [Stage]) -> Self {
        let Step { placement, system, .. } = step;
        let network = &system.network;
        let count = narrow(network.npus());
        let mut groups = Vec::new();
        let mut known: Vec<(&Spans, Vec<u32>)> = Vec::new();
        let is_used = |kind: &workload::Group| {
            let nodes = stages.iter().flat_map(|stage| stage.graph.nodes());
            nodes.filter_map(kind_of).contains(&(*kind as usize))
        };
        let mut places = vec![None; workload::Group::ALL.len()];
        for kind in workload::Group::ALL.into_iter().filter(is_used) {
            let spans = placement.spans(kind);
            let members = Members::of(spans, network);
            if members.count() == count {
                continue;
            }
            let of_rank = known.iter().find(|other| other.0 == spans).map(|other| other.1.clone());
            let of_rank = of_rank.unwrap_or_else(|| {
                let of_rank = number(&members, count, &mut groups);
                known.push((spans, of_rank.clone()));
                of_rank
            });
            places[kind as usize] = Some(of_rank);
        }
        let pipeline = Members::of(placement.spans(workload::Group::Pipeline), network);
        Self { count, groups, places, stages, pipeline }
    }

    /// The stage of a rank.
    #[must_use]
    pub fn stage(&self, rank: u32) -> &'a Stage {
        &self.stages[self.pipeline.place(rank) as usize]
    }

    /// Operations of all ranks.
    #[must_use]
    pub fn operations(&self) -> u64 {
        let of_stages = self.stages.iter().map(|stage| stage.graph.nodes().len() as u64).sum::<u64>();
        of_stages * u64::from(self.count / narrow(self.stages.len() as u64).max(1))
    }

    /// Whether all do the same and name nobody.
    #[must_use]
    pub const fn are_all_alike(&self) -> bool {
        self.groups.is_empty() && self.stages.len() == 1
    }

    /// What a rank does; computations are as somebody else has them.
    #[must_use]
    pub fn graph(&self, rank: u32, computation: Price<'_>) -> Graph {
        let first = self.pipeline.first(rank);
        let peer = |stage: u32| self.pipeline.at(first, stage);
        let work = |node: &Node| match node.work {
            Work::Compute { .. } | Work::Lasts { .. } => computation(node),
            Work::Collective { collective, bytes, dimensions, .. } => {
                let places = kind_of(node).and_then(|kind| self.places[kind].as_ref());
                Work::Collective { collective, bytes, group: places.map(|of| of[rank as usize]), dimensions }
            }
            Work::Send { to, bytes, tag } => Work::Send { to: peer(to), bytes, tag: tag % TAGS },
            Work::Receive { from, bytes, tag } => Work::Receive { from: peer(from), bytes, tag: tag % TAGS },
            other => other,
        };
        self.stage(rank).graph.clone().map(work)
    }

    /// What all ranks do, all of it in memory.
    #[must_use]
    pub fn trace(&self, computation: Price<'_>) -> Trace {
        let graphs = (0..self.count).map(|rank| self.graph(rank, computation)).collect();
        Trace::new(graphs, self.groups.clone())
    }
}

/// The kind of group of a stage's collective, by its place among all kinds.
fn kind_of(node: &Node) -> Option<usize> {
    match node.work {
        Work::Collective { group: Some(group), .. } => Some(group as usize % workload::Group::ALL.len()),
        _ => None,
    }
}

/// Adds the groups of one kind; the place of every rank's.
fn number(members: &Members<'_>, count: u32, groups: &mut Vec<Group>) -> Vec<u32> {
    let mut of_rank = vec![0; count as usize];
    for first in (0..count).filter(|&rank| members.first(rank) == rank) {
        let place = narrow(groups.len() as u64);
        let ranks = (0..members.count()).map(|member| members.at(first, member)).collect_vec();
        for &rank in &ranks {
            of_rank[rank as usize] = place;
        }
        groups.push(Group { id: u64::from(place) + 1, ranks });
    }
    of_rank
}
