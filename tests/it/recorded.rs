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

use crate::chakra::{self, Value, node};
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
    // 3 says that no point is feasible.
    assert!(matches!(code(&output), 0 | 3), "{}", text(&output.stderr));
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
        own: Vec::new(),
    };
    let traces: Vec<_> =
        (0..8).into_par_iter().map(|_| loader.trace(&recording("gpt-dp2-tp2-pp2"), 8).expect("a trace")).collect();
    assert!(traces.iter().all(|trace| Arc::ptr_eq(trace, &traces[0])));
    assert!(!Arc::ptr_eq(&traces[0], &loader.trace(&recording("gpt-dp8"), 8).expect("a trace")));
}

/// All files of a results folder that hold rows, by name.
fn rows_of(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(out.join("points")).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("rows")))
        .collect()
}

#[test]
fn a_frozen_sweep_finds_the_files_of_its_original() {
    let folder = folder();
    rows(folder.path(), DEGREES);
    let out = folder.path().join("out");
    let elsewhere = tempfile::tempdir().expect("a folder");
    // From the original, from the frozen one, and from the frozen one of that, each to a folder that is further away.
    let mut last = out.join("sweep.yaml");
    for to in [folder.path().join("a/b/c"), elsewhere.path().join("d")] {
        let output = program(&["run"]).arg(&last).arg("--out").arg(&to).output().expect("the program starts");
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        assert!(rows_of(&out) == rows_of(&to) && !rows_of(&to).is_empty());
        let identity = |out: &Path| {
            let manifest = fs::read_to_string(out.join("manifest.json")).expect("a manifest");
            serde_json::from_str::<serde_json::Value>(&manifest).expect("JSON")["identity"].clone()
        };
        assert_eq!(identity(&out), identity(&to));
        last = to.join("sweep.yaml");
    }
    let frozen = fs::read_to_string(folder.path().join("a/b/c/sweep.yaml")).expect("a file");
    assert!(frozen.contains("\nrelative_to: \"../../..\"\n"), "{frozen}");
}

/// A sweep over a trace that loads and stores, with some memory.
fn moving(memory: &str, key: &str) -> String {
    format!(
        "\
workload: {{chakra: moving/w{key}}}
network: {{d1: {{block: switch, size: 4, bandwidth: 100 GB/s}}}}
collectives: {{local_reduction: false}}
{memory}
rules: astra_sim
fidelity: event_driven
"
    )
}

/// Traces of four ranks that compute, load and store, and what `simulate` says of them with a memory file.
fn moving_files(folder: &Path, memory: &str) -> f64 {
    let moved = [("tensor_size", Value::Uint64(40_000))];
    let mut compute = node(3, chakra::COMPUTE, &[1], &[]);
    compute.duration_micros = 2;
    let nodes = [node(1, chakra::LOAD, &[], &moved), node(2, chakra::STORE, &[1], &moved), compute];
    fs::create_dir_all(folder.join("moving")).expect("a folder");
    fs::write(folder.join("moving/w.et"), chakra::trace(&nodes)).expect("a file");
    let files = [
        ("network.yml", "topology: [Switch]\nnpus_count: [4]\nbandwidth: [100]\nlatency: [0]\n"),
        (
            "system.json",
            "{\"scheduling-policy\": \"FIFO\", \"collective-optimization\": \"localBWAware\", \"preferred-dataset-splits\": 1}",
        ),
        ("memory.json", memory),
    ];
    let path = |name: &str| folder.join("moving").join(name);
    for (name, text) in files {
        fs::write(path(name), text).expect("a file");
    }
    simulated(&Files {
        workload: path("w"),
        system: path("system.json"),
        network: path("network.yml"),
        memory: Some(path("memory.json")),
        groups: None,
    })
}

