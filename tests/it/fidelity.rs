//! Two evaluators: does a sweep reach both, does each row say which, does `refine` do what it should and nothing twice?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use polars::prelude::{AnyValue, DataFrame};
use starsweep::results::Segment;
use starsweep::results::folder::Folder;
use starsweep::results::store::files;
use starsweep::sweep::key::Id;
use starsweep::sweep::point::{fidelity, id, id_text, system};
use starsweep::sweep::{Fidelity, Removal};
use starsweep::system::collective::{Algorithm, Collective};

use crate::support::{code, evaluate, points, program, run, segments, sweep, text};

/// All-reduces over small networks: 160 points for each evaluator.
const COLLECTIVES: &str = "\
workload: {collective: [all_reduce, all_gather], size: [1 MiB, 4 MiB, 16 MiB, 64 MiB]}
npu: H100-SXM-80GB
network:
  inner: {block: [ring, switch], size: 4, bandwidth: {from: 50 GB/s, to: 250 GB/s, step: 50 GB/s}, hop_latency: 500 ns}
  outer: {block: switch, size: 2, bandwidth: 25 GB/s, hop_latency: 500 ns}
collectives: {chunks: [2, 4], local_reduction: false}
";

/// A small model on a small machine.
const TRAINING: &str = "\
model: {layers: 4, hidden: 1024, heads: 16, ffn: 4096, mlp: gelu, vocab: 32000}
seq_len: 1024
global_batch: 16 seq
cluster:
  npu: H100-SXM-80GB
  network:
    inner: {block: switch, size: 4, bandwidth: 450 GB/s, hop_latency: 500 ns}
    outer: {block: switch, size: [2, 4], bandwidth: [25 GB/s, 50 GB/s], hop_latency: 500 ns}
plan: {tp: [1, 2, 4], pp: [1, 2], zero: [0, 1]}
";

/// A folder with a sweep in it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(yaml: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        place.write(yaml);
        place
    }

    fn write(&self, yaml: &str) {
        fs::write(self.file(), yaml).expect("a file");
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("sweep.yaml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).expect("a file")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn command(&self, more: &[&str]) -> std::process::Command {
        let mut command = program(&["run"]);
        command.arg(self.file()).arg("--out").arg(self.out()).args(["--threads", "2"]).args(more);
        command
    }

    /// Runs to the end; what was printed.
    fn run(&self) -> String {
        self.run_with(&[])
    }

    fn run_with(&self, more: &[&str]) -> String {
        let output = self.command(more).output().expect("the program starts");
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout)
    }

    /// A count of the manifest.
    fn manifest(&self, key: &str) -> u64 {
        let text = fs::read_to_string(self.out().join("manifest.json")).expect("a manifest");
        let manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        manifest[key].as_u64().expect("a count")
    }

    /// Every refined file with its bytes.
    fn refined(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        bytes(&self.out().join("refined"))
    }

    /// Every segment with its bytes.
    fn points(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        bytes(&self.out().join("points"))
    }
}

fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files(folder).expect("a folder");
    files.into_iter().map(|path| (path.file_name().expect("a name").into(), fs::read(&path).expect("a file"))).collect()
}

fn all(folder: &Folder) -> DataFrame {
    folder.rows(&folder.places().expect("places")).expect("rows")
}

fn texts(frame: &DataFrame, column: &str) -> Vec<String> {
    let column = frame.column(column).expect("a column").str().expect("texts");
    column.iter().map(|text| text.unwrap_or_default().to_owned()).collect()
}

fn values(frame: &DataFrame, column: &str) -> Vec<f64> {
    frame.column(column).expect("a column").f64().expect("numbers").iter().map(|it| it.unwrap_or(f64::NAN)).collect()
}

