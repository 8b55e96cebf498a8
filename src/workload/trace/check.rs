//! What certainly goes wrong in a trace, in whatever order operations are taken: found before anything is simulated.
//!
//! Three searches, each linear in the size of the trace but for a sort: messages without their other end, collectives that
//! members of a group take for different ones, and operations of several ranks that wait for each other in a circle. What
//! depends on which of several operations goes first is not told here: a simulation says it.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::Chains;
use super::fault::{End, Fault};
use super::wait::Waits;
use super::{Graph, Trace, Work};
use crate::system::collective::Algorithm;
use crate::system::collective::Collective;
use crate::system::dimension_order::DimensionOrder;
use crate::system::machine::{Machine, Pace};
use crate::system::rules::Quirk;
use crate::units::narrow;

/// Tags that differ by this are one tag on the wire [ASTRA2].
const TAGS: u64 = 500_000_000;

/// A send or a receive; those of one message stand together when they are sorted, sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    from: u32,
    to: u32,
    tag: u64,
    bytes: u64,
    is_receive: bool,
    place: u32,
}

/// One rank's part in a collective: what must be the same in the others' parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    collective: Collective,
    /// How many chunks it is cut into.
    chunks: u64,
    /// A chunk's bytes, by the number of members: while these differ, the first messages do.
    share: u64,
}

/// A graph's collectives of one group.
#[derive(Debug, Default)]
struct Series {
    /// Their places, in an order that dependencies allow.
    places: Vec<u32>,
    /// What each is.
    parts: Vec<Part>,
    /// Whether the order is the only one.
    is_forced: bool,
    /// Whether one of them does not make all members wait for each other, as far as is known.
    is_loose: bool,
}

/// Of each graph, its collectives by their group.
type Collectives = BTreeMap<Option<u32>, Series>;

impl Trace {
    /// What certainly goes wrong when a machine runs it; nothing if the two do not fit, which a simulation refuses.
    ///
    /// Sends and receives are matched by ranks, tag and bytes, and by their numbers only, so that their order does not matter.
    /// Collectives are compared one by one where their order is forced by dependencies, else all together. In circles a
    /// receive waits for its send where it is certain which that is; a send waits for nothing, as it needs no receive.
    #[must_use]
    pub fn check(&self, machine: &Machine) -> Vec<Fault> {
        let mut faults = Vec::new();
        let fits = machine.check().is_ok() && machine.npus() == self.ranks() && self.broken_group().is_none();
        if !fits || machine.pace == Pace::Replayed {
            return faults;
        }
        self.check_powers(machine, &mut faults);
        // Ranks that all do the same do not wait for each other in vain.
        if self.of_rank.iter().all(|graph| *graph == self.of_rank[0]) {
            return faults;
        }
        let mut chains: Vec<Chains<'_>> = self.graphs.iter().map(Chains::new).collect();
        let mut waits = Waits::new(self);
        self.check_messages(machine, &mut chains, &mut waits, &mut faults);
        self.check_collectives(machine, &mut chains, &mut waits, &mut faults);
        faults.extend(waits.circles().into_iter().map(Fault::Circle));
        faults
    }

