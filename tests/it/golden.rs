//! Does the event-driven engine give the reference simulator's numbers, to the cycle?

use std::collections::BTreeMap;
use std::io::Read;

use rayon::prelude::*;
use starsweep::engine::event_driven::{Ask, Path, Refused, Stuck, Wait, simulate, simulate_by};
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::dimension_order::DimensionOrder;
use starsweep::system::machine::{Bus, Congestion, Dimension, Entry, Hierarchy, Machine, Own, Pace};
use starsweep::system::queue_order::QueueOrder;
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::units::Time;
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Graph, Group, Node, Trace, Work};

use crate::support::root;

/// Bytes of the reference's gigabyte of a link.
const LINK_GB: f64 = 1_073_741_824.0;

type Row = BTreeMap<String, String>;

/// The rows of a table of golden results.
fn rows(table: &str) -> Vec<Row> {
    let path = format!("tests/data/astra_sim/{table}.csv.gz");
    let file = std::fs::File::open(root().join(path)).expect("golden results");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("UTF-8");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().expect("rows")
}

fn list(text: &str) -> Vec<&str> {
    text.trim_matches(['[', ']']).split(',').collect()
}

fn entry(word: &str) -> Entry {
    let plain = word.strip_prefix("one").map(|rest| rest[..1].to_lowercase() + &rest[1..]);
    let whole = plain.is_some();
    let plain = plain.unwrap_or_else(|| word.to_owned());
    let entry = match plain.as_str() {
        "ring" => Entry::of(Algorithm::Ring),
        "halvingDoubling" => Entry::of(Algorithm::HalvingDoubling),
        "doubleBinaryTree" => Entry::of(Algorithm::DoubleBinaryTree),
        "direct" => Entry::of(Algorithm::Direct),
        direct => {
            Entry::direct(direct.strip_prefix("direct").and_then(|window| window.parse().ok()).expect("a window"))
        }
    };
    Entry { whole, ..entry }
}

fn number(row: &Row, key: &str, otherwise: f64) -> f64 {
    match row[key].as_str() {
        "" => otherwise,
        text => text.parse().unwrap_or_else(|_| panic!("{key} is {text}")),
    }
}

/// The network of a row.
fn dimensions(row: &Row) -> Vec<Dimension> {
    let sizes = list(&row["npus_count"]);
    let bandwidths = list(&row["bandwidth_GBps"]);
    let latencies = list(&row["latency_ns"]);
    list(&row["topology"])
        .into_iter()
        .enumerate()
        .map(|(k, block)| Dimension {
            block: match block {
                "Ring" => Topology::Ring,
                "FullyConnected" => Topology::FullyConnected,
                _ => Topology::Switch,
            },
            size: sizes[k].parse().expect("a size"),
            bandwidth: bandwidths[k].parse::<f64>().expect("a bandwidth") * LINK_GB / 1e9,
            latency: latencies[k].parse().expect("a latency"),
        })
        .collect()
}

fn congestion(row: &Row) -> Congestion {
    if row["backend"] == "aware" { Congestion::Aware } else { Congestion::Unaware }
}

fn machine(row: &Row) -> Machine {
    let entries: Vec<Entry> = list(&row["implementation"]).into_iter().map(entry).collect();
    let whole = |value: f64| format!("{value}").parse::<f64>().expect("a number").trunc();
    let delay = if row["endpoint_delay"].is_empty() {
        10.0
    } else {
        whole(number(row, "endpoint_delay", 10.0) * number(row, "injection_scale", 1.0))
    };
    Machine {
        dimensions: dimensions(row),
        congestion: congestion(row),
        algorithms: std::array::from_fn(|_| entries.clone()),
        own: Own::default(),
        pace: Pace::Recorded,
        remote: None,
        hierarchy: if row["collective_optimization"] == "baseline" {
            Hierarchy::PerDimension
        } else {
            Hierarchy::ScatterGather
        },
        chunks: row["preferred_dataset_splits"].parse().expect("a count"),
        active_chunks: row["active_chunks_per_dimension"].parse().unwrap_or(1),
        queues: row["num_queues_per_dim"].parse().unwrap_or(1),
        endpoint_delay: delay,
        memory_bandwidth: match number(row, "local_mem_bw_GBps", 0.0) * 1e9 {
            0.0 => f64::INFINITY,
            rate => rate,
        },
        bus: (row["model_shared_bus"] == "1").then(|| Bus {
            latency: starsweep::units::whole(number(row, "L", 0.0)),
            overhead: starsweep::units::whole(number(row, "o", 0.0)),
            gap: starsweep::units::whole(number(row, "g", 0.0)),
            // The reference reads it as a number of 32 bits.
            per_byte: f64::from(row["G"].parse::<f32>().unwrap_or(0.0)),
            processing: starsweep::units::whole(number(row, "local_reduction_delay", 1.0)),
        }),
        rendezvous: row["rendezvous"] == "1",
        dimension_order: match row["inter_dimension_scheduling"].as_str() {
            "roundRobin" if row["build"] == "knobs" => DimensionOrder::RoundRobin,
            "offlineGreedy" if row["build"] == "knobs" => DimensionOrder::Themis,
            "offlineGreedyFlex" if row["build"] == "knobs" => DimensionOrder::ThemisFlex,
            _ => DimensionOrder::Ascending,
        },
        queue_order: match row["intra_dimension_scheduling"].as_str() {
            "RG" if row["build"] == "knobs" => QueueOrder::Rg,
            "smallestFirst" if row["build"] == "knobs" => QueueOrder::SmallestFirst,
            "lessRemainingPhaseFirst" if row["build"] == "knobs" => QueueOrder::LessRemainingPhaseFirst,
            _ => QueueOrder::Fifo,
        },
        rules: Rules::ASTRA_SIM,
    }
}

