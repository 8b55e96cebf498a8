//! The trace: an execution graph for every rank, the groups that its collectives name, and collectives that are graphs themselves.
//!
//! Ranks that do the same share one graph. Nothing here knows a machine: how long anything takes is the engine's matter.

mod chain;
mod check;
mod circle;
mod collectives;
pub mod fault;
pub mod graph;
mod messages;
mod wait;

pub use fault::{Fault, Spot};
pub use graph::{Broken, Graph, Node, Work};
use itertools::Itertools as _;

/// What every rank does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// Which graph each rank runs.
    pub of_rank: Vec<u32>,
    /// Lists of ranks that collectives may name.
    pub groups: Vec<Group>,
    /// Collectives that are graphs: of each, one graph for each position of its group.
    pub own: Vec<Vec<Graph>>,
}

/// A communicator group: its ranks in the order of its ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its number in tags.
    pub id: u64,
    /// Its ranks.
    pub ranks: Vec<u32>,
}

/// An operation names what is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// Its rank.
    pub rank: u32,
    /// Its number.
    pub operation: u64,
    /// What is not there.
    pub what: &'static str,
}

impl Trace {
    /// Every rank runs a graph of its own.
    #[must_use]
    pub fn new(graphs: Vec<Graph>, groups: Vec<Group>) -> Self {
        Self { of_rank: (0..).take(graphs.len()).collect(), graphs, groups, own: Vec::new() }
    }

    /// Every one of so many ranks runs the same graph.
    #[must_use]
    pub fn same(graph: Graph, ranks: u32) -> Self {
        Self { of_rank: vec![0; ranks as usize], graphs: vec![graph], ..Self::default() }
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        crate::units::narrow(self.of_rank.len() as u64)
    }

    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let graphs = self.graphs.iter().chain(self.own.iter().flatten()).map(Graph::bytes);
        let ranks = self.groups.iter().map(|group| group.ranks.len()).chain([self.of_rank.len()]);
        graphs.sum::<u64>() + ranks.map(|ranks| (ranks * size_of::<u32>() + size_of::<Group>()) as u64).sum::<u64>()
    }

    /// The graph of a rank.
    #[must_use]
    pub fn graph(&self, rank: u32) -> &Graph {
        &self.graphs[self.of_rank[rank as usize] as usize]
    }

    /// A group that names a rank twice, or one that is not there.
    #[must_use]
    pub fn broken_group(&self) -> Option<&Group> {
        let ranks = self.ranks();
        self.groups.iter().find(|group| !group.ranks.iter().all_unique() || group.ranks.iter().any(|&it| it >= ranks))
    }

    /// The first operation that names a group or a rank which is not there, or not in question.
    #[must_use]
    pub fn stranger(&self) -> Option<Stranger> {
        let ranks = self.ranks();
        (0..ranks).find_map(|rank| {
            let mut nodes = self.graph(rank).nodes().iter();
            nodes.find_map(|node| Some(Stranger { rank, operation: node.id, what: self.names(node.work, rank)? }))
        })
    }

    /// What the work of a rank names that is not there.
    fn names(&self, work: Work, rank: u32) -> Option<&'static str> {
        let other = match work {
            Work::Collective { group, .. } => {
                return match self.groups.get(group? as usize) {
                    None => Some("a group that is not there"),
                    Some(group) if !group.ranks.contains(&rank) => Some("a group that the rank is not in"),
                    Some(_) => None,
                };
            }
            Work::Send { to, .. } => to,
            Work::Receive { from, .. } => from,
            Work::Compute { .. }
            | Work::Lasts { .. }
            | Work::Load { .. }
            | Work::Store { .. }
            | Work::Sum { .. }
            | Work::Nothing => {
                return None;
            }
        };
        if other == rank {
            Some("the rank itself")
        } else {
            (other >= self.ranks()).then_some("a rank that is not there")
        }
    }
}