    fn check_messages(
        &self,
        machine: &Machine,
        chains: &mut [Chains<'_>],
        waits: &mut Waits<'_>,
        faults: &mut Vec<Fault>,
    ) {
        let mut messages = Vec::new();
        for rank in 0..self.ranks() {
            for (node, place) in self.graph(rank).nodes().iter().zip(0..) {
                let (from, to, tag, bytes, is_receive) = match node.work {
                    Work::Send { to, bytes, tag } => (rank, to, tag % TAGS, bytes, false),
                    Work::Receive { from, bytes, tag } => (from, rank, tag % TAGS, bytes, true),
                    _ => continue,
                };
                // Who is not there is told elsewhere.
                if from != to && from.max(to) < self.ranks() {
                    messages.push(Message { from, to, tag, bytes, is_receive, place });
                }
            }
        }
        messages.sort_unstable();
        let taken = self.tags_of_own();
        let mut open: Vec<(Message, (u64, u64))> = Vec::new();
        for alike in messages.chunk_by_mut(|a, b| (a.from, a.to, a.tag, a.bytes) == (b.from, b.to, b.tag, b.bytes)) {
            if taken.contains(&alike[0].tag) {
                continue;
            }
            let (sends, receives) = alike.split_at_mut(alike.partition_point(|message| !message.is_receive));
            let counts = (sends.len() as u64, receives.len() as u64);
            if let Some(last) = sends.last().filter(|_| counts.0 > counts.1) {
                open.push((*last, counts));
            }
            if let Some(last) = receives.last().filter(|_| counts.1 > counts.0) {
                open.push((*last, (counts.1, counts.0)));
            }
            let mut order = |messages: &[Message], rank: u32| {
                let mut places: Vec<u32> = messages.iter().map(|message| message.place).collect();
                chains[self.of_rank[rank as usize] as usize].order(&mut places).then_some(places)
            };
            if let ([first, ..], [_, ..]) = (&*sends, &*receives)
                && let (Some(sends), Some(receives)) = (order(sends, first.from), order(receives, first.to))
            {
                for (send, receive) in sends.into_iter().zip(receives) {
                    waits.message((first.from, send), (first.to, receive));
                }
            }
        }
        faults.extend(self.unmatched(&open, machine.rendezvous));
    }

    /// Messages with one end as faults, each with the other end that was perhaps meant.
    fn unmatched(&self, open: &[(Message, (u64, u64))], waits: bool) -> Vec<Fault> {
        // The keys that all but one of a message's four properties make, by which of them is left out.
        let keys = |message: &Message| {
            let Message { from, to, tag, bytes, is_receive, .. } = *message;
            let of = |k: u8, values: [u64; 3]| (k, !is_receive, values);
            let [from, to] = [from, to].map(u64::from);
            [of(0, [from, to, tag]), of(1, [from, to, bytes]), of(2, [to, tag, bytes]), of(3, [from, tag, bytes])]
        };
        let mut known = BTreeMap::new();
        for (message, _) in open {
            for (k, is_receive, values) in keys(message) {
                known.entry((k, !is_receive, values)).or_insert(*message);
            }
        }
        let end = |message: &Message| {
            let rank = if message.is_receive { message.to } else { message.from };
            self.end(rank, message.place as usize)
        };
        let near = |message: &Message| -> Option<(End, &'static str)> {
            let mut found = keys(message).into_iter().zip(["size", "tag", "sender", "receiver"]);
            found.find_map(|(key, what)| Some((end(known.get(&key)?)?, what)))
        };
        let fault = |&(ref message, counts): &(Message, (u64, u64))| {
            let (this, near) = (end(message)?, near(message));
            Some(if message.is_receive {
                Fault::Unsent { receive: this, counts, near }
            } else {
                Fault::Unreceived { send: this, counts, near, waits }
            })
        };
        open.iter().filter_map(fault).collect()
    }

    /// The tags of collectives that are graphs: their messages and those of the workload share them.
    fn tags_of_own(&self) -> BTreeSet<u64> {
        let nodes = self.own.iter().flatten().flat_map(Graph::nodes);
        let tag = |work| match work {
            Work::Send { tag, .. } | Work::Receive { tag, .. } => Some(tag % TAGS),
            _ => None,
        };
        nodes.filter_map(|node| tag(node.work)).collect()
    }

    fn check_collectives(
        &self,
        machine: &Machine,
        chains: &mut [Chains<'_>],
        waits: &mut Waits<'_>,
        faults: &mut Vec<Fault>,
    ) {
        let of_graph: Vec<Collectives> =
            (0..self.graphs.len()).map(|graph| self.collectives(graph, machine, &mut chains[graph])).collect();
        let groups: BTreeSet<Option<u32>> = of_graph.iter().flat_map(|series| series.keys().copied()).collect();
        let nothing = Series { is_forced: true, ..Series::default() };
        for group in groups {
            let members = match group {
                Some(group) => match self.groups.get(group as usize) {
                    Some(group) => group.ranks.clone(),
                    None => continue,
                },
                None => (0..self.ranks()).collect(),
            };
            let series = |rank: u32| of_graph[self.of_rank[rank as usize] as usize].get(&group).unwrap_or(&nothing);
            // Of members with the same graph the first is looked at.
            let mut seen = BTreeSet::new();
            let first: Vec<u32> =
                members.iter().copied().filter(|&rank| seen.insert(self.of_rank[rank as usize])).collect();
            if first.iter().any(|&rank| series(rank).is_loose) {
                continue;
            }
            let fault = self.unequal(machine, group, &members, series).or_else(|| {
                first.iter().skip(1).find_map(|&rank| self.different(machine, group, [first[0], rank], series))
            });
            if let Some(fault) = fault {
                faults.push(fault);
                continue;
            }
            if first.iter().all(|&rank| series(rank).is_forced) {
                for k in 0..series(first[0]).places.len() {
                    waits.together(members.iter().map(|&rank| (rank, series(rank).places[k])));
                }
            }
        }
    }

    /// The collectives of a graph.
    fn collectives(&self, graph: usize, machine: &Machine, chains: &mut Chains<'_>) -> Collectives {
        let mut found = Collectives::new();
        for (node, place) in self.graphs[graph].nodes().iter().zip(0..) {
            let Work::Collective { collective, bytes, group, dimensions } = node.work else { continue };
            let is_there = group.is_none_or(|group| (group as usize) < self.groups.len());
            let is_empty = bytes == 0 && collective == Collective::AllGather;
            if !is_there || is_empty || machine.is_delay(collective) {
                continue;
            }
            let series = found.entry(group).or_default();
            series.is_loose |=
                is_own(machine, node.id, collective) || !self.joins_all(machine, collective, group, dimensions);
            series.places.push(place);
        }
        for (&group, series) in &mut found {
            series.is_forced = chains.order(&mut series.places);
            let nodes = self.graphs[graph].nodes();
            series.parts =
                series.places.iter().filter_map(|&at| self.part(machine, group, nodes[at as usize].work)).collect();
        }
        found
    }

    /// What the others of a group must do too when one of them does some work.
    fn part(&self, machine: &Machine, group: Option<u32>, work: Work) -> Option<Part> {
        let Work::Collective { collective, bytes, .. } = work else { return None };
        let all = u64::from(machine.npus());
        let members = group.map_or(all, |group| self.groups[group as usize].ranks.len() as u64);
        let chunk = bytes / machine.chunks.max(1);
        let is_small = collective != Collective::AllGather && chunk < all;
        let (chunk, bytes) = if is_small { (all, machine.chunks * all) } else { (chunk.max(1), bytes) };
        Some(Part { collective, chunks: bytes.div_ceil(chunk), share: chunk / members.max(1) })
    }

    /// How a collective runs, dimension by dimension: the algorithm, and among how many; and whether all members of its group are in
    /// these.
    fn taking(
        &self,
        machine: &Machine,
        collective: Collective,
        group: Option<u32>,
        involved: u32,
    ) -> (Vec<(Algorithm, u32)>, bool) {
        let entries = &machine.algorithms[collective as usize];
        let members = group.and_then(|group| Some(narrow(self.groups.get(group as usize)?.ranks.len() as u64)));
        if let Some(members) = members.filter(|&members| members < machine.npus()) {
            if !machine.rules.has(Quirk::FlatGroups) {
                return (Vec::new(), false);
            }
            return (vec![(machine.flat(collective).algorithm, members)], members > 1);
        }
        let mut taking = Vec::new();
        let mut are_all = true;
        for (k, dimension) in machine.dimensions.iter().enumerate() {
            let entry = entries.get(k).filter(|_| members.is_some() || involved & (1 << k) != 0);
            match entry {
                Some(entry) if entry.whole => {
                    taking.push((entry.algorithm, machine.npus()));
                    return (taking, true);
                }
                Some(entry) if dimension.size > 1 => taking.push((entry.algorithm, dimension.size)),
                _ => are_all &= dimension.size == 1,
            }
            if entries.get(k).is_some_and(|entry| entry.whole) {
                return (taking, false);
            }
        }
        (taking, are_all)
    }

    /// Whether a collective makes all members of its group wait for each other.
    fn joins_all(&self, machine: &Machine, collective: Collective, group: Option<u32>, involved: u32) -> bool {
        let (taking, are_all) = self.taking(machine, collective, group, involved);
        let is_good = |&(algorithm, members): &(Algorithm, u32)| {
            !algorithm.part().needs_power_of_two(collective) || members.is_power_of_two()
        };
        are_all && !taking.is_empty() && taking.iter().all(is_good)
    }

    /// Collectives that halve and double among members whose number is no power of two: one of each kind and number.
    fn check_powers(&self, machine: &Machine, faults: &mut Vec<Fault>) {
        let mut known = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for rank in (0..self.ranks()).filter(|&rank| seen.insert(self.of_rank[rank as usize])) {
            for (place, node) in self.graph(rank).nodes().iter().enumerate() {
                let Work::Collective { collective, bytes, group, dimensions } = node.work else { continue };
                let is_empty = bytes == 0 && collective == Collective::AllGather;
                if is_own(machine, node.id, collective) || is_empty || machine.is_delay(collective) {
                    continue;
                }
                for (algorithm, members) in self.taking(machine, collective, group, dimensions).0 {
                    // A tree among no power of two is refused as it begins.
                    let needs = algorithm.part().needs_power_of_two(collective);
                    let is_uneven = algorithm == Algorithm::HalvingDoubling && needs && !members.is_power_of_two();
                    if is_uneven && known.insert((collective, members)) {
                        faults.push(Fault::NoPower { at: self.spot(rank, place), collective, members });
                    }
                }
            }
        }
    }

    /// Members that take part in different numbers of a group's collectives.
    fn unequal<'a>(
        &self,
        machine: &Machine,
        group: Option<u32>,
        members: &[u32],
        series: impl Fn(u32) -> &'a Series,
    ) -> Option<Fault> {
        let is_one =
            |of: &dyn Fn(&Series) -> u64| members.iter().all(|&rank| of(series(rank)) == of(series(members[0])));
        if is_one(&|series| series.places.len() as u64) {
            return None;
        }
        let mut counts: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for &rank in members {
            counts.entry(series(rank).places.len() as u64).or_default().push(rank);
        }
        for ranks in counts.values_mut() {
            ranks.sort_unstable();
        }
        let chunks = |series: &Series| series.parts.iter().map(|part| part.chunks).sum::<u64>();
        let is_fatal = is_cut_by_size(machine) && !is_one(&chunks);
        let group = group.map(|group| self.groups[group as usize].id);
        Some(Fault::Unequal { group, counts: counts.into_iter().rev().collect(), is_fatal })
    }

    /// A collective that two members, who take part in equally many, take for different ones.
    fn different<'a>(
        &self,
        machine: &Machine,
        group: Option<u32>,
        ranks: [u32; 2],
        series: impl Fn(u32) -> &'a Series,
    ) -> Option<Fault> {
        let [one, other] = ranks.map(series);
        let is_forced = one.is_forced && other.is_forced;
        let order = |series: &Series| {
            let mut order: Vec<usize> = (0..series.parts.len()).collect();
            if !is_forced {
                order.sort_by_key(|&k| series.parts[k]);
            }
            order
        };
        let mut pairs = order(one).into_iter().zip(order(other));
        let (a, b) = pairs.find(|&(a, b)| one.parts[a] != other.parts[b])?;
        let told = |rank: u32, series: &Series, k: usize| {
            let place = series.places[k] as usize;
            match self.graph(rank).nodes()[place].work {
                Work::Collective { collective, bytes, .. } => Some((self.spot(rank, place), collective, bytes)),
                _ => None,
            }
        };
        // In all, the chunks of one must be those of the other: a chunk more, or one of another size, waits for ever. Of two
        // kinds that is not certain: a shard's all-gather has the messages of its whole's reduce-scatter.
        let chunks = |series: &Series| {
            let mut chunks: BTreeMap<(Collective, u64), u64> = BTreeMap::new();
            for part in &series.parts {
                *chunks.entry((part.collective, part.share)).or_default() += part.chunks;
            }
            chunks
        };
        let sum = |chunks: &BTreeMap<(Collective, u64), u64>| {
            let mut sums: BTreeMap<Collective, u64> = BTreeMap::new();
            for (&(collective, _), number) in chunks {
                *sums.entry(collective).or_default() += number;
            }
            sums
        };
        let [a_chunks, b_chunks] = [one, other].map(chunks);
        let [a_sums, b_sums] = [&a_chunks, &b_chunks].map(sum);
        let is_fatal = is_cut_by_size(machine)
            && (a_sums.values().sum::<u64>() != b_sums.values().sum::<u64>()
                || (a_sums == b_sums && a_chunks != b_chunks));
        Some(Fault::Different {
            group: group.map(|group| self.groups[group as usize].id),
            which: is_forced.then_some(a as u64 + 1),
            one: told(ranks[0], one, a)?,
            other: told(ranks[1], other, b)?,
            is_fatal,
        })
    }
}

