//! Are predictions near measured runs, and is what we say of them fair? The halves follow their rule, tables of ours are read,
//! mistakes in a user's table are told with their places.

use std::collections::BTreeMap;
use std::path::PathBuf;

use md5::{Digest as _, Md5};
use starsweep::input::Source;
use starsweep::run::validate::known::{self, Known};
use starsweep::run::validate::shipped::{RUNS, halves, single_node};
use starsweep::run::validate::table::Table;
use starsweep::run::validate::{Half, Validation, measurement};
use starsweep::sweep::key::{Default, KEYS};
use starsweep::sweep::preset;

use crate::support::{code, evaluations, read, run, text};

/// A user's table in a file of its own.
fn table(name: &str, content: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("a table is written");
    (folder, path)
}

const HEAD: &str =
    "row_id,layers,hidden,heads,ffn,gated_mlp,vocab,seq,gpus,gpu_type,tp,pp,dp,global_batch,measured_step_s";

#[test]
fn halves_follow_from_names_alone() {
    let known = Known::tables();
    let mut groups: BTreeMap<String, Vec<(Vec<u8>, String)>> = BTreeMap::new();
    for text in [RUNS.to_owned(), single_node()] {
        for run in measurement::read("a table of ours", &text, known).expect("no mistake") {
            let digest = Md5::digest(run.id.as_bytes()).to_vec();
            groups.entry(run.group).or_default().push((digest, run.id));
        }
    }
    let halves = halves();
    assert_eq!(halves.len(), groups.values().map(Vec::len).sum::<usize>());
    for (group, mut rows) in groups {
        rows.sort();
        for (k, (_, id)) in rows.iter().enumerate() {
            let half = if k % 2 == 0 { Half::Fitted } else { Half::HeldOut };
            assert_eq!(halves[id], half, "{id} of {group}");
        }
    }
}

/// What is published of one row alone: another framework, and gradients of 4 bytes from 28 February 2022 on.
const ONE_ROW: [&str; 2] = ["megascale-abl-baseline", "bloom-176b"];

#[test]
fn no_line_of_groups_is_for_one_row_of_several() {
    let rows: Vec<String> = halves().into_keys().collect();
    for line in read("tests/data/measured/groups.csv").lines().skip(1) {
        let begins = line.split(',').next().unwrap_or_default();
        let parts: Vec<&str> = begins.split('*').collect();
        let fits = |id: &&String| id.starts_with(parts[0]) && parts.iter().all(|part| id.contains(part));
        let is_alone = rows.iter().filter(fits).count() <= 1;
        let is_single = line.contains(",single,") || ONE_ROW.contains(&begins);
        assert!(!is_alone || is_single, "`{begins}` is for a row of its own");
    }
}

#[test]
fn shipped_rows_have_no_mistakes_and_most_a_prediction() {
    let validation = Validation::shipped().expect("no mistake");
    assert_eq!(validation.cases.len(), 1870);
    for case in &validation.cases {
        let says_why = case.error().is_some() || case.reason.is_some();
        assert!(says_why, "{} has neither a prediction nor a reason", case.run.id);
    }
}

/// The cells of a column of a table of ours.
fn cells(file: &str, column: &str) -> Vec<String> {
    let text = read(&format!("tests/data/measured/{file}"));
    let table = Table::read(&text, Source::Input(0)).expect("a table");
    table.rows.iter().map(|row| table.cell(row, column).unwrap_or_default().to_owned()).collect()
}

