//! Does every prediction go through the measured run? What it changes, what it leaves alone, and what it may not be.

use std::collections::BTreeMap;
use std::path::Path;

use starsweep::run::vocabulary;
use starsweep::sweep::{Fidelity, point, resolve};

use crate::metrics::{number, rows};
use crate::support::{code, points, run, sweep, text};

/// Plans of a small model on two nodes.
pub const PLANS: &str = "
model: {layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, mlp: gated, vocab: 32000}
seq_len: 4096
global_batch: 32 seq
cluster:
  npu: {preset: H100-SXM-80GB, power: 700 W}
  network:
    node: {block: switch, size: 8, bandwidth: 450 GB/s}
    fabric: {block: switch, size: 2, bandwidth: 50 GB/s}
plan: {tp: [1, 2, 4, 8], pp: [1, 2, 4], micro_batch_size: [1 seq, 2 seq], recompute: [none, full], zero: 1}
";
/// The plan of the run that is measured.
pub const TODAY: &str = "tp: 4, pp: 2, micro_batch_size: 1 seq, recompute: none";

type Row = BTreeMap<String, String>;

/// The plans with an anchor.
fn anchored(measured: &str) -> String {
    format!("{PLANS}anchor: {{today: {{{TODAY}, {measured}}}}}\n")
}

fn table(yaml: &str) -> Vec<Row> {
    rows(tempfile::tempdir().expect("a folder").path(), yaml)
}

/// The row of the plan that is measured.
fn today(rows: &[Row]) -> &Row {
    let is = |row: &&Row| {
        [("tp", "4"), ("pp", "2"), ("micro_batch_size_seq", "1"), ("recompute", "none")]
            .iter()
            .all(|it| row[it.0] == it.1)
    };
    rows.iter().find(is).expect("a plan of the sweep")
}

/// Columns of rates: they are divided where times are multiplied.
const RATES: [&str; 5] = ["mfu", "hfu", "throughput_tok_per_s", "npu_throughput_tok_per_s", "npu_rate_flops_per_s"];
/// Columns of times that are inputs.
const INPUTS: [&str; 2] = ["endpoint_delay_s", "hop_latency_s"];

fn is_time(column: &str) -> bool {
    let is_time = column.ends_with("_s") && !column.ends_with("_per_s") || column.ends_with("energy_joules");
    is_time && !INPUTS.iter().any(|input| column.ends_with(input))
}

#[test]
fn a_run_that_took_what_is_predicted_changes_nothing() {
    let plain = table(PLANS);
    let predicted = today(&plain);
    let measured = format!(
        "iteration_time: {} s, peak_memory: {} B",
        predicted["iteration_time_s"], predicted["peak_memory_bytes"]
    );
    assert_eq!(table(&anchored(&measured)), plain);
}

