//! Chains: whether operations of a graph follow each other in the only order that their dependencies allow.

use super::graph::Graph;
use crate::units::narrow;

/// How many steps a graph's searches may take, for each of its operations and dependencies.
const STEPS: usize = 16;

/// Answers for one graph, at a cost that is linear in its size however often it is asked: once that is used up, no order is
/// known to be forced.
#[derive(Debug)]
pub struct Chains<'a> {
    graph: &'a Graph,
    /// Where each operation comes in an order that dependencies allow; none if the order of numbers is one.
    position: Option<Vec<u32>>,
    /// The last search that saw each operation.
    seen: Vec<u32>,
    search: u32,
    steps: usize,
}

impl<'a> Chains<'a> {
    /// A graph that nothing was asked about.
    #[must_use]
    pub fn new(graph: &'a Graph) -> Self {
        let size = graph.nodes().len() + graph.waits().iter().map(|&waits| waits as usize).sum::<usize>();
        Self { graph, position: positions(graph), seen: Vec::new(), search: 0, steps: STEPS * (size + STEPS) }
    }

    /// Puts places in an order that dependencies allow. Whether it is the only one: each waits for the one before it.
    pub fn order(&mut self, places: &mut [u32]) -> bool {
        if let Some(position) = &self.position {
            places.sort_unstable_by_key(|&place| position[place as usize]);
        }
        places.windows(2).all(|pair| self.leads(pair[0], pair[1]))
    }

    const fn position(&self, place: u32) -> u32 {
        match &self.position {
            Some(position) => position.as_slice()[place as usize],
            None => place,
        }
    }

    /// Whether an operation waits for another, directly or not; no if that would take too long to find out.
    fn leads(&mut self, from: u32, to: u32) -> bool {
        self.seen.resize(self.graph.nodes().len(), 0);
        self.search += 1;
        let mut open = vec![from];
        while let Some(place) = open.pop() {
            let followers = self.graph.followers(place as usize);
            if followers.binary_search(&to).is_ok() {
                return true;
            }
            self.steps = self.steps.saturating_sub(followers.len() + 1);
            if self.steps == 0 {
                return false;
            }
            for &follower in followers {
                if self.position(follower) < self.position(to) && self.seen[follower as usize] != self.search {
                    self.seen[follower as usize] = self.search;
                    open.push(follower);
                }
            }
        }
        false
    }
}

/// Where each operation comes in an order that dependencies allow; none if the order of numbers is one.
fn positions(graph: &Graph) -> Option<Vec<u32>> {
    let ascends = |place: usize| graph.followers(place).first().is_none_or(|&first| first as usize > place);
    if (0..graph.nodes().len()).all(ascends) {
        return None;
    }
    let mut waits = graph.waits().to_vec();
    let mut order: Vec<u32> = (0..).zip(&waits).filter(|(_, waits)| **waits == 0).map(|(place, _)| place).collect();
    let mut position = vec![0; waits.len()];
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        position[place as usize] = narrow(next as u64);
        next += 1;
        for &follower in graph.followers(place as usize) {
            waits[follower as usize] -= 1;
            if waits[follower as usize] == 0 {
                order.push(follower);
            }
        }
    }
    Some(position)
}

#[cfg(test)]
mod tests {
    use super::super::graph::Draft;
    use super::super::{Node, Work};
    use super::*;

    fn graph(nodes: &[(u64, &[u64])]) -> Graph {
        let mut draft = Draft::default();
        for &(id, after) in nodes {
            let node = Node { id, work: Work::Nothing, recorded: 0, on_host: false };
            draft.push(node, "", after.iter().copied());
        }
        draft.finish().expect("a graph")
    }

    #[test]
    fn an_order_is_forced_by_what_lies_between_and_not_by_numbers() {
        let forced = graph(&[(0, &[]), (1, &[0]), (2, &[1]), (3, &[2])]);
        assert!(Chains::new(&forced).order(&mut [0, 2, 3]));
        let free = graph(&[(0, &[]), (1, &[0]), (2, &[0]), (3, &[1, 2])]);
        assert!(Chains::new(&free).order(&mut [0, 1, 3]));
        assert!(!Chains::new(&free).order(&mut [0, 1, 2]));
        let backwards = graph(&[(0, &[2]), (1, &[0]), (2, &[])]);
        let mut places = [0, 1, 2];
        assert!(Chains::new(&backwards).order(&mut places));
        assert_eq!(places, [2, 0, 1]);
    }

    #[test]
    fn many_questions_cost_no_more_than_a_few_walks() {
        // Two long chains side by side: each question would walk all of one.
        let mut draft = Draft::default();
        for id in 0..20_000 {
            let node = Node { id, work: Work::Nothing, recorded: 0, on_host: false };
            draft.push(node, "", (id >= 2).then(|| id - 2));
        }
        let graph = draft.finish().expect("a graph");
        let mut chains = Chains::new(&graph);
        let forced = (0..20_000).filter(|_| chains.order(&mut [0, 19_999])).count();
        assert_eq!((forced, chains.steps), (0, 0));
    }
}
