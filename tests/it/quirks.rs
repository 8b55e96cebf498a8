//! What does each quirk of the reference do, and what comes without it? The smallest case that tells the two apart, by hand.

use std::fs;

use starsweep::astra_sim::{Files, Options, read, read_machine};
use starsweep::engine::event_driven::{Ask, Path, simulate_by};
use starsweep::input::Remarks;
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::dimension_order::DimensionOrder;
use starsweep::system::machine::{Dimension, Entry, Machine};
use starsweep::system::rules::{Quirk, Rules};
use starsweep::system::topology::Topology;
use starsweep::units::{Time, real};
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Graph, Group, Node, Trace, Work};
use tempfile::TempDir;

use Rules as Of;

/// When each rank is done, picoseconds; none if it waits for ever. Or why there is nothing to be simulated.
type Ends = Result<Vec<Option<u64>>, String>;

/// A quirk, the other rules beside it, a case, and what comes with the quirk and without it.
struct Case {
    quirk: Quirk,
    beside: Rules,
    run: fn(Rules) -> Ends,
    with: Expected,
    without: Expected,
}

enum Expected {
    /// Nanoseconds.
    Ends(&'static [f64]),
    /// All wait for ever.
    Waits,
    Refused(&'static str),
}

use Expected::{Ends as At, Refused, Waits};

const CASES: &[Case] = &[
    Case {
        quirk: Quirk::WholeNanoseconds,
        beside: Of::ASTRA_SIM,
        run: whole_nanoseconds,
        with: At(&[3.0, 3.0]),
        without: At(&[3.333, 3.333]),
    },
    Case {
        quirk: Quirk::UnsharedBandwidth,
        beside: Of::ASTRA_SIM,
        run: unshared_bandwidth,
        with: At(&[400.0; 2]),
        without: At(&[800.0; 2]),
    },
    Case {
        quirk: Quirk::OneWayRings,
        beside: Of::OURS,
        run: one_way_rings,
        with: At(&[400.0; 3]),
        without: At(&[200.0; 3]),
    },
    Case {
        quirk: Quirk::OneWayRings,
        beside: Of::ASTRA_SIM,
        run: one_way_rings,
        with: At(&[400.0; 3]),
        without: At(&[200.0; 3]),
    },
    Case {
        quirk: Quirk::FullLastChunk,
        beside: Of::ASTRA_SIM,
        run: full_last_chunk,
        with: At(&[20.0; 2]),
        without: At(&[18.0; 2]),
    },
    Case {
        quirk: Quirk::SmallestChunk,
        beside: Of::ASTRA_SIM,
        run: smallest_chunk,
        with: At(&[68.0, 68.0, 0.0, 0.0]),
        without: At(&[64.0, 64.0, 0.0, 0.0]),
    },
    Case {
        quirk: Quirk::GroupDelay,
        beside: Of::ASTRA_SIM,
        run: group_delay,
        with: At(&[38.0, 38.0, 0.0]),
        without: At(&[308.0, 308.0, 0.0]),
    },
    Case {
        quirk: Quirk::FlatGroups,
        beside: Of::ASTRA_SIM,
        run: flat_groups,
        with: At(&[70.0, 70.0, 70.0, 70.0, 0.0, 0.0, 0.0, 0.0]),
        without: At(&[65.0, 65.0, 65.0, 65.0, 0.0, 0.0, 0.0, 0.0]),
    },
    Case {
        quirk: Quirk::SharedCounter,
        beside: Of::ASTRA_SIM,
        run: shared_counter,
        with: Waits,
        without: At(&[92.0; 3]),
    },
    Case {
        quirk: Quirk::LowestDimension,
        beside: Of::ASTRA_SIM,
        run: lowest_dimension,
        with: At(&[10.0, 0.0, 0.0, 10.0]),
        without: At(&[15.0, 0.0, 0.0, 15.0]),
    },
    Case {
        quirk: Quirk::MisplacedReductions,
        beside: Of::ASTRA_SIM,
        run: halving_reductions,
        with: At(&[70.0; 2]),
        without: At(&[220.0; 2]),
    },
    Case {
        quirk: Quirk::MisplacedReductions,
        beside: Of::ASTRA_SIM,
        run: window_reductions,
        with: At(&[90.0; 3]),
        without: At(&[126.0; 3]),
    },
    Case {
        quirk: Quirk::MisplacedReductions,
        beside: Of::ASTRA_SIM,
        run: tree_reductions,
        with: At(&[1350.0, 1240.0, 1350.0, 830.0]),
        without: At(&[1050.0, 940.0, 1050.0, 830.0]),
    },
    Case {
        quirk: Quirk::UnawakenedFollowers,
        beside: Of::ASTRA_SIM,
        run: unawakened_followers,
        with: At(&[12.0; 2]),
        without: At(&[7.0; 2]),
    },
    Case {
        quirk: Quirk::OneCommunication,
        beside: Of::ASTRA_SIM,
        run: one_communication,
        with: At(&[20.0, 10.0, 20.0]),
        without: At(&[10.0; 3]),
    },
    Case {
        quirk: Quirk::SchedulingKeysIgnored,
        beside: Of::ASTRA_SIM,
        run: scheduling_keys,
        with: At(&[560.0; 4]),
        without: At(&[440.0; 4]),
    },
    Case {
        quirk: Quirk::BroadcastIsADelay,
        beside: Of::ASTRA_SIM,
        run: broadcast,
        with: At(&[7.0; 5]),
        without: At(&[16.0; 5]),
    },
    Case {
        quirk: Quirk::BroadcastIsADelay,
        beside: Of::OURS,
        run: broadcast,
        with: At(&[7.0; 5]),
        without: At(&[16.0; 5]),
    },
    Case {
        quirk: Quirk::WholeMemoryBandwidth,
        beside: Of::ASTRA_SIM,
        run: memory_bandwidth,
        with: At(&[5.0; 4]),
        without: At(&[4.0; 4]),
    },
    Case {
        quirk: Quirk::TreesReduceAll,
        beside: Of::ASTRA_SIM,
        run: trees,
        with: At(&[230.0, 120.0]),
        without: At(&[70.0; 2]),
    },
    Case {
        quirk: Quirk::MirroredLoads,
        beside: Of::ASTRA_SIM,
        run: mirrored_loads,
        with: At(&[250.0; 4]),
        without: At(&[200.0; 4]),
    },
    Case {
        quirk: Quirk::MirroredLoads,
        beside: Of::OURS,
        run: mirrored_loads,
        with: At(&[250.0; 4]),
        without: At(&[200.0; 4]),
    },
    Case {
        quirk: Quirk::RepeatedNumbers,
        beside: Of::ASTRA_SIM,
        run: repeated_numbers,
        with: At(&[2000.0; 4]),
        without: Refused("two operations have the number 1"),
    },
];

#[test]
fn every_quirk_has_a_case_in_which_it_makes_the_difference() {
    for &quirk in Quirk::ALL {
        assert!(CASES.iter().any(|case| case.quirk == quirk), "`{}` has no case", quirk.name());
    }
    for case in CASES {
        let rules = [case.beside.with(case.quirk), case.beside.without(case.quirk)];
        for (rules, expected) in rules.into_iter().zip([&case.with, &case.without]) {
            let is_on = rules.has(case.quirk);
            let what = format!("`{}` {}", case.quirk.name(), if is_on { "on" } else { "off" });
            match (expected, (case.run)(rules)) {
                (At(expected), Ok(found)) => {
                    let found: Vec<_> = found.iter().map(|end| end.map(|end| real(end) / 1000.0)).collect();
                    assert_eq!(found, expected.iter().copied().map(Some).collect::<Vec<_>>(), "{what}");
                }
                (Waits, Ok(found)) => assert!(found.iter().all(Option::is_none), "{what}: {found:?}"),
                (Refused(words), Err(why)) => assert!(why.contains(words), "{what}: {why}"),
                (_, found) => panic!("{what}: {found:?}"),
            }
        }
    }
}

/// A dimension with a link of so many bytes a nanosecond, without latency.
fn dimension(block: Topology, size: u32, bandwidth: f64) -> Dimension {
    Dimension { block, size, bandwidth, latency: 0.0 }
}

/// A machine that cuts nothing, adds nothing up and waits for nothing but bytes, in one chunk.
fn machine(rules: Rules, dimensions: Vec<Dimension>, entry: Entry) -> Machine {
    let algorithms = vec![entry; dimensions.len()];
    Machine { rules, ..Machine::plain(dimensions, &algorithms) }
}

/// A machine of one switch with links of one byte a nanosecond.
fn switch(rules: Rules, npus: u32) -> Machine {
    machine(rules, vec![dimension(Topology::Switch, npus, 1.0)], Entry::of(Algorithm::Ring))
}

fn node(id: u64, work: Work, recorded: u64) -> Node {
    Node { id, work, recorded, on_host: false }
}

fn graph(nodes: &[(Node, &[u64])]) -> Graph {
    let mut draft = Draft::default();
    for &(node, after) in nodes {
        draft.push(node, "", after.iter().copied());
    }
    draft.finish().expect("a graph")
}

/// A graph of one operation.
fn only(work: Work) -> Graph {
    graph(&[(node(1, work, 0), &[])])
}

fn collective(collective: Collective, bytes: u64, group: Option<u32>) -> Work {
    Work::Collective { collective, bytes, group, dimensions: u32::MAX }
}

const IDLE: &[(Node, &[u64])] = &[];
const COMPUTE: Work = Work::Compute { operations: None, bytes: None };

fn ends(machine: &Machine, trace: &Trace) -> Ends {
    let by = |path| {
        let outcome = simulate_by(machine, trace, Ask { path, ..Ask::default() });
        let outcome = outcome.map_err(|refused| refused.to_string())?;
        let ends = outcome.ranks.iter().map(|rank| rank.finish.map(Time::as_picoseconds));
        Ok(ends.collect())
    };
    let ends = by(Path::Messages);
    assert_eq!(ends, by(Path::Automatic));
    ends
}

/// All ranks take part in one collective.
fn all(machine: &Machine, kind: Collective, bytes: u64) -> Ends {
    ends(machine, &Trace::same(only(collective(kind, bytes, None)), machine.npus()))
}

/// The first so many ranks take part in a collective, the others do nothing.
fn some(machine: &Machine, kind: Collective, bytes: u64, members: u32) -> Ends {
    let groups = vec![Group { id: 1, ranks: (0..members).collect() }];
    let work = || only(collective(kind, bytes, Some(0)));
    let graphs = (0..machine.npus()).map(|rank| if rank < members { work() } else { graph(IDLE) });
    ends(machine, &Trace::new(graphs.collect(), groups))
}

/// 10 B at 3 B/ns: 3.333 ns, or 3.
fn whole_nanoseconds(rules: Rules) -> Ends {
    let machine = machine(rules, vec![dimension(Topology::Switch, 2, 3.0)], Entry::of(Algorithm::Ring));
    let graphs =
        vec![only(Work::Send { to: 1, bytes: 10, tag: 0 }), only(Work::Receive { from: 0, bytes: 10, tag: 0 })];
    ends(&machine, &Trace::new(graphs, Vec::new()))
}

/// An all-reduce of 800 B among 2, in 2 chunks that may both be under way: each sends 2 messages of 200 B, which take 400 ns at
/// 1 B/ns. Both at once take 400 ns; one after the other 800 ns.
fn unshared_bandwidth(rules: Rules) -> Ends {
    let machine = Machine { chunks: 2, active_chunks: 2, ..switch(rules, 2) };
    all(&machine, Collective::AllReduce, 800)
}

/// An all-reduce of 300 B round a ring of 3: 4 steps of 100 B, 400 ns over one link of 1 B/ns; 50 B each way round take half.
fn one_way_rings(rules: Rules) -> Ends {
    let machine = machine(rules, vec![dimension(Topology::Ring, 3, 1.0)], Entry::of(Algorithm::Ring));
    all(&machine, Collective::AllReduce, 300)
}

/// An all-reduce of 18 B among 2 in "4" chunks: of 4 B, so there are 5, each 2 messages of 2 B, 4 ns. The last chunk has 2 B: 2
/// messages of 1 B, 2 ns. 5 * 4 = 20 ns, or 4 * 4 + 2 = 18 ns.
fn full_last_chunk(rules: Rules) -> Ends {
    let machine = Machine { chunks: 4, ..switch(rules, 2) };
    all(&machine, Collective::AllReduce, 18)
}

/// An all-reduce of 4 B among 2 of 4 NPUs, in 2 chunks: of 2 B, or of 4 B as there are 4 NPUs. A chunk has 3 delays of 10 ns (in a
/// group) and 2 messages of half its bytes: 2 * (30 + 2 * 2) = 68 ns, or 2 * (30 + 2 * 1) = 64 ns.
fn smallest_chunk(rules: Rules) -> Ends {
    let machine = Machine { chunks: 2, ..switch(rules, 4) };
    some(&machine, Collective::AllReduce, 4, 2)
}

/// An all-reduce of 8 B among 2 of 3 NPUs with an endpoint delay of 100 ns: 3 delays and 2 messages of 4 B. 3 * 10 + 8 = 38 ns, or
/// 3 * 100 + 8 = 308 ns.
fn group_delay(rules: Rules) -> Ends {
    let machine = Machine { endpoint_delay: 100.0, ..switch(rules, 3) };
    some(&machine, Collective::AllReduce, 8, 2)
}

/// An all-gather of 10 B each among the 4 NPUs of the inner two of three dimensions, 1 B/ns, 2 B/ns and 1 B/ns, with delays of 10
/// ns. Flat: 3 messages of 10 B in the first dimension and 4 delays, 70 ns. By dimension, outermost first: 2 delays and 10 B at 2
/// B/ns, then 2 delays and 20 B at 1 B/ns: 25 + 40 = 65 ns.
fn flat_groups(rules: Rules) -> Ends {
    let dimensions = [1.0, 2.0, 1.0].map(|bandwidth| dimension(Topology::Switch, 2, bandwidth));
    let machine = Machine { endpoint_delay: 10.0, ..machine(rules, dimensions.to_vec(), Entry::of(Algorithm::Ring)) };
    some(&machine, Collective::AllGather, 10, 4)
}

/// Ranks 0 and 1 do an all-reduce of 4 B (3 delays of 10 ns, 2 messages of 2 B: 34 ns), rank 2 computes for 34 ns; then all do one
/// of 6 B: 5 delays of 10 ns, 4 messages of 2 B, 58 ns. 92 ns; or the tags of rank 2 are one behind, and all wait.
fn shared_counter(rules: Rules) -> Ends {
    let machine = Machine { endpoint_delay: 10.0, ..switch(rules, 3) };
    let then = node(2, collective(Collective::AllReduce, 6, None), 0);
    let graphs = (0..3).map(|rank| {
        let first = if rank < 2 { collective(Collective::AllReduce, 4, Some(0)) } else { COMPUTE };
        graph(&[(node(1, first, 34), &[]), (then, &[1])])
    });
    ends(&machine, &Trace::new(graphs.collect(), vec![Group { id: 1, ranks: vec![0, 1] }]))
}

/// 10 B from corner to corner of a square: 10 ns at 1 B/ns in the first dimension, and 5 ns at 2 B/ns in the second.
fn lowest_dimension(rules: Rules) -> Ends {
    let dimensions = [1.0, 2.0].map(|bandwidth| dimension(Topology::Switch, 2, bandwidth));
    let machine = machine(rules, dimensions.to_vec(), Entry::of(Algorithm::Ring));
    let graphs = vec![
        only(Work::Send { to: 3, bytes: 10, tag: 0 }),
        graph(IDLE),
        graph(IDLE),
        only(Work::Receive { from: 0, bytes: 10, tag: 0 }),
    ];
    ends(&machine, &Trace::new(graphs, Vec::new()))
}

/// A reduce-scatter of 100 B that halves among 2, delays of 10 ns, a memory of 1 B/ns: 2 delays and one message of 50 B, 70 ns. The
/// last block received, here the only one, is added for nothing; or for 3 * 50 ns.
fn halving_reductions(rules: Rules) -> Ends {
    let dimensions = vec![dimension(Topology::Switch, 2, 1.0)];
    let machine = machine(rules, dimensions, Entry::of(Algorithm::HalvingDoubling));
    let machine = Machine { endpoint_delay: 10.0, memory_bandwidth: 1e9, ..machine };
    all(&machine, Collective::ReduceScatter, 100)
}

/// A direct reduce-scatter of 36 B among 3, one message at a time, delays of 10 ns, a memory of 1 B/ns: 3 delays and 2 messages of
/// 12 B, 54 ns, and additions of 3 * 12 ns. Every second one is left out, so there is one; or there are two.
fn window_reductions(rules: Rules) -> Ends {
    let dimensions = vec![dimension(Topology::Switch, 3, 1.0)];
    let machine = machine(rules, dimensions, Entry::direct(1));
    let machine = Machine { endpoint_delay: 10.0, memory_bandwidth: 1e9, ..machine };
    all(&machine, Collective::ReduceScatter, 36)
}

/// A tree of 4 with its root last: 3 over 1, 1 over 0 and 2, an all-reduce of 100 B, delays of 10 ns, a memory of 1 B/ns, so that
/// an addition takes 300 ns. The leaves send at 10 ns, 1 has added both at 420 ns, 3 has added that at 830 ns and is done, 1 has it at
/// 930 ns and passes it on after a delay, at 940 ns, the leaves have it at 1040 ns and are done after a delay, at 1050 ns. Or 1 adds
/// once more before it passes it on: 300 ns later.
fn tree_reductions(rules: Rules) -> Ends {
    let dimensions = vec![dimension(Topology::Switch, 4, 1.0)];
    let machine = machine(rules, dimensions, Entry::of(Algorithm::DoubleBinaryTree));
    let machine = Machine { endpoint_delay: 10.0, memory_bandwidth: 1e9, ..machine };
    all(&machine, Collective::AllReduce, 100)
}

/// 1 takes no time and 2, of 5 ns, follows it, while the host is busy for 7 ns: 2 starts at 0, or when the host has finished.
fn unawakened_followers(rules: Rules) -> Ends {
    let host = Node { on_host: true, ..node(3, COMPUTE, 7) };
    let graph = graph(&[(node(1, Work::Nothing, 0), &[]), (node(2, COMPUTE, 5), &[1]), (host, &[])]);
    ends(&switch(rules, 2), &Trace::same(graph, 2))
}

/// Two messages of 10 B: one after the other, or each over a bandwidth of its own.
fn one_communication(rules: Rules) -> Ends {
    let send = |to: u32| node(u64::from(to), Work::Send { to, bytes: 10, tag: 0 }, 0);
    let receive = || only(Work::Receive { from: 0, bytes: 10, tag: 0 });
    let graphs = vec![graph(&[(send(1), &[]), (send(2), &[])]), receive(), receive()];
    ends(&switch(rules, 3), &Trace::new(graphs, Vec::new()))
}

/// A broadcast of 10 B among 5 that was recorded with 7 ns. Sent, it is a scatter and an all-gather round a ring: 8 steps of 2 B.
fn broadcast(rules: Rules) -> Ends {
    let graph = graph(&[(
        node(
            1,
            Work::Collective { collective: Collective::Broadcast, bytes: 10, group: None, dimensions: u32::MAX },
            7,
        ),
        &[],
    )]);
    ends(&switch(rules, 5), &Trace::same(graph, 5))
}

/// A reduce-scatter of 100 B in a tree of 2, root last, with delays of 10 ns. It is an all-reduce: the leaf sends 100 B at 10 ns, the
/// root sends them back at 120 ns and is done, the leaf is at 230 ns. Or it is done as in a ring: 2 delays and one message of 50 B.
fn trees(rules: Rules) -> Ends {
    let dimensions = vec![dimension(Topology::Switch, 2, 1.0)];
    let machine =
        Machine { endpoint_delay: 10.0, ..machine(rules, dimensions, Entry::of(Algorithm::DoubleBinaryTree)) };
    all(&machine, Collective::ReduceScatter, 100)
}

/// An all-gather of 100 B among 2 x 2 by Themis, links of 2 and 1 B/ns: 100 B inside and 200 B outside, 50 + 200 ns; or 100 B outside
/// and 200 B inside, 100 + 100 ns.
fn mirrored_loads(rules: Rules) -> Ends {
    let dimensions = vec![dimension(Topology::Switch, 2, 2.0), dimension(Topology::Switch, 2, 1.0)];
    let machine = machine(rules, dimensions, Entry::of(Algorithm::Ring));
    all(&Machine { dimension_order: DimensionOrder::Themis, ..machine }, Collective::AllGather, 100)
}

/// The machine that files of the reference describe: two dimensions of 2 with 100 ns and 50 ns a hop, chunks of 2, and a memory.
fn from_files(rules: Rules) -> Machine {
    let folder = tempfile::tempdir().expect("a folder");
    let mut remarks = Remarks::default();
    let parts = read_machine(&files(&folder), &Options { rules, ..Options::default() }, &mut remarks);
    parts.unwrap_or_else(|| panic!("{remarks:?}")).machine
}

/// Files of the reference in a folder.
fn files(folder: &TempDir) -> Files {
    let at = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("a file");
        folder.path().join(name)
    };
    let network = "topology: [Switch, Switch]\nnpus_count: [2, 2]\nbandwidth: [1000, 1000]\nlatency: [100, 50]\n";
    let system = r#"{
        "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 2, "collective-optimization": "localBWAware", "local-mem-bw": 1600,
        "reduce-scatter-implementation": ["ring", "ring"], "inter-dimension-scheduling": "roundRobin"
    }"#;
    let memory = r#"{"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 0, "remote-mem-bw": 2.5}"#;
    Files {
        workload: folder.path().join("w"),
        network: at("network.yml", network),
        system: at("system.json", system),
        memory: Some(at("memory.json", memory)),
        groups: None,
    }
}

