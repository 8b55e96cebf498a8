//! Are the reference simulator's files read and written as they are meant, and each mistake told with its place?

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use starsweep::astra_sim::{Files, Input, Options, options, read, read_machine, read_trace, write};
use starsweep::engine::event_driven::simulate;
use starsweep::input::{Remarks, Severity};
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::dimension_order::DimensionOrder;
use starsweep::system::machine::{
    Bus, Congestion, Dimension, Entry, Hierarchy, Machine, Own, Pace, Place, RemoteMemory,
};
use starsweep::system::queue_order::QueueOrder;
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::units::Time;
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Graph, Group, Node, Trace, Work};

use crate::chakra::{self, COLLECTIVE, COMPUTE, RECEIVE, SEND, Value, node};

/// Files that are right: four NPUs, each in an all-reduce after a computation.
pub struct Case {
    pub folder: tempfile::TempDir,
    pub files: Files,
    pub options: Options,
}

pub const NETWORK: &str = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
pub const SYSTEM: &str = r#"{
  "scheduling-policy": "LIFO",
  "endpoint-delay": 10,
  "active-chunks-per-dimension": 1,
  "preferred-dataset-splits": 4,
  "all-reduce-implementation": ["ring"],
  "collective-optimization": "localBWAware",
  "local-mem-bw": 50
}
"#;
const MEMORY: &str = "{\"memory-type\": \"NO_MEMORY_EXPANSION\"}\n";
pub const GROUPS: &str = "{\"1\": [0, 1], \"2\": [2, 3]}\n";

fn all_reduce(id: u64, after: &[u64]) -> chakra::Node {
    node(id, COLLECTIVE, after, &[("comm_type", Value::Int64(0)), ("comm_size", Value::Uint64(1 << 20))])
}

pub fn right() -> Vec<chakra::Node> {
    vec![node(1, COMPUTE, &[], &[]), all_reduce(2, &[1])]
}

impl Case {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let files = Files {
            workload: at("w"),
            system: at("system.json"),
            network: at("network.yml"),
            memory: Some(at("memory.json")),
            groups: Some(at("groups.json")),
        };
        let case = Self { folder, files, options: Options::default() };
        case.put("network.yml", NETWORK);
        case.put("system.json", SYSTEM);
        case.put("memory.json", MEMORY);
        case.put("groups.json", GROUPS);
        case.traces(4, &right());
        case
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join(name), content).expect("a file is written");
    }

    pub fn traces(&self, ranks: u32, nodes: &[chakra::Node]) {
        (0..ranks).for_each(|rank| self.put(&format!("w.{rank}.et"), chakra::trace(nodes)));
    }

    pub fn read(&self) -> Result<Input, Remarks> {
        read(&self.files, &self.options)
    }

    /// Everything that is said, a line each: whether it stops us, the place, the words there, the message, the help.
    fn said(&self) -> String {
        let remarks = match self.read() {
            Ok(input) => input.remarks,
            Err(problems) => problems,
        };
        let mut text = String::new();
        for found in &remarks.found {
            let severity = if found.severity == Severity::Error { "error" } else { "caution" };
            let place = found.place.map(|place| {
                let file = remarks.text(place).expect("a text");
                let name = Path::new(&file.name).file_name().expect("a name").to_string_lossy().into_owned();
                let line = file.content.lines().nth(place.line as usize - 1).unwrap_or_default();
                let words: String = line.chars().skip(place.column as usize - 1).take(place.length as usize).collect();
                format!("{name}:{}:{} [{words}] ", place.line, place.column)
            });
            let help = found.help.as_ref().map(|help| format!("\n    {help}")).unwrap_or_default();
            let _ = writeln!(text, "{severity}: {}{}{help}", place.unwrap_or_default(), found.message);
        }
        let folder = format!("{}/", self.folder.path().display());
        text.replace(&folder, "")
    }
}

#[test]
fn what_is_right_is_read_without_a_remark() {
    let case = Case::new();
    let input = case.read().expect("right files");
    assert_eq!(case.said(), "");
    assert_eq!(input.machine.npus(), 4);
    assert_eq!(input.machine.memory_bandwidth, 50e9);
    // Four ranks of one file share one graph.
    assert_eq!((input.trace.graphs.len(), input.trace.of_rank.as_slice()), (1, &[0, 0, 0, 0][..]));
    let work = |place: usize| input.trace.graphs[0].nodes()[place].work;
    assert_eq!(work(0), Work::Compute { operations: None, bytes: None });
    let collective = Collective::AllReduce;
    assert_eq!(work(1), Work::Collective { collective, bytes: 1 << 20, group: None, dimensions: u32::MAX });
}