/// Whether the chunks of a collective follow from its size alone, and are those that a part counts.
fn is_cut_by_size(machine: &Machine) -> bool {
    machine.rules.has(Quirk::FullLastChunk) && machine.dimension_order != DimensionOrder::ThemisFlex
}

/// Whether a collective is a trace of its own.
fn is_own(machine: &Machine, operation: u64, collective: Collective) -> bool {
    machine.own.of_operation.contains_key(&operation) || machine.own.of_collective[collective as usize].is_some()
}

#[cfg(test)]
mod tests {
    use super::super::graph::Draft;
    use super::super::{Group, Node};
    use super::*;
    use crate::system::machine::{Congestion, Dimension, Entry, Hierarchy, Own};
    use crate::system::queue_order::QueueOrder;
    use crate::system::rules::Rules;
    use crate::system::topology::Topology;

    fn machine(npus: u32) -> Machine {
        Machine {
            dimensions: vec![Dimension { block: Topology::Switch, size: npus, bandwidth: 50.0, latency: 500.0 }],
            congestion: Congestion::Unaware,
            algorithms: std::array::from_fn(|_| vec![Entry::of(Algorithm::Ring)]),
            own: Own::default(),
            pace: Pace::Recorded,
            remote: None,
            hierarchy: Hierarchy::ScatterGather,
            chunks: 4,
            active_chunks: 1,
            queues: 1,
            endpoint_delay: 10.0,
            memory_bandwidth: 1e12,
            bus: None,
            rendezvous: false,
            dimension_order: DimensionOrder::Ascending,
            queue_order: QueueOrder::Fifo,
            rules: Rules::ASTRA_SIM,
        }
    }

