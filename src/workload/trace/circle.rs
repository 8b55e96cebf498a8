//! Circles: which of those that wait for each other wait for ever.

use std::collections::VecDeque;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::EdgeRef as _;

/// One circle of each part of a graph in which every vertex leads to every other, as its edges in their order.
///
/// Of a part it is a shortest one through the vertex with the smallest number; parts come in the order of these. The cost is
/// linear, and nothing recurs: a circle may be as long as the graph.
pub fn circles<E>(graph: &DiGraph<(), E>) -> Vec<Vec<EdgeIndex>> {
    let parts = kosaraju_scc(graph);
    let mut part_of = vec![0; graph.node_count()];
    for (k, part) in parts.iter().enumerate() {
        for vertex in part {
            part_of[vertex.index()] = k;
        }
    }
    let mut came = vec![None; graph.node_count()];
    let mut starts: Vec<NodeIndex> = parts.iter().filter_map(|part| part.iter().min().copied()).collect();
    starts.sort_unstable();
    starts.into_iter().filter_map(|start| through(graph, start, &part_of, &mut came)).collect()
}

/// A shortest circle through a vertex. Parts are apart, so what is known of the ways in one serves no other.
fn through<E>(
    graph: &DiGraph<(), E>,
    start: NodeIndex,
    part_of: &[usize],
    came: &mut [Option<EdgeIndex>],
) -> Option<Vec<EdgeIndex>> {
    let mut open = VecDeque::from([start]);
    while let Some(vertex) = open.pop_front() {
        for edge in graph.edges(vertex) {
            let next = edge.target();
            if part_of[next.index()] != part_of[start.index()] || came[next.index()].is_some() {
                continue;
            }
            came[next.index()] = Some(edge.id());
            if next != start {
                open.push_back(next);
                continue;
            }
            let mut way = vec![edge.id()];
            let mut at = vertex;
            while at != start {
                let edge = came[at.index()]?;
                way.push(edge);
                at = graph.edge_endpoints(edge)?.0;
            }
            way.reverse();
            return Some(way);
        }
    }
    None
}