/// A change to a text of the files that are right.
type Change = (&'static str, &'static str, &'static str);

#[test]
fn each_mistake_and_each_trap_is_told_with_its_place() {
    let cases: &[&[Change]] = &[
        &[("network.yml", "topology:", "topolgy:")],
        &[("network.yml", "[ Ring ]", "Ring")],
        &[("network.yml", "[ Ring ]", "[ ring ]")],
        &[("network.yml", "[ 4 ]", "[ 4, 2 ]")],
        &[("network.yml", "[ 4 ]", "[ 1 ]")],
        &[("network.yml", "[ 4 ]", "[ 4.5 ]")],
        &[("network.yml", "[ 50.0 ]", "[ 0 ]"), ("network.yml", "[ 500.0 ]", "[ -1 ]")],
        &[("network.yml", "[ 50.0 ]", "[ tbd ]")],
        &[("network.yml", "[ 50.0 ]", "[ 50.0")],
        &[("system.json", "\"endpoint-delay\"", "\"endpoint_delay\"")],
        &[("system.json", "\"endpoint-delay\": 10", "\"endpoint-delay\": 10.7, \"boost-mode\": 1")],
        &[("system.json", "\"preferred-dataset-splits\": 4,", "")],
        &[("system.json", "\"scheduling-policy\": \"LIFO\",", "")],
        &[("system.json", "LIFO", "LAST")],
        &[("system.json", "  \"collective-optimization\": \"localBWAware\",\n", "")],
        &[("system.json", "\"ring\"", "\"rings\"")],
        &[("system.json", "\"ring\"", "\"ring\", \"ring\"")],
        &[("system.json", "\"ring\"", "\"direct0\"")],
        &[("system.json", "all-reduce", "all-gather")],
        &[
            ("network.yml", "[ Ring ]", "[ Ring, Switch ]"),
            ("network.yml", "[ 4 ]", "[ 2, 2 ]"),
            ("network.yml", "[ 50.0 ]", "[ 50, 50 ]"),
            ("network.yml", "[ 500.0 ]", "[ 0, 0 ]"),
        ],
        &[("system.json", "\"local-mem-bw\": 50", "\"roofline-enabled\": false, \"local-mem-bw\": 50")],
        &[("system.json", "\"local-mem-bw\": 50", "\"roofline-enabled\": 1, \"local-mem-bw\": 0")],
        &[("system.json", "\"local-mem-bw\": 50", "\"roofline-enabled\": 1, \"peak-perf\": 1, \"local-mem-bw\": 50")],
        &[("system.json", "\"local-mem-bw\": 50", "\"local-mem-bw\": 0")],
        &[("system.json", "\"local-mem-bw\": 50", "\"local-mem-bw\": \"50\"")],
        &[("system.json", "\"local-mem-bw\": 50", "\"local-mem-bw\": 50,")],
        &[(
            "system.json",
            "\"local-mem-bw\": 50",
            "\"local-mem-bw\": 50, \"intra-dimension-scheduling\": \"smallestFirst\"",
        )],
        &[(
            "system.json",
            "\"local-mem-bw\": 50",
            "\"local-mem-bw\": 50, \"inter-dimension-scheduling\": \"ascending\"",
        )],
        &[(
            "system.json",
            "\"local-mem-bw\": 50",
            "\"local-mem-bw\": 50, \"all-reduce-implementation-custom\": [\"none\"]",
        )],
        &[("system.json", "\"local-mem-bw\": 50", "\"local-mem-bw\": 50, \"model-shared-bus\": true")],
        &[("system.json", "{\n", "[\n"), ("system.json", "\n}", "\n]")],
        &[("memory.json", "NO_MEMORY", "NO_MEMROY")],
        &[(
            "memory.json",
            "\"NO_MEMORY_EXPANSION\"",
            "\"MEMORY_POOL\", \"remote-mem-bw\": 12.9, \"local-mem-latency\": 1",
        )],
        &[("memory.json", "\"NO_MEMORY_EXPANSION\"", "\"PER_NODE_MEMORY_EXPANSION\", \"num-nodes\": 3")],
        &[(
            "memory.json",
            "\"NO_MEMORY_EXPANSION\"",
            "\"PER_NODE_MEMORY_EXPANSION\", \"num-nodes\": 3, \"num-npus-per-node\": 2",
        )],
        &[("groups.json", "[0, 1]", "[0, 0]"), ("groups.json", "[2, 3]", "[2, 4]")],
        &[("groups.json", "\"1\"", "\"tp\""), ("groups.json", "\"2\"", "\"500\"")],
        &[("groups.json", "[0, 1]", "0")],
    ];
    let mut all = String::new();
    for changes in cases {
        let case = Case::new();
        for (file, from, to) in *changes {
            let path = case.folder.path().join(file);
            let text = std::fs::read_to_string(&path).expect("a text");
            assert!(text.contains(from), "{file} has no {from}");
            case.put(file, text.replacen(from, to, 1));
            let _ = writeln!(all, "# {file}: {} -> {}", from.trim(), to.trim());
        }
        all.push_str(&case.said());
        all.push('\n');
    }
    insta::assert_snapshot!(all);
}

#[test]
fn each_mistake_of_a_trace_is_told_by_its_operation() {
    let text = |text: &str| Value::Text(text.to_owned());
    let collective = |attributes: &[(&str, Value)]| node(7, COLLECTIVE, &[], attributes);
    let send = |attributes: &[(&str, Value)]| vec![node(7, SEND, &[], attributes)];
    let (kind, size) = (("comm_type", Value::Int32(0)), ("comm_size", Value::Int64(64)));
    let whole = |name, number| (name, Value::Uint32(number));
    let flags = Value::Bools(chakra::Flags { values: vec![true, false] });
    let cases: Vec<(&str, Vec<chakra::Node>)> = vec![
        ("no type", vec![collective(std::slice::from_ref(&size))]),
        ("no size", vec![collective(std::slice::from_ref(&kind))]),
        ("a size that is real", vec![collective(&[kind.clone(), ("comm_size", Value::Double(64.0))])]),
        ("a size below zero", vec![collective(&[kind.clone(), ("comm_size", Value::Sint64(-64))])]),
        ("a barrier", vec![collective(&[("comm_type", Value::Int64(9)), size.clone()])]),
        ("a type that is not known", vec![collective(&[("comm_type", Value::Int64(10)), size.clone()])]),
        ("a group by number", vec![collective(&[kind.clone(), size.clone(), ("pg_name", Value::Int64(1))])]),
        ("a group that is not there", vec![collective(&[kind.clone(), size.clone(), ("pg_name", text("3"))])]),
        ("a group of others", vec![collective(&[kind.clone(), size.clone(), ("pg_name", text("1"))])]),
        ("dimensions in words", vec![collective(&[kind.clone(), size.clone(), ("involved_dim", text("x"))])]),
        (
            "dimensions of a group",
            vec![collective(&[kind, size.clone(), ("involved_dim", flags), ("pg_name", text("0"))])],
        ),
        ("no receiver", send(&[size.clone(), whole("comm_tag", 1)])),
        ("no tag", send(&[size.clone(), whole("comm_dst", 1)])),
        ("a receiver that is not there", send(&[size.clone(), whole("comm_dst", 4), whole("comm_tag", 1)])),
        (
            "a sender that is another",
            send(&[size.clone(), whole("comm_dst", 3), whole("comm_src", 0), whole("comm_tag", 1)]),
        ),
        ("a long tag", send(&[size.clone(), whole("comm_dst", 3), ("comm_tag", Value::Uint64(1 << 32))])),
        ("a message on the host", send(&[("is_cpu_op", Value::Bool(true)), size])),
        ("one number twice", vec![node(7, COMPUTE, &[], &[]), node(7, COMPUTE, &[], &[])]),
        ("after what is not there", vec![node(7, COMPUTE, &[8], &[])]),
        ("a circle", vec![node(7, COMPUTE, &[8], &[]), node(8, COMPUTE, &[7], &[])]),
        ("a kind that is not known", vec![node(7, 8, &[], &[])]),
        ("a load", vec![node(7, chakra::LOAD, &[], &[("tensor_size", Value::Uint64(1))])]),
        ("marks", vec![node(7, 0, &[], &[]), node(8, 1, &[], &[])]),
        ("nothing", Vec::new()),
    ];
    let mut all = String::new();
    for (what, nodes) in cases {
        let case = Case::new();
        case.traces(4, &nodes);
        let _ = writeln!(all, "# {what}\n{}", case.said());
    }
    let case = Case::new();
    std::fs::remove_file(case.folder.path().join("w.1.et")).expect("a file");
    std::fs::remove_file(case.folder.path().join("w.2.et")).expect("a file");
    let _ = writeln!(all, "# no file\n{}", case.said());
    case.traces(5, &right());
    let _ = writeln!(all, "# a file too many\n{}", case.said());
    insta::assert_snapshot!(all);
}

#[test]
fn every_kind_of_whole_number_is_one() {
    let values = [
        Value::Int32(4),
        Value::Int64(4),
        Value::Uint32(4),
        Value::Uint64(4),
        Value::Sint32(4),
        Value::Sint64(4),
        Value::Fixed32(4),
        Value::Fixed64(4),
        Value::Sfixed32(4),
        Value::Sfixed64(4),
    ];
    for value in values {
        let case = Case::new();
        let size = ("comm_size", value.clone());
        // The second of two with one name counts for nothing.
        let twice = [("comm_type", Value::Bool(false)), size, ("comm_size", Value::Text("x".to_owned()))];
        case.traces(4, &[node(1, COLLECTIVE, &[], &twice)]);
        let input = case.read().unwrap_or_else(|problems| panic!("{value:?}: {problems:?}"));
        assert!(matches!(input.trace.graphs[0].nodes()[0].work, Work::Collective { bytes: 4, .. }), "{value:?}");
    }
}

#[test]
fn dependencies_of_both_kinds_count_packed_or_not() {
    let case = Case::new();
    let mut last = node(9, COMPUTE, &[1, 3], &[]);
    last.ctrl_deps = vec![2, 3];
    last.duration_micros = 5;
    let nodes = [last, node(1, COMPUTE, &[], &[]), node(2, COMPUTE, &[], &[]), node(3, COMPUTE, &[], &[])];
    case.traces(4, &nodes);
    let graph = &case.read().expect("a graph").trace.graphs[0];
    assert_eq!(graph.after(3), [1, 2, 3]);
    assert_eq!((graph.nodes()[3].recorded, graph.name(3)), (5000, "n9"));
}

#[test]
fn a_trace_that_is_cut_off_is_refused() {
    let case = Case::new();
    let bytes = chakra::trace(&right());
    let mut ends = vec![bytes.len()];
    for nodes in [&right()[..0], &right()[..1]] {
        ends.push(chakra::trace(nodes).len());
    }
    for length in 0..=bytes.len() {
        case.put("w.2.et", &bytes[..length]);
        assert_eq!(case.read().is_ok(), ends.contains(&length), "{length} of {}", bytes.len());
    }
}

#[test]
fn compressed_traces_are_read_whatever_their_names() {
    use std::io::Write as _;
    let case = Case::new();
    let plain = case.read().expect("right files").trace;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&chakra::trace(&right())).expect("bytes");
    let packed = packer.finish().expect("bytes");
    case.put("w.0.et", &packed);
    case.put("w.1.et.gz", &packed);
    std::fs::remove_file(case.folder.path().join("w.1.et")).expect("a file");
    // Equal files are one graph; a compressed one is another file.
    let trace = case.read().expect("right files").trace;
    assert_eq!((trace.of_rank.as_slice(), &trace.graphs[0]), (&[0, 0, 1, 1][..], &plain.graphs[0]));
    case.put("w.0.et", &packed[..packed.len() - 9]);
    assert!(case.said().contains("`w.0.et`: the compressed file is broken"), "{}", case.said());
}