/// A trace in which two computations have the number 1, of 1 us and of 2 us.
fn repeated_numbers(rules: Rules) -> Ends {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files(&folder);
    // A record about the whole, then two of operations: a number, a kind, microseconds.
    let trace = [&[0][..], &[6, 8, 1, 24, 4, 56, 1], &[6, 8, 1, 24, 4, 56, 2]].concat();
    for rank in 0..4 {
        fs::write(folder.path().join(format!("w.{rank}.et")), &trace).expect("a file");
    }
    let input = read(&files, &Options { rules, ..Options::default() });
    let input = input.map_err(|problems| problems.found.iter().map(|it| it.message.clone()).collect::<String>())?;
    let says = "w.0.et`: operation 1 () takes the place of operation 1 ()";
    assert!(input.remarks.found.iter().any(|it| it.message.contains(says)), "{:?}", input.remarks.found);
    ends(&input.machine, &input.trace)
}

/// A reduce-scatter of 16 B in 2 chunks whose bytes take no time: 220 ns in the first dimension (2 delays of 10 ns, 2 hops of 100
/// ns), 120 ns in the second. Both chunks begin in the first: the second chunk leaves it at 440 ns and ends at 560 ns. By turns the
/// second chunk is in the second dimension until 120 ns, then in the first behind the other, until 440 ns.
fn scheduling_keys(rules: Rules) -> Ends {
    all(&from_files(rules), Collective::ReduceScatter, 16)
}

