//! Do ranks that stand for each other take the time that all of them take, message by message?

use proptest::prelude::*;
use starsweep::engine::event_driven::{Ask, Outcome, Path, Refused, simulate_by};
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::dimension_order::DimensionOrder;
use starsweep::system::machine::{
    Bus, Congestion, Dimension, Entry, Hierarchy, Machine, Own, Pace, Place, RemoteMemory,
};
use starsweep::system::queue_order::QueueOrder;
use starsweep::system::rules::{Quirk, Rules};
use starsweep::system::topology::Topology;
use starsweep::units::{Time, index, narrow};
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Group, Node, Trace, Work};

fn recipe() -> impl Strategy<Value = Entry> {
    prop_oneof![
        3 => Just(Entry::of(Algorithm::Ring)),
        1 => (1_u32..4).prop_map(Entry::direct),
        2 => Just(Entry::of(Algorithm::Direct)),
        2 => Just(Entry::of(Algorithm::HalvingDoubling)),
    ]
}

fn dimension() -> impl Strategy<Value = (Dimension, Entry)> {
    let block = prop_oneof![Just(Topology::Ring), Just(Topology::Switch), Just(Topology::FullyConnected)];
    let bandwidth = prop_oneof![Just(25.0), Just(50.0), Just(107.3)];
    let latency = prop_oneof![Just(0.0), Just(100.0), Just(500.5)];
    (block, 2_u32..5, bandwidth, latency, recipe()).prop_map(|(block, size, bandwidth, latency, recipe)| {
        // Halving and doubling takes powers of two.
        let size = if recipe.algorithm == Algorithm::HalvingDoubling && size == 3 { 4 } else { size };
        (Dimension { block, size, bandwidth, latency }, recipe)
    })
}

/// Ours, the reference's, or the reference's with some of its quirks mended.
fn rules() -> impl Strategy<Value = Rules> {
    let some = prop::sample::subsequence(Quirk::ALL.to_vec(), 0..=Quirk::ALL.len());
    let some = some.prop_map(|quirks| quirks.into_iter().fold(Rules::OURS, Rules::with));
    prop_oneof![2 => Just(Rules::OURS), 2 => Just(Rules::ASTRA_SIM), 2 => some]
}

/// A memory bus that messages share, at times.
fn bus() -> impl Strategy<Value = Option<Bus>> {
    let bus = (0_u64..40, 0_u64..20, 0_u64..20, 0_u64..9).prop_map(|(latency, overhead, gap, processing)| Bus {
        latency,
        overhead,
        gap,
        per_byte: 0.01,
        processing,
    });
    prop_oneof![3 => Just(None), 1 => bus.prop_map(Some)]
}

prop_compose! {
    fn machine()(
        dimensions in prop::collection::vec(dimension(), 1..4),
        hierarchy in prop_oneof![Just(Hierarchy::PerDimension), Just(Hierarchy::ScatterGather)],
        chunks in 1_u64..6,
        active_chunks in 1_u32..4,
        queues in prop_oneof![2 => Just(1_u32), 1 => Just(2), 1 => Just(4)],
        endpoint_delay in prop_oneof![Just(10.0), Just(7.0), Just(100.0)],
        dimension_order in prop_oneof![3 => Just(DimensionOrder::Ascending), 2 => prop::sample::select(DimensionOrder::ALL)],
        queue_order in prop_oneof![1 => Just(QueueOrder::Fifo), 1 => prop::sample::select(QueueOrder::ALL)],
        bus in bus(),
        is_flat in prop_oneof![4 => Just(false), 1 => Just(true)],
        is_roofline in any::<bool>(),
        rules in rules(),
    ) -> Machine {
        Machine {
            // One ring of all stands alone in its list.
            algorithms: std::array::from_fn(|_| {
                let halves = |it: &(Dimension, Entry)| it.1.algorithm == Algorithm::HalvingDoubling;
                let entry = |it: &(Dimension, Entry)| match it {
                    // All of them may be no power of two.
                    it if is_flat && halves(it) => Entry { whole: true, ..Entry::of(Algorithm::Ring) },
                    it => Entry { whole: is_flat, ..it.1 },
                };
                dimensions.iter().take(if is_flat { 1 } else { dimensions.len() }).map(entry).collect()
            }),
            dimensions: dimensions.into_iter().map(|it| it.0).collect(),
            congestion: Congestion::Unaware,
            own: Own::default(),
            hierarchy,
            chunks,
            active_chunks,
            queues,
            endpoint_delay,
            memory_bandwidth: 50e9,
            pace: if is_roofline { Pace::Roofline { peak: 1e12, memory: 50e9 } } else { Pace::Recorded },
            remote: Some(RemoteMemory { place: Place::PerNpu, latency: 100.0, bandwidth: 10.0 }),
            bus,
            rendezvous: false,
            dimension_order,
            queue_order,
        rules,
        }
    }
}

/// An operation of every rank, before ranks are known: its kind, a number that says more, and how far back it waits.
type Plan = (u8, u64, usize, usize);