#[test]
fn a_trace_that_is_replayed_may_have_collectives_that_are_not_simulated() {
    let case = Case::new();
    let mut barrier = node(1, COLLECTIVE, &[], &[("comm_type", Value::Int64(9))]);
    barrier.duration_micros = 7;
    case.traces(4, &[barrier]);
    assert_eq!(case.read().map(drop).map_err(|problems| problems.errors()), Err(1));
    case.put("system.json", SYSTEM.replace("\"local-mem-bw\"", "\"replay-only\": 1, \"local-mem-bw\""));
    let input = case.read().unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = simulate(&input.machine, &input.trace, false).expect("an outcome");
    assert_eq!(outcome.ranks[3].finish, Some(Time::picoseconds(7_000_000)));
    assert!(case.said().contains("collectives that cannot be simulated are replayed (operation 1 of `w.0.et`)"));
}

#[test]
fn machines_of_as_many_ranks_share_a_trace() {
    let mut case = Case::new();
    let mut remarks = Remarks::default();
    let parts = read_machine(&case.files, &case.options, &mut remarks).expect("a machine");
    let trace = read_trace(&case.files, &parts, &mut remarks).expect("a trace");
    case.options.queues_per_dim = 2;
    let other = read_machine(&case.files, &case.options, &mut remarks).expect("a machine");
    assert_eq!(remarks.found, []);
    assert_eq!(case.read().map(|input| (input.machine, input.trace)), Ok((other.machine, trace)));
}