#[test]
fn loads_and_stores_use_the_only_tier_or_the_one_that_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = "{\"memory-type\": \"PER_NODE_MEMORY_EXPANSION\", \"remote-mem-latency\": 100, \"remote-mem-bw\": 10, \
                \"num-nodes\": 2, \"num-npus-per-node\": 2}";
    let pool = "{\"memory-type\": \"MEMORY_POOL\", \"remote-mem-latency\": 300, \"remote-mem-bw\": 40}";
    let alone = "{\"memory-type\": \"PER_NPU_MEMORY_EXPANSION\", \"remote-mem-latency\": 100, \"remote-mem-bw\": 10}";
    let [on_host, in_pool, on_its_own] = [host, pool, alone].map(|memory| moving_files(folder.path(), memory));
    // A request of 100 ns + 40,000 B / (10 B/ns); the second of two waits, and each rank has two.
    assert_eq!(on_its_own, 2.0 * 4100.0);
    assert_eq!(on_host, 4.0 * 4100.0);
    let tier = |name: &str, bandwidth: u32, latency: u32, shared_by: u32| {
        format!(
            "{name}: {{capacity: 1 TB, bandwidth: {bandwidth} GB/s, latency: {latency} ns, shared_by: {shared_by}}}"
        )
    };
    let (host, pool) = (tier("host", 10, 100, 2), tier("pool", 40, 300, 4));
    let one = |memory: &str, key: &str| {
        let rows = rows(folder.path(), &moving(&format!("memory: {{{memory}}}"), key));
        assert_eq!(rows.len(), 1);
        rows[0].clone()
    };
    let time = |row: &Row| nanoseconds(row, "finish_time_s");
    assert_eq!(time(&one(&host, "")), on_host);
    assert_eq!(time(&one(&tier("host", 10, 100, 1), "")), on_its_own);
    let both = format!("{host}, {pool}");
    assert_eq!(time(&one(&both, ", remote_memory: host")), on_host);
    let rows = rows(folder.path(), &moving(&format!("memory: {{{both}}}"), ", remote_memory: [pool, none]"));
    assert_eq!((rows[0]["remote_memory"].as_str(), time(&rows[0])), ("pool", in_pool));
    for row in [one(&both, ""), one(&host, ", remote_memory: none"), rows[1].clone()] {
        assert_eq!((row["status"].as_str(), row["reason"].as_str()), ("infeasible", "remote memory"));
    }
}

#[test]
fn a_tier_that_a_trace_uses_is_worth_an_axis() {
    let folder = tempfile::tempdir().expect("a folder");
    moving_files(folder.path(), "{\"memory-type\": \"MEMORY_POOL\"}");
    let memory = "memory: {host: {capacity: 1 TB, bandwidth: [10 GB/s, 20 GB/s]}, pool: {capacity: 1 TB, bandwidth: [10 GB/s, 20 GB/s]}}";
    let rows = rows(folder.path(), &moving(memory, ", remote_memory: host"));
    let told: BTreeSet<_> =
        rows.iter().map(|row| (row["host_bandwidth_bytes_per_s"].as_str(), row["id"].as_str())).collect();
    assert_eq!((rows.len(), told.len()), (2, 2));
}

#[test]
fn a_recorded_trace_has_the_times_of_a_step_and_a_collective_has_not() {
    let folder = tempfile::tempdir().expect("a folder");
    moving_files(folder.path(), "{\"memory-type\": \"MEMORY_POOL\"}");
    let of_trace = rows(folder.path(), &moving("memory: {host: {capacity: 1 TB, bandwidth: 40 GB/s}}", ""));
    let row = &of_trace[0];
    assert_eq!(row["iteration_time_s"], row["finish_time_s"]);
    assert_eq!((nanoseconds(row, "compute_time_s"), nanoseconds(row, "finish_time_s")), (2000.0, 3000.0));
    assert_eq!(nanoseconds(row, "astra_exposed_s"), 1000.0);
    let of_time = |cell: &(&String, &String)| cell.0.ends_with("_s") && !cell.0.ends_with("_per_s");
    let empty: Vec<_> = row.iter().filter(of_time).filter(|cell| cell.1.is_empty()).collect();
    assert_eq!(empty, []);
    let collective = moving("", "").replace("chakra: moving/w", "collective: all_reduce, size: 1 MB");
    let row = &rows(folder.path(), &collective)[0];
    assert!(!row["finish_time_s"].is_empty() && !row.contains_key("iteration_time_s"));
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
    a_collective_has_no_remote_memory: instead("chakra: traces/w", "collective: all_reduce, size: 1 MB, remote_memory: none");
    paths_go_from_a_folder: format!("{}relative_to: [a, b]\n", instead("", ""));
    a_path_of_a_trace_is_a_text: instead("traces/w", "{a: 1}");
}

/// The golden collective that is a trace of its own, for 8 ranks.
const OWN: &str = "examples/et/custom_ring_allreduce_8npus_1MB/custom_allreduce";

/// A sweep over an algorithm and that trace.
fn with_own(workload: &str, collectives: &str) -> String {
    format!(
        "workload: {{{workload}}}\nnetwork: {{astra_sim: examples/network/Ring_8npus.yml}}\n\
         collectives: {{{collectives}}}\nrules: astra_sim\nfidelity: event_driven\n"
    )
}