fn collective(kind: u8, is_all: bool) -> Collective {
    match kind % 6 {
        0 => Collective::AllReduce,
        1 => Collective::AllGather,
        2 => Collective::ReduceScatter,
        3 => Collective::Broadcast,
        4 => Collective::Scatter,
        _ if is_all => Collective::AllToAll,
        _ => Collective::AllReduce,
    }
}

/// Every rank does the same on its lines of the network; stages of the last dimension pass messages on, one after the other.
fn trace(machine: &Machine, plans: &[Plan], microbatches: u32) -> Trace {
    let has_all_to_all = machine.algorithms[0].iter().all(|entry| entry.algorithm != Algorithm::HalvingDoubling);
    let ranks = machine.npus();
    let last = machine.dimensions.last().expect("a dimension").size;
    let inner = ranks / last;
    // Groups along every dimension but the last, where stages lie.
    let mut groups: Vec<Group> = Vec::new();
    let mut of_rank = vec![Vec::new(); ranks as usize];
    let mut stride = 1;
    for dimension in &machine.dimensions[..machine.dimensions.len() - 1] {
        for first in (0..ranks).filter(|rank| rank / stride % dimension.size == 0) {
            let members: Vec<u32> = (0..dimension.size).map(|k| first + k * stride).collect();
            for &rank in &members {
                of_rank[rank as usize].push(narrow(groups.len() as u64));
            }
            groups.push(Group { id: groups.len() as u64 + 1, ranks: members });
        }
        stride *= dimension.size;
    }
    let is_pipeline = microbatches > 0;
    let graphs = (0..ranks).map(|rank| {
        let mut draft = Draft::default();
        let mut id = 0;
        let mut push = |work, recorded, after: &[u64]| {
            id += 1;
            let node = Node { id, work, recorded, on_host: false };
            draft.push(node, "", after.iter().copied());
            id
        };
        let stage = rank / inner;
        let mut done: Vec<u64> = Vec::new();
        for batch in 0..microbatches.max(1) {
            let tag = u64::from(batch);
            if is_pipeline && stage > 0 {
                done.push(push(Work::Receive { from: rank - inner, bytes: 50_000, tag }, 0, &[]));
            }
            for &(kind, more, back, further) in plans {
                let mut after: Vec<u64> =
                    [back, further].iter().filter_map(|back| done.iter().rev().nth(*back)).copied().collect();
                if is_pipeline {
                    after.extend(done.last());
                }
                let mine = &of_rank[rank as usize];
                let work = match kind {
                    0..=2 => Work::Compute { operations: Some(more * 1000), bytes: Some(more * 10 + 1) },
                    3 => Work::Load { bytes: more },
                    4..=6 if !mine.is_empty() => {
                        let group = mine[index(more) % mine.len()];
                        Work::Collective {
                            collective: collective(kind, has_all_to_all),
                            bytes: more * 16,
                            group: Some(group),
                            dimensions: u32::MAX,
                        }
                    }
                    _ if is_pipeline => Work::Compute { operations: Some(more), bytes: Some(1) },
                    _ => Work::Collective {
                        collective: collective((more % 6).try_into().unwrap_or(0), has_all_to_all),
                        bytes: more * 16,
                        group: None,
                        dimensions: if kind == 7 { 1 } else { u32::MAX },
                    },
                };
                // Stages are not equally fast.
                let slower = if is_pipeline { u64::from(stage) * 700 } else { 0 };
                done.push(push(work, more % 5000 + slower, &after));
            }
            if is_pipeline && stage + 1 < last {
                let after: Vec<u64> = done.last().copied().into_iter().collect();
                done.push(push(Work::Send { to: rank + inner, bytes: 50_000, tag }, 0, &after));
            }
        }
        draft.finish().expect("a graph")
    });
    let graphs = graphs.collect();
    Trace::new(graphs, groups)
}

fn by(path: Path, machine: &Machine, trace: &Trace) -> Outcome {
    let outcome = simulate_by(machine, trace, Ask { path, ..Ask::default() });
    outcome.unwrap_or_else(|refused| panic!("{refused}: {machine:?}"))
}

