//! Does a researcher's whole file run? Six systems, the best split of a bandwidth, an algorithm of one's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use starsweep::astra_sim::write_trace;
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Graph, Node, Trace, Work};

use crate::support::{code, program, text};

/// The third example of the notes on three users, `paper_5a.yaml`: all-reduces of section V-A of [ASTRA2], without its section
/// `expect`, which is not understood yet.
const PAPER: &str = "\
# ASTRA-sim 2.0, section V-A, all-reduce on six systems; then mine: the best split of 600, and my own algorithm.
rules: astra_sim                           # its rounding, queues and quirks: what `simulate` gives
fidelity: event_driven
workload: {collective: all_reduce, size: 1 GiB}
define:                                    # GiB/s is what ASTRA-sim means by GB/s
  W-1D-350: {d1: {block: switch, size: 512, bandwidth: 350 GiB/s}}
  W-1D-600: {d1: {block: switch, size: 512, bandwidth: 600 GiB/s}}
  W-2D:     {d1: {block: switch, size: 32, bandwidth: 250 GiB/s}, d2: {block: switch, size: 16, bandwidth: 250 GiB/s}}
  Conv-3D:
    d1: {block: ring,            size: 16, bandwidth: 200 GiB/s}
    d2: {block: fully_connected, size: 8,  bandwidth: 100 GiB/s}
    d3: {block: switch,          size: 4,  bandwidth: 50 GiB/s}
  split:                                   # every split of 600 in steps of 50
    d1: {block: ring,            size: 16, bandwidth: {from: 50 GiB/s, to: 500 GiB/s, step: 50 GiB/s}}
    d2: {block: fully_connected, size: 8,  bandwidth: {from: 50 GiB/s, to: 500 GiB/s, step: 50 GiB/s}}
    d3: {block: switch,          size: 4,  bandwidth: {from: 50 GiB/s, to: 500 GiB/s, step: 50 GiB/s}}
network: [W-1D-350, W-1D-600, W-2D, Conv-3D, split, {astra_sim: nets/mine.yml}]
each_dimension: {hop_latency: [0 ns, 500 ns]}            # not in the paper
collectives:
  astra_sim: system.json                   # her own file is the base; written keys go over it
  chunks: 64
  active_chunks: 1
  dimension_order: [ascending, themis]
  local_reduction: [false, true]           # the paper's closed forms have none
  algorithm: [by_block, {chakra: mine/allreduce}]
where:
  same_total: network != split or sum(dim.bandwidth) == 600 GiB/s
decide: {compare: network, tune: split, objectives: {finish_time: min}}
";

/// NPUs of every network.
const NPUS: u32 = 512;

/// What a member does in an all-reduce of 1 GiB by exchanges of the whole with partners 1, 2, 4, ... away.
fn member(me: u32) -> Graph {
    let mut draft = Draft::default();
    let (bytes, rounds) = (1 << 30, NPUS.ilog2());
    for round in 0..rounds {
        let other = me ^ (1 << round);
        let [send, receive] = [2 * u64::from(round), 2 * u64::from(round) + 1];
        let after = (round > 0).then(|| receive - 2);
        let tag = u64::from(round);
        for (id, work) in
            [(send, Work::Send { to: other, bytes, tag }), (receive, Work::Receive { from: other, bytes, tag })]
        {
            draft.push(Node { id, work, recorded: 0, on_host: false }, "", after);
        }
    }
    draft.finish().expect("a graph")
}

/// Her files.
fn write(folder: &Path) {
    let at = |name: &str| folder.join(name);
    for name in ["nets", "mine"] {
        fs::create_dir(at(name)).expect("a folder");
    }
    fs::write(at("paper_5a.yaml"), PAPER).expect("a file");
    // Conv-3D in the reference's terms: what a link carries, of which a ring has two and a full connection seven.
    let mine = "topology: [Ring, FullyConnected, Switch]\nnpus_count: [16, 8, 4]\nbandwidth: [200, 100, 50]\nlatency: [0, 0, 0]\n";
    fs::write(at("nets/mine.yml"), mine).expect("a file");
    let system = "{\"scheduling-policy\": \"LIFO\", \"collective-optimization\": \"localBWAware\", \"endpoint-delay\": 0,\n \
                  \"preferred-dataset-splits\": 16, \"active-chunks-per-dimension\": 1, \"local-mem-bw\": 1600,\n \
                  \"all-reduce-implementation\": [\"ring\", \"direct\", \"halvingDoubling\"]}\n";
    fs::write(at("system.json"), system).expect("a file");
    let trace = Trace::new((0..NPUS).map(member).collect(), Vec::new());
    write_trace(&trace, &at("mine/allreduce")).expect("traces");
}

#[test]
fn the_paper_and_what_is_hers_stand_in_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let out = folder.path().join("out");
    let mut command = program(&["run", "--csv", "--threads", "2"]);
    let output =
        command.arg(folder.path().join("paper_5a.yaml")).arg("--out").arg(&out).output().expect("the program starts");
    let (answer, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code(&output), 0, "{said}");
    for name in ["W-1D-350", "W-1D-600", "W-2D", "Conv-3D", "split", "mine"] {
        assert!(answer.lines().any(|line| line.contains(name)), "{answer}");
    }
    let mut table = csv::Reader::from_path(out.join("points.csv")).expect("a table");
    let rows: Vec<BTreeMap<String, String>> = table.deserialize().collect::<Result<_, _>>().expect("rows");
    // Four systems, 55 splits of 600 and her own, each with two latencies, orders, ways to reduce, algorithms.
    assert_eq!(rows.len(), (4 + 55 + 1) * 2 * 2 * 2 * 2);
    assert!(rows.iter().all(|row| row["status"] == "feasible"));
    let microseconds = |row: &BTreeMap<String, String>| row["finish_time_s"].parse::<f64>().expect("seconds") * 1e6;
    let is_of_the_paper = |row: &&BTreeMap<String, String>| {
        row["dim0_hop_latency_s"].parse() == Ok(0.0)
            && [("local_reduction", "false"), ("algorithm", "by_block"), ("dimension_order", "ascending")]
                .iter()
                .all(|(column, value)| row[*column] == *value)
    };
    let best = |name: &str| {
        let of_network = rows.iter().filter(is_of_the_paper).filter(|row| row["network"] == name);
        of_network.map(microseconds).fold(f64::INFINITY, f64::min)
    };
    // In a sweep a bandwidth is that of all links of an NPU. The reference's ring goes one way round, so half of its links are idle:
    // its 9,375 us are those of her own network, and the sweep's Conv-3D takes twice as long.
    for (name, expected) in
        [("W-1D-600", 3327.0), ("W-1D-350", 5703.0), ("W-2D", 7750.0), ("mine", 9375.0), ("Conv-3D", 2.0 * 9375.0)]
    {
        let found = best(name);
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: {found}, not {expected}\n{answer}");
    }
    let ratio = best("mine") / best("W-1D-350");
    assert!((ratio / 1.64 - 1.0).abs() < 0.05, "{ratio}");
    assert!(rows.iter().any(|row| row["algorithm"] == "mine/allreduce" && row["network"] == "mine"));
}