#[test]
fn a_sweep_over_both_evaluators_has_a_row_of_each_and_each_says_which() {
    let place = Place::with(&format!("{COLLECTIVES}fidelity: [closed_form, event_driven]\n"));
    place.run();
    let frame = all(&Folder::open(&place.out()).expect("results"));
    assert_eq!(frame.height(), 320);
    let said = texts(&frame, "fidelity");
    for name in Fidelity::NAMES {
        assert_eq!(said.iter().filter(|said| *said == name).count(), 160, "{name}");
    }
    assert_eq!(texts(&frame, "id").into_iter().collect::<BTreeSet<_>>().len(), 320, "ids are unique");
    for (column, value) in [("rules", "ours"), ("dimension_order", "ascending"), ("chunk_order", "fifo")] {
        assert!(texts(&frame, column).iter().all(|text| text == value), "{column}");
    }
    assert_eq!(frame.column("active_chunks").expect("a column").get(0).expect("a row"), AnyValue::Int64(1));
    assert_eq!(texts(&frame, "status").iter().filter(|status| *status == "feasible").count(), 320);
}

#[test]
fn an_event_driven_sweep_has_segments_of_64_numbers_and_its_length_is_part_of_its_identity() {
    let place = Place::with(COLLECTIVES);
    place.run();
    assert_eq!(segments(&place.out()).len(), 1);
    place.write(&format!("{COLLECTIVES}fidelity: event_driven\n"));
    assert!(place.run().contains("earlier/"), "another question");
    let names: Vec<String> = place.points().keys().map(|name| name.display().to_string()).collect();
    let expected: Vec<String> = Segment::of(160, 64).map(|segment| segment.file_name()).collect();
    assert_eq!(names, expected);
    assert!(place.run().contains("nothing was left to run"));
}

#[test]
fn an_event_driven_sweep_that_is_killed_ends_with_the_same_bytes() {
    let yaml = format!("{COLLECTIVES}fidelity: event_driven\n");
    let undisturbed = Place::with(&yaml);
    let started = Instant::now();
    undisturbed.run();
    let lasted = started.elapsed();
    let place = Place::with(&yaml);
    for round in 1..8 {
        let mut child = place.command(&["--quiet"]).spawn().expect("the program starts");
        sleep(lasted.mul_f64(f64::from(round) / 8.0));
        if child.try_wait().expect("a status").is_none() {
            child.kill().expect("SIGKILL");
        }
        child.wait().expect("an end");
    }
    place.run();
    assert_eq!(place.points(), undisturbed.points());
}

#[test]
fn a_long_point_does_not_keep_a_run_from_stopping() {
    let yaml = format!("{TRAINING}fidelity: event_driven\ncollectives: {{chunks: 1000000}}\n");
    let place = Place::with(&yaml);
    let child = place.command(&[]).stderr(std::process::Stdio::piped()).spawn().expect("the program starts");
    sleep(Duration::from_secs(1));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    let asked = Instant::now();
    let output = child.wait_with_output().expect("an end");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(code(&output), 130);
    assert!(text(&output.stderr).contains("the same command goes on"));
}

#[test]
fn an_edited_event_driven_sweep_runs_only_what_is_new() {
    let named = |name: &str, sizes: &str| {
        format!(
            "define: {{{name}: {{d: {{block: ring, size: 4, bandwidth: [50 GB/s, 100 GB/s]}}}}}}\nnetwork: [{name}]\n\
             workload: {{collective: all_reduce, size: [{sizes}]}}\ncollectives: {{local_reduction: false}}\n\
             fidelity: event_driven\nnpu: H100-SXM-80GB\n"
        )
    };
    let place = Place::with(&named("mine", "1 MiB, 2 MiB, 4 MiB"));
    place.run();
    let edited = named("mine", "1 MiB, 3 MiB, 4 MiB");
    place.write(&edited);
    assert!(place.run().contains("4 event-driven points were known"));
    assert_eq!(place.manifest("rows_known_from_earlier"), 4);
    let undisturbed = Place::with(&edited);
    undisturbed.run();
    assert_eq!(place.points(), undisturbed.points(), "bytes do not tell the history");
    // The same points under another name are other rows.
    place.write(&named("yours", "1 MiB, 3 MiB, 4 MiB"));
    place.run();
    assert_eq!(place.manifest("rows_known_from_earlier"), 0);
}

