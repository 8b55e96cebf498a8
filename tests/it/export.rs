//! Is an exported point what it was: do its files, simulated, take the time that the event-driven engine gives it?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use starsweep::astra_sim::{self, Options};
use starsweep::engine::event_driven::{self, Alone, Ask};
use starsweep::run::evaluate::Evaluator;
use starsweep::run::export::chakra::{Form, MOST, Traces, Written};
use starsweep::run::export::{Step, Unexported, chakra, timeline};
use starsweep::run::simulate::simulate;
use starsweep::sweep::{Fidelity, Sweep};
use starsweep::system::System;
use starsweep::system::rules::Rules;
use starsweep::units::Time;
use starsweep::workload::Job;
use starsweep::workload::unfold::{Passes, unfold};

use crate::anchor::{self, TODAY};
use crate::chakra::{RECEIVE, SEND, Value, node, trace};
use crate::support::{code, program, run, sweep, text};

/// Small plans of a dense model and of one with experts, on networks of one to three dimensions.
const PLANS: &str = "\
define:
  dense: {layers: 8, hidden: 256, heads: 8, ffn: 1024, mlp: gelu, vocab: 1024, tied_embeddings: true}
  moe: {layers: 8, hidden: 256, heads: 8, ffn: 1024, mlp: gated, vocab: 1024, experts: 4, topk: 2, moe_ffn: 512, shared_experts: 1}
  flat: {inner: {block: switch, size: 16, bandwidth: 100 GB/s, hop_latency: 700 ns}}
  full: {inner: {block: fully_connected, size: 8, bandwidth: 100 GB/s, hop_latency: 300 ns}, outer: {block: switch, size: 2, bandwidth: 25 GB/s, hop_latency: 1 us}, top: {block: ring, size: 1, bandwidth: 25 GB/s, hop_latency: 1 us}}
  ring: {inner: {block: ring, size: 4, bandwidth: 100 GB/s, hop_latency: 300 ns}, outer: {block: switch, size: 4, bandwidth: 25 GB/s, hop_latency: 1 us}}
  line: {inner: {block: ring, size: 8, bandwidth: 100 GB/s, hop_latency: 300 ns}, outer: {block: switch, size: 2, bandwidth: 25 GB/s, hop_latency: 1 us}}
  deep:
    inner: {block: switch, size: 2, bandwidth: 300 GB/s, hop_latency: 250 ns}
    middle: {block: ring, size: 4, bandwidth: 100 GB/s, hop_latency: 300 ns}
    outer: {block: switch, size: 2, bandwidth: 25 GB/s, hop_latency: 1 us}
model: [dense, moe]
seq_len: 256
global_batch: 32 seq
cluster: {npu: H100-SXM-80GB, network: [flat, full, ring, line, deep]}
collectives: {chunks: [1, 4], local_reduction: [false, true], endpoint_delay: [10 ns, 12.5 ns], algorithm: [by_block, halving_doubling], multi_dim: [hierarchical, per_dimension]}
memory: {remote: {capacity: 1 TB, bandwidth: 64.5 GB/s, latency: 1 us}}
plan:
  tp: [1, 2, 4]
  cp: [1, 2]
  cp_kind: [ring, all_gather, all_to_all]
  pp: [1, 2, 4]
  dp: rest
  ep: [1, 2, 4]
  etp: [1, 2]
  vpp: [1, 2]
  zero: [0, 1, 2, 3]
  sequence_parallel: [false, true]
  recompute: [none, full]
  overlap_dp: [false, true]
  overlap_tp: [false, true]
  overlap_ep: [false, true]
  overlap_pp: [false, true]
  dispatcher: [alltoall, flex]
  offload_optimizer: [none, remote]
  order: [tp-dp-pp, pp-dp-tp, dp-tp-pp]
";

/// A file for each rank.
const EACH: Form = Form { most: MOST, traces: Traces::OfEach };