    fn graph(operations: &[(u64, Work, &[u64])]) -> Graph {
        let mut draft = Draft::default();
        for &(id, work, after) in operations {
            draft.push(Node { id, work, recorded: 0, on_host: false }, &format!("op{id}"), after.iter().copied());
        }
        draft.finish().expect("a graph")
    }

    fn send(to: u32, bytes: u64, tag: u64) -> Work {
        Work::Send { to, bytes, tag }
    }

    fn receive(from: u32, bytes: u64, tag: u64) -> Work {
        Work::Receive { from, bytes, tag }
    }

    fn all_reduce(bytes: u64, group: Option<u32>) -> Work {
        Work::Collective { collective: Collective::AllReduce, bytes, group, dimensions: u32::MAX }
    }

    const COMPUTE: Work = Work::Compute { operations: None, bytes: None };

    /// The faults of a trace, each in words and whether it is fatal.
    fn check(graphs: Vec<Graph>, groups: &[&[u32]]) -> Vec<(String, bool)> {
        let groups = groups.iter().zip(1..).map(|(ranks, id)| Group { id, ranks: ranks.to_vec() }).collect();
        let trace = Trace::new(graphs, groups);
        let faults = trace.check(&machine(trace.ranks()));
        faults
            .iter()
            .map(|fault| (format!("{fault} | {}", fault.help().unwrap_or_default()), fault.is_fatal()))
            .collect()
    }