#[test]
fn what_the_closed_form_does_not_know_is_not_tried_with_it() {
    let yaml = format!("{COLLECTIVES}fidelity: [closed_form, event_driven]\nrules: [ours, astra_sim]\n")
        .replace("chunks: [2, 4]", "chunks: 4, active_chunks: [1, 2], dimension_order: all, chunk_order: all");
    let sweep = sweep(&yaml);
    let found = points(&sweep);
    let of = |wanted: Fidelity| found.iter().filter(|inputs| fidelity(inputs) == wanted).count();
    assert_eq!((of(Fidelity::ClosedForm), of(Fidelity::EventDriven)), (80, 80 * 2 * 4 * 4 * 2));
    let said = text(&run(&["preview", Place::with(&yaml).file().to_str().expect("UTF-8")]).stdout);
    assert!(said.contains("not tried"), "{said}");
    for removal in [Removal::ClosedFormOfQueues, Removal::ClosedFormOfRules] {
        let place = Place::with(&yaml);
        let said = text(&run(&["preview", place.file().to_str().expect("UTF-8")]).stdout);
        assert!(said.contains(removal.name()), "{said}");
        assert!(said.contains("closed_form: about") && said.contains("event_driven: about"), "{said}");
    }
}

#[test]
fn every_order_and_rule_is_an_axis_whose_points_run() {
    let yaml = format!("{COLLECTIVES}fidelity: event_driven\nrules: [ours, astra_sim]\n")
        .replace("size: [1 MiB, 4 MiB, 16 MiB, 64 MiB]}", "size: 4 MiB}");
    let yaml = yaml
        .replace("bandwidth: {from: 50 GB/s, to: 250 GB/s, step: 50 GB/s}", "bandwidth: 50 GB/s")
        .replace("chunks: [2, 4]", "chunks: 4, active_chunks: [1, 2], dimension_order: all, chunk_order: all");
    let place = Place::with(&yaml);
    place.run();
    let frame = all(&Folder::open(&place.out()).expect("results"));
    assert_eq!(frame.height(), 2 * 2 * 2 * 4 * 4 * 2);
    let reasons: BTreeSet<_> = texts(&frame, "reason").into_iter().collect();
    assert_eq!(reasons, BTreeSet::from([String::new()]));
    for column in ["rules", "dimension_order", "chunk_order"] {
        let words: BTreeSet<_> = texts(&frame, column).into_iter().collect();
        assert!(words.len() >= 2, "{column}: {words:?}");
    }
}

#[test]
fn keys_at_their_defaults_leave_ids_as_they_were_before_there_were_keys() {
    let ids = |yaml: &str| {
        let ids = points(&sweep(yaml)).iter().map(|inputs| id_text(id(inputs, &mut Vec::new()))).collect::<Vec<_>>();
        ids.iter().map(|id| String::from_utf8(id.to_vec()).expect("letters")).collect::<Vec<_>>()
    };
    let before = ids(TRAINING);
    // As physics version 8 named it, with which the constants of the NPU changed.
    assert_eq!(before[0], "f4hdfbxd3tkbx");
    let written = format!(
        "{TRAINING}fidelity: closed_form\nrules: ours\ncollectives: {{active_chunks: 1, dimension_order: ascending, chunk_order: fifo}}\n"
    );
    assert_eq!(ids(&written), before);
    assert_eq!(points(&sweep(&written))[0].key(Id::Fidelity), 0.0);
}