/// How many plans are exported.
const DRAWN: usize = 80;

/// Questions of a sweep that can exist, drawn by a fixed rule.
fn drawn(sweep: &Sweep, count: usize) -> Vec<(Job, System)> {
    let mut state = 1_u64;
    let mut found = Vec::new();
    while found.len() < count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut cursor = sweep.space.cursor((state >> 16) % sweep.space.len());
        if cursor.next_point(sweep.space.len()).is_none() {
            continue;
        }
        let (job, system) = Evaluator::question(&cursor.inputs);
        if Step::of(&job, &system).is_ok() {
            found.push((job, system));
        }
    }
    found
}

/// When the files of a folder end under the reference's rules; nothing is wrong with them.
fn end_of(folder: &Path) -> Time {
    end_by(folder, Options::default())
}

fn end_by(folder: &Path, options: Options) -> Time {
    let groups = folder.join("groups.json");
    let files = astra_sim::Files {
        workload: folder.join("trace"),
        system: folder.join("system.json"),
        network: folder.join("network.yml"),
        memory: Some(folder.join("memory.json")),
        groups: groups.exists().then_some(groups),
    };
    let input = astra_sim::read(&files, &options).unwrap_or_else(|problems| panic!("{:#?}", problems.found));
    assert!(input.remarks.found.is_empty(), "{:#?}", input.remarks.found);
    let answer = simulate(&input.machine, &input.trace, Ask::default(), false).expect("a trace that ends");
    assert!(answer.faults.is_empty(), "{:?}", answer.faults);
    answer.finish().expect("an end")
}

fn written(job: &Job, system: &System, folder: &Path) -> Written {
    chakra(job, system, Fidelity::ClosedForm, (folder, "A point"), EACH).unwrap_or_else(|why| panic!("{why} {job:?}"))
}

#[test]
fn files_of_random_plans_take_what_the_engine_says_to_the_nanosecond() {
    let mut alike = 0;
    for (k, (job, system)) in drawn(&sweep(PLANS), DRAWN).into_iter().enumerate() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("files");
        let written = written(&job, &system, &folder);
        let reference = System { rules: Rules::ASTRA_SIM, ..system.clone() };
        let step = Step::of(&job, &reference).expect("a step");
        let ours = step.time(Fidelity::EventDriven).expect("a time");
        let asymmetry = event_driven::asymmetry(&step.program, &step.placement, &reference).expect("an answer");
        let end = end_of(&folder);
        assert_eq!(written.account.end, end, "{k} {job:?} {:?} {:#?}", system.network.shape(), written.account);
        assert_eq!(written.account.own, Step::of(&job, &system).unwrap().time(Fidelity::ClosedForm).unwrap());
        if asymmetry.is_none() {
            alike += 1;
            assert_eq!(ours, end, "{k} {job:?} {:?} {:#?}", system.network.shape(), written.account);
        }
    }
    assert!((DRAWN / 2..DRAWN).contains(&alike), "{alike}");
}

/// Ways in which collectives run that the event-driven engine alone knows.
const WAYS: &str = "\
model: {layers: 4, hidden: 256, heads: 8, ffn: 1024, mlp: gelu, vocab: 1024}
seq_len: 256
global_batch: 8 seq
fidelity: event_driven
rules: [ours, astra_sim]
define:
  flat: {inner: {block: ring, size: 8, bandwidth: 100 GB/s, hop_latency: 700 ns}}
  deep: {inner: {block: ring, size: 4, bandwidth: 100 GB/s, hop_latency: 300 ns}, outer: {block: switch, size: 2, bandwidth: 25 GB/s, hop_latency: 1 us}}
cluster: {npu: H100-SXM-80GB, network: [flat, deep]}
collectives:
  active_chunks: [1, 2]
  queues: [1, 2]
  chunks: 3
  dimension_order: [ascending, themis]
  chunk_order: [fifo, rg]
  algorithm: [ring, direct, halving_doubling, double_binary_tree]