    /// The one fault of a trace.
    fn one(graphs: Vec<Graph>, groups: &[&[u32]]) -> (String, bool) {
        let [fault] = <[_; 1]>::try_from(check(graphs, groups)).expect("one fault");
        fault
    }

    /// A pipeline of so many ranks: each microbatch comes, is computed and goes on, and all reduce at the end.
    fn pipeline(ranks: u32, microbatches: u64) -> Vec<Graph> {
        let of_rank = |rank: u32| {
            let mut operations: Vec<(u64, Work, Vec<u64>)> = Vec::new();
            for tag in 0..microbatches {
                let id = 10 * tag;
                if rank > 0 {
                    operations.push((id, receive(rank - 1, 1024, tag % 3), vec![]));
                }
                let before = if rank > 0 { vec![id] } else { vec![] };
                operations.push((id + 1, COMPUTE, before));
                if rank + 1 < ranks {
                    let after = if tag == 0 { vec![id + 1] } else { vec![id + 1, id - 8] };
                    operations.push((id + 2, send(rank + 1, 1024, tag % 3), after));
                }
            }
            operations.push((10 * microbatches, all_reduce(4096, None), vec![10 * microbatches - 9]));
            let operations: Vec<_> = operations.iter().map(|(id, work, after)| (*id, *work, &after[..])).collect();
            graph(&operations)
        };
        (0..ranks).map(of_rank).collect()
    }

