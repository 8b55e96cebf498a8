//! The execution graph of one rank: its operations, and which of them wait for which, checked when it is built.

use std::ops::Range;

use petgraph::graph::DiGraph;
use thiserror::Error;

use crate::system::collective::Collective;
use crate::units::{Time, narrow};

/// An operation of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Its number: of several that could start, the smallest goes first.
    pub id: u64,
    /// What it does.
    pub work: Work,
    /// How long it was recorded to take, nanoseconds; 0 if it was not.
    pub recorded: u64,
    /// Whether the host does it, not the NPU.
    pub on_host: bool,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Computes.
    Compute {
        /// Arithmetic operations, if they are known.
        operations: Option<u64>,
        /// Bytes between the NPU and its local memory, if they are known.
        bytes: Option<u64>,
    },
    /// Computes for a time that is known.
    Lasts {
        /// How long.
        time: Time,
    },
    /// Takes part in a collective.
    Collective {
        /// Which.
        collective: Collective,
        /// Bytes: of one rank's whole buffer; of its shard for an all-gather.
        bytes: u64,
        /// Among the ranks of a group, by its place in the trace's list; all if there is none.
        group: Option<u32>,
        /// The dimensions that take part, a bit each.
        dimensions: u32,
    },
    /// Sends.
    Send {
        /// To whom.
        to: u32,
        /// How many bytes.
        bytes: u64,
        /// Under which tag.
        tag: u64,
    },
    /// Receives.
    Receive {
        /// From whom.
        from: u32,
        /// How many bytes.
        bytes: u64,
        /// Under which tag.
        tag: u64,
    },
    /// Reads from the memory beyond the NPU's own.
    Load {
        /// How many bytes.
        bytes: u64,
    },
    /// Writes to the memory beyond the NPU's own.
    Store {
        /// How many bytes.
        bytes: u64,
    },
    /// A part of the graph whose time is known, by its place among those.
    Sum {
        /// The place.
        place: u32,
    },
    /// Nothing that takes time: a mark in the graph.
    Nothing,
}

/// The execution graph of one rank: operations in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Node>,
    /// Who follows each operation, one list behind the other.
    followers: Vec<u32>,
    /// Where the list of each ends.
    ends: Vec<u32>,
    /// For how many others each operation waits.
    waits: Vec<u32>,
    /// Names, one behind the other, and where each ends.
    names: String,
    name_ends: Vec<u32>,
}

/// Why operations are no graph.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Broken {
    /// An operation waits for one that is not there.
    #[error("operation {operation} waits for operation {missing}, which is not there")]
    Dangling {
        /// The operation.
        operation: u64,
        /// What it waits for.
        missing: u64,
    },
    /// Two operations have one number.
    #[error("two operations have the number {operation}")]
    Twice {
        /// The number.
        operation: u64,
    },
    /// Operations wait for each other in a circle.
    #[error("operations wait for each other in a circle: {}", circle(.0))]
    Circle(Vec<(u64, String)>),
}

/// The members of a circle, each waiting for the one behind it.
fn circle(members: &[(u64, String)]) -> String {
    let name = |(id, name): &(u64, String)| if name.is_empty() { id.to_string() } else { format!("{id} ({name})") };
    let first = members.first().map(name);
    members.iter().map(name).chain(first).collect::<Vec<_>>().join(" waits for ")
}

/// Operations as they are read, before they are a graph.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    nodes: Vec<(Node, Range<usize>, Range<usize>)>,
    after: Vec<u64>,
    names: String,
}

impl Draft {
    /// Adds an operation that waits for others, by their numbers.
    pub fn push(&mut self, node: Node, name: &str, after: impl IntoIterator<Item = u64>) {
        let (first, start) = (self.after.len(), self.names.len());
        self.after.extend(after);
        self.after[first..].sort_unstable();
        self.names.push_str(name);
        self.nodes.push((node, first..self.after.len(), start..self.names.len()));
    }

    /// Of operations with one number the last is kept: the number, and the names of the earlier and the later of each two.
    pub fn keep_last(&mut self) -> Vec<(u64, [String; 2])> {
        self.nodes.sort_by_key(|node| node.0.id);
        let name = |node: &(Node, Range<usize>, Range<usize>)| self.names[node.2.clone()].to_owned();
        let pairs = self.nodes.windows(2).filter(|pair| pair[0].0.id == pair[1].0.id);
        let replaced = pairs.map(|pair| (pair[0].0.id, [name(&pair[0]), name(&pair[1])])).collect();
        let mut kept = std::mem::take(&mut self.nodes);
        // The first of equals is kept, from the end.
        kept.reverse();
        kept.dedup_by_key(|node| node.0.id);
        kept.reverse();
        self.nodes = kept;
        replaced
    }