#[test]
fn refine_evaluates_the_front_and_the_best_again_and_a_second_run_runs_nothing() {
    let place = Place::with(&format!("{TRAINING}refine: {{top: 12}}\n"));
    let said = place.run();
    assert!(
        said.contains("evaluated again, event-driven: the front and the best 12 by min iteration_time_s"),
        "{said}"
    );
    assert!(said.contains("the best is the same in both") || said.contains("the best in closed form"), "{said}");
    let [first, again] = [Folder::open(&place.out()), Folder::open_refined(&place.out())].map(|it| it.expect("rows"));
    assert_eq!(first.columns().expect("columns"), again.columns().expect("columns"));
    let (first, again) = (all(&first), all(&again));
    assert_eq!(first.dtypes(), again.dtypes());
    assert!(texts(&again, "fidelity").iter().all(|said| said == "event_driven"));
    assert!(texts(&first, "fidelity").iter().all(|said| said == "closed_form"));
    // The best twelve are there, under their own ids, in the order of the table.
    let mut best: Vec<(f64, String)> =
        values(&first, "iteration_time_s").into_iter().zip(texts(&first, "id")).collect();
    best.retain(|point| !point.0.is_nan());
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ids = texts(&again, "id");
    assert!(ids.len() >= 12 && best.iter().take(12).all(|point| ids.contains(&point.1)), "{ids:?}");
    let order: Vec<String> = texts(&first, "id").into_iter().filter(|id| ids.contains(id)).collect();
    assert_eq!(ids, order);
    assert_eq!(place.manifest("refined_rows"), ids.len() as u64);
    assert_eq!(place.manifest("refined_rows_done_by_this_run"), ids.len() as u64);

    let before = place.refined();
    assert!(before.len() > 1, "several files");
    assert!(place.run().contains("nothing was left to run"));
    assert_eq!(place.manifest("refined_rows_done_by_this_run"), 0);
    assert_eq!(place.refined(), before);
    let top = run(&["top", place.out().to_str().expect("UTF-8"), "--refined", "-n", "3"]);
    assert_eq!((code(&top), text(&top.stdout).lines().count()), (0, 4));
}

#[test]
fn refine_is_no_part_of_the_question() {
    let place = Place::with(TRAINING);
    place.run();
    let before = place.points();
    assert_eq!(code(&run(&["top", place.out().to_str().expect("UTF-8"), "--refined"])), 2);
    place.write(&format!("{TRAINING}refine: {{top: 3, by: {{npu_throughput: max}}}}\n"));
    assert!(place.run().contains("nothing was left to run"));
    assert_eq!(place.points(), before);
    assert!(place.manifest("refined_rows_done_by_this_run") > 0);
    // What is best may be asked otherwise: only what was not evaluated yet runs, and nothing is lost.
    place.write(&format!("{TRAINING}refine: {{top: 20}}\n"));
    place.run();
    let (rows, done) = (place.manifest("refined_rows"), place.manifest("refined_rows_done_by_this_run"));
    assert!(done < rows, "{done} of {rows}");
    let undisturbed = Place::with(&format!("{TRAINING}refine: {{top: 20}}\n"));
    undisturbed.run();
    assert_eq!(place.refined(), undisturbed.refined(), "bytes do not tell the history");
    place.write(&format!("{TRAINING}refine: {{top: 3, by: npu_throughput}}\n"));
    place.run();
    assert_eq!(place.manifest("refined_rows_done_by_this_run"), 0);
}