#[test]
fn a_group_file_whose_path_says_empty_is_none() {
    let mut case = Case::new();
    case.files.groups = Some(PathBuf::from("empty"));
    assert_eq!(case.said(), "");
    case.put("empty.json", GROUPS);
    case.files.groups = Some(case.folder.path().join("empty.json"));
    assert!(case.said().contains("is not read: `empty` in a path means no groups"), "{}", case.said());
}

#[test]
fn options_count_where_the_reference_lets_them() {
    let mut case = Case::new();
    case.options = Options { injection_scale: 2.55, queues_per_dim: 3, heeds_scheduling_keys: true, ..case.options };
    case.put("system.json", SYSTEM.replace("\"LIFO\"", "\"LIFO\", \"inter-dimension-scheduling\": \"offlineGreedy\""));
    let machine = case.read().expect("right files").machine;
    assert_eq!((machine.endpoint_delay, machine.queues), (25.0, 3));
    assert_eq!(machine.dimension_order, DimensionOrder::Themis);
    case.put("system.json", SYSTEM.replace("\"endpoint-delay\": 10,", ""));
    assert_eq!(case.read().expect("right files").machine.endpoint_delay, 10.0);
    assert!(case.said().contains("the scale of injection counts for nothing"), "{}", case.said());
    case.options = Options { queues_per_dim: 0, injection_scale: f64::NAN, ..case.options };
    assert_eq!(case.read().map(drop).map_err(|problems| problems.errors()), Err(2));
}

