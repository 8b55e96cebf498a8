//! Does a fit find the constants that times were made with, and say what is wrong in its files?

use starsweep::run::calibrate::{Ask, Calibration, Constants, calibrate, constant, usual_constants};
use starsweep::run::validate::Validation;

use crate::support::{code, run, sweep, text};

const HEAD: &str =
    "row_id,layers,hidden,heads,ffn,gated_mlp,vocab,seq,gpus,gpu_type,interconnect,tp,pp,dp,micro_batch,global_batch";
const LINKS: &str = "NVLink3 + IB-HDR200";

/// Runs of several sizes and plans, each with what more there is in its cells.
fn table(head: &str, cells: impl Fn(usize) -> String) -> String {
    let plans =
        [(8, 1, 1, 8, 1), (16, 8, 1, 2, 2), (32, 2, 4, 4, 1), (64, 1, 1, 64, 4), (64, 4, 2, 8, 2), (128, 1, 2, 64, 1)];
    let row = |(k, (npus, tp, pp, dp, micro)): (usize, (u64, u64, u64, u64, u64))| {
        let batch = 2 * dp * micro;
        format!(
            "run{k},24,4096,32,16384,0,51200,2048,{npus},A100-SXM-80GB,{LINKS},{tp},{pp},{dp},{micro},{batch},{}\n",
            cells(k)
        )
    };
    let rows: String = plans.into_iter().enumerate().map(row).collect();
    format!("{HEAD},{head}\n{rows}")
}

/// Runs as they would be measured on a machine with such constants.
fn measured(efficiency: f64) -> String {
    let made = table("cluster.npu.gemm_efficiency", |_| efficiency.to_string());
    let made = Validation::of("made.csv", &made).expect("no mistake");
    table("measured_step_s", |k| made.cases[k].prediction.expect("a prediction").seconds.to_string())
}

fn fitted(text: &str, constants: &Constants) -> Calibration {
    let validation = Validation::of("runs.csv", text).expect("no mistake");
    calibrate(&validation, constants, &Ask::default()).expect("a fit")
}

#[test]
fn constants_that_times_were_made_with_are_found() {
    let constants =
        "constants:\n  - {key: gemm_efficiency, npu: A100-SXM-80GB}\n  - {key: efficiency, link: IB-HDR200}\n";
    let constants = constant::read("constants.yaml", constants).expect("no mistake");
    for efficiency in [0.4, 0.71] {
        let found = fitted(&measured(efficiency), &constants);
        let [npu, link] = found.constants.as_slice() else { panic!("{found:?}") };
        assert!((npu.after / efficiency - 1.0).abs() < 0.01, "{found:?}");
        assert!((link.after / link.before - 1.0).abs() < 0.01, "{found:?}");
        assert!(found.after.worst < 0.01 && found.before.mean > 0.05, "{found:?}");
        assert!(found.one_by_one.expect("few runs").worst < 0.02, "{found:?}");
    }
}

#[test]
fn two_runs_move_one_constant() {
    let runs = measured(0.5);
    let two = runs.lines().take(3).collect::<Vec<_>>().join("\n");
    let validation = Validation::of("two.csv", &two).expect("no mistake");
    let found = fitted(&two, &usual_constants(&validation));
    assert_eq!(found.constants.len(), 1);
    assert!((found.constants[0].after / 0.5 - 1.0).abs() < 0.01, "{found:?}");
}

#[test]
fn what_is_fitted_stands_in_a_sweep() {
    let runs = measured(0.5);
    let validation = Validation::of("runs.csv", &runs).expect("no mistake");
    let lines = fitted(&runs, &usual_constants(&validation)).presets();
    let machine = "cluster: {npu: A100-SXM-80GB-fitted, network: {node: {preset: NVLink3, size: 8}}}";
    let sweep = sweep(&format!("{lines}model: GPT-3-13B\nseq_len: 2048\nglobal_batch: 64 seq\n{machine}\n"));
    assert_eq!(sweep.space.len(), 1);
}

#[test]
fn a_group_that_is_left_out_is_predicted_all_the_same() {
    let output = run(&["calibrate", "--half", "fitted", "--leave-out", "vtrain", "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let groups = answer["groups"].as_array().expect("groups");
    let of = |group: &str, half: &str| groups.iter().find(|of| of["group"] == group && of["half"] == half);
    assert_eq!(of("bloom", "fitted").expect("a group")["fitted"], true);
    assert_eq!(of("bloom", "held_out").expect("a group")["fitted"], false);
    assert_eq!(of("vtrain", "fitted").expect("a group")["fitted"], false);
}

#[test]
fn the_constants_in_force_are_those_of_the_fit() {
    let output = run(&["calibrate", "--constants", "tests/data/measured/constants.yaml", "--half", "fitted", "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let constants = answer["constants"].as_array().expect("constants");
    assert!(constants.len() <= 24, "{} constants", constants.len());
    for constant in constants {
        let value = |name: &str| constant[name].as_f64().expect("a number");
        let moved = (value("after") / value("before")).ln().abs();
        assert!(moved < 0.1 * value("spread") + 0.002, "{constant}");
    }
}

#[test]
fn mistakes_in_a_file_of_constants_are_told_with_their_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.yaml");
    let constants = "constants:\n  - {key: gemm_eficiency, npu: A100-SXM-80GB}\n  - {key: efficiency, link: [IB-HDR20]}\n  - {npu: B200-SXM}\n";
    std::fs::write(&path, constants).expect("a file is written");
    let output = run(&["calibrate", "--constants", &path.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    for part in [
        "`gemm_eficiency` is no constant",
        "`link` knows no `IB-HDR20`",
        "a constant has no `key`",
        "mine.yaml:2",
        "mine.yaml:3",
    ] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

#[test]
fn a_group_that_is_not_there_is_a_wrong_flag() {
    let output = run(&["calibrate", "--leave-out", "nobody"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("there is no group `nobody`"), "{}", text(&output.stderr));
}

#[test]
fn a_table_of_ones_own_has_no_halves() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.csv");
    std::fs::write(&path, measured(0.5)).expect("a table is written");
    let output = run(&["calibrate", &path.display().to_string(), "--half", "fitted"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("has no halves"), "{}", text(&output.stderr));
    let output = run(&["calibrate", &path.display().to_string()]);
    let said = text(&output.stdout);
    assert!(
        said.contains("each without itself") && said.contains("A100-SXM-80GB-fitted: {preset: A100-SXM-80GB"),
        "{said}"
    );
}