#[test]
fn refined_rows_are_found_by_id_after_an_edit() {
    let with = |yaml: &str| format!("{yaml}refine: {{top: 8}}\n");
    let place = Place::with(&with(TRAINING));
    place.run();
    let edited = with(&TRAINING.replace("zero: [0, 1]", "zero: [0, 1, 2]"));
    place.write(&edited);
    place.run();
    let (rows, done) = (place.manifest("refined_rows"), place.manifest("refined_rows_done_by_this_run"));
    assert!(done < rows, "{done} of {rows}");
    let undisturbed = Place::with(&edited);
    undisturbed.run();
    assert_ne!(undisturbed.refined(), BTreeMap::new());
    assert_eq!(place.refined(), undisturbed.refined());
    // Another requirement is another verdict: nothing is taken over.
    place.write(&format!("{edited}require: {{soon: iteration_time < 1 s}}\n"));
    place.run();
    assert_eq!(place.manifest("refined_rows"), place.manifest("refined_rows_done_by_this_run"));
    // Nor is it when all is to be done again.
    place.run_with(&["--fresh"]);
    assert_eq!(place.manifest("refined_rows"), place.manifest("refined_rows_done_by_this_run"));
}

#[test]
fn refined_rows_that_are_lost_or_damaged_are_done_again_and_no_others() {
    let place = Place::with(&format!("{TRAINING}refine: {{top: 24}}\n"));
    place.run();
    let before = place.refined();
    let (rows, path) = (place.manifest("refined_rows"), files(&place.out().join("refined")).expect("files").remove(0));
    assert!(rows > 8);
    fs::remove_file(&path).expect("a file to remove");
    place.run();
    assert_eq!(place.manifest("refined_rows_done_by_this_run"), 8);
    assert_eq!(place.refined(), before);
    let mut damaged = fs::read(&path).expect("a file");
    let middle = damaged.len() / 3;
    damaged[middle] ^= 1;
    fs::write(&path, damaged).expect("damage");
    place.run();
    assert_eq!(place.manifest("refined_rows_done_by_this_run"), 8);
    assert_eq!(place.refined(), before);
}

#[test]
fn a_refinement_that_is_killed_ends_with_the_same_bytes() {
    let yaml = format!("{TRAINING}refine: {{top: 40}}\n");
    let undisturbed = Place::with(&yaml);
    let started = Instant::now();
    undisturbed.run();
    let lasted = started.elapsed();
    let place = Place::with(&yaml);
    for round in 1..8 {
        let mut child = place.command(&["--quiet"]).spawn().expect("the program starts");
        sleep(lasted.mul_f64(f64::from(round) / 8.0).max(Duration::from_millis(5)));
        if child.try_wait().expect("a status").is_none() {
            child.kill().expect("SIGKILL");
        }
        child.wait().expect("an end");
    }
    place.run();
    assert_eq!(place.refined(), undisturbed.refined());
    assert_eq!(place.points(), undisturbed.points());
}

/// A collective whose messages may share links.
const MESSAGES: &str = "\
workload: {collective: all_reduce, size: 1 MiB}
cluster:
  congestion: [unaware, aware]
  network:
    inner: {block: ring, size: 4, bandwidth: 100 GB/s, hop_latency: 500 ns}
    outer: {block: ring, size: 2, bandwidth: 50 GB/s, hop_latency: 500 ns}
collectives: {local_reduction: false, multi_dim: all, rendezvous: [false, true], queues: [1, 2]}
rules: [ours, astra_sim]
fidelity: [closed_form, event_driven]
";

#[test]
fn what_only_messages_show_is_not_tried_with_the_closed_form() {
    let points = points(&sweep(MESSAGES));
    let closed = points.iter().filter(|inputs| fidelity(inputs) == Fidelity::ClosedForm);
    assert!(closed.clone().count() == 2 && closed.clone().all(|inputs| inputs.key(Id::MultiDim) < 2.0));
    assert_eq!(points.len(), 2 + 2 * 2 * 3 * 2 * 2);
    for inputs in &points {
        let aware = inputs.key(Id::Congestion) == 1.0;
        let result = evaluate(inputs).2;
        let refused = aware && inputs.key(Id::Rules) == 1.0;
        assert_eq!(result.err().map(|why| why.reason.name()), refused.then_some("congestion"), "{inputs:?}");
    }
}

