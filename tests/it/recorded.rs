//! Do recorded traces, swept, take what `simulate` says they take?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use starsweep::astra_sim::{Files, Options, read};
use starsweep::engine::event_driven::{Ask, simulate_by};
use starsweep::run;
use starsweep::sweep::Loader;
use starsweep::sweep::recording::Recording;

use crate::support::{code, program, root, text};

type Row = BTreeMap<String, String>;

/// The golden traces in a folder of their own.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let file = fs::File::open(root().join("tests/data/astra_sim/workloads.tar.gz")).expect("golden data");
    tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(folder.path()).expect("an archive");
    folder
}

/// Runs a sweep in a folder; its rows and what was said.
fn rows(folder: &Path, yaml: &str) -> Vec<Row> {
    fs::write(folder.join("sweep.yaml"), yaml).expect("a file");
    let out = folder.join("out");
    let mut command = program(&["run", "--csv", "--threads", "2"]);
    let output = command.arg(folder.join("sweep.yaml")).arg("--out").arg(&out).output().expect("the program starts");
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let mut table = csv::Reader::from_path(out.join("points.csv")).expect("a table");
    table.deserialize().collect::<Result<_, _>>().expect("rows")
}

/// What is said of a sweep in a folder, with exit code 2.
fn said(folder: &Path, yaml: &str) -> String {
    fs::write(folder.join("sweep.yaml"), yaml).expect("a file");
    let output = program(&["run"]).arg(folder.join("sweep.yaml")).output().expect("the program starts");
    assert_eq!(code(&output), 2, "{}", text(&output.stderr));
    text(&output.stderr).replace(&format!("{}/", folder.display()), "")
}

/// Nanoseconds of a column of seconds.
fn nanoseconds(row: &Row, column: &str) -> f64 {
    (row[column].parse::<f64>().expect("seconds") * 1e12).round() / 1e3
}

/// What `simulate` says of files, in nanoseconds.
fn simulated(files: &Files) -> f64 {
    let input = read(files, &Options::default()).expect("right files");
    let outcome = simulate_by(&input.machine, &input.trace, Ask::default()).expect("an outcome");
    let finish = outcome.ranks.iter().map(|rank| rank.finish.expect("an end")).max().expect("a rank");
    finish.as_seconds() * 1e9
}

const ONE: &str = "stg/gpt-dp2-tp2-pp2";

/// A sweep over one trace.
const SWEEP: &str = "\
workload: {chakra: stg/gpt-dp2-tp2-pp2/trace, comm_groups: stg/gpt-dp2-tp2-pp2/comm_group.json}
network: {astra_sim: \"nets/*.yml\"}
collectives: {astra_sim: stg/gpt-dp2-tp2-pp2/1d-fc-no-roofline/system.json, chunks: [1, 2, 4, 8, 16]}
rules: astra_sim
fidelity: event_driven
";

#[test]
fn twenty_configurations_of_one_trace_take_what_simulate_says() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir(at("nets")).expect("a folder");
    for bandwidth in [25, 50, 100, 400] {
        let text = format!("topology: [FullyConnected]\nnpus_count: [8]\nbandwidth: [{bandwidth}]\nlatency: [500]\n");
        fs::write(at(&format!("nets/net{bandwidth}.yml")), text).expect("a file");
    }
    let rows = rows(folder.path(), SWEEP);
    assert_eq!(rows.len(), 20);
    let mut times = BTreeSet::new();
    for row in &rows {
        let system = fs::read_to_string(at(&format!("{ONE}/1d-fc-no-roofline/system.json"))).expect("a file");
        let system = system
            .replace("\"preferred-dataset-splits\": 4", &format!("\"preferred-dataset-splits\": {}", row["chunks"]));
        fs::write(at("system.json"), system).expect("a file");
        let files = Files {
            workload: at(&format!("{ONE}/trace")),
            system: at("system.json"),
            network: at(&format!("nets/{}.yml", row["network"])),
            memory: None,
            groups: Some(at(&format!("{ONE}/comm_group.json"))),
        };
        assert_eq!(nanoseconds(row, "finish_time_s"), simulated(&files).round(), "{row:?}");
        assert_eq!(row["status"], "feasible");
        assert!(nanoseconds(row, "astra_exposed_s") <= nanoseconds(row, "finish_time_s"));
        times.insert(row["finish_time_s"].clone());
    }
    assert!(times.len() > 10, "{times:?}");
}

#[test]
fn an_npu_makes_computations_take_what_its_roofline_says() {
    let folder = folder();
    let yaml = "\
workload: {chakra: stg/gpt-dp2-tp2-pp2/trace, comm_groups: stg/gpt-dp2-tp2-pp2/comm_group.json}
npu: {bf16: 312 TFLOP/s, hbm: 80 GB, hbm_bandwidth: 2039 GB/s, gemm_efficiency: 1, memory_efficiency: 1}
network: {astra_sim: stg/gpt-dp2-tp2-pp2/1d-switch/network.yml}
collectives: {astra_sim: stg/gpt-dp2-tp2-pp2/1d-switch/system.json}
rules: astra_sim
fidelity: event_driven
";
    let rows = rows(folder.path(), yaml);
    let at = |path: &str| folder.path().join(ONE).join(path);
    let files = Files {
        workload: at("trace"),
        system: at("1d-switch/system.json"),
        network: at("1d-switch/network.yml"),
        memory: None,
        groups: Some(at("comm_group.json")),
    };
    assert_eq!(nanoseconds(&rows[0], "finish_time_s"), simulated(&files).round());
}

