//! Are models what their authors say they are? Parameters of the presets.

use starsweep::run::vocabulary;
use starsweep::sweep::preset::kinds;
use starsweep::sweep::resolve;
use starsweep::workload::{Job, Transformer};

use crate::support::{evaluate, points, read};

/// A sweep of a model on one NPU.
fn one_npu(model: &str) -> String {
    format!(
        "model: {model}\nseq_len: 2048\nglobal_batch: 8 seq\nprecision: bf16\n\
         cluster: {{npu: H100-SXM-80GB, network: {{a: {{block: switch, size: 1, bandwidth: 1 GB/s}}}}}}\n"
    )
}

/// The model of a preset.
fn preset(name: &str) -> Transformer {
    let sweep = resolve(&one_npu(name), &[], &vocabulary()).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
    match evaluate(&points(&sweep)[0]).0 {
        Job::Training(training) => training.model,
        job => panic!("{name}: {job:?}"),
    }
}

/// What the comment of a preset says was counted: parameters, and per cent off the published total.
fn counted(file: &str, name: &str) -> Option<(f64, f64)> {
    let from = file.find(&format!("\n{name}:\n"))?;
    let comment = file[from..].split("\n  layers:").next()?.split_once("# Counted ")?.1;
    let (parameters, rest) = comment.split_once(", ")?;
    let (per_cent, rest) = rest.split_once(" % ")?;
    let sign = if rest.starts_with("below") { -1.0 } else { 1.0 };
    Some((parameters.parse().ok()?, sign * per_cent.parse::<f64>().ok()?))
}

#[test]
fn every_model_has_its_published_parameters_or_says_how_far_it_is_off() {
    const NEAR: f64 = 0.5;
    let file = read("src/sweep/presets/model.yaml");
    let models = &kinds().iter().find(|kind| kind.name == "model").expect("models").presets;
    assert!(models.len() >= 50, "{}", models.len());
    for entry in models {
        let name = &entry.key;
        let published = entry.node.get("parameters").and_then(|line| line.node.scalar()).expect("a published total");
        let published: f64 = published.parse().expect("a number");
        // The sequences of training, for learned positions: 1024 tokens, else 2048.
        let parameters = preset(name).parameters(if name.starts_with("GPT-2") { 1024 } else { 2048 });
        let off = 100.0 * (parameters / published - 1.0);
        match counted(&file, name) {
            Some((said, per_cent)) => {
                assert!(
                    (parameters / said - 1.0).abs() < 1e-3,
                    "{name}: {parameters:e}, and its comment says {said:e}"
                );
                assert!((off - per_cent).abs() < 0.051, "{name}: {off} %, and its comment says {per_cent} %");
                assert!(off.abs() > NEAR, "{name}: its comment is not needed: {off} %");
            }
            None => assert!(off.abs() <= NEAR, "{name}: {parameters:e}, {off} % off {published:e}"),
        }
    }
}