    #[test]
    fn a_healthy_pipeline_has_no_fault() {
        assert_eq!(check(pipeline(4, 6), &[]), []);
    }

    #[test]
    fn a_message_without_its_other_end_is_told_with_the_nearest() {
        let graphs = |first: &[(u64, Work, &[u64])], second: &[(u64, Work, &[u64])]| vec![graph(first), graph(second)];
        let alone = one(graphs(&[(1, COMPUTE, &[])], &[(7, receive(0, 2048, 3), &[])]), &[]);
        let text =
            "operation 7 (op7) of rank 1 waits for 2,048 bytes under tag 3 from rank 0, which never sends them | ";
        assert_eq!(alone, (text.to_owned(), true));

        let sized = check(graphs(&[(1, send(1, 1024, 3), &[])], &[(7, receive(0, 2048, 3), &[])]), &[]);
        assert_eq!([sized[0].1, sized[1].1], [false, true]);
        let help = "| operation 1 (op1) of rank 0 sends 1,024 bytes under tag 3 to rank 1: another size";
        assert!(sized[1].0.ends_with(help), "{sized:?}");

        let tagged = check(graphs(&[(1, send(1, 2048, 4), &[])], &[(7, receive(0, 2048, 3), &[])]), &[]);
        assert!(tagged[1].0.ends_with("another tag"), "{tagged:?}");

        let fewer =
            one(graphs(&[(1, send(1, 8, 3), &[])], &[(7, receive(0, 8, 3), &[]), (8, receive(0, 8, 3), &[])]), &[]);
        assert!(fewer.0.contains("which sends them once, and not twice"), "{fewer:?}");

        // A send ends when it has arrived, unless its receiver must ask first.
        let trace = Trace::new(graphs(&[(1, send(1, 8, 3), &[])], &[(7, COMPUTE, &[])]), Vec::new());
        let fatal = [false, true].map(|rendezvous| {
            let faults = trace.check(&Machine { rendezvous, ..machine(2) });
            faults.iter().map(Fault::is_fatal).collect::<Vec<_>>()
        });
        assert_eq!(fatal, [[false], [true]]);
    }

    #[test]
    fn members_with_different_numbers_of_collectives_are_named() {
        let graphs = (0..4).map(|rank| match rank {
            2 => graph(&[(1, all_reduce(64, Some(0)), &[])]),
            _ => graph(&[(1, all_reduce(64, Some(0)), &[]), (2, all_reduce(64, Some(0)), &[])]),
        });
        let text =
            "members of group 1 take part in different numbers of its collectives: ranks 0..1, 3 in 2, rank 2 in 1 | ";
        assert_eq!(one(graphs.collect(), &[&[3, 2, 1, 0]]), (text.to_owned(), true));
    }

    #[test]
    fn members_that_do_something_else_as_one_collective_are_named() {
        let of = |work: Work| graph(&[(1, all_reduce(1 << 20, None), &[]), (2, work, &[1])]);
        let sized = one(vec![of(all_reduce(1 << 20, None)), of(all_reduce(1 << 21, None))], &[]);
        let text = "collective 2 of all ranks is all_reduce of 1,048,576 bytes in operation 2 (op2) of rank 0, and \
                    all_reduce of 2,097,152 bytes in operation 2 (op2) of rank 1 | ";
        assert_eq!(sized, (text.to_owned(), true));
        let gather =
            Work::Collective { collective: Collective::AllGather, bytes: 1 << 19, group: None, dimensions: u32::MAX };
        let kinds = one(vec![of(all_reduce(1 << 20, None)), of(gather)], &[]);
        assert!(!kinds.1 && kinds.0.contains("all_gather of 524,288 bytes"), "{kinds:?}");
        // What the machine makes equal is equal: both are blown up to a byte for each rank in each chunk.
        assert_eq!(check(vec![of(all_reduce(1, None)), of(all_reduce(3, None))], &[]), []);
    }