fn collective(row: &Row) -> Collective {
    match row["collective"].as_str() {
        "all-reduce" => Collective::AllReduce,
        "all-gather" => Collective::AllGather,
        "reduce-scatter" => Collective::ReduceScatter,
        _ => Collective::AllToAll,
    }
}

/// A machine of equal settings in every dimension: block, size, gigabytes a second.
fn simple(dimensions: &[(Topology, u32, f64)], entry: Entry) -> Machine {
    let dimension = |&(block, size, bandwidth): &(Topology, u32, f64)| Dimension {
        block,
        size,
        bandwidth: bandwidth * LINK_GB / 1e9,
        latency: 500.0,
    };
    let algorithms = vec![entry; dimensions.len()];
    Machine {
        chunks: 4,
        endpoint_delay: 10.0,
        memory_bandwidth: 50e9,
        rules: Rules::ASTRA_SIM,
        ..Machine::plain(dimensions.iter().map(dimension).collect(), &algorithms)
    }
}

/// A graph of operations, each with its number and those that it waits for.
fn graph(operations: &[(u64, Work, &[u64])]) -> Graph {
    let mut draft = Draft::default();
    for &(id, work, after) in operations {
        draft.push(Node { id, work, recorded: 0, on_host: false }, "", after.iter().copied());
    }
    draft.finish().expect("a graph")
}

/// When each rank of a machine is done with one collective: message by message, and by symmetry where that can be.
fn finish(machine: &Machine, collective: Collective, bytes: u64) -> Vec<u64> {
    let work = Work::Collective { collective, bytes, group: None, dimensions: u32::MAX };
    let trace = Trace::same(graph(&[(0, work, &[])]), machine.npus());
    let ends = |path| {
        let outcome = simulate_by(machine, &trace, Ask { path, ..Ask::default() }).expect("an outcome");
        let ends = outcome.ranks.into_iter().map(|rank| rank.finish.expect("an end").whole_nanoseconds());
        (outcome.asymmetry.is_none(), ends.collect())
    };
    let (_, by_messages) = ends(Path::Messages);
    let (is_symmetric, as_can_be): (_, Vec<u64>) = ends(Path::Automatic);
    assert!(!is_symmetric || as_can_be == by_messages, "{} by symmetry, {}", as_can_be[0], by_messages[0]);
    by_messages
}

#[test]
fn a_ring_takes_what_a_hand_works_out() {
    // Per chunk 15 endpoint delays, 14 messages of 1,110 ns, 7 reductions of 1,965 ns.
    let ring = simple(&[(Topology::Ring, 8, 50.0)], Entry::of(Algorithm::Ring));
    assert_eq!(finish(&ring, Collective::AllReduce, 1 << 20), [4 * (15 * 10 + 14 * 1110 + 7 * 1965); 8]);
    let two = simple(&[(Topology::Ring, 4, 50.0), (Topology::Ring, 2, 50.0)], Entry::of(Algorithm::Ring));
    assert_eq!(finish(&two, Collective::AllReduce, 1 << 20), [88_760; 8]);
    let each = Machine { hierarchy: Hierarchy::PerDimension, ..two };
    assert_eq!(finish(&each, Collective::AllReduce, 1 << 20), [102_495; 8]);
}