    /// The graph of the operations.
    ///
    /// # Errors
    /// If two operations have one number, one waits for another that is not there, or some wait for each other.
    pub fn finish(mut self) -> Result<Graph, Broken> {
        if !self.nodes.is_sorted_by_key(|node| node.0.id) {
            self.nodes.sort_by_key(|node| node.0.id);
        }
        if let Some(pair) = self.nodes.windows(2).find(|pair| pair[0].0.id == pair[1].0.id) {
            return Err(Broken::Twice { operation: pair[0].0.id });
        }
        let nodes: Vec<Node> = self.nodes.iter().map(|node| node.0).collect();
        let mut graph = Graph {
            waits: vec![0; nodes.len()],
            ends: vec![0; nodes.len()],
            names: String::with_capacity(self.names.len()),
            name_ends: Vec::with_capacity(nodes.len()),
            followers: Vec::new(),
            nodes,
        };
        let mut edges = Vec::with_capacity(self.after.len());
        let mut goes_back = false;
        for (k, (node, after, name)) in self.nodes.iter().enumerate() {
            graph.names.push_str(&self.names[name.clone()]);
            graph.name_ends.push(narrow(graph.names.len() as u64));
            let mut before = None;
            for &missing in &self.after[after.clone()] {
                if before.replace(missing) == Some(missing) {
                    continue;
                }
                let Some(first) = graph.position(missing) else {
                    return Err(Broken::Dangling { operation: node.id, missing });
                };
                goes_back |= first >= k;
                graph.waits[k] += 1;
                graph.ends[first] += 1;
                edges.push((first, k));
            }
        }
        // What only waits for smaller numbers has no circle.
        if goes_back && let Some(circle) = graph.circle(&edges) {
            return Err(Broken::Circle(circle));
        }
        graph.link(&edges);
        Ok(graph)
    }
}

impl Graph {
    /// The operations, in the order of their numbers.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The same graph of other work, told by what was.
    #[must_use]
    pub fn map(mut self, work: impl Fn(&Node) -> Work) -> Self {
        for node in &mut self.nodes {
            node.work = work(node);
        }
        self
    }