#[test]
fn tables_of_ours_name_what_is_there() {
    let rows: Vec<String> = halves().into_keys().collect();
    let groups = cells("groups.csv", "group");
    // `*` stands for anything.
    let fits = |id: &String, word: &str| {
        let (first, rest) = word.split_once('*').unwrap_or((word, ""));
        id.strip_prefix(first).is_some_and(|left| left.contains(rest))
    };
    let is_there = |word: &String| groups.contains(word) || rows.iter().any(|id| fits(id, word));
    let words = cells("bars.csv", "rows").into_iter().filter(|words| !words.starts_with("NVIDIA"));
    let words = words.flat_map(|words| words.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let shapes = [cells("shapes.csv", "row"), cells("shapes.csv", "against")].concat();
    for word in words.chain(shapes).chain(cells("doubtful.csv", "rows")) {
        assert!(is_there(&word), "there is no row or group `{word}`");
    }
    assert!(cells("peer_accuracy.csv", "row_id").iter().all(|id| rows.contains(id)));
    let npus = cells("machines.csv", "npu").into_iter().map(|npu| ("cluster.npu", npu));
    let links = cells("machines.csv", "links").into_iter().flat_map(|links| known::links(&links));
    for (kind, name) in npus.chain(links.map(|link| ("cluster.network.0", link))).filter(|named| !named.1.is_empty()) {
        assert!(preset::at(kind).is_some_and(|kind| kind.get(&name).is_some()), "there is no preset `{name}`");
    }
}

#[test]
fn what_an_allocator_keeps_is_that_of_the_fitted_half() {
    // BLOOM's plans: what the device's tool showed, less the reserve, over what we say lies there.
    let validation = Validation::shipped().expect("no mistake");
    let (gib, reserve) = (1_073_741_824.0, 4e9);
    let shares = validation.cases.iter().zip(&validation.halves).filter_map(|(case, half)| {
        let is_fitted = *half == Some(Half::Fitted) && case.run.group == "bloom";
        let measured = case.run.number("device_memory_gib").filter(|_| is_fitted)?;
        Some((measured * gib - reserve) / case.prediction?.memory.total().as_real() - 1.0)
    });
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    let middle = shares[shares.len() / 2];
    let key = KEYS.iter().find(|key| key.path == "software.cached").expect("the key");
    let Default::Is(in_force) = key.default else { panic!("it has a default") };
    assert!((middle - in_force).abs() < 0.015, "the fitted half says {middle:.3}, in force is {in_force}");
}

#[test]
fn whatever_is_far_off_has_a_line_that_says_what_is_known() {
    let said = text(&run(&["validate"]).stdout);
    assert!(!said.contains("not explained"), "{said}");
    assert!(said.contains("Groups that are not a third below the baseline"), "{said}");
}

#[test]
fn the_answer_for_programs_has_every_table() {
    let output = run(&["validate", "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for table in ["groups", "memory", "ranks", "ratios", "bars", "rows"] {
        assert!(answer[table].as_array().is_some_and(|rows| !rows.is_empty()), "`{table}` is empty");
    }
    let ranks = answer["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.iter().filter(|ranks| ranks["group"] == "vtrain").count(), 96);
}

#[test]
fn a_users_table_is_predicted() {
    let (_folder, path) =
        table("mine.csv", &format!("{HEAD}\na,24,2048,16,8192,0,51200,2048,8,A100-SXM-80GB,1,1,8,64,2.5\n"));
    let output = run(&["validate", &path.display().to_string(), "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(answer["rows"][0]["predicted_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{answer}");
    assert_eq!(answer["groups"][0]["error"]["rows"], 1);
    assert_eq!((&answer["groups"][0]["group"], &answer["bars"]), (&"measured".into(), &serde_json::Value::Null));
}

/// Rows under the columns of the published runs, each as the columns that it says.
fn published_columns(rows: &[&[(&str, &str)]]) -> String {
    let head = RUNS.lines().next().expect("a line of columns");
    let row = |said: &&[(&str, &str)]| {
        let cell = |column| said.iter().find(|said| said.0 == column).map_or("", |said| said.1);
        head.split(',').map(cell).collect::<Vec<_>>().join(",")
    };
    std::iter::once(head.to_owned()).chain(rows.iter().map(row)).collect::<Vec<_>>().join("\n")
}

/// NVIDIA's DLRM on a DGX A100 (tests/data/dlrm.md).
const RECOMMENDS: [(&str, &str); 6] = [
    ("row_id", "t3"),
    ("model", "DLRM-Criteo-T3"),
    ("gpus", "8"),
    ("gpu_type", "A100-SXM-80GB"),
    ("precision", "fp16"),
    ("global_batch", "65536"),
];

#[test]
fn a_recommendation_model_is_a_row_of_the_same_table() {
    let with = |more: &[(&'static str, &'static str)]| [&RECOMMENDS[..], more].concat();
    // 13.8 million samples a second on 8 NPUs; a sample is a token. 65,536 samples in 4.749 ms.
    let [rate, seconds] = [("tokens_per_s_per_gpu", "1725000"), ("measured_step_s", "0.004749")].map(|it| with(&[it]));
    let seconds: Vec<_> = seconds.into_iter().map(|it| if it.0 == "row_id" { ("row_id", "t") } else { it }).collect();
    let (_folder, path) = table("mine.csv", &published_columns(&[&rate, &seconds]));
    let path = path.display().to_string();
    let output = run(&["validate", &path, "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |row: usize, name: &str| answer["rows"][row][name].as_f64().expect("a number");
    assert!((number(0, "measured_s") / number(1, "measured_s") - 1.0).abs() < 1e-4, "{answer}");
    let asked = "model: DLRM-Criteo-T3\nglobal_batch: 65536 samples\nprecision: fp16\n\
                 collectives: {chunks: 8, local_reduction: false}\n\
                 cluster: {npu: A100-SXM-80GB, network: {node: {preset: NVLink3, size: 8}}}\n";
    assert_eq!(number(0, "predicted_s"), evaluations(asked)[0].report.total.as_seconds());
    let fitted = run(&["calibrate", &path]);
    assert_eq!(code(&fitted), 0, "{}", text(&fitted.stderr));
    // Columns of transformers need not be there.
    let columns = RECOMMENDS.map(|it| it.0).join(",");
    let cells = RECOMMENDS.map(|it| it.1).join(",");
    let (_folder, path) = table("few.csv", &format!("{columns},measured_step_s\n{cells},0.004749\n"));
    assert_eq!(code(&run(&["validate", &path.display().to_string()])), 0);
}

#[test]
fn what_a_recommendation_model_does_not_have_is_told_at_its_cell() {
    let more = [("layers", "24"), ("tp", "2"), ("pp", "1"), ("micro_batch", "64"), ("measured_step_s", "0.005")];
    let (_folder, path) = table("mine.csv", &published_columns(&[&[&RECOMMENDS[..], &more].concat()]));
    let output = run(&["validate", &path.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    for column in ["layers", "tp", "micro_batch"] {
        assert!(
            said.contains(&format!("`{column}` is a column of transformers, and `DLRM-Criteo-T3` is a `dlrm`")),
            "{said}"
        );
    }
    assert!(said.contains("3 mistakes"), "{said}");
    // Degrees that it cannot have are told by the point itself.
    let (_folder, path) =
        table("mine.csv", &published_columns(&[&[&RECOMMENDS[..], &[("dp", "4"), ("measured_step_s", "1")]].concat()]));
    let output = run(&["validate", &path.display().to_string(), "--rows"]);
    assert!(text(&output.stdout).contains("no such point: world size"), "{}", text(&output.stdout));
}

#[test]
fn every_mistake_of_a_table_is_told_with_its_place() {
    let rows = "a,24,many,16,8192,0,51200,2048,8,A100-SXM-80GB,1,1,8,64,2.5\n\
                a,24,2048,16,8192,0,51200,2048,8,A100-SXM-80GB,1,1,8,64,-1\n";
    let (_folder, path) = table("mine.csv", &format!("{HEAD}\n{rows}"));
    let output = run(&["validate", &path.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    for part in
        ["`hidden` takes a whole number, not `many`", "mine.csv:2:6", "a number above 0, not `-1`", "there twice"]
    {
        assert!(said.contains(part), "{said} lacks {part}");
    }
    assert!(said.contains("3 mistakes; nothing was predicted"), "{said}");
}

#[test]
fn what_the_language_does_not_know_is_told_at_its_cell() {
    let rows = "a,24,2048,16,8192,0,51200,2048,8,A100-SXM-8GB,1,1,8,64,2.5,NVLink3\n\
                b,24,2048,16,8192,0,51200,2048,8,A100-SXM-80GB,1,1,8,64,2.5,\n";
    let (_folder, path) = table("mine.csv", &format!("{HEAD},interconnect\n{rows}"));
    let output = run(&["validate", &path.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("knows no `A100-SXM-8GB`") && said.contains("mine.csv:2"), "{said}");
}

#[test]
fn a_column_that_is_missing_is_named() {
    let (_folder, path) = table("mine.csv", "row_id,layers\na,24\n");
    let output = run(&["validate", &path.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("has no column `hidden`") && said.contains("has no column `gpu_type`"), "{said}");
}

#[test]
fn bars_that_are_met_stay_met() {
    const NOT_YET: [(&str, &str); 4] = [
        ("selective recomputation 22B to 1T", "mean"),
        ("torchtitan", "mean"),
        ("SC'21: its ZeRO-3 rows", "mean"),
        ("BLOOM", "memory"),
    ];
    let output = run(&["validate", "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let bars = answer["bars"].as_array().expect("bars");
    assert!(bars.len() >= 20, "{} bars", bars.len());
    for bar in bars {
        let known = NOT_YET.iter().any(|known| bar["what"] == known.0 && bar["measure"] == known.1);
        assert!(known || bar["met"] == true, "{bar}");
    }
}
