//! Names that use each other: in which order they can be worked out, and which run in a circle.

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::key::{DIM_KEYS, KEYS, TIER_KEYS};
use crate::input::tree::{Entry, Node, Value};
use crate::units::Unit;

/// Names in an order in which each comes behind those that it uses, and the circles among them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Places of the names that are in no circle.
    pub order: Vec<usize>,
    /// Circles, each as the places of its names, from one that is used by the last.
    pub circles: Vec<Vec<usize>>,
}

/// The order of so many names, by whom each uses.
pub fn order(names: usize, uses: impl Fn(usize) -> Vec<usize>) -> Order {
    let mut graph = DiGraph::<(), ()>::with_capacity(names, names);
    let nodes: Vec<NodeIndex> = (0..names).map(|_| graph.add_node(())).collect();
    for (k, &node) in nodes.iter().enumerate() {
        for used in uses(k) {
            graph.update_edge(node, nodes[used], ());
        }
    }
    let mut found = Order::default();
    // Components come out in the order of their needs: what is used before who uses it.
    for component in tarjan_scc(&graph) {
        match component.as_slice() {
            [alone] if !graph.contains_edge(*alone, *alone) => found.order.push(alone.index()),
            _ => found.circles.push(round(&graph, &component)),
        }
    }
    found
}

/// One way round a component, from its first name.
fn round(graph: &DiGraph<(), ()>, component: &[NodeIndex]) -> Vec<usize> {
    let mut way: Vec<NodeIndex> = component.iter().min().copied().into_iter().collect();
    while let Some(&last) = way.last() {
        let next = graph.neighbors(last).filter(|next| component.contains(next)).min();
        match next.and_then(|next| {
            way.iter().position(|&known| known == next).or_else(|| {
                way.push(next);
                None
            })
        }) {
            Some(start) => return way[start..].iter().map(|node| node.index()).collect(),
            None if next.is_none() => break,
            None => {}
        }
    }
    way.iter().map(|node| node.index()).collect()
}

/// A circle as people read it: `a -> b -> a`.
pub fn as_text(circle: &[usize], entries: &[&Entry]) -> String {
    let names = circle.iter().chain(circle.first()).map(|&k| entries[k].key.as_str());
    names.collect::<Vec<_>>().join(" -> ")
}

/// The circles among the names of `define`, whether they are used or not.
pub fn of_definitions(entries: &[&Entry]) -> Vec<Vec<usize>> {
    order(entries.len(), |k| {
        let mut used = Vec::new();
        mentions(&entries[k].node, &mut |name| used.extend(entries.iter().position(|entry| entry.key == name)));
        used
    })
    .circles
}

/// Calls for every text that stands where a name of a mapping may stand.
fn mentions(node: &Node, see: &mut dyn FnMut(&str)) {
    match &node.value {
        Value::Text(text) => see(text),
        Value::List(items) => items.iter().for_each(|item| mentions(item, see)),
        Value::Map(entries) => {
            let is_value =
                |name: &str| [KEYS, DIM_KEYS, TIER_KEYS].iter().any(|keys| keys.iter().any(|key| key.name() == name));
            for entry in entries.iter().filter(|entry| !is_value(entry.key.rsplit('.').next().unwrap_or_default())) {
                mentions(&entry.node, see);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The order of derived values, by the words of their expressions.
pub fn of_expressions(entries: &[&Entry]) -> Order {
    order(entries.len(), |k| {
        let text = entries[k].node.scalar().unwrap_or_default();
        words(&text).filter_map(|word| named(word, entries)).collect()
    })
}

/// The words of an expression that stand outside quotes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let outside = text.split(['"', '\'']).step_by(2);
    outside.flat_map(|part| part.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')))
}

/// The entry that a word names, with or without its unit.
fn named(word: &str, entries: &[&Entry]) -> Option<usize> {
    let exactly = |name: &str| entries.iter().position(|entry| entry.key == name);
    exactly(word).or_else(|| Unit::NAMED.iter().find_map(|unit| exactly(word.strip_suffix(unit.suffix().as_str())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uses: &[&[usize]]) -> Order {
        order(uses.len(), |k| uses[k].to_vec())
    }

    #[test]
    fn what_is_used_comes_first() {
        assert_eq!(of(&[&[1], &[2], &[]]).order, [2, 1, 0]);
        assert_eq!(of(&[&[], &[0], &[0, 1]]).order, [0, 1, 2]);
    }

    #[test]
    fn circles_are_found_with_their_way_round_and_without_who_leads_into_them() {
        assert_eq!(of(&[&[0]]).circles, [[0]]);
        let found = of(&[&[1], &[2], &[1], &[]]);
        assert_eq!((found.circles, found.order), (vec![vec![1, 2]], vec![0, 3]));
    }
}