#[test]
fn ranks_of_a_double_binary_tree_end_one_after_the_other() {
    let tree = simple(&[(Topology::Switch, 8, 50.0)], Entry::of(Algorithm::DoubleBinaryTree));
    let mut ends = finish(&tree, Collective::AllReduce, 1 << 20);
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends, [389_164, 410_782, 432_400, 438_292]);
}

#[test]
fn a_large_switch_takes_the_reference_programs_time() {
    let switch = Machine {
        active_chunks: 2,
        memory_bandwidth: 1600e9,
        ..simple(&[(Topology::Switch, 256, 100.0)], Entry::of(Algorithm::Ring))
    };
    assert_eq!(finish(&switch, Collective::AllReduce, 256 << 20), [3_769_430; 256]);
}

#[test]
fn themis_takes_the_reference_programs_time() {
    use DimensionOrder::{Ascending, RoundRobin, Themis, ThemisFlex};
    let two = simple(&[(Topology::Ring, 4, 100.0), (Topology::Switch, 4, 25.0)], Entry::of(Algorithm::Ring));
    let three = [(Topology::Ring, 4, 200.0), (Topology::FullyConnected, 4, 100.0), (Topology::Switch, 2, 50.0)];
    let three = simple(&three, Entry::of(Algorithm::Ring));
    for (machine, chunks, at_once, expected) in [
        (&two, 16, 1, [1_125_597, 2_499_792, 1_125_757, 1_125_757]),
        (&two, 16, 2, [1_125_597, 1_568_819, 684_652, 684_652]),
        (&three, 32, 1, [661_408, 616_383, 519_100, 575_723]),
        (&three, 32, 2, [402_374, 511_144, 510_825, 502_511]),
    ] {
        for (dimension_order, expected) in [Ascending, RoundRobin, Themis, ThemisFlex].into_iter().zip(expected) {
            let machine = Machine {
                dimension_order,
                chunks,
                active_chunks: at_once,
                queues: at_once,
                memory_bandwidth: 1600e9,
                ..machine.clone()
            };
            let ends = finish(&machine, Collective::AllReduce, 64 << 20);
            assert!(ends.iter().all(|&end| end == expected), "{dimension_order:?} {at_once}: {} {expected}", ends[0]);
        }
    }
}

