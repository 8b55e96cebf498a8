//! Are the reference simulator's files, named in a sweep, what they are to `simulate`?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use starsweep::astra_sim::{Options, read_network, read_system};
use starsweep::input::{Diagnostic, Remarks};
use starsweep::run::{Files, vocabulary};
use starsweep::sweep::{Sweep, Vocabulary, point, resolve};
use starsweep::system::collective::Collective;
use starsweep::system::machine::Machine;
use starsweep::system::topology::Topology;

use crate::support::{code, evaluate, points, program, root, run, text};

/// The rows of a table of golden results.
fn rows(table: &str) -> Vec<BTreeMap<String, String>> {
    let file = fs::File::open(root().join(format!("tests/data/astra_sim/{table}.csv.gz"))).expect("golden results");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("UTF-8");
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().expect("rows")
}

/// A sweep in a folder of files.
fn resolved(folder: &Path, yaml: &str) -> Result<Sweep, Vec<Diagnostic>> {
    let files = Arc::new(Files::beside(&folder.join("sweep.yaml")));
    resolve(yaml, &[], &Vocabulary { loader: Some(files), ..vocabulary() })
}

fn sweep(folder: &Path, yaml: &str) -> Sweep {
    resolved(folder, yaml).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// The text of a network file.
fn network(topology: &str, npus_count: &str, bandwidth: &str, latency: &str) -> String {
    format!("topology: {topology}\nnpus_count: {npus_count}\nbandwidth: {bandwidth}\nlatency: {latency}\n")
}

/// A collective over a network.
const COLLECTIVE: &str = "\
workload: {collective: all_reduce, size: 1 MiB}
collectives: {local_reduction: false}
";

#[test]
fn a_network_file_is_what_simulate_reads_but_for_last_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = ["topology", "npus_count", "bandwidth_GBps", "latency_ns"];
    let networks: BTreeSet<[String; 4]> =
        rows("collectives").into_iter().map(|row| keys.map(|key| row[key].clone())).collect();
    fs::create_dir(folder.path().join("nets")).expect("a folder");
    for (k, [topology, npus, bandwidth, latency]) in networks.iter().enumerate() {
        let path = folder.path().join(format!("nets/{k:04}.yml"));
        fs::write(path, network(topology, npus, bandwidth, latency)).expect("a file");
    }
    let sweep = sweep(folder.path(), &format!("{COLLECTIVE}network: {{astra_sim: \"nets/*.yml\"}}\n"));
    let points = points(&sweep);
    assert!(points.len() > 1000 && points.len() == networks.len());
    for (k, inputs) in points.iter().enumerate() {
        let path = folder.path().join(format!("nets/{k:04}.yml"));
        let read = read_network(&path, &mut Remarks::default()).expect("a network");
        for (found, wanted) in Machine::of(&point::system(inputs), None).dimensions.iter().zip(&read) {
            let near = |found: f64, wanted: f64| (found - wanted).abs() <= 1e-15 * wanted;
            let is_full = found.block == Topology::FullyConnected;
            assert!(
                found.bandwidth == wanted.bandwidth || is_full && near(found.bandwidth, wanted.bandwidth),
                "{found:?}"
            );
            assert!(near(found.latency, wanted.latency), "{found:?} {wanted:?}");
            assert_eq!((found.block, found.size), (wanted.block, wanted.size));
        }
    }
}

/// The text of a system file of a row.
fn system(row: &BTreeMap<String, String>) -> String {
    let implementation = row["implementation"].trim_matches(['[', ']']).split(',');
    let list = implementation.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let mut lines = vec![
        format!("\"scheduling-policy\": \"{}\"", row["scheduling_policy"]),
        format!("\"collective-optimization\": \"{}\"", row["collective_optimization"]),
        format!("\"{}-implementation\": [{list}]", row["collective"]),
    ];
    for (key, column) in [
        ("preferred-dataset-splits", "preferred_dataset_splits"),
        ("active-chunks-per-dimension", "active_chunks_per_dimension"),
        ("endpoint-delay", "endpoint_delay"),
        ("local-mem-bw", "local_mem_bw_GBps"),
        ("model-shared-bus", "model_shared_bus"),
    ] {
        if !row[column].is_empty() {
            lines.push(format!("\"{key}\": {}", row[column]));
        }
    }
    format!("{{{}}}", lines.join(",\n "))
}