    /// The name of the operation at a place.
    #[must_use]
    pub fn name(&self, place: usize) -> &str {
        let start = if place == 0 { 0 } else { self.name_ends[place - 1] };
        &self.names[start as usize..self.name_ends[place] as usize]
    }

    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let numbers =
            [&self.followers, &self.ends, &self.waits, &self.name_ends].map(|list| size_of_val(list.as_slice()));
        let sizes = [size_of::<Self>(), size_of_val(self.nodes.as_slice()), self.names.len()];
        (sizes.iter().sum::<usize>() + numbers.iter().sum::<usize>()) as u64
    }

    /// The places of the operations that wait for the one at a place, ascending.
    #[must_use]
    pub fn followers(&self, place: usize) -> &[u32] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.followers[start as usize..self.ends[place] as usize]
    }

    /// For how many others each operation waits.
    #[must_use]
    pub fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// The place of an operation, by its number.
    #[must_use]
    pub fn position(&self, id: u64) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// The numbers of the operations for which the one at a place waits.
    #[must_use]
    pub fn after(&self, place: usize) -> Vec<u64> {
        let waited = |&k: &usize| self.followers(k).contains(&narrow(place as u64));
        (0..self.nodes.len()).filter(waited).map(|k| self.nodes[k].id).collect()
    }

    /// Fills the lists of followers; `ends` holds their lengths before.
    fn link(&mut self, edges: &[(usize, usize)]) {
        let mut start = 0;
        let mut next: Vec<u32> = Vec::with_capacity(self.ends.len());
        for end in &mut self.ends {
            next.push(start);
            start += *end;
            *end = start;
        }
        self.followers = vec![0; edges.len()];
        for &(first, then) in edges {
            self.followers[next[first] as usize] = narrow(then as u64);
            next[first] += 1;
        }
    }

    /// A circle of operations, each with its name, if there is one: each waits for the one behind it.
    fn circle(&self, edges: &[(usize, usize)]) -> Option<Vec<(u64, String)>> {
        let graph = DiGraph::<(), ()>::from_edges(
            edges.iter().map(|&(first, then)| (narrow(then as u64), narrow(first as u64))),
        );
        let way = super::circle::circles(&graph).into_iter().next()?;
        let from = way.into_iter().filter_map(|edge| Some(graph.edge_endpoints(edge)?.0.index()));
        Some(from.map(|k| (self.nodes[k].id, self.name(k).to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(nodes: &[(u64, &str, &[u64])]) -> Result<Graph, Broken> {
        let mut draft = Draft::default();
        for &(id, name, after) in nodes {
            let node = Node { id, work: Work::Nothing, recorded: 0, on_host: false };
            draft.push(node, name, after.iter().copied());
        }
        draft.finish()
    }

    #[test]
    fn operations_are_linked_in_the_order_of_their_numbers() {
        let graph = build(&[(9, "c", &[2, 5, 2]), (2, "a", &[]), (5, "b", &[2])]).expect("a graph");
        assert_eq!(graph.nodes().iter().map(|node| node.id).collect::<Vec<_>>(), [2, 5, 9]);
        assert_eq!([graph.name(0), graph.name(1), graph.name(2)], ["a", "b", "c"]);
        assert_eq!([graph.followers(0), graph.followers(1), graph.followers(2)], [&[1, 2][..], &[2], &[]]);
        assert_eq!(graph.waits(), [0, 1, 2]);
        assert_eq!(graph.after(2), [2, 5]);
    }

    #[test]
    fn operations_names_and_edges_take_memory() {
        let bytes = |nodes: &[(u64, &str, &[u64])]| build(nodes).expect("a graph").bytes();
        let node = size_of::<Node>() as u64;
        let one = bytes(&[(1, "a", &[])]);
        // An operation with three numbers, a name of five letters, an edge.
        assert_eq!(bytes(&[(1, "a", &[]), (2, "b", &[])]), one + node + 3 * 4 + 1);
        assert_eq!(bytes(&[(1, "a", &[]), (2, "bbbbb", &[1])]), one + node + 3 * 4 + 5 + 4);
    }

    #[test]
    fn a_circle_is_named_by_its_operations() {
        let broken =
            build(&[(1, "load", &[]), (2, "mul", &[4, 1]), (3, "add", &[2]), (4, "", &[3])]).expect_err("a circle");
        let text = broken.to_string();
        assert!(
            text.contains("2 (mul) waits for 4 waits for 3 (add) waits for 2 (mul)")
                || text.contains("4 waits for 3 (add)"),
            "{text}"
        );
        assert_eq!(build(&[(1, "self", &[1])]).map(drop), Err(Broken::Circle(vec![(1, "self".into())])));
    }

    #[test]
    fn a_circle_may_be_long() {
        let mut draft = Draft::default();
        let last = 300_000;
        for id in 0..=last {
            let after = if id == 0 { last } else { id - 1 };
            draft.push(Node { id, work: Work::Nothing, recorded: 0, on_host: false }, "", [after]);
        }
        let Err(Broken::Circle(members)) = draft.finish() else { panic!("a circle") };
        assert_eq!(members.len() as u64, last + 1);
    }

    #[test]
    fn of_one_number_the_last_is_kept() {
        let mut draft = Draft::default();
        for (id, name, after) in [(2, "c", Some(1)), (1, "a", None), (1, "b", None), (1, "d", None)] {
            draft.push(Node { id, work: Work::Nothing, recorded: 0, on_host: false }, name, after);
        }
        let names = |pair: [&str; 2]| pair.map(str::to_owned);
        assert_eq!(draft.keep_last(), [(1, names(["a", "b"])), (1, names(["b", "d"]))]);
        let graph = draft.finish().expect("a graph");
        assert_eq!((graph.nodes().len(), graph.name(0), graph.name(1)), (2, "d", "c"));
    }

    #[test]
    fn what_is_not_there_and_what_is_there_twice_are_refused() {
        assert_eq!(build(&[(1, "", &[7])]).map(drop), Err(Broken::Dangling { operation: 1, missing: 7 }));
        assert_eq!(build(&[(1, "", &[]), (1, "", &[])]).map(drop), Err(Broken::Twice { operation: 1 }));
    }
}
