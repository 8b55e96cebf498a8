//! Symmetry: which ranks do the same at the same time, so that one of each class stands for all [ASTRA2].
//!
//! If all members of every group are of one class, each message that a member sends has a twin that reaches it at the same
//! instant: the receive that is posted with a message is met when that message arrives. One member then is simulated by
//! itself, and messages between classes go from one representative to another.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use super::{TAGS, shares_bandwidth};
use crate::system::collective::{Collective, Part};
use crate::system::machine::{Congestion, Entry, Machine, Place};
use crate::system::rules::Quirk;
use crate::units::narrow;
use crate::workload::trace::{Graph, Trace, Work};

/// Ranks by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// The class of each rank.
    pub of_rank: Vec<u32>,
    /// A rank of each class.
    pub representatives: Vec<u32>,
}

impl Classes {
    /// Every rank is a class of its own.
    #[must_use]
    pub fn single(ranks: u32) -> Self {
        Self { of_rank: (0..ranks).collect(), representatives: (0..ranks).collect() }
    }

    /// The classes of a trace's ranks on a machine.
    ///
    /// Ranks are of one class if their graphs are the same but for whom they name, and whom they name is of one class: the
    /// coarsest such classes are found by splitting until nothing splits any more.
    ///
    /// # Errors
    /// Why ranks cannot stand for each other.
    pub fn of(machine: &Machine, trace: &Trace) -> Result<Self, &'static str> {
        refuse(machine)?;
        let mut search = Search { machine, trace, used: BTreeSet::new(), shapes: BTreeMap::new(), is_everybody: 0 };
        let mut colours = search.colours()?;
        let links = search.links()?;
        let mut found = count(&colours);
        loop {
            colours = refined(&colours, &links);
            let now = count(&colours);
            if now == found {
                break;
            }
            found = now;
        }
        search.keeps_together(&colours)?;
        let classes = Self::numbered(&colours);
        if classes.representatives.len() > 1 && machine.dimension_order.part().is_by_load() {
            return Err("Themis plans for all ranks together");
        }
        let collectives =
            |graph: &Graph| graph.nodes().iter().filter(|node| matches!(node.work, Work::Collective { .. })).count();
        let has_several = trace.graphs.iter().any(|graph| collectives(graph) > 1);
        if machine.dimension_order.part().is_by_load() && has_several {
            return Err("Themis plans for ranks that come later with the loads of those before");
        }
        // Of two chunks that come at the same instant either may be the first, and ranks may differ in which.
        if !machine.queue_order.part().is_plain() && has_several {
            return Err("chunks of several collectives overtake each other");
        }
        if machine.bus.is_some() && has_several {
            return Err("messages of several collectives meet on the memory bus");
        }
        classes.tells_messages_apart(trace)?;
        classes.keeps_order(trace)?;
        Ok(classes)
    }

    /// Whether one rank can stand for all that run its graph, if ranks of one graph are in like groups: the trace has the groups
    /// that the graphs name.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn stand_for_all<'a>(
        machine: &Machine,
        trace: &Trace,
        graphs: impl Iterator<Item = &'a Graph>,
    ) -> Result<(), &'static str> {
        refuse(machine)?;
        let mut search = Search { machine, trace, used: BTreeSet::new(), shapes: BTreeMap::new(), is_everybody: 0 };
        for node in graphs.flat_map(Graph::nodes) {
            if let Work::Collective { collective, group, dimensions, .. } = node.work {
                search.shape(node.id, collective, group, dimensions)?;
            }
        }
        Ok(())
    }

    fn numbered(colours: &[u64]) -> Self {
        let mut classes: BTreeMap<u64, u32> = BTreeMap::new();
        let mut representatives = Vec::new();
        let mut number = |(colour, rank): (&u64, u32)| {
            *classes.entry(*colour).or_insert_with(|| {
                representatives.push(rank);
                narrow(representatives.len() as u64 - 1)
            })
        };
        let of_rank = colours.iter().zip(0..).map(&mut number).collect();
        Self { of_rank, representatives }
    }

    /// Whether the k-th rank of a class sends to the k-th of another: what happens at one instant then has the same order for all.
    ///
    /// If every rank sends to the next of its own class, the first sees its own message arrive before the one it waits for,
    /// the others after it, and they may go on with different operations.
    fn keeps_order(&self, trace: &Trace) -> Result<(), &'static str> {
        let mut members = vec![0_u32; self.representatives.len()];
        let place = |&class: &u32| {
            members[class as usize] += 1;
            members[class as usize] - 1
        };
        let places: Vec<u32> = self.of_rank.iter().map(place).collect();
        let is_kept = |rank: u32| {
            trace.graph(rank).nodes().iter().all(|node| match node.work {
                Work::Send { to, .. } => {
                    let [own, other] = [rank, to].map(|rank| self.of_rank[rank as usize]);
                    own != other && places[rank as usize] == places[to as usize]
                }
                _ => true,
            })
        };
        let is_kept = (0..trace.ranks()).all(is_kept);
        if is_kept { Ok(()) } else { Err("messages go between ranks of one class, or across") }
    }

    /// Whether a message is known by the classes of its ends, its tag and its bytes.
    fn tells_messages_apart(&self, trace: &Trace) -> Result<(), &'static str> {
        for &rank in &self.representatives {
            let class = |rank: u32| self.of_rank[rank as usize];
            let mut seen: Vec<(bool, u32, u64, u64)> = trace
                .graph(rank)
                .nodes()
                .iter()
                .filter_map(|node| match node.work {
                    Work::Send { to, bytes, tag } => Some((true, class(to), tag % TAGS, bytes)),
                    Work::Receive { from, bytes, tag } => Some((false, class(from), tag % TAGS, bytes)),
                    _ => None,
                })
                .collect();
            seen.sort_unstable();
            if seen.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err("messages of one tag go between ranks of the same classes");
            }
        }
        Ok(())
    }
}