    #[test]
    fn a_free_order_of_collectives_is_compared_as_a_whole() {
        let of = |sizes: [u64; 2]| graph(&[(1, all_reduce(sizes[0], None), &[]), (2, all_reduce(sizes[1], None), &[])]);
        assert_eq!(check(vec![of([4096, 8192]), of([8192, 4096])], &[]), []);
        let other = one(vec![of([4096, 8192]), of([8192, 1 << 20])], &[]);
        assert!(other.1 && other.0.starts_with("a collective of all ranks is"), "{other:?}");
    }

    #[test]
    fn a_circle_of_messages_is_told_with_ranks_names_and_reasons() {
        let of = |other: u32| graph(&[(1, receive(other, 8, 0), &[]), (2, send(other, 8, 0), &[1])]);
        let text = "ranks wait for each other in a circle:\n  \
                    operation 1 (op1) of rank 0 receives what operation 2 (op2) of rank 1 sends\n  \
                    operation 2 (op2) of rank 1 waits for operation 1 (op1) of rank 1\n  \
                    operation 1 (op1) of rank 1 receives what operation 2 (op2) of rank 0 sends\n  \
                    operation 2 (op2) of rank 0 waits for operation 1 (op1) of rank 0 | ";
        assert_eq!(one(vec![of(1), of(0)], &[]), (text.to_owned(), true));
    }

    #[test]
    fn a_circle_through_collectives_says_who_takes_part_with_whom() {
        // Rank 0 reduces before it sends, rank 1 receives before it reduces.
        let first = graph(&[(1, all_reduce(4096, None), &[]), (2, send(1, 8, 0), &[1])]);
        let second = graph(&[(1, receive(0, 8, 0), &[]), (2, all_reduce(4096, None), &[1])]);
        let (text, fatal) = one(vec![first, second], &[]);
        assert!(
            fatal && text.contains("operation 1 (op1) of rank 0 takes part with operation 2 (op2) of rank 1"),
            "{text}"
        );
        // Two groups in opposite orders: a circle if the orders are forced, and perhaps none if they are not.
        let of = |first: u32, then: u32, after: &[u64]| {
            graph(&[(1, all_reduce(4096, Some(first)), &[]), (2, all_reduce(4096, Some(then)), after)])
        };
        let groups: &[&[u32]] = &[&[0, 1], &[1, 0]];
        assert!(one(vec![of(0, 1, &[1]), of(1, 0, &[1])], groups).0.contains("circle"));
        assert_eq!(check(vec![of(0, 1, &[1]), of(1, 0, &[])], groups), []);
    }

    #[test]
    fn what_does_not_join_all_ranks_is_not_compared() {
        let mut machine = machine(4);
        machine.dimensions = vec![Dimension { size: 2, ..machine.dimensions[0].clone() }; 2];
        let graphs = || {
            vec![
                graph(&[(1, all_reduce(64, None), &[])]),
                graph(&[(1, all_reduce(64, None), &[])]),
                graph(&[]),
                graph(&[]),
            ]
        };
        // One algorithm for two dimensions: the outer one is left out, and ranks 0 and 1 are alone.
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine), []);
        machine.algorithms = std::array::from_fn(|_| vec![Entry::of(Algorithm::Ring); 2]);
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine).len(), 1);
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&Machine { pace: Pace::Replayed, ..machine }), []);
    }

    #[test]
    fn what_a_simulation_refuses_is_not_looked_at() {
        let graphs = || vec![graph(&[(1, all_reduce(64, Some(7)), &[]), (2, send(9, 8, 0), &[])]), graph(&[])];
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine(2)), []);
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine(3)), []);
        let dimensions = vec![Dimension { size: u32::MAX, ..machine(2).dimensions[0].clone() }; 2];
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&Machine { dimensions, ..machine(2) }), []);
    }

    #[test]
    fn a_large_trace_is_checked_in_a_moment() {
        let trace = Trace::new(pipeline(64, 1600), Vec::new());
        let begun = std::time::Instant::now();
        assert_eq!(trace.check(&machine(64)), []);
        let lasted = begun.elapsed();
        // 50 ms where it is optimised; far more is a cost that is not linear.
        assert!(lasted < std::time::Duration::from_secs(3), "{lasted:?}");
    }
}