plan: {tp: [1, 2, 8], pp: [1, 2], dp: rest, zero: [0, 3]}
";

#[test]
fn files_say_how_collectives_run() {
    let mut compared = 0;
    for (job, system) in drawn(&sweep(WAYS), 60) {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("files");
        let written = match chakra(&job, &system, Fidelity::EventDriven, (&folder, ""), EACH) {
            Ok(written) => written,
            // Trees under the reference's rules never end in a group of some ranks, where one rank stands for all.
            Err(Unexported::Infeasible { .. }) => continue,
            Err(why) => panic!("{why} {job:?} {system:?}"),
        };
        let options = Options { queues_per_dim: system.collectives.queues, ..Options::default() };
        assert_eq!(written.account.end, end_by(&folder, options), "{job:?} {system:?} {:#?}", written.account);
        compared += 1;
    }
    assert!(compared >= 30, "{compared}");
}

#[test]
fn an_operation_has_one_number_whether_passes_are_summed_or_whole() {
    for (job, system) in drawn(&sweep(PLANS), 20) {
        let step = Step::of(&job, &system).expect("a step");
        let prices = Alone { placement: &step.placement, system: &step.system };
        let [summed, whole] =
            [Passes::Summed, Passes::Whole].map(|passes| unfold(&step.program, &prices, passes).expect("graphs"));
        for (summed, whole) in summed.stages.iter().zip(&whole.stages) {
            let of: BTreeMap<u64, _> = whole.graph.nodes().iter().map(|node| (node.id, node.work)).collect();
            assert_eq!(of.keys().last().map(|last| last + 1), Some(of.len() as u64), "numbers are places");
            for node in summed.graph.nodes() {
                let is_sum = matches!(node.work, starsweep::workload::trace::Work::Sum { .. });
                assert!(is_sum || of.get(&node.id) == Some(&node.work), "{} {:?}", node.id, node.work);
            }
        }
    }
}

#[test]
fn a_timeline_ends_where_the_engine_does_and_nothing_overlaps_on_a_thread() {
    for (job, system) in drawn(&sweep(PLANS), 20) {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("timeline.json");
        let end = timeline(&job, &system, &path).expect("a timeline");
        assert_eq!(end, Step::of(&job, &system).unwrap().time(Fidelity::EventDriven).unwrap(), "{job:?}");
        let events: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).expect("JSON");
        let mut threads: BTreeMap<(u64, u64), f64> = BTreeMap::new();
        for event in events.as_array().expect("events").iter().filter(|event| event["ph"] == "X") {
            let thread = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let [start, duration] = ["ts", "dur"].map(|key| event[key].as_f64().unwrap());
            let busy = threads.entry(thread).or_default();
            assert!(start >= *busy - 0.0011, "{thread:?} {start} {busy}");
            *busy = start + duration;
        }
        assert!(matches!(timeline(&job, &system, &path), Err(Unexported::Taken(_))));
    }
}

#[test]
fn what_is_too_much_is_not_written() {
    let (job, system) = drawn(&sweep(PLANS), 1).pop().expect("a point");
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("files");
    let refused = chakra(&job, &system, Fidelity::ClosedForm, (&folder, ""), Form { most: 10, ..EACH });
    assert!(matches!(refused, Err(Unexported::TooLarge(operations)) if operations > 10), "{refused:?}");
    assert!(!folder.exists());
}

/// A small sweep.
const SMALL: &str = "\
model: {layers: 4, hidden: 1024, heads: 16, ffn: 4096, mlp: gelu, vocab: 32000}
seq_len: 1024
global_batch: 16 seq
cluster:
  npu: H100-SXM-80GB
  network: [fast, slow]
define:
  fast: {inner: {block: switch, size: 8, bandwidth: 450 GB/s, hop_latency: 500 ns}}
  slow: {inner: {block: switch, size: 8, bandwidth: 45 GB/s, hop_latency: 500 ns}}