#[test]
fn a_collective_that_is_a_trace_takes_what_simulate_says_whoever_names_it() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    let files = Files {
        workload: at("examples/et/all_reduce_8npus_1MB/all_reduce"),
        system: at("examples/system/custom_collective.json"),
        network: at("examples/network/Ring_8npus.yml"),
        memory: None,
        groups: None,
    };
    let wanted = simulated(&files).round();
    let base = "astra_sim: examples/system/custom_collective.json";
    let beside = format!("{base}, algorithm: [ring, {{chakra: {OWN}}}]");
    let one = format!("{base}, all_reduce_algorithm: {{chakra: {OWN}}}");
    let alone = "collective: all_reduce, size: 1 MiB";
    let recorded = "chakra: examples/et/all_reduce_8npus_1MB/all_reduce";
    for workload in [alone, recorded] {
        let mut ids = BTreeSet::new();
        for collectives in [base, &beside, &one] {
            let rows = rows(folder.path(), &with_own(workload, collectives));
            assert_eq!(rows.len(), if collectives == beside { 2 } else { 1 });
            for row in &rows {
                assert_eq!(row["status"], "feasible", "{row:?}");
                let is_own = row["algorithm"] == OWN || collectives != beside;
                assert!(is_own == (nanoseconds(row, "finish_time_s") == wanted), "{wanted}: {row:?}");
                if is_own {
                    ids.insert(row["id"].clone());
                }
            }
            let again = program(&["preview"]).arg(at("out/sweep.yaml")).output().expect("the program starts");
            assert_eq!(code(&again), 0, "{}", text(&again.stderr));
        }
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
}

#[test]
fn a_trace_of_another_number_of_ranks_makes_its_point_infeasible() {
    let folder = folder();
    let sizes = "{d1: {block: ring, size: [4, 8, 16], bandwidth: 50 GB/s, hop_latency: 500 ns}}";
    let collectives = format!("local_reduction: false, algorithm: [by_block, {{chakra: {OWN}}}]");
    let yaml = with_own("collective: all_reduce, size: 1 MiB", &collectives)
        .replace("{astra_sim: examples/network/Ring_8npus.yml}", sizes);
    let told: BTreeSet<_> = rows(folder.path(), &yaml)
        .into_iter()
        .map(|row| (row["npus"].clone(), row["algorithm"] == OWN, row["reason"].clone()))
        .collect();
    let row = |npus: &str, is_own: bool, reason: &str| (npus.to_owned(), is_own, reason.to_owned());
    let mut expected = BTreeSet::from(["4", "8", "16"].map(|npus| row(npus, false, "")));
    expected.extend([row("4", true, "trace"), row("8", true, ""), row("16", true, "trace")]);
    assert_eq!(told, expected);
}

#[test]
fn names_in_the_path_of_a_collective_are_values_and_its_content_is_part_of_ids() {
    let folder = folder();
    let collectives = "local_reduction: false, algorithm: {chakra: \"examples/et/custom_ring_allreduce_{npus}npus_1MB/custom_allreduce\"}";
    let yaml = with_own("collective: all_reduce, size: 1 MiB", collectives);
    let known = |rows: &[Row]| {
        let manifest = fs::read_to_string(folder.path().join("out/manifest.json")).expect("a manifest");
        let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
        assert_eq!(rows[0]["status"], "feasible");
        (rows[0]["id"].clone(), manifest["identity"].to_string())
    };
    let before = known(&rows(folder.path(), &yaml));
    let at = |member: u32| folder.path().join(format!("{OWN}.{member}.et"));
    let packed = fs::File::create(folder.path().join(format!("{OWN}.0.et.gz"))).expect("a file");
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &fs::read(at(0)).expect("a trace")).expect("a write");
    packed.finish().expect("a file");
    fs::remove_file(at(0)).expect("a file");
    let after = known(&rows(folder.path(), &yaml));
    assert!(after.0 != before.0 && after.1 != before.1);
}

/// A sweep over a collective's trace that is not there, with one thing written otherwise.
fn own_instead(of: &str, written: &str) -> String {
    let yaml = "\
workload: {collective: all_reduce, size: 1 MB}
network: {d1: {block: switch, size: 2, bandwidth: 100 GB/s}}
collectives: {local_reduction: false, algorithm: [by_block, {chakra: mine/w}]}
fidelity: event_driven
";
    assert!(yaml.contains(of));
    yaml.replacen(of, written, 1)
}

mistakes! {
    a_collectives_trace_is_there: own_instead("mine/w", "mine/none");
    a_collectives_trace_needs_the_event_driven_engine: own_instead("fidelity: event_driven\n", "");
    a_collectives_trace_is_a_text: own_instead("mine/w", "[mine/w, mine/v]");
    a_name_in_a_collectives_path_is_a_value: own_instead("mine/w", "\"mine/{tq}\"");
    a_section_is_no_trace: own_instead("algorithm: [by_block, {chakra: mine/w}]", "chakra: mine/w");
}