/// What no symmetry is worked out for.
fn refuse(machine: &Machine) -> Result<(), &'static str> {
    let says = [
        (machine.congestion == Congestion::Aware, "links carry one message at a time"),
        (machine.rendezvous, "receivers ask before messages are sent"),
    ];
    says.into_iter().find(|says| says.0).map_or(Ok(()), |says| Err(says.1))
}

/// A message's end: the operation, the rank at the other end, the operation there, and a hash of the ways between.
type Link = (u32, u32, u32, u64);

struct Search<'a> {
    machine: &'a Machine,
    trace: &'a Trace,
    /// Groups of some of the ranks that take part in anything.
    used: BTreeSet<u32>,
    /// What the ring of a group looks like to each of its members, by group and collective.
    shapes: BTreeMap<(u32, usize), u64>,
    /// The dimensions of collectives among all ranks, a bit each.
    is_everybody: u32,
}

impl Search<'_> {
    /// A first colour of each rank: what its graph is but for whom it names.
    fn colours(&mut self) -> Result<Vec<u64>, &'static str> {
        let trace = self.trace;
        let mut of_graph = vec![None; trace.graphs.len()];
        let mut colours = Vec::with_capacity(trace.of_rank.len());
        for &graph in &trace.of_rank {
            let known = of_graph[graph as usize];
            let colour = match known {
                Some(colour) => colour,
                None => self.colour(graph as usize)?,
            };
            of_graph[graph as usize] = Some(colour);
            colours.push(colour);
        }
        Ok(colours)
    }

    fn colour(&mut self, graph: usize) -> Result<u64, &'static str> {
        let graph = &self.trace.graphs[graph];
        let mut words: Vec<u8> = Vec::with_capacity(graph.nodes().len() * 48);
        let mut add = |word: u64| words.extend_from_slice(&word.to_le_bytes());
        for (place, node) in graph.nodes().iter().enumerate() {
            add(node.id);
            add(node.recorded);
            add(u64::from(node.on_host));
            match node.work {
                Work::Compute { operations, bytes } => {
                    add(1);
                    for known in [operations, bytes] {
                        add(u64::from(known.is_some()));
                        add(known.unwrap_or(0));
                    }
                }
                Work::Collective { collective, bytes, .. } if self.machine.is_delay(collective) => {
                    add(3);
                    add(bytes);
                }
                Work::Collective { collective, bytes, group, dimensions } => {
                    add(2 + 16 * collective as u64);
                    add(bytes);
                    add(self.shape(node.id, collective, group, dimensions)?);
                }
                Work::Send { bytes, tag, .. } => {
                    add(4);
                    add(bytes);
                    add(tag);
                }
                Work::Receive { bytes, tag, .. } => {
                    add(5);
                    add(bytes);
                    add(tag);
                }
                Work::Load { bytes } | Work::Store { bytes } => {
                    if self.machine.remote.is_some_and(|remote| remote.place != Place::PerNpu) {
                        return Err("ranks wait for each other at a memory that they share");
                    }
                    add(6);
                    add(bytes);
                }
                Work::Nothing => add(7),
                Work::Lasts { time } => {
                    add(9);
                    add(time.as_picoseconds());
                }
                Work::Sum { place } => {
                    add(8);
                    add(u64::from(place));
                }
            }
            for &follower in graph.followers(place) {
                add(u64::from(follower) << 8);
            }
        }
        Ok(xxh3_64(&words))
    }

    /// What a collective's members look like from any of them.
    fn shape(&mut self, id: u64, kind: Collective, group: Option<u32>, dimensions: u32) -> Result<u64, &'static str> {
        let machine = self.machine;
        let collective = kind as usize;
        if machine.own.of_operation.contains_key(&id) || machine.own.of_collective[collective].is_some() {
            return Err("a collective is a graph of its own");
        }
        let entries = &machine.algorithms[collective];
        let is_whole = entries.first().is_some_and(|entry| entry.whole) && machine.dimensions.len() > 1;
        if is_whole && shares_bandwidth(machine) {
            return Err("messages of one ring over all dimensions take turns in each");
        }
        let part = group.filter(|&group| self.trace.groups[group as usize].ranks.len() < machine.npus() as usize);
        let Some(group) = part else {
            let dimensions = if group.is_some() { u32::MAX } else { dimensions };
            self.is_everybody |= dimensions;
            for (entry, dimension) in entries.iter().zip(&machine.dimensions) {
                regular(*entry, kind, dimension.size)?;
                if entry.whole && machine.dimensions.len() > 1 {
                    return Err("one ring goes through several dimensions");
                }
            }
            return Ok(u64::from(dimensions) << 1);
        };
        self.used.insert(group);
        if let Some(&shape) = self.shapes.get(&(group, collective)) {
            return Ok(shape);
        }
        let is_flat = machine.rules.has(Quirk::FlatGroups) && !shares_bandwidth(machine);
        let spans = machine.spans(&self.trace.groups[group as usize].ranks).filter(|it| !is_whole || it.len() < 2);
        if !is_flat && let Some(spans) = spans {
            let mut words: Vec<u8> = Vec::new();
            for span in &spans {
                if let Some(&entry) = entries.get(span.dim).or(entries.last()) {
                    regular(entry, kind, span.members)?;
                }
                let line = [span.dim as u64, u64::from(span.members), u64::from(span.stride)];
                for word in line {
                    words.extend_from_slice(&word.to_le_bytes());
                }
            }
            let shape = xxh3_64(&words) | 1;
            self.shapes.insert((group, collective), shape);
            return Ok(shape);
        }
        if shares_bandwidth(machine) {
            return Err("a group is no regular part of the network");
        }
        let entry = machine.flat(kind);
        let ranks = &self.trace.groups[group as usize].ranks;
        let members = narrow(ranks.len() as u64);
        regular(entry, kind, members)?;
        let way = |from: u32, to: u32| machine.way(ranks[from as usize], ranks[to as usize]);
        let mut words: Vec<u8> = members.to_le_bytes().to_vec();
        let mut is_regular = true;
        if members > 1 {
            // What halves there are go to the same members; an all-to-all goes to others.
            let algorithm = entry.algorithm.part();
            let part = |me| Part {
                collective: if kind == Collective::AllToAll { kind } else { Collective::ReduceScatter },
                bytes: 0,
                me,
                members,
                step: 1,
                window: algorithm.window(entry.window, members),
                is_group: true,
            };
            let mut last = None;
            for number in 0..algorithm.count(&part(0)) {
                let to = |me: u32| algorithm.message(&part(me), number).to;
                if last.replace(to(0)) == Some(to(0)) {
                    continue;
                }
                let first = way(0, to(0));
                words.extend_from_slice(&first.key().to_le_bytes());
                is_regular &= (1..members).all(|me| way(me, to(me)) == first);
            }
        }
        if !is_regular {
            return Err("members of a group are not equally far from each other");
        }
        let shape = xxh3_64(&words) | 1;
        self.shapes.insert((group, collective), shape);
        Ok(shape)
    }

    /// Sends and receives, matched: of each rank its ends.
    fn links(&self) -> Result<Vec<Vec<Link>>, &'static str> {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for rank in 0..self.trace.ranks() {
            for (node, place) in self.trace.graph(rank).nodes().iter().zip(0_u32..) {
                match node.work {
                    Work::Send { to, bytes, tag } => sends.push(((rank, to, tag % TAGS, bytes), place)),
                    Work::Receive { from, bytes, tag } => receives.push(((from, rank, tag % TAGS, bytes), place)),
                    _ => {}
                }
            }
        }
        sends.sort_unstable();
        receives.sort_unstable();
        let same = sends.iter().zip(&receives).all(|(send, receive)| send.0 == receive.0);
        if sends.len() != receives.len() || !same {
            return Err("a message is not sent, or not received");
        }
        if sends.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err("several messages have the same ends, tag and bytes");
        }
        let mut links = vec![Vec::new(); self.trace.of_rank.len()];
        for (&((from, to, ..), sent), &(_, received)) in sends.iter().zip(&receives) {
            let ways = self.machine.ways(from, to).fold(0, |sum: u64, way| sum.rotate_left(7) ^ way.key());
            links[from as usize].push((sent, to, received, ways));
            links[to as usize].push((received, from, sent, ways));
        }
        for links in &mut links {
            links.sort_unstable();
        }
        Ok(links)
    }

    /// Whether all members of each group are of one class.
    fn keeps_together(&self, colours: &[u64]) -> Result<(), &'static str> {
        let mut groups = self.used.iter().map(|&group| &self.trace.groups[group as usize].ranks);
        let is_one = |ranks: &Vec<u32>| ranks.iter().all(|&rank| colours[rank as usize] == colours[ranks[0] as usize]);
        let mut stride = 1;
        let mut is_whole = true;
        for (k, dimension) in self.machine.dimensions.iter().enumerate() {
            if self.is_everybody & (1 << k) != 0 {
                let mut ranks = (0..).zip(colours);
                is_whole &= ranks.all(|(rank, &colour): (u32, _)| {
                    colours[(rank - rank / stride % dimension.size * stride) as usize] == colour
                });
            }
            stride *= dimension.size;
        }
        if !is_whole || !groups.all(is_one) {
            return Err("members of a group do different things");
        }
        self.keeps_order()
    }

    /// Whether all members of a group take part in its collectives at the same places of their graphs.
    fn keeps_order(&self) -> Result<(), &'static str> {
        let uses: Vec<BTreeMap<Option<u32>, u64>> =
            (0..self.trace.graphs.len()).map(|graph| self.uses(graph)).collect();
        let of = |rank: u32, group: Option<u32>| uses[self.trace.of_rank[rank as usize] as usize].get(&group);
        let ranks = self.trace.ranks();
        let everybody = (1..ranks).all(|rank| of(rank, None) == of(0, None));
        let is_same = |&group: &u32| {
            let ranks = &self.trace.groups[group as usize].ranks;
            ranks.iter().all(|&rank| of(rank, Some(group)) == of(ranks[0], Some(group)))
        };
        let everywhere = (0..)
            .zip(&self.trace.groups)
            .map(|(group, _)| group)
            .filter(|group| !self.trace.groups[*group as usize].ranks.is_empty());
        if everybody && everywhere.into_iter().all(|group| is_same(&group)) {
            Ok(())
        } else {
            Err("members of a group take part in its collectives in different orders")
        }
    }

    /// The places of a graph's collectives, by their groups, as a number each.
    fn uses(&self, graph: usize) -> BTreeMap<Option<u32>, u64> {
        let mut uses: BTreeMap<Option<u32>, u64> = BTreeMap::new();
        for (node, place) in self.trace.graphs[graph].nodes().iter().zip(1_u64..) {
            if let Work::Collective { group, .. } = node.work {
                let sum = uses.entry(group).or_default();
                *sum = (*sum ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
            }
        }
        uses
    }
}

/// Whether every member of an algorithm does the same.
fn regular(entry: Entry, collective: Collective, members: u32) -> Result<(), &'static str> {
    let algorithm = entry.algorithm.part();
    if algorithm.branch(0, 2, false).is_some() {
        Err("the members of a tree do different things")
    } else if algorithm.needs_power_of_two(collective) && !members.is_power_of_two() {
        Err("halving and doubling over no power of two")
    } else {
        Ok(())
    }
}

/// Colours by those of the ranks at the other ends of messages.
fn refined(colours: &[u64], links: &[Vec<Link>]) -> Vec<u64> {
    let mut words: Vec<u8> = Vec::new();
    let colour = |(colour, links): (&u64, &Vec<Link>)| {
        words.clear();
        words.extend_from_slice(&colour.to_le_bytes());
        for &(place, peer, other, ways) in links {
            let line = [u64::from(place), colours[peer as usize], u64::from(other), ways];
            for word in line {
                words.extend_from_slice(&word.to_le_bytes());
            }
        }
        xxh3_64(&words)
    };
    colours.iter().zip(links).map(colour).collect()
}

fn count(colours: &[u64]) -> usize {
    let mut colours = colours.to_vec();
    colours.sort_unstable();
    colours.dedup();
    colours.len()
}