plan: {tp: [1, 2, 4], pp: [1, 2], vpp: [1, 3], dp: rest}
";

/// A sweep, run, beside a collective that is a trace of two members.
fn results(yaml: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("sweep.yaml"), yaml).expect("a file");
    for member in 0..2_u32 {
        let peer = |key: &'static str| {
            [(key, Value::Uint32(1 - member)), ("comm_size", Value::Int64(8)), ("comm_tag", Value::Int64(1))]
        };
        let nodes = [node(1, SEND, &[], &peer("comm_dst")), node(2, RECEIVE, &[], &peer("comm_src"))];
        fs::write(place.path().join(format!("own.{member}.et")), trace(&nodes)).expect("a file");
    }
    let output =
        run(&["run", &place.path().join("sweep.yaml").to_string_lossy(), "--out", &out(&place), "--quiet", "--csv"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    place
}

fn out(place: &tempfile::TempDir) -> String {
    place.path().join("out").to_string_lossy().into_owned()
}

/// What `export` says, with its exit code.
fn export(results: &str, more: &[&str]) -> (i32, String, String) {
    let output = run(&[&["export", results], more].concat());
    (code(&output), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_best_point_is_exported_and_simulated_with_the_command_that_is_told() {
    let place = results(SMALL);
    let out = out(&place);
    let (exit, said, wrong) = export(&out, &["best", "--to", "chakra"]);
    assert_eq!(exit, 0, "{wrong}");
    let command: Vec<&str> = said.lines().last().expect("a command").split(' ').skip(1).collect();
    let simulated = text(&program(&command).output().expect("the program starts").stdout);
    let end = said.lines().find(|line| line.trim().starts_with("the files")).expect("the end");
    let end = end.trim().trim_start_matches("the files").trim().split("  ").next().expect("a time");
    assert!(simulated.contains(&format!("end at {end} (")), "{said}\n{simulated}");
    let id = said["point ".len()..].split([':', ',']).next().expect("an id").to_owned();
    // Nothing is overwritten; an id and its beginning are one point, and so are its values.
    let (exit, _, wrong) = export(&out, &[&id, "--to", "chakra"]);
    assert_eq!(exit, 2, "{wrong}");
    assert!(wrong.contains("is there already"), "{wrong}");
    let elsewhere = place.path().join("elsewhere").to_string_lossy().into_owned();
    assert_eq!(export(&out, &[&id[..10], "--to", "timeline", "--out", &elsewhere]).0, 0);
    let values = said.lines().next().expect("a line").split_once(": ").expect("values").1.replace(", ", ",");
    let (exit, said, wrong) = export(&out, &[&values, "--to", "timeline"]);
    assert_eq!(exit, 0, "{wrong}");
    assert!(said.contains(&id), "{said} {id}");
}

#[test]
fn a_name_that_is_of_no_point_says_what_would_be_one() {
    let place = results(SMALL);
    let out = out(&place);
    for (name, says) in [
        ("zzz", "no point is called `zzz`"),
        ("", "points begin with ``"),
        ("tp=64", "no feasible point is `tp=64`"),
        ("tq=2", "the table has no column `tq`"),
        ("tp=2,zwei", "`zwei` is no value of a column"),
    ] {
        let (exit, _, wrong) = export(&out, &[name, "--to", "chakra"]);
        assert_eq!(exit, 2, "{wrong}");
        assert!(wrong.contains(says) && wrong.contains("help: "), "{wrong}");
    }
    let (exit, said, wrong) = export(&out, &["tp=2", "--to", "timeline"]);
    assert_eq!(exit, 0, "{wrong}");
    assert!(said.contains("the best with tp=2") && said.contains("network=fast"), "{said}");
    let (exit, said, wrong) = export(&out, &["slow", "--to", "timeline"]);
    assert_eq!(exit, 0, "{wrong}");
    assert!(said.contains("the best with slow") && said.contains("network=slow"), "{said}");
    assert_eq!(export("nowhere", &["best", "--to", "chakra"]).0, 1);
    assert_eq!(export(&out, &["best", "--to", "music"]).0, 2);
}

#[test]
fn a_collective_alone_is_exported_too() {
    let place = results(
        "\
workload: {collective: [all_reduce, all_gather], size: 10 MiB}
npu: H100-SXM-80GB
network:
  inner: {block: ring, size: 4, bandwidth: 100 GB/s, hop_latency: 500 ns}
  outer: {block: switch, size: 2, bandwidth: 25 GB/s, hop_latency: 500 ns}
collectives: {local_reduction: false}
",
    );
    for collective in ["all_reduce", "all_gather"] {
        let (exit, said, wrong) = export(&out(&place), &[&format!("collective={collective}"), "--to", "chakra"]);
        assert_eq!(exit, 0, "{wrong}");
        assert!(said.contains("8 ranks, 8 operations, 0 groups"), "{said}");
        let folder = fs::read_dir(place.path().join("out/export")).unwrap().next().unwrap().unwrap().path();
        let end = end_of(&folder.join("chakra"));
        assert!(said.contains(&starsweep::run::simulate::nanoseconds(end)), "{said} {end:?}");
        fs::remove_dir_all(folder).expect("a folder");
        let more = ["--to", "chakra", "--one-file"];
        let (exit, said, wrong) =
            export(&out(&place), &[&[format!("collective={collective}").as_str()], &more[..]].concat());
        assert_eq!(exit, 0, "{wrong}");
        assert!(said.contains("8 ranks, 1 operations, 0 groups"), "{said}");
        let folder = fs::read_dir(place.path().join("out/export")).unwrap().next().unwrap().unwrap().path();
        assert_eq!(end_of(&folder.join("chakra")), end);
        fs::remove_dir_all(folder).expect("a folder");
    }
}

#[test]
fn what_has_no_files_of_its_own_says_why() {
    let place = results(
        "\
workload: {collective: all_reduce, size: 10 MiB}
npu: H100-SXM-80GB
network: {inner: {block: ring, size: 2, bandwidth: 100 GB/s, hop_latency: 500 ns}}
fidelity: event_driven
collectives: {algorithm: [ring, {chakra: own}]}
",
    );
    let (exit, _, wrong) = export(&out(&place), &["best", "--to", "chakra"]);
    assert_eq!(exit, 2, "{wrong}");
    assert!(wrong.contains("traces of their own"), "{wrong}");
}

#[test]
fn a_point_that_cannot_exist_is_not_exported() {
    let place = results(SMALL);
    let table = fs::read_to_string(place.path().join("out/points.csv")).expect("a table");
    let row = table.lines().find(|line| line.contains("infeasible")).expect("a row");
    let (exit, _, wrong) = export(&out(&place), &[row.split(',').next().expect("an id"), "--to", "chakra"]);
    assert_eq!(exit, 2, "{wrong}");
    assert!(wrong.contains("is infeasible: "), "{wrong}");
}

#[test]
fn a_point_that_fits_by_a_measured_run_alone_is_exported_with_its_predicted_times() {
    let tight = anchor::PLANS.replace("H100-SXM-80GB,", "H100-SXM-80GB, hbm: 8 GB,");
    let anchor = format!("anchor: {{today: {{{TODAY}, iteration_time: 1 s, peak_memory: 3.9 GB}}}}");
    let place = results(&format!("{tight}{anchor}\n"));
    let today = ["tp=4,pp=2,micro_batch_size=1,recompute=none", "--to", "timeline"];
    let (exit, said, wrong) = export(&out(&place), &today);
    assert_eq!(exit, 0, "{wrong}");
    let remark = said.lines().nth(1).expect("a remark");
    assert!(remark.starts_with("its times are here as they are predicted; the table has them x "), "{said}");
    assert!(remark.ends_with(", by `today`"), "{said}");
}