#[test]
fn a_collective_of_its_own_needs_a_graph_for_each_member() {
    let case = Case::new();
    let custom = "\"all-reduce-implementation-custom\": [\"own\"], \"local-mem-bw\"";
    case.put("system.json", SYSTEM.replace("\"local-mem-bw\"", custom).replace("splits\": 4", "splits\": 1"));
    assert!(case.said().contains("`own.0.et` is not there"), "{}", case.said());
    let message = |kind, key: &'static str, peer: u32| {
        let attributes = [(key, Value::Uint32(peer)), ("comm_size", Value::Int64(8)), ("comm_tag", Value::Int64(1))];
        node(1 + u64::from(peer), kind, &[], &attributes)
    };
    for member in 0..4 {
        let (next, last) = ((member + 1) % 4, (member + 3) % 4);
        let nodes = [message(SEND, "comm_dst", next), message(RECEIVE, "comm_src", last)];
        case.put(&format!("own.{member}.et"), chakra::trace(&nodes));
    }
    let input = case.read().unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!((input.trace.own.len(), input.trace.own[0].len()), (1, 4));
    assert_eq!(input.machine.own.of_collective, [Some(0), None, None, None, None, None]);
    case.put("own.3.et", chakra::trace(&right()));
    assert!(case.said().contains("`own.3.et`: operation 2 is neither a message nor a computation"), "{}", case.said());
}

/// Files written and read again.
fn again(machine: &Machine, trace: &Trace) -> Input {
    let folder = tempfile::tempdir().expect("a folder");
    let files = write(machine, trace, folder.path()).expect("files are written");
    let input = read(&files, &options(machine)).unwrap_or_else(|problems| panic!("{:#?}", problems.found));
    Input { remarks: Remarks::default(), ..input }
}