/// 10 B from a memory of 2.5 B/ns: 4 ns, or 5 ns at 2 B/ns.
fn memory_bandwidth(rules: Rules) -> Ends {
    let machine = from_files(rules);
    ends(&machine, &Trace::same(only(Work::Load { bytes: 10 }), machine.npus()))
}

#[test]
fn a_message_waits_until_its_receiver_asks() {
    // 1,000 B for whom computes for 5,000 ns first: its question of 8 KiB arrives at 13,192 ns, the message 1,000 ns later.
    for rules in [Rules::OURS, Rules::ASTRA_SIM] {
        let machine = Machine { rendezvous: true, ..switch(rules, 2) };
        let send = graph(&[(node(1, Work::Send { to: 1, bytes: 1000, tag: 0 }, 0), &[])]);
        let receive = Work::Receive { from: 0, bytes: 1000, tag: 0 };
        let receive = graph(&[(node(1, COMPUTE, 5000), &[]), (node(2, receive, 0), &[1])]);
        let ends = ends(&machine, &Trace::new(vec![send, receive], Vec::new()));
        assert_eq!(ends, Ok(vec![Some(14_192_000); 2]), "{rules:?}");
    }
}

#[test]
fn members_that_are_no_regular_part_gather_their_shards() {
    // Five of eight on a switch of 1 B/ns, 10 B each, round a ring: 4 messages of 10 B.
    let machine = switch(Rules::OURS, 8);
    let gather = |group| Work::Collective {
        collective: Collective::AllGather,
        bytes: 10,
        group: Some(group),
        dimensions: u32::MAX,
    };
    let groups = [vec![0, 1, 2, 4, 5], vec![3, 6, 7]];
    let graphs = (0..8).map(|rank| only(gather(u32::from(groups[1].contains(&rank))))).collect();
    let groups = groups.into_iter().zip(1..).map(|(ranks, id)| Group { id, ranks }).collect();
    let ends = ends(&machine, &Trace::new(graphs, groups));
    let at = |ns: u64| Some(1000 * ns);
    assert_eq!(ends, Ok([40, 40, 40, 20, 40, 40, 20, 20].map(at).to_vec()));
}