/// Traces by their degrees: two are there.
const DEGREES: &str = "\
workload: {chakra: \"stg/gpt-dp{dp}-tp{tp}-pp{pp}/trace\", comm_groups: \"stg/gpt-dp{dp}-tp{tp}-pp{pp}/comm_group.json\"}
plan: {tp: [2, 4], pp: 2}
network: {d1: {block: switch, size: [8, 32], bandwidth: 100 GB/s, hop_latency: 500 ns}}
collectives: {local_reduction: false}
fidelity: event_driven
";

#[test]
fn names_in_braces_are_values_and_a_missing_trace_makes_its_point_infeasible() {
    let folder = folder();
    let rows = rows(folder.path(), DEGREES);
    let told: BTreeSet<_> = rows
        .iter()
        .map(|row| (row["npus"].as_str(), row["tp"].as_str(), row["status"].as_str(), row["reason"].as_str()))
        .collect();
    let expect = [
        ("32", "2", "infeasible", "trace"),
        ("32", "4", "feasible", ""),
        ("8", "2", "feasible", ""),
        ("8", "4", "infeasible", "trace"),
    ];
    assert_eq!(told, BTreeSet::from(expect));
    let ids: BTreeSet<_> = rows.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn what_the_files_hold_is_part_of_ids_and_of_the_identity() {
    let folder = folder();
    let yaml = DEGREES.replace("[2, 4]", "2").replace("[8, 32]", "8");
    let known = |rows: &[Row]| {
        let manifest = fs::read_to_string(folder.path().join("out/manifest.json")).expect("a manifest");
        let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
        (rows[0]["id"].clone(), manifest["identity"].to_string())
    };
    let before = known(&rows(folder.path(), &yaml));
    let groups = folder.path().join(ONE).join("comm_group.json");
    let text = fs::read_to_string(&groups).expect("groups");
    fs::remove_file(&groups).expect("a link or a file");
    fs::write(&groups, format!("{text}\n")).expect("a file");
    let after = known(&rows(folder.path(), &yaml));
    assert!(after.0 != before.0 && after.1 != before.1);
}

#[test]
fn a_trace_is_read_once_for_all_points_that_run_it() {
    let folder = folder();
    let loader = Arc::new(run::Files::beside(&folder.path().join("sweep.yaml")));
    let recording = |name: &str| Recording {
        prefix: format!("stg/{name}/trace"),
        groups: Some(format!("stg/{name}/comm_group.json")),
    };
    let traces: Vec<_> =
        (0..8).into_par_iter().map(|_| loader.trace(&recording("gpt-dp2-tp2-pp2"), 8).expect("a trace")).collect();
    assert!(traces.iter().all(|trace| Arc::ptr_eq(trace, &traces[0])));
    assert!(!Arc::ptr_eq(&traces[0], &loader.trace(&recording("gpt-dp8"), 8).expect("a trace")));
}

macro_rules! mistakes {
    ($($name:ident: $yaml:expr;)+) => {
        $(
            #[test]
            fn $name() {
                let folder = tempfile::tempdir().expect("a folder");
                fs::write(folder.path().join("broken.0.et"), "no trace").expect("a file");
                fs::write(folder.path().join("broken.1.et"), "no trace").expect("a file");
                insta::assert_snapshot!(stringify!($name), said(folder.path(), &$yaml));
            }
        )+
    };
}

/// A sweep over a trace that is not there, with one thing written otherwise.
fn instead(of: &str, written: &str) -> String {
    let yaml = "\
workload: {chakra: traces/w}
network: {d1: {block: switch, size: 2, bandwidth: 100 GB/s}}
collectives: {local_reduction: false}
fidelity: event_driven
";
    assert!(yaml.contains(of));
    yaml.replacen(of, written, 1)
}

mistakes! {
    a_trace_is_there: instead("traces/w", "traces/none");
    a_trace_is_whole: instead("traces/w", "broken");
    a_trace_needs_the_event_driven_engine: instead("fidelity: event_driven\n", "");
    a_trace_is_no_collective: instead("traces/w", "traces/w, collective: all_reduce, size: 1 MB");
    a_name_in_a_path_is_a_value: instead("traces/w", "\"traces/tq{tq}/w\"");
    a_brace_in_a_path_closes: instead("traces/w", "\"traces/tp{tp/w\"");
    a_trace_has_no_model: instead("network:", "model: GPT-3-175B\nnetwork:");
    a_path_of_a_trace_is_a_text: instead("traces/w", "{a: 1}");
}
