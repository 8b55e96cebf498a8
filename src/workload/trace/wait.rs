//! Who waits for whom across ranks, and whether some wait for each other in a circle.

use petgraph::graph::DiGraph;

use super::Trace;
use super::circle::circles;
use super::fault::{Step, Why};
use crate::units::narrow;

/// No operation.
const NONE: u32 = u32::MAX;

/// The operations of all ranks: those that can only end together are one vertex.
#[derive(Debug)]
pub struct Waits<'a> {
    trace: &'a Trace,
    /// The number of each rank's first operation, and the number of all.
    first: Vec<u32>,
    /// The vertex of each operation: the number of the first that it ends with.
    vertex: Vec<u32>,
    /// The next operation of the same vertex.
    next: Vec<u32>,
    /// The receive that waits for a send.
    receive: Vec<u32>,
    /// For how many others each vertex still waits.
    open: Vec<u32>,
}

impl<'a> Waits<'a> {
    /// Every operation waits for those that it depends on, and for nothing else yet.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        let mut first = vec![0];
        let mut waits = Vec::new();
        for rank in 0..trace.ranks() {
            waits.extend_from_slice(trace.graph(rank).waits());
            first.push(narrow(waits.len() as u64));
        }
        let number = narrow(waits.len() as u64);
        let none = vec![NONE; waits.len()];
        Self { trace, first, vertex: (0..number).collect(), next: none.clone(), receive: none, open: waits }
    }

    /// An operation, by its rank and its place there.
    fn number(&self, (rank, place): (u32, u32)) -> u32 {
        self.first[rank as usize] + place
    }

    /// The rank of an operation, and its place there.
    fn at(&self, number: u32) -> (u32, u32) {
        let rank = self.first.partition_point(|&first| first <= number) - 1;
        (narrow(rank as u64), number - self.first[rank])
    }

    /// A receive waits for a send.
    pub fn message(&mut self, send: (u32, u32), receive: (u32, u32)) {
        let (send, receive) = (self.number(send), self.number(receive));
        self.receive[send as usize] = receive;
        self.open[receive as usize] += 1;
    }

    /// Operations end together.
    pub fn together(&mut self, operations: impl Iterator<Item = (u32, u32)>) {
        let mut last = None;
        for operation in operations {
            let number = self.number(operation) as usize;
            if let Some((vertex, before)) = last {
                self.vertex[number] = vertex;
                self.next[before] = narrow(number as u64);
                self.open[vertex as usize] += self.open[number];
                last = Some((vertex, number));
            } else {
                last = Some((narrow(number as u64), number));
            }
        }
    }

    /// The operations that wait for one, and why.
    fn followers(&self, number: u32) -> impl Iterator<Item = (u32, Why)> {
        let (rank, place) = self.at(number);
        let followers = self.trace.graph(rank).followers(place as usize);
        let first = self.first[rank as usize];
        let receive = Some(self.receive[number as usize]).filter(|&receive| receive != NONE);
        let depend = followers.iter().map(move |&follower| (first + follower, Why::Depends));
        depend.chain(receive.map(|receive| (receive, Why::Receives)))
    }

    /// The circles: nothing in them ever ends.
    pub fn circles(mut self) -> Vec<Vec<Step>> {
        let all = narrow(self.open.len() as u64);
        let is_free = |&k: &u32| self.vertex[k as usize] == k && self.open[k as usize] == 0;
        let mut open: Vec<u32> = (0..all).filter(is_free).collect();
        while let Some(vertex) = open.pop() {
            let mut number = vertex;
            while number != NONE {
                let (rank, place) = self.at(number);
                let (first, receive) = (self.first[rank as usize], self.receive[number as usize]);
                let followers =
                    self.trace.graph(rank).followers(place as usize).iter().map(|&follower| first + follower);
                for follower in followers.chain((receive != NONE).then_some(receive)) {
                    let vertex = self.vertex[follower as usize];
                    self.open[vertex as usize] -= 1;
                    if self.open[vertex as usize] == 0 {
                        open.push(vertex);
                    }
                }
                number = self.next[number as usize];
            }
        }
        self.left(all)
    }

    /// The circles among the operations that still wait.
    fn left(&self, all: u32) -> Vec<Vec<Step>> {
        let is_left = |number: u32| self.open[self.vertex[number as usize] as usize] > 0;
        let left: Vec<u32> = (0..all).filter(|&k| self.vertex[k as usize] == k && is_left(k)).collect();
        let place = |number: u32| narrow(left.binary_search(&self.vertex[number as usize]).unwrap_or_default() as u64);
        let mut edges = Vec::new();
        for waited in (0..all).filter(|&k| is_left(k)) {
            for (waits, why) in self.followers(waited).filter(|follower| is_left(follower.0)) {
                edges.push((place(waits), place(waited), (waits, waited, why)));
            }
        }
        let graph = DiGraph::<(), (u32, u32, Why)>::from_edges(edges);
        let found = circles(&graph);
        found
            .into_iter()
            .map(|circle| self.told(circle.into_iter().filter_map(|edge| graph.edge_weight(edge))))
            .collect()
    }

    /// A circle with the ranks and names of its operations; where it goes on at another rank's part of a collective, a step
    /// says so.
    fn told<'b>(&self, circle: impl Iterator<Item = &'b (u32, u32, Why)>) -> Vec<Step> {
        let circle: Vec<_> = circle.collect();
        let step = |waits: u32, waited: u32, why: Why| {
            let [waits, waited] = [waits, waited].map(|number| {
                let (rank, place) = self.at(number);
                self.trace.spot(rank, place as usize)
            });
            Step { waits, waited, why }
        };
        let mut steps = Vec::new();
        for (k, &&(waits, waited, why)) in circle.iter().enumerate() {
            steps.push(step(waits, waited, why));
            let next = circle[(k + 1) % circle.len()].0;
            if next != waited {
                steps.push(step(waited, next, Why::TakesPart));
            }
        }
        steps
    }
}