#[test]
fn algorithms_and_windows_go_by_collective_then_by_dimension() {
    let yaml = MESSAGES
        .replace(
            "multi_dim: all, rendezvous: [false, true], queues: [1, 2]",
            "algorithm: direct, window: 3, all_gather_algorithm: ring",
        )
        .replace("  congestion: [unaware, aware]\n", "")
        .replace("size: 2,", "size: 2, algorithm: halving_doubling, window: 1,")
        .replace("rules: [ours, astra_sim]", "rules: ours");
    let system = system(&points(&sweep(&yaml))[0]);
    let [inner, outer] = [0, 1].map(|k| system.network.dims[k]);
    assert_eq!(system.algorithm(Collective::AllReduce, &inner), Algorithm::Direct);
    assert_eq!(system.algorithm(Collective::AllReduce, &outer), Algorithm::HalvingDoubling);
    assert_eq!(system.algorithm(Collective::AllGather, &outer), Algorithm::Ring);
    assert_eq!((system.collectives.window, inner.window, outer.window), (Some(3), None, Some(1)));
    let each = sweep(&format!("{yaml}each_dimension: {{algorithm: [ring, direct]}}\n"));
    let columns: Vec<&str> = each.columns.iter().map(|column| column.column.name.as_str()).collect();
    for name in ["window", "all_gather_algorithm", "dim0_algorithm", "dim1_window", "congestion", "multi_dim", "queues"]
    {
        assert!(columns.contains(&name), "{name}");
    }
    assert!(!columns.contains(&"all_reduce_algorithm"));
    assert_eq!(id_text(id(&points(&each)[0], &mut Vec::new())).len(), 13);
}

/// Networks of one and of two dimensions, and algorithms for them.
const LISTS: &str = "\
workload: {collective: all_reduce, size: 1 MiB}
define:
  one: {d1: {block: ring, size: 8, bandwidth: 100 GB/s, hop_latency: 500 ns}}
  two: {d1: {block: ring, size: 4, bandwidth: 100 GB/s}, d2: {block: switch, size: 2, bandwidth: 50 GB/s}}
network: [one, two]
collectives: {local_reduction: false, algorithm: [by_block, direct(2), direct, {by_dimension: [ring, direct(1)]}, {by_dimension: [ring]}]}
";

#[test]
fn algorithms_by_dimension_are_an_axis_and_a_list_that_does_not_fit_is_a_row_with_its_reason() {
    let place = Place::with(&format!("{LISTS}decide: {{compare: algorithm}}\n"));
    let said = place.run();
    assert!(said.contains("ring-direct(1)"), "{said}");
    let frame = all(&Folder::open(&place.out()).expect("results"));
    let column = |name: &str| texts(&frame, name);
    let rows: BTreeSet<_> = column("network").into_iter().zip(column("algorithm")).zip(column("reason")).collect();
    let row = |network: &str, algorithm: &str, reason: &str| ((network.into(), algorithm.into()), reason.into());
    let misfit = "algorithms by dimension";
    let mut expected = BTreeSet::from([
        row("one", "ring-direct(1)", misfit),
        row("one", "ring", ""),
        row("two", "ring-direct(1)", ""),
        row("two", "ring", misfit),
    ]);
    expected.extend(["one", "two"].into_iter().flat_map(|name| [row(name, "by_block", ""), row(name, "direct", "")]));
    assert_eq!(rows, expected);
    assert_eq!(column("id").into_iter().collect::<BTreeSet<_>>().len(), 10, "ids are unique");
    let frozen = fs::read_to_string(place.out().join("sweep.yaml")).expect("a sweep");
    assert_eq!(sweep(&frozen).identity, sweep(&place.text()).identity);
}