#[test]
fn a_deadlock_names_the_ranks_and_operations_that_wait() {
    let machine = simple(&[(Topology::Ring, 4, 50.0)], Entry::of(Algorithm::Ring));
    let collective = Work::Collective { collective: Collective::AllReduce, bytes: 1 << 20, group: None, dimensions: 1 };
    let receive = Work::Receive { from: 0, bytes: 8, tag: 1 };
    let send = Work::Send { to: 1, bytes: 9, tag: 1 };
    let compute = Work::Compute { operations: None, bytes: None };
    let graphs = vec![
        graph(&[(5, send, &[])]),
        // Waits for 8 bytes, and 9 come.
        graph(&[(1, receive, &[]), (2, collective, &[1]), (3, collective, &[])]),
        graph(&[(7, collective, &[])]),
        graph(&[(8, compute, &[])]),
    ];
    let outcome = simulate(&machine, &Trace::new(graphs, Vec::new()), false).expect("an outcome");
    let finish: Vec<_> = outcome.ranks.iter().map(|rank| rank.finish.map(Time::whole_nanoseconds)).collect();
    assert_eq!(finish[1..], [None, None, Some(1)]);
    let stuck = |rank, operation, wait| Stuck { rank, operation, wait };
    assert_eq!(
        outcome.stuck,
        [
            stuck(1, 1, Wait::Others),
            stuck(1, 2, Wait::Operations(1)),
            stuck(1, 3, Wait::Others),
            stuck(2, 7, Wait::Others)
        ]
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let machine = simple(&[(Topology::Ring, 4, 50.0)], Entry::of(Algorithm::Ring));
    let trace = |work| Trace::same(graph(&[(3, work, &[])]), 4);
    let compute = trace(Work::Compute { operations: None, bytes: None });
    let impossible: [Machine; 6] = [
        Machine { chunks: 0, ..machine.clone() },
        Machine { queues: 0, ..machine.clone() },
        Machine { active_chunks: 0, ..machine.clone() },
        Machine { memory_bandwidth: 0.0, ..machine.clone() },
        Machine { pace: Pace::Roofline { peak: 0.0, memory: 50e9 }, ..machine.clone() },
        simple(&[(Topology::Ring, 4, 50.0)], Entry::direct(0)),
    ];
    for machine in impossible {
        assert!(matches!(simulate(&machine, &compute, false), Err(Refused::Machine(_))), "{machine:?}");
    }
    assert!(matches!(simulate(&machine, &Trace::default(), false), Err(Refused::Trace(_))));
    let groups = |ranks: &[u32]| vec![Group { id: 1, ranks: ranks.to_vec() }];
    let broken = Trace { groups: groups(&[0, 4]), ..compute };
    assert!(matches!(simulate(&machine, &broken, false), Err(Refused::Trace(_))));
    let collective = |group| Work::Collective { collective: Collective::AllGather, bytes: 64, group, dimensions: 1 };
    let strangers = [
        (Work::Send { to: 4, bytes: 1, tag: 0 }, 0),
        (Work::Receive { from: 0, bytes: 1, tag: 0 }, 0),
        (collective(Some(0)), 2),
        (collective(Some(1)), 0),
    ];
    for (work, at) in strangers {
        let trace = Trace { groups: groups(&[0, 1]), ..trace(work) };
        let refused = simulate(&machine, &trace, false);
        let Err(Refused::Stranger(stranger)) = refused else { panic!("{refused:?}") };
        assert_eq!([u64::from(stranger.rank), stranger.operation], [at, 3]);
    }
    let load = simulate(&machine, &trace(Work::Load { bytes: 64 }), false);
    assert!(matches!(load, Err(Refused::Operation { rank: 0, operation: 3, .. })), "{load:?}");
}

#[test]
fn a_collective_of_nothing_or_of_one_rank_ends_at_once() {
    // The reference never ends on them.
    let machine = simple(&[(Topology::Ring, 4, 50.0)], Entry::of(Algorithm::Ring));
    let collective = |bytes, group| Work::Collective { collective: Collective::AllGather, bytes, group, dimensions: 1 };
    let trace = Trace::same(graph(&[(3, collective(0, None), &[])]), 4);
    let finish = |trace: &Trace| {
        let outcome = simulate(&machine, trace, false).expect("an outcome");
        outcome.ranks.iter().map(|rank| rank.finish.map(Time::whole_nanoseconds)).collect::<Vec<_>>()
    };
    assert_eq!(finish(&trace), [Some(0); 4]);
    // Fewer bytes than chunks: a byte each.
    assert!(finish(&Trace::same(graph(&[(3, collective(3, None), &[])]), 4))[0] > Some(0));
    let groups = (0..4).map(|rank| Group { id: u64::from(rank) + 1, ranks: vec![rank] }).collect();
    let graphs = (0..4).map(|rank| graph(&[(3, collective(64, Some(rank)), &[])])).collect();
    assert_eq!(finish(&Trace::new(graphs, groups)), [Some(0); 4]);
}

/// Simulates rows on all threads: how many are right, and which are wrong.
fn compare(rows: &[Row]) -> (usize, Vec<String>) {
    let wrong = |row: &Row| {
        let ends = finish(&machine(row), collective(row), row["size_bytes"].parse().expect("bytes"));
        let found = [ends.iter().max(), ends.iter().min()].map(|end| end.copied().unwrap_or(0));
        let expected = ["cycles", "cycles_min"].map(|key| row[key].parse::<u64>().expect("cycles"));
        let same = found == expected && of_each(row).is_none_or(|expected| expected == ends);
        (!same).then(|| {
            let keys = ["id", "group", "backend", "topology", "npus_count", "collective", "implementation"];
            format!("{}: {found:?}, expected {expected:?}", keys.map(|key| row[key].as_str()).join(" "))
        })
    };
    let wrong: Vec<String> = rows.par_iter().filter_map(wrong).collect();
    (rows.len() - wrong.len(), wrong)
}

/// The end of each NPU, where they differ: `valuexcount` runs in the order of NPUs.
fn of_each(row: &Row) -> Option<Vec<u64>> {
    let text = row["per_npu_cycles"].as_str();
    if text.is_empty() {
        return None;
    }
    let run = |run: &str| {
        let (value, count) = run.split_once('x').unwrap_or((run, "1"));
        std::iter::repeat_n(value.parse().expect("a cycle"), count.parse().expect("a count"))
    };
    Some(text.split([';', ' ', ',']).filter(|run| !run.is_empty()).flat_map(run).collect())
}

fn rows_of(build: &str) -> Vec<Row> {
    rows("collectives").into_iter().filter(|row| row["build"] == build).collect()
}

#[test]
fn collectives_take_the_reference_programs_cycles() {
    let rows = rows_of("head");
    let (right, wrong) = compare(&rows);
    assert!(wrong.is_empty(), "{} wrong, {right} right:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(right, 5_549);
}

#[test]
fn schedulers_take_the_reference_programs_cycles() {
    let rows = rows_of("knobs");
    let (right, wrong) = compare(&rows);
    assert!(wrong.is_empty(), "{} wrong, {right} right:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(right, 1_194);
}

#[test]
fn messages_take_the_reference_programs_cycles() {
    let rows: Vec<Row> = rows("point_to_point").into_iter().filter(|row| row["exit_code"] == "0").collect();
    assert_eq!(rows.len(), 1_709);
    for row in rows {
        let ends = pair(&row, &pair_machine(&row));
        let expected = ["send_done_cycle", "recv_done_cycle"].map(|key| row[key].parse::<u64>().expect("a cycle"));
        assert_eq!(ends, expected, "{row:?}");
    }
}

#[test]
fn messages_on_which_the_reference_aborts_arrive() {
    // It makes the link of a ring of two twice, and knows no event before the first nanosecond.
    let rows: Vec<Row> = rows("point_to_point").into_iter().filter(|row| row["exit_code"] != "0").collect();
    assert_eq!(rows.len(), 125);
    for row in rows {
        let machine = pair_machine(&row);
        let ends = pair(&row, &machine);
        let dimension = &machine.dimensions[0];
        if dimension.size == 2 {
            assert_eq!(ends, pair(&row, &linked(&machine)), "{row:?}");
        } else {
            let [from, to] = ["src", "dst"].map(|key| row[key].parse::<u32>().expect("a rank"));
            let hops = f64::from(dimension.hops(from, to));
            assert_eq!(ends, [starsweep::units::whole(hops * dimension.latency.floor()); 2], "{row:?}");
        }
    }
}

/// The machine of a pair.
fn pair_machine(row: &Row) -> Machine {
    Machine {
        dimensions: dimensions(row),
        congestion: congestion(row),
        rendezvous: row["rendezvous"] == "1",
        ..simple(&[(Topology::Ring, 2, 1.0)], Entry::of(Algorithm::Ring))
    }
}

/// When the sender and the receiver of a pair are done.
fn pair(row: &Row, machine: &Machine) -> [u64; 2] {
    let number = |key: &str| row[key].parse::<u64>().unwrap_or_else(|_| panic!("{key} is {}", row[key]));
    let [from, to] = ["src", "dst"].map(|key| row[key].parse::<u32>().expect("a rank"));
    let bytes = number("size_bytes");
    let graphs = (0..machine.npus()).map(|rank| {
        let work = match rank {
            _ if rank == from => Work::Send { to, bytes, tag: 1 },
            _ if rank == to => Work::Receive { from, bytes, tag: 1 },
            _ => Work::Compute { operations: None, bytes: None },
        };
        graph(&[(0, work, &[])])
    });
    let outcome = simulate(machine, &Trace::new(graphs.collect(), Vec::new()), false).expect("an outcome");
    [from, to].map(|rank| outcome.ranks[rank as usize].finish.expect("an end").whole_nanoseconds())
}

/// The same machine with a direct link in place of a ring of two.
fn linked(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    for dimension in &mut machine.dimensions {
        if dimension.size == 2 && dimension.block == Topology::Ring {
            dimension.block = Topology::FullyConnected;
        }
    }
    machine
}

#[test]
fn collectives_on_which_the_reference_fails_end() {
    // It makes the link of a ring of two twice, sends messages of no bytes, never ends on an all-gather of fewer bytes than chunks,
    // writes to what it has freed, and cuts sizes to 32 bits: all of these have an answer.
    let rows = rows("collectives_failures");
    let ends: Vec<(&Row, Vec<u64>)> = rows
        .par_iter()
        .map(|row| (row, finish(&machine(row), collective(row), row["size_bytes"].parse().expect("bytes"))))
        .collect();
    for (row, ends) in &ends {
        let machine = machine(row);
        assert!(ends.iter().all(|&end| end > 0), "{row:?}");
        if machine.congestion == Congestion::Aware && machine.dimensions[0].size == 2 {
            let linked = finish(&linked(&machine), collective(row), row["size_bytes"].parse().expect("bytes"));
            assert_eq!(*ends, linked, "{row:?}");
        }
    }
    // This one ends under a checker of memory.
    let (_, ends) = ends.iter().find(|(row, _)| row["id"] == "5209").expect("a row");
    assert_eq!(ends.iter().max(), Some(&723_299));
    assert_eq!(rows.len(), 43);
}