/// Holds that what is read is what was written.
pub fn check_again(machine: &Machine, trace: &Trace) {
    let input = again(machine, trace);
    assert_eq!(input.machine, *machine);
    assert!(input.trace == *trace, "{:?}\n{trace:?}", input.trace);
}

fn machines() -> impl Strategy<Value = Machine> {
    let block = prop_oneof![Just(Topology::Ring), Just(Topology::FullyConnected), Just(Topology::Switch)];
    let dimension =
        (block, 2_u32..5, 0.001..2000.0_f64, 0.0..5000.0_f64).prop_map(|(block, size, gigabytes, latency)| Dimension {
            block,
            size,
            bandwidth: gigabytes * 1_073_741_824.0 / 1e9,
            latency,
        });
    let recipe = prop_oneof![
        Just(Entry::of(Algorithm::Ring)),
        Just(Entry::of(Algorithm::HalvingDoubling)),
        Just(Entry::of(Algorithm::Direct)),
        (1_u32..9).prop_map(Entry::direct),
    ];
    let entry = (recipe, any::<bool>()).prop_map(|(entry, whole)| Entry { whole, ..entry });
    let place =
        prop_oneof![Just(Place::PerNpu), (1_u32..9).prop_map(|npus| Place::PerNode { npus }), Just(Place::Pool)];
    let remote = (place, 0_u32..5000, 1_u32..500).prop_map(|(place, latency, bandwidth)| RemoteMemory {
        place,
        latency: latency.into(),
        bandwidth: bandwidth.into(),
    });
    let bus = (0_u64..99, 0_u64..99, 0_u64..99, 0.0..0.1_f32, 0_u64..9).prop_map(
        |(latency, overhead, gap, per_byte, processing)| Bus {
            latency,
            overhead,
            gap,
            per_byte: per_byte.into(),
            processing,
        },
    );
    let order = prop_oneof![
        Just(DimensionOrder::Ascending),
        Just(DimensionOrder::RoundRobin),
        Just(DimensionOrder::Themis),
        Just(DimensionOrder::ThemisFlex)
    ];
    let queue = prop_oneof![
        Just(QueueOrder::Fifo),
        Just(QueueOrder::Rg),
        Just(QueueOrder::SmallestFirst),
        Just(QueueOrder::LessRemainingPhaseFirst)
    ];
    let numbers = (1_u64..99, 1_u32..9, 1_u32..9, 0_u32..999, 0.001..5000.0_f64, 0.001..5000.0_f64);
    let switches = (any::<bool>(), any::<bool>(), 0..3, order, queue);
    let parts =
        (prop::collection::vec((dimension, entry), 1..4), proptest::option::of(remote), proptest::option::of(bus));
    (parts, numbers, switches).prop_map(|((dimensions, remote, bus), numbers, switches)| {
        let (dimensions, entries): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        let (chunks, active_chunks, queues, delay, memory, peak) = numbers;
        let (rendezvous, scatters, pace, dimension_order, queue_order) = switches;
        let memory_bandwidth = memory * 1e9;
        Machine {
            dimensions,
            congestion: Congestion::Unaware,
            // A file says nothing of broadcast and scatter: they are as all-reduce and reduce-scatter.
            algorithms: std::array::from_fn(|k| entries[..entries.len().min(k % 4 + 1)].to_vec()),
            own: Own::default(),
            hierarchy: if scatters { Hierarchy::ScatterGather } else { Hierarchy::PerDimension },
            chunks,
            active_chunks,
            queues,
            endpoint_delay: delay.into(),
            memory_bandwidth,
            pace: match pace {
                0 => Pace::Recorded,
                1 => Pace::Replayed,
                _ => Pace::Roofline { peak: peak * 1e12, memory: memory_bandwidth },
            },
            remote,
            bus,
            rendezvous,
            dimension_order,
            queue_order,
            rules: Rules::ASTRA_SIM,
        }
    })
}