#[test]
fn a_run_that_took_twice_as_long_doubles_every_time_and_halves_every_rate() {
    let plain = table(PLANS);
    let twice = 2.0 * number(today(&plain), "iteration_time_s");
    let carried = table(&anchored(&format!("iteration_time: {twice} s")));
    assert_eq!(number(today(&carried), "iteration_time_s"), twice);
    let mut looked_at = 0;
    for (before, after) in plain.iter().zip(&carried) {
        for (column, cell) in before {
            let (found, value) = (&after[column], cell.parse::<f64>());
            let factor = match column.as_str() {
                column if RATES.contains(&column) => 0.5,
                column if is_time(column) => 2.0,
                "token_energy_joules_per_tok" => 2.0,
                // A ratio of times, next to what rounding to a picosecond leaves.
                "gain_if_free" => 1.0,
                _ => {
                    assert_eq!(found, cell, "{column}");
                    continue;
                }
            };
            match value {
                Ok(0.0) | Err(_) => assert_eq!(found, cell, "{column}"),
                Ok(value) => assert!((number(after, column) / (factor * value) - 1.0).abs() < 1e-9, "{column}"),
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 20 * plain.len());
}

#[test]
fn what_memory_is_not_seen_decides_what_fits() {
    let plain = table(PLANS);
    let predicted = number(today(&plain), "peak_memory_bytes");
    let fits = |rows: &[Row]| rows.iter().filter(|row| row["status"] == "feasible").count();
    let fullest = plain.iter().filter(|row| row["status"] == "feasible").map(|row| number(row, "memory_margin_bytes"));
    let margin = fullest.fold(f64::INFINITY, f64::min);
    let with = |offset: f64| {
        let seconds = &today(&plain)["iteration_time_s"];
        table(&anchored(&format!("iteration_time: {seconds} s, peak_memory: {} B", predicted + offset)))
    };
    // A byte less than there is, and a byte more.
    let [before, behind] = [margin - 1.0, margin + 1.0].map(with);
    assert_eq!(fits(&before), fits(&plain));
    assert_eq!(fits(&behind), fits(&plain) - 1);
    let refused = behind.iter().find(|row| row["reason"] == "memory").expect("a plan that does not fit");
    assert_eq!(number(refused, "demand") - number(refused, "bound"), 1.0);
    let usable = number(refused, "local_capacity_bytes") - number(refused, "memory_reserve_bytes");
    assert_eq!(number(refused, "bound"), usable);
    for (row, other) in plain.iter().zip(&before).filter(|pair| pair.0["status"] == "feasible") {
        let more = number(other, "peak_memory_bytes") - number(row, "peak_memory_bytes");
        let less = number(row, "memory_margin_bytes") - number(other, "memory_margin_bytes");
        assert_eq!((more, less), (margin - 1.0, margin - 1.0));
        assert_eq!(row["weights_bytes"], other["weights_bytes"]);
    }
}

#[test]
fn a_run_that_does_not_fit_by_our_account_makes_room_for_others() {
    let tight = PLANS.replace("H100-SXM-80GB,", "H100-SXM-80GB, hbm: 8 GB,");
    let before = table(&format!("{tight}anchor: {{today: {{{TODAY}, iteration_time: 1 s}}}}\n"));
    assert_eq!(today(&before)["reason"], "memory");
    let (needs, has) = (number(today(&before), "demand"), number(today(&before), "bound"));
    let yaml = format!("{tight}anchor: {{today: {{{TODAY}, iteration_time: 1 s, peak_memory: 3.9 GB}}}}\n");
    let after = table(&yaml);
    assert_eq!(today(&after)["status"], "feasible");
    assert_eq!(number(today(&after), "peak_memory_bytes"), 3.9e9);
    let said = sweep(&yaml).cautions;
    assert!(said[0].message.starts_with("`today` ran, and does not fit by our account"), "{said:?}");
    assert!(needs > has && has == 4e9);
}

#[test]
fn each_evaluator_goes_through_the_run_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let both = format!("{}fidelity: [closed_form, event_driven]\n", anchored("iteration_time: 900 ms"));
    let found = rows(folder.path(), &both);
    let of_today: Vec<f64> = found
        .iter()
        .filter(|row| {
            today(std::slice::from_ref(today(&found)))["id"] == row["id"] || row["tp"] == "4" && row["pp"] == "2"
        })
        .filter(|row| row["micro_batch_size_seq"] == "1" && row["recompute"] == "none")
        .map(|row| number(row, "iteration_time_s"))
        .collect();
    assert_eq!(of_today.len(), 2);
    assert!(of_today.iter().all(|seconds| (seconds / 0.9 - 1.0).abs() < 1e-9), "{of_today:?}");
    let anchor = sweep(&both).anchor.expect("an anchor");
    let [closed, driven] = Fidelity::ALL.map(|fidelity| anchor.factor(fidelity));
    assert!(closed != driven && (closed / driven - 1.0).abs() < 0.1, "{closed} {driven}");
    // Only those that are used are asked.
    let anchor = sweep(&anchored("iteration_time: 900 ms")).anchor.expect("an anchor");
    assert!(anchor.predicted[0].is_some() && anchor.predicted[1].is_none());
}

/// A run of a file into a folder.
fn answer(folder: &Path, yaml: &str, more: &[&str]) -> String {
    let (file, out) = (folder.join("a.yaml"), folder.join("out"));
    std::fs::write(&file, yaml).expect("a file");
    let paths = [file, out].map(|path| path.display().to_string());
    let output = run(&[&["run", &paths[0], "--out", &paths[1], "--csv"], more].concat());
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_run_has_a_line_that_others_are_measured_against() {
    let folder = tempfile::tempdir().expect("a folder");
    let yaml = format!(
        "{}decide: {{compare: plan, baseline: today}}\n",
        anchored("iteration_time: 900 ms, peak_memory: 30 GB")
    );
    let said = answer(folder.path(), &yaml, &[]);
    assert!(said.contains("anchor today: predicted ") && said.contains("measured 900 ms: all times x "), "{said}");
    assert!(said.contains("; memory + "), "{said}");
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    let line = |id: &str| lines.iter().find(|line| line.first() == Some(&id)).expect("a line");
    let header = line("id");
    let place = header.iter().position(|&word| word == "vs").expect("a column");
    assert_eq!(header[place + 1], "today");
    // A value and its unit are two words.
    let at = place + 1;
    assert_eq!((line("today")[at], line("today").last()), ("1", Some(&"measured")));
    let mut reader = csv::Reader::from_path(folder.path().join("out/points.csv")).expect("a table");
    let rows: Vec<Row> = reader.deserialize().map(|row| row.expect("a row")).collect();
    let best = rows.iter().min_by(|a, b| number(a, "iteration_time_s").total_cmp(&number(b, "iteration_time_s")));
    let best = best.expect("a plan");
    let ratio: f64 = line(&best["id"])[at].parse().expect("a number");
    assert!((ratio - number(best, "iteration_time_s") / 0.9).abs() < 1e-3);
    let mut reader = csv::Reader::from_path(folder.path().join("out/anchor.csv")).expect("a table");
    let measured: Vec<Row> = reader.deserialize().map(|row| row.expect("a row")).collect();
    assert_eq!(number(&measured[0], "iteration_time_s"), 0.9);
    assert_eq!(number(&measured[0], "peak_memory_bytes"), 30e9);
    assert_eq!(measured[0]["id"], today(&rows)["id"]);
    let preview = run(&["preview", &folder.path().join("a.yaml").display().to_string()]);
    assert!(text(&preview.stdout).contains("anchor today: predicted "));
}

#[test]
fn another_measurement_is_another_sweep_and_known_rows_are_not_those_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let driven = |yaml: &str| format!("{yaml}fidelity: event_driven\n");
    let plain = answer(folder.path(), &driven(PLANS), &[]);
    assert!(plain.contains("feasible"));
    let with = |measured: &str| answer(folder.path(), &driven(&anchored(measured)), &[]);
    let first = with("iteration_time: 900 ms");
    assert!(
        first.contains("another version of this sweep") && !first.contains("known from an earlier version"),
        "{first}"
    );
    assert!(with("iteration_time: 900 ms").contains("nothing was left to run"));
    assert!(with("iteration_time: 0.9 s").contains("nothing was left to run"));
    assert!(!with("iteration_time: 800 ms").contains("known from an earlier version"));
    // What is judged by the same run is known.
    let fewer = anchored("iteration_time: 800 ms").replace("pp: [1, 2, 4]", "pp: [1, 2]");
    assert!(answer(folder.path(), &driven(&fewer), &[]).contains("known from an earlier version"));
    let again = answer(folder.path(), &driven(PLANS), &[]);
    assert!(again.contains("are used again"), "{again}");
}

/// The mistakes and cautions of a sweep, a line each.
fn said(yaml: &str) -> Vec<String> {
    let found = match resolve(yaml, &[], &vocabulary()) {
        Ok(sweep) => sweep.cautions,
        Err(found) => found,
    };
    found.into_iter().map(|diagnostic| diagnostic.message).collect()
}

#[test]
fn what_is_no_measured_run_is_an_error_with_its_reason() {
    let first = |anchor: &str| said(&format!("{PLANS}anchor: {anchor}\n")).remove(0);
    let time = "iteration_time: 1 s";
    let open = first(&format!("{{today: {{tp: 4, recompute: none, {time}}}}}"));
    assert_eq!(open, "the anchor `today` leaves open `plan.pp`, `plan.micro_batch_size`");
    let plan = first(&format!("{{today: {{{TODAY}, tpp: 4, {time}}}}}"));
    assert_eq!(plan, "`plan` has no key `tpp`");
    let unit = first(&format!("{{today: {{{TODAY}, iteration_time: 1 GB}}}}"));
    assert_eq!(unit, "`iteration_time` is a time, not an amount of data");
    assert_eq!(first(&format!("{{today: {{{TODAY}}}}}")), "the anchor `today` has no `iteration_time`");
    let typo = resolve(&anchored("iteration_tme: 1 s"), &[], &vocabulary()).expect_err("a mistake");
    assert_eq!(typo[0].help.as_deref(), Some("did you mean `iteration_time`?"));
    let two = first(&format!("{{today: {{{TODAY}, {time}}}, then: {{{TODAY}, {time}}}}}"));
    assert_eq!(two, "an anchor is one measured run: it has more than one name");
    let world = first(&format!("{{today: {{tp: 3, pp: 2, micro_batch_size: 1 seq, recompute: none, {time}}}}}"));
    assert_eq!(world, "the anchor `today` is no point of this sweep: world size");
    let heads = first(&format!("{{today: {{tp: 16, pp: 1, micro_batch_size: 64 seq, recompute: none, {time}}}}}"));
    assert!(heads.starts_with("the anchor `today` cannot be by our account: "), "{heads}");
    assert_eq!(first(&format!("{{today: {{{TODAY}, where: 1, {time}}}}}")), "`where` cannot stand in an anchor");
    assert_eq!(first("today"), "an anchor is a name with what was measured behind it");
    let collective = "workload: {collective: all_reduce, size: 1 GB}\ncollectives: {local_reduction: false}\nnetwork: {a: {block: ring, size: 8, bandwidth: 450 GB/s}}\n\
                      anchor: {today: {iteration_time: 1 s}}\n";
    assert_eq!(said(collective), ["an anchor is a step of training, and there is none in this sweep"]);
}

#[test]
fn a_run_names_its_row_and_its_machine_and_holds_for_all() {
    let zip =
        "zip: {job: {short: {seq_len: 2048, global_batch: 64 seq}, long: {seq_len: 8192, global_batch: 16 seq}}}\n";
    let jobs = PLANS.replace("seq_len: 4096\nglobal_batch: 32 seq\n", zip);
    let with = |more: &str| format!("{jobs}anchor: {{today: {{{TODAY}, {more}iteration_time: 1 s}}}}\n");
    assert_eq!(said(&with("")), ["the anchor `today` leaves open `job`"]);
    assert_eq!(said(&with("job: shrt, ")), ["`job` has no row `shrt`"]);
    assert_eq!(said(&with("job: long, ")), ["`today` was measured at one value of `job`, and holds for all"]);
    let npus = PLANS.replace("{preset: H100-SXM-80GB, power: 700 W}", "[H100-SXM-80GB, A100-SXM-80GB]");
    let with = |more: &str| format!("{npus}anchor: {{today: {{{TODAY}, {more}iteration_time: 1 s}}}}\n");
    assert_eq!(said(&with("")), ["the anchor `today` leaves open `cluster.npu`"]);
    let held = ["`today` was measured at one value of `cluster.npu`, and holds for all"];
    assert_eq!(said(&with("npu: A100-SXM-80GB, ")), held);
    assert_eq!(said(&with("cluster.npu: A100-SXM-80GB, ")), held);
}

#[test]
fn memory_that_is_far_from_the_account_is_told() {
    let predicted = number(today(&table(PLANS)), "peak_memory_bytes");
    let said = |share: f64| said(&anchored(&format!("iteration_time: 1 s, peak_memory: {} B", share * predicted)));
    assert_eq!([0.7, 1.0, 1.45].map(|share| said(share).len()), [0; 3]);
    for share in [0.5, 1.6] {
        assert!(said(share)[0].ends_with("the difference is added to every point"), "{share}");
    }
}

#[test]
fn a_run_has_the_id_of_its_point_whatever_the_sweep_holds_fixed() {
    let id = |more: &str| {
        let sweep = sweep(&format!("{PLANS}anchor: {{today: {{{TODAY}, {more}iteration_time: 1 s}}}}\n"));
        let row = starsweep::run::anchor::row(&sweep).expect("a row").expect("a row of the run");
        row.column("id").and_then(|ids| Ok(ids.str()?.get(0).map(str::to_owned))).expect("ids").expect("an id")
    };
    let point = |zero: u32, batch: u32| {
        let [pp, plan] = ["pp: [1, 2, 4]", "tp: [1, 2, 4, 8]"];
        let yaml = PLANS.replace(plan, "tp: 4").replace(pp, "pp: 2").replace("[1 seq, 2 seq]", "1 seq");
        let yaml = yaml.replace("[none, full]", "none").replace("zero: 1", &format!("zero: {zero}"));
        let sweep = sweep(&yaml.replace("32 seq", &format!("{batch} seq")));
        String::from_utf8(point::id_text(sweep.id(&points(&sweep)[0], &mut Vec::new())).to_vec()).expect("text")
    };
    assert_eq!(id(""), point(1, 32));
    assert_eq!(id("zero: 0, "), point(0, 32));
    assert_eq!(id("zero: 0, global_batch: 64 seq, "), point(0, 64));
}

#[test]
fn a_measurement_may_be_told_beside_the_file() {
    let over = ["anchor.today.iteration_time=2 s".to_owned()];
    let sweep = resolve(&anchored("iteration_time: 1 s"), &over, &vocabulary()).expect("a sweep");
    assert_eq!(sweep.anchor.expect("an anchor").seconds, 2.0);
}

#[test]
fn a_frozen_sweep_has_its_anchor() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = rows(folder.path(), &anchored("iteration_time: 900 ms, peak_memory: 30 GB"));
    let frozen = std::fs::read_to_string(folder.path().join("out/sweep.yaml")).expect("a frozen sweep");
    assert_eq!(table(&frozen), first);
}