/// Time in which at least one of a rank's spans goes on.
fn union(outcome: &Outcome, rank: u32) -> Time {
    let of_rank = outcome.spans.iter().filter(|span| span.rank == rank);
    let mut spans: Vec<(Time, Time)> = of_rank.map(|span| (span.start, span.end)).collect();
    spans.sort_unstable();
    let (mut all, mut until) = (Time::ZERO, Time::ZERO);
    for (start, end) in spans {
        all += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn one_rank_of_a_class_takes_the_time_of_all(
        machine in machine(),
        plans in prop::collection::vec((0_u8..10, 1_u64..60_000, 0_usize..3, 0_usize..6), 1..9),
        microbatches in 0_u32..4,
    ) {
        let trace = trace(&machine, &plans, microbatches);
        let folded = by(Path::Automatic, &machine, &trace);
        let whole = by(Path::Messages, &machine, &trace);
        prop_assert_eq!(&folded.ranks, &whole.ranks);
        let ask = Ask { path: Path::Messages, keeps_spans: true, ..Ask::default() };
        let with_spans = simulate_by(&machine, &trace, ask).expect("an outcome");
        prop_assert_eq!(&with_spans.ranks, &whole.ranks);
        for (rank, of_rank) in (0..).zip(&whole.ranks) {
            // One that waits for ever is engaged in what has no end, and no span.
            if of_rank.finish.is_some() {
                prop_assert_eq!(of_rank.engaged, union(&with_spans, rank));
            }
        }
        if let Some(why) = folded.asymmetry {
            // By load ranks may be planned for one after the other; chunks and messages on a bus may overtake each other; one ring may go through several
            // dimensions.
            let is_flat = machine.algorithms[0].iter().any(|entry| entry.whole);
            let overtakes = !machine.queue_order.part().is_plain() || machine.bus.is_some();
            prop_assert!(machine.dimension_order.part().is_by_load() || overtakes || is_flat, "{why}");
            return Ok(());
        }
        // One stands for a whole stage at least.
        let stages = if microbatches > 0 { machine.dimensions.last().map_or(1, |it| it.size) } else { 1 };
        prop_assert_eq!(folded.classes.iter().max(), Some(&(stages - 1)));
    }
}

#[test]
fn ranks_that_take_collectives_in_different_orders_do_not_stand_for_each_other() {
    // Groups of neighbours and of every second rank, of a switch of four; each rank begins with another.
    let machine = Machine {
        dimensions: vec![Dimension { block: Topology::Switch, size: 4, bandwidth: 50.0, latency: 500.0 }],
        ..simple()
    };
    let groups = [[0, 1], [2, 3], [0, 2], [1, 3]];
    let groups = groups.iter().zip(1..).map(|(ranks, id)| Group { id, ranks: ranks.to_vec() }).collect();
    let graphs = [[0, 2], [3, 0], [2, 1], [1, 3]].iter().map(|order| {
        let mut draft = Draft::default();
        for (&group, id) in order.iter().zip(1..) {
            let collective = Collective::AllReduce;
            let work = Work::Collective { collective, bytes: 1 << 20, group: Some(group), dimensions: u32::MAX };
            draft.push(Node { id, work, recorded: 0, on_host: false }, "", []);
        }
        draft.finish().expect("a graph")
    });
    let trace = Trace::new(graphs.collect(), groups);
    let outcome = by(Path::Automatic, &machine, &trace);
    assert!(outcome.asymmetry.is_some());
    assert!(outcome.ranks.iter().all(|rank| rank.finish.is_none()), "a circle of four");
}

/// A machine of the reference, without dimensions.
fn simple() -> Machine {
    Machine {
        chunks: 4,
        endpoint_delay: 10.0,
        memory_bandwidth: 50e9,
        rules: Rules::ASTRA_SIM,
        ..Machine::plain(Vec::new(), &[Entry::of(Algorithm::Ring)])
    }
}

#[test]
fn the_largest_numbers_are_told_apart_from_others() {
    let dimension = Dimension { block: Topology::Switch, size: 2, bandwidth: 50.0, latency: 500.0 };
    let machine = Machine { dimensions: vec![dimension], ..simple() };
    let graph = |bytes, recorded| {
        let mut draft = Draft::default();
        let work = Work::Compute { operations: Some(u64::MAX), bytes };
        draft.push(Node { id: 0, work, recorded, on_host: false }, "", []);
        draft.finish().expect("a graph")
    };
    for (one, other) in [((Some(u64::MAX), 1), (None, 1)), ((None, 7), (None, (1 << 63) + 7))] {
        let trace = Trace::new(vec![graph(one.0, one.1), graph(other.0, other.1)], Vec::new());
        match simulate_by(&machine, &trace, Ask::default()) {
            Ok(outcome) => assert_eq!(outcome.classes, [0, 1]),
            Err(refused) => assert_eq!(refused, Refused::TimeRange),
        }
    }
}

#[test]
fn a_chunk_that_waits_for_its_gang_keeps_its_place() {
    // All chunks are queued at one instant, and the first rank's are before those of the rank that they go with.
    let dimension = Dimension { block: Topology::Ring, size: 2, bandwidth: 25.0, latency: 0.0 };
    let dimensions = vec![dimension.clone(), dimension];
    for &queue_order in QueueOrder::ALL {
        let machine = Machine { dimensions: dimensions.clone(), queue_order, rules: Rules::OURS, ..simple() };
        let trace = trace(&machine, &[(8, 42_998, 0, 0)], 0);
        let [folded, whole] = [Path::Automatic, Path::Messages].map(|path| by(path, &machine, &trace));
        assert_eq!(folded.asymmetry, None);
        assert_eq!(folded.ranks, whole.ranks, "{queue_order:?}");
    }
}
