//! Is it true what a check says of a trace before it is simulated?

use proptest::prelude::*;
use starsweep::engine::event_driven::simulate;
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::dimension_order::DimensionOrder;
use starsweep::system::machine::{Congestion, Dimension, Entry, Hierarchy, Machine, Own, Pace};
use starsweep::system::queue_order::QueueOrder;
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Fault, Group, Node, Trace, Work};

/// Numbers that look like chance, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).expect("a place")]
    }
}

/// A machine of two dimensions, or of one.
fn machine(chance: &mut Chance) -> Machine {
    let entry =
        chance.of(&[Entry::of(Algorithm::Ring), Entry::of(Algorithm::Direct), Entry::of(Algorithm::HalvingDoubling)]);
    let sizes: &[u32] = chance.of(&[&[4], &[2, 2]]);
    let block = Topology::Switch;
    Machine {
        dimensions: sizes.iter().map(|&size| Dimension { block, size, bandwidth: 50.0, latency: 500.0 }).collect(),
        congestion: Congestion::Unaware,
        // At times the outer dimension is left out.
        algorithms: std::array::from_fn(|_| vec![entry; if chance.one_in(4) { 1 } else { sizes.len() }]),
        own: Own::default(),
        pace: if chance.one_in(10) { Pace::Replayed } else { Pace::Recorded },
        remote: None,
        hierarchy: chance.of(&[Hierarchy::PerDimension, Hierarchy::ScatterGather]),
        chunks: 1 + chance.below(4),
        active_chunks: 1 + u32::try_from(chance.below(3)).expect("a count"),
        queues: 1,
        endpoint_delay: 10.0,
        memory_bandwidth: 1e12,
        bus: None,
        rendezvous: chance.one_in(4),
        dimension_order: chance.of(&[DimensionOrder::Ascending, DimensionOrder::RoundRobin]),
        queue_order: QueueOrder::Fifo,
        rules: Rules::ASTRA_SIM,
    }
}

/// A trace of four ranks: pieces that fit together, in an order that is the same on all, and then some that is spoiled.
fn trace(chance: &mut Chance) -> Trace {
    let groups: Vec<Group> = [vec![0, 1], vec![3, 2, 1, 0], vec![2, 0, 3]]
        .into_iter()
        .zip(1..)
        .map(|(ranks, id)| Group { id, ranks })
        .collect();
    let mut works: Vec<Vec<Work>> = vec![Vec::new(); 4];
    let spoil = 4 + chance.below(40);
    for _ in 0..=chance.below(8) {
        if chance.one_in(2) {
            let (from, step) = (chance.below(4), 1 + chance.below(3));
            let (from, to) = (u32::try_from(from).expect("a rank"), u32::try_from((from + step) % 4).expect("a rank"));
            let (bytes, tag) = (chance.of(&[512, 4096]), chance.of(&[1, 2, 500_000_001]));
            if !chance.one_in(spoil) {
                works[from as usize].push(Work::Send { to, bytes, tag });
            }
            if !chance.one_in(spoil) {
                works[to as usize].push(Work::Receive { from, bytes, tag });
            }
        } else {
            let group = chance.of(&[None, None, Some(0), Some(1), Some(2)]);
            let all = [0, 1, 2, 3];
            let ranks: &[u32] = group.map_or(&all, |group: u32| &groups[group as usize].ranks);
            let (collective, bytes) = (chance.of(&Collective::ALL), chance.of(&[0, 3, 4096, 65_536, 65_540]));
            for &rank in ranks {
                let other = chance.one_in(spoil);
                let bytes = if other { chance.of(&[0, 1, 8192]) } else { bytes };
                let collective = if chance.one_in(2 * spoil) { chance.of(&Collective::ALL) } else { collective };
                let dimensions = if chance.one_in(20) { 1 } else { u32::MAX };
                if !chance.one_in(2 * spoil) {
                    works[rank as usize].push(Work::Collective { collective, bytes, group, dimensions });
                }
            }
        }
    }
    let is_chain = chance.one_in(2);
    let graphs = works.into_iter().map(|mut works| {
        works.push(Work::Compute { operations: None, bytes: None });
        let mut draft = Draft::default();
        let swapped = chance.one_in(4).then(|| chance.below(works.len() as u64));
        if let Some(swapped) = swapped {
            let last = works.len() - 1;
            works.swap(usize::try_from(swapped).expect("a place"), last);
        }
        for (work, id) in works.iter().zip(0..) {
            let after: Vec<u64> = (0..id).filter(|&k| (is_chain && k + 1 == id) || chance.one_in(4)).collect();
            draft.push(Node { id, work: *work, recorded: 0, on_host: false }, "", after);
        }
        draft.finish().expect("a graph")
    });
    Trace::new(graphs.collect(), groups)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn where_a_check_sees_no_end_a_simulation_has_none(seed in 1_u64..) {
        let mut chance = Chance(seed);
        let (machine, trace) = (machine(&mut chance), trace(&mut chance));
        let faults = trace.check(&machine);
        if faults.iter().any(Fault::is_fatal) {
            let outcome = simulate(&machine, &trace, false).expect("an outcome");
            let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
            prop_assert!(!outcome.stuck.is_empty(), "{text:#?}\n{machine:#?}\n{trace:#?}");
        }
    }
}

#[test]
fn most_deadlocks_of_small_programs_are_seen_before() {
    let (mut seen, mut unseen, mut healthy) = (0, 0, 0);
    for seed in 1..3000 {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let (machine, trace) = (machine(&mut chance), trace(&mut chance));
        let is_seen = trace.check(&machine).iter().any(Fault::is_fatal);
        match simulate(&machine, &trace, false).expect("an outcome").stuck.is_empty() {
            true => healthy += 1,
            false if is_seen => seen += 1,
            false => unseen += 1,
        }
    }
    assert!(seen > 500 && healthy > 500 && unseen < seen, "{seen} {unseen} {healthy}");
}

#[test]
fn what_halves_and_doubles_among_no_power_of_two_is_told_and_nothing_else_waits_for_ever() {
    let entry = Entry::of(Algorithm::HalvingDoubling);
    for sizes in (3..=20).flat_map(|n| [vec![n], vec![2, n], vec![n, 2]]) {
        let is_even = sizes.iter().all(|size: &u32| size.is_power_of_two());
        for collective in Collective::ALL {
            let mut machine = machine(&mut Chance(1));
            let dimension = machine.dimensions[0].clone();
            machine.dimensions = sizes.iter().map(|&size| Dimension { size, ..dimension.clone() }).collect();
            machine.algorithms = std::array::from_fn(|_| vec![entry; sizes.len()]);
            (machine.pace, machine.rendezvous) = (Pace::Recorded, false);
            let work = Work::Collective { collective, bytes: 1 << 16, group: None, dimensions: u32::MAX };
            let mut draft = Draft::default();
            draft.push(Node { id: 0, work, recorded: 0, on_host: false }, "", []);
            let trace = Trace::same(draft.finish().expect("a graph"), machine.npus());
            let faults = trace.check(&machine);
            let ends = simulate(&machine, &trace, false).expect("an outcome").stuck.is_empty();
            // A broadcast is not sent; an all-to-all is Bruck's.
            let is_even = is_even || matches!(collective, Collective::Broadcast | Collective::AllToAll);
            assert_eq!(faults.is_empty(), is_even, "{sizes:?} {collective:?}");
            assert!(ends || !is_even, "{sizes:?} {collective:?}");
        }
    }
}