/// What stands beside a system file of a row: what is no part of the file, or counts for nothing there.
fn beside(row: &BTreeMap<String, String>) -> String {
    let mut keys = vec![String::new()];
    if row["num_queues_per_dim"] != "1" {
        keys.push(format!("queues: {}", row["num_queues_per_dim"]));
    }
    if row["rendezvous"] == "1" {
        keys.push("rendezvous: true".to_owned());
    }
    if row["injection_scale"] != "1" {
        let [delay, scale] =
            ["endpoint_delay", "injection_scale"].map(|key| row[key].parse::<f64>().expect("a number"));
        keys.push(format!("endpoint_delay: {} ns", (delay * scale).trunc()));
    }
    if row["build"] == "knobs" {
        let dimensions =
            [("roundRobin", "round_robin"), ("offlineGreedy", "themis"), ("offlineGreedyFlex", "themis_flex")];
        let chunks = [
            ("RG", "rg"),
            ("smallestFirst", "smallest_first"),
            ("lessRemainingPhaseFirst", "less_remaining_phase_first"),
        ];
        let word =
            |words: &[(&str, &'static str)], key: &str| words.iter().find(|word| word.0 == row[key]).map(|word| word.1);
        let dimension = word(&dimensions, "inter_dimension_scheduling").map(|word| format!("dimension_order: {word}"));
        let chunk = word(&chunks, "intra_dimension_scheduling").map(|word| format!("chunk_order: {word}"));
        keys.extend(dimension.into_iter().chain(chunk));
    }
    keys.join(", ")
}

/// Picoseconds of the only point of a sweep.
fn total(sweep: &Sweep) -> u64 {
    let points = points(sweep);
    let [inputs] = points.as_slice() else { panic!("{} points", points.len()) };
    evaluate(inputs).2.expect("a feasible point").report.total.as_picoseconds()
}

#[test]
fn both_files_give_the_cycles_of_the_reference_program_or_say_why_not() {
    let rows = rows("collectives");
    let folder = tempfile::tempdir().expect("a folder");
    let outcomes: Vec<Option<String>> = rows
        .par_iter()
        .map(|row| {
            let at = folder.path().join(&row["id"]);
            fs::create_dir(&at).expect("a folder");
            let net = network(&row["topology"], &row["npus_count"], &row["bandwidth_GBps"], &row["latency_ns"]);
            fs::write(at.join("net.yml"), net).expect("a file");
            fs::write(at.join("system.json"), system(row)).expect("a file");
            let yaml = format!(
                "workload: {{collective: {}, size: {} B}}\ncluster: {{network: {{astra_sim: net.yml}}, congestion: {}}}\n\
                 collectives: {{astra_sim: system.json{}}}\nrules: astra_sim\nfidelity: event_driven\n",
                row["collective"].replace('-', "_"),
                row["size_bytes"],
                row["backend"],
                beside(row)
            );
            match resolved(&at, &yaml) {
                Ok(sweep) => {
                    let cycles = total(&sweep);
                    let is_same = cycles == 1000 * row["cycles"].parse::<u64>().expect("cycles");
                    assert!(is_same || !has_its_bandwidths(&sweep, &at), "{cycles}: {row:?}");
                    (!is_same).then(|| "a last bit".to_owned())
                }
                Err(errors) => Some(errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ")),
            }
        })
        .collect();
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for (row, why) in rows.iter().zip(&outcomes) {
        let Some(why) = why else { continue };
        let reasons = ["`model-shared-bus`", "`by_dimension` has", "a last bit"];
        let reason = reasons.into_iter().find(|reason| why.contains(reason));
        *refused.entry(reason.unwrap_or_else(|| panic!("{why}: {row:?}"))).or_default() += 1;
    }
    // Messages of one bus, lists in which outer dimensions take no part, and bandwidths of links that lack their last bit.
    let expected = [("`model-shared-bus`", 96), ("`by_dimension` has", 80), ("a last bit", 6)];
    assert_eq!(refused, BTreeMap::from(expected));
}

/// Whether every link of a sweep's point has the bandwidth of the file, to the last bit.
fn has_its_bandwidths(sweep: &Sweep, folder: &Path) -> bool {
    let read = read_network(&folder.join("net.yml"), &mut Remarks::default()).expect("a network");
    let dimensions = Machine::of(&point::system(&points(sweep)[0]), None).dimensions;
    dimensions.iter().zip(&read).all(|(found, wanted)| found.bandwidth == wanted.bandwidth)
}

/// A folder with two networks and a system.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("nets")).expect("a folder");
    fs::write(at("nets/ring.yml"), network("[Ring]", "[8]", "[50]", "[500]")).expect("a file");
    fs::write(at("nets/wide.yml"), network("[Ring, Switch]", "[4, 2]", "[100, 25]", "[250, 500]")).expect("a file");
    let lists =
        ["all-reduce", "all-gather"].map(|name| format!("\"{name}-implementation\": [\"ring\", \"halvingDoubling\"]"));
    let system = format!(
        "{{\"scheduling-policy\": \"FIFO\", \"collective-optimization\": \"localBWAware\", {},\n \
         \"preferred-dataset-splits\": 8, \"active-chunks-per-dimension\": 2, \"endpoint-delay\": 20, \"local-mem-bw\": 1600,\n \
         \"roofline-enabled\": 1, \"peak-perf\": 100}}\n",
        lists.join(", ")
    );
    fs::write(at("system.json"), system).expect("a file");
    folder
}

/// A sweep over files.
const FILES: &str = "\
workload: {collective: [all_reduce, all_gather], size: 1 MiB}
network: [{astra_sim: nets/wide.yml}, own]
define: {own: {d1: {block: ring, size: 4, bandwidth: 100 GiB/s}, d2: {block: switch, size: 4, bandwidth: 50 GiB/s}}}
collectives: {astra_sim: system.json, chunks: [8, 16]}
rules: astra_sim
fidelity: event_driven
";

#[test]
fn a_file_is_a_base_and_what_is_written_beside_it_goes_over_it() {
    let folder = example();
    let sweep = sweep(folder.path(), FILES);
    let points = points(&sweep);
    assert_eq!(points.len(), 8);
    let system = point::system(&points[0]);
    assert_eq!(system.network.shape(), "R(4)_SW(2)");
    assert_eq!(system.network.dims[0].bandwidth.get(), 2.0 * 100.0 * 1_073_741_824.0);
    assert_eq!((system.collectives.chunks, system.collectives.active_chunks), (8, 2));
    assert_eq!(system.collectives.endpoint_delay.as_nanoseconds(), 20.0);
    assert_eq!(system.npu.memory_bandwidth.get(), 1.6e12);
    let chunks: BTreeSet<u64> = points.iter().map(|inputs| point::system(inputs).collectives.chunks).collect();
    assert_eq!(chunks, BTreeSet::from([8, 16]));
    let said: Vec<_> = sweep.cautions.iter().map(|caution| caution.message.as_str()).collect();
    assert_eq!(
        said,
        ["`roofline-enabled` of `system.json` counts for nothing: the sweep's `npu` says how fast it computes"]
    );
    let one = "network: {astra_sim: nets/wide.yml, d1: {bandwidth: 7 GB/s}, d2.size: 4}\n";
    let one = format!("{COLLECTIVE}{one}");
    let network = point::system(&self::points(&self::sweep(folder.path(), &one))[0]).network;
    assert_eq!((network.dims[0].bandwidth.get(), network.shape().as_str()), (7e9, "R(4)_SW(4)"));
}

#[test]
fn an_npu_says_how_fast_its_memory_is() {
    let folder = example();
    let sweep = sweep(folder.path(), &format!("{FILES}npu: H100-SXM-80GB\n"));
    assert!(point::system(&points(&sweep)[0]).npu.memory_bandwidth.get() > 3e12);
    let caution = "`local-mem-bw` of `system.json` counts for nothing: the sweep says how fast the memory is";
    assert!(sweep.cautions.iter().any(|found| found.message == caution), "{:?}", sweep.cautions);
}

#[test]
fn the_frozen_sweep_needs_no_file_and_is_the_same() {
    let folder = example();
    for yaml in [
        FILES,
        &format!("{COLLECTIVE}network: {{astra_sim: \"nets/*.yml\"}}\n"),
        &format!("{COLLECTIVE}network: {{astra_sim: nets/ring.yml}}\n"),
    ] {
        let sweep = sweep(folder.path(), yaml);
        let again =
            resolve(&sweep.frozen, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{errors:#?}\n{}", sweep.frozen));
        assert_eq!(again.identity, sweep.identity, "{}", sweep.frozen);
    }
}

#[test]
fn a_files_content_is_part_of_the_identity_and_its_folder_is_not() {
    let folder = example();
    let yaml = |path: &str| format!("{COLLECTIVE}network: {{astra_sim: {path}}}\n");
    let before = sweep(folder.path(), &yaml("nets/ring.yml")).identity;
    fs::copy(folder.path().join("nets/ring.yml"), folder.path().join("ring.yml")).expect("a copy");
    assert_eq!(sweep(folder.path(), &yaml("ring.yml")).identity, before);
    let text = network("[Ring]", "[8]", "[50]", "[501]  # a nanosecond more");
    fs::write(folder.path().join("ring.yml"), text).expect("a file");
    assert_ne!(sweep(folder.path(), &yaml("ring.yml")).identity, before);
}

#[test]
fn a_row_of_the_table_names_the_file_of_its_network() {
    let folder = example();
    fs::write(folder.path().join("sweep.yaml"), FILES).expect("a file");
    let out = folder.path().join("out");
    let mut command = program(&["run"]);
    command.arg(folder.path().join("sweep.yaml")).arg("--out").arg(&out).arg("--csv");
    let output = command.output().expect("the program starts");
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let mut table = csv::Reader::from_path(out.join("points.csv")).expect("a table");
    let rows: Vec<BTreeMap<String, String>> = table.deserialize().collect::<Result<_, _>>().expect("rows");
    let networks: BTreeSet<&str> = rows.iter().map(|row| row["network"].as_str()).collect();
    assert_eq!(networks, BTreeSet::from(["own", "wide"]));
    assert!(rows.iter().all(|row| row["collectives"] == "system" && row["dim0_name"] == "d1"));
}

/// What is said of a sweep in the folder, with exit code 2.
fn said(folder: &Path, yaml: &str) -> String {
    let file = folder.join("sweep.yaml");
    fs::write(&file, yaml).expect("a file");
    let output = run(&["preview", &file.display().to_string()]);
    assert_eq!(code(&output), 2, "{}", text(&output.stderr));
    text(&output.stderr).replace(&format!("{}/", folder.display()), "")
}

macro_rules! mistakes {
    ($($name:ident: $yaml:expr;)+) => {
        $(
            #[test]
            fn $name() {
                let folder = example();
                let net = "topology: [Ring, Swich]\nnpus_count: [4, 2]\nbandwidth: [100]\nlatency: [250, -1]\n";
                fs::write(folder.path().join("wrong.yml"), net).expect("a file");
                fs::write(folder.path().join("wrong.json"), "{\"all-reduce-implementation\": [\"rings\"]}\n").expect("a file");
                let bus = system_of("baseline", "[\"ring\", \"halvingDoubling\"]").replace('{', "{\"model-shared-bus\": 1, ");
                fs::write(folder.path().join("bus.json"), bus).expect("a file");
                let windows = system_of("localBWAware", "[\"ring\", \"direct8\"]");
                let lists = windows.replace('{', "{\"all-gather-implementation\": [\"direct\", \"ring\"], ");
                fs::write(folder.path().join("windows.json"), windows).expect("a file");
                fs::write(folder.path().join("lists.json"), lists).expect("a file");
                insta::assert_snapshot!(stringify!($name), said(folder.path(), &$yaml));
            }
        )+
    };
}

/// A system file for an all-reduce.
fn system_of(optimization: &str, list: &str) -> String {
    format!(
        "{{\"scheduling-policy\": \"FIFO\", \"collective-optimization\": \"{optimization}\", \"preferred-dataset-splits\": 4,\n \
         \"all-reduce-implementation\": {list}, \"local-mem-bw\": 1600}}\n"
    )
}

#[test]
fn every_list_of_a_system_file_is_the_same_machine() {
    let folder = example();
    let system = |optimization: &str, list: &str| {
        fs::write(folder.path().join("system.json"), system_of(optimization, list)).expect("a file");
        let yaml = FILES
            .replace("[{astra_sim: nets/wide.yml}, own]", "{astra_sim: nets/wide.yml}")
            .replace("[all_reduce, all_gather]", "all_reduce")
            .replace(", chunks: [8, 16]", "");
        let sweep = sweep(folder.path(), &yaml);
        let again =
            resolve(&sweep.frozen, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{errors:#?}\n{}", sweep.frozen));
        assert_eq!(again.identity, sweep.identity);
        point::system(&points(&sweep)[0])
    };
    for list in [
        "[\"ring\", \"direct4\"]",
        "[\"oneRing\"]",
        "[\"oneDirect2\"]",
        "[\"direct3\", \"direct\"]",
        "[\"doubleBinaryTree\", \"ring\"]",
    ] {
        for optimization in ["baseline", "localBWAware"] {
            let found = Machine::of(&system(optimization, list), None);
            let path = folder.path().join("system.json");
            let (wanted, _) = read_system(&path, &Options::default(), &mut Remarks::default()).expect("a system");
            let of = |machine: &Machine| machine.algorithms[Collective::AllReduce as usize].clone();
            assert_eq!(of(&found), of(&wanted), "{list}");
            assert!(found.hierarchy == wanted.hierarchy || list.contains("one"), "{list} {optimization}");
        }
    }
}

/// The sweep over files with one thing written otherwise.
fn instead(of: &str, written: &str) -> String {
    assert!(FILES.contains(of));
    FILES.replacen(of, written, 1)
}

mistakes! {
    mistakes_of_all_named_files_are_told_together: instead("nets/wide.yml", "wrong.yml").replace("system.json", "wrong.json").replace("event_driven", "event_drivn");
    a_named_file_is_there: instead("nets/wide.yml", "nets/none.yml");
    a_pattern_is_like_some_file: instead("nets/wide.yml", "\"nets/*.json\"");
    a_path_is_a_text: instead("nets/wide.yml", "{a: 1}");
    a_network_has_one_base: instead("{astra_sim: nets/wide.yml}", "{preset: own, astra_sim: nets/wide.yml}");
    a_cluster_is_no_file: format!("{FILES}cluster: {{astra_sim: nets/wide.yml}}\n");
    a_shared_bus_has_no_word: instead("system.json", "bus.json").replace("[all_reduce, all_gather]", "all_reduce");
    a_sweep_has_one_list_by_dimension: instead("system.json", "lists.json");
    a_collective_without_an_algorithm_is_told: instead("system.json", "windows.json").replace("[all_reduce, all_gather]", "all_gather");
    algorithms_by_dimension_fit_some_network: instead("[{astra_sim: nets/wide.yml}, own]", "{astra_sim: nets/ring.yml}");
    chunks_of_a_file_that_queue_need_the_event_driven_engine: instead("fidelity: event_driven\n", "").replace("rules: astra_sim\n", "");
}