/// What an operation of a rank does, one of four.
fn works(rank: u32) -> impl Strategy<Value = Work> {
    let bytes = 1_u64..u64::MAX;
    let peer = (rank + 1) % 4;
    prop_oneof![
        (0_u64..u64::MAX, bytes.clone())
            .prop_map(|(operations, bytes)| Work::Compute { operations: Some(operations), bytes: Some(bytes) }),
        (0_usize..4, bytes.clone(), 1_u32..64).prop_map(|(k, bytes, dimensions)| Work::Collective {
            collective: Collective::ALL[k],
            bytes,
            group: None,
            dimensions,
        }),
        (0_usize..4, bytes.clone()).prop_map(move |(k, bytes)| Work::Collective {
            collective: Collective::ALL[k],
            bytes,
            group: Some(rank / 2),
            dimensions: u32::MAX,
        }),
        bytes.clone().prop_map(|bytes| Work::Collective {
            collective: Collective::Broadcast,
            bytes,
            group: None,
            dimensions: u32::MAX
        }),
        (bytes.clone(), 0_u64..1 << 32).prop_map(move |(bytes, tag)| Work::Send { to: peer, bytes, tag }),
        (bytes, 0_u64..1 << 32).prop_map(move |(bytes, tag)| Work::Receive { from: peer, bytes, tag }),
        Just(Work::Nothing),
    ]
}

fn graphs(rank: u32) -> impl Strategy<Value = Graph> {
    let operation = (works(rank), 0_u64..1 << 40, any::<u64>(), "[a-z]{0,6}");
    prop::collection::vec(operation, 0..12).prop_map(move |operations| {
        let mut draft = Draft::default();
        // The first tells the graphs of ranks apart.
        draft.push(Node { id: 0, work: Work::Nothing, recorded: 0, on_host: false }, &format!("rank {rank}"), []);
        for (k, (work, micros, after, name)) in (1_u64..).zip(operations) {
            let after = (0..k).filter(|k| after >> k & 1 == 1).map(|k| k * 3);
            draft.push(Node { id: k * 3, work, recorded: micros * 1000, on_host: false }, &name, after);
        }
        draft.finish().expect("a graph")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn machines_are_read_as_they_were_written(machine in machines()) {
        let mut draft = Draft::default();
        draft.push(Node { id: 0, work: Work::Nothing, recorded: 0, on_host: false }, "", []);
        let trace = Trace::same(draft.finish().expect("a graph"), machine.npus());
        check_again(&machine, &trace);
    }

    #[test]
    fn traces_are_read_as_they_were_written(graphs in (graphs(0), graphs(1), graphs(2), graphs(3))) {
        let machine = Case::new().read().expect("right files").machine;
        // Every collective has an algorithm.
        let algorithms = std::array::from_fn(|_| machine.algorithms[0].clone());
        let groups = vec![Group { id: 7, ranks: vec![1, 0] }, Group { id: 9, ranks: vec![2, 3] }];
        let trace = Trace::new(vec![graphs.0, graphs.1, graphs.2, graphs.3], groups);
        check_again(&Machine { algorithms, ..machine }, &trace);
    }
}

#[test]
fn what_we_write_is_what_the_description_of_the_format_reads() {
    let case = Case::new();
    let input = case.read().expect("right files");
    let folder = tempfile::tempdir().expect("a folder");
    write(&input.machine, &input.trace, folder.path()).expect("files are written");
    let nodes = chakra::nodes(&std::fs::read(folder.path().join("trace.3.et")).expect("a trace"));
    assert_eq!(nodes.len(), 2);
    assert_eq!((nodes[1].id, nodes[1].kind, nodes[1].data_deps.as_slice()), (2, COLLECTIVE, &[1][..]));
    let size = nodes[1].attributes.iter().find(|attribute| attribute.name == "comm_size");
    assert_eq!(size.and_then(|size| size.value.clone()), Some(Value::Uint64(1 << 20)));
}

#[test]
fn a_length_that_lies_takes_no_memory() {
    let case = Case::new();
    let begin = chakra::trace(&[]);
    // A record of 2^35 - 1 bytes; a name, and a list of numbers, of 2^63 bytes within a record.
    let long = [0xff, 0xff, 0xff, 0xff, 0x7f];
    let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let record = |tag: u8| [&[10, tag][..], &longest].concat();
    for lie in [long.to_vec(), record(0x12), record(0x2a), record(0x52)] {
        case.put("w.0.et", [begin.clone(), lie].concat());
        assert!(
            case.said().contains("`w.0.et`: the file ends within a record (record 1, at byte 8)"),
            "{}",
            case.said()
        );
    }
}
