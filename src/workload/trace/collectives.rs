//! Collectives of a trace: whether members of a group take part in the same ones, and who waits for whom where they do.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::Chains;
use super::fault::Fault;
use super::wait::Waits;
use super::{Trace, Work};
use crate::system::collective::Algorithm;
use crate::system::collective::Collective;
use crate::system::dimension_order::DimensionOrder;
use crate::system::machine::Machine;
use crate::system::rules::Quirk;
use crate::units::narrow;

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
    /// Collectives are compared one by one where their order is forced by dependencies, else all together.
    pub(super) fn check_collectives(
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
    pub(super) fn check_powers(&self, machine: &Machine, faults: &mut Vec<Fault>) {
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