#[test]
fn a_list_is_what_its_dimensions_say_one_by_one() {
    let list = sweep(&LISTS.replace("[one, two]", "two").replace(
        "[by_block, direct(2), direct, {by_dimension: [ring, direct(1)]}, {by_dimension: [ring]}]",
        "{by_dimension: [ring, direct(1)]}",
    ));
    let lines = sweep(
        &LISTS
            .replace("[one, two]", "two")
            .replace(
                ", algorithm: [by_block, direct(2), direct, {by_dimension: [ring, direct(1)]}, {by_dimension: [ring]}]",
                "",
            )
            .replace("block: ring, size: 4", "block: ring, algorithm: ring, size: 4")
            .replace("block: switch", "block: switch, algorithm: direct(1)"),
    );
    let [list, lines] = [&list, &lines].map(|sweep| points(sweep)[0].clone());
    assert_eq!(system(&list), system(&lines));
    let ids = [&list, &lines].map(|inputs| id(inputs, &mut Vec::new()));
    assert_eq!(ids[0], ids[1]);
    assert_eq!(system(&list).network.dims[1].window, Some(1));
    let named = sweep(&format!("{LISTS}where: {{one: \"algorithm == 'ring-direct(1)' or algorithm == by_block\"}}\n"));
    assert_eq!(points(&named).len(), 4);
}

#[test]
fn what_changes_nothing_under_our_rules_is_told() {
    let said = |rules: &str, congestion: &str| {
        let yaml = MESSAGES
            .replace("multi_dim: all, rendezvous: [false, true], queues: [1, 2]", "active_chunks: [1, 4], queues: 2")
            .replace("congestion: [unaware, aware]", congestion)
            .replace("rules: [ours, astra_sim]", rules)
            .replace("fidelity: [closed_form, event_driven]", "fidelity: event_driven");
        sweep(&yaml).cautions.into_iter().map(|caution| caution.message).collect::<Vec<_>>()
    };
    let told = "`active_chunks` changes nothing under `rules: ours`: a dimension serves one chunk at a time";
    assert_eq!(said("rules: ours", "congestion: unaware"), [told]);
    assert_eq!(said("rules: [ours, astra_sim]", "congestion: unaware"), [told]);
    assert!(said("rules: astra_sim", "congestion: unaware").is_empty());
    assert!(said("rules: ours", "congestion: aware").is_empty());
}

#[test]
fn what_the_reference_halves_among_six_has_its_reason() {
    let place = Place::with(
        "\
workload: {collective: [all_reduce, all_to_all, broadcast], size: 1 MiB}
network: {a: {block: switch, size: [6, 8], bandwidth: 50 GB/s}}
collectives: {local_reduction: false, algorithm: halving_doubling}
rules: [ours, astra_sim]
fidelity: event_driven
",
    );
    place.run();
    let frame = all(&Folder::open(&place.out()).expect("results"));
    let reasons = texts(&frame, "reason");
    // An all-to-all is Bruck's, and a broadcast is not sent.
    let told = |column: &str| texts(&frame, column).into_iter().zip(&reasons).filter(|it| it.1 == "power of two");
    assert_eq!(told("collective").map(|it| it.0).collect::<Vec<_>>(), ["all_reduce"]);
    assert_eq!(told("rules").map(|it| it.0).collect::<Vec<_>>(), ["astra_sim"]);
    assert_eq!(reasons.iter().filter(|reason| !reason.is_empty()).count(), 1);
}

#[test]
fn a_dimension_of_one_carries_nothing() {
    let place = Place::with(
        "\
workload: {collective: all_reduce, size: 1 MiB}
npus: {from: 1, to: 8, times: 2}
network:
  inner: {block: fully_connected, size: 1, bandwidth: 50 GB/s}
  outer: {block: ring, size: rest, bandwidth: 50 GB/s, hop_latency: 500 ns}
collectives: {local_reduction: false, multi_dim: [hierarchical, per_dimension]}
fidelity: [closed_form, event_driven]
",
    );
    place.run();
    let frame = all(&Folder::open(&place.out()).expect("results"));
    assert_eq!(texts(&frame, "status"), ["feasible"; 16]);
}
