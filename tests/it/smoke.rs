//! Does every file in `sweeps/` load, and do its first points run? Does every part appear somewhere?

use starsweep::run::vocabulary;
use starsweep::sweep::preset::kinds;
use starsweep::sweep::resolve;

use crate::support::{evaluate, read, root};

#[test]
fn every_sweep_loads_and_its_first_points_run() {
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("sweeps")).expect("sweeps") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).expect("a sweep");
        let sweep =
            resolve(&text, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()));
        assert!(sweep.cautions.is_empty(), "{}: {:#?}", path.display(), sweep.cautions);
        let mut cursor = sweep.space.cursor(0);
        for _ in 0..200 {
            if cursor.next_point(sweep.space.len()).is_none() {
                break;
            }
            let _ = evaluate(&cursor.inputs);
            cursor.step();
        }
    }
    assert!(files >= 2);
}

#[test]
fn every_model_of_ours_can_exist() {
    let models = kinds().iter().find(|kind| kind.name == "model").expect("models");
    for model in &models.presets {
        let file = format!(
            "model: {}\nseq_len: 2048\nglobal_batch: 8 seq\nprecision: bf16\n\
             cluster: {{npu: H100-SXM-80GB, network: {{a: {{block: switch, size: 1, bandwidth: 1 GB/s}}}}}}\n",
            model.key
        );
        resolve(&file, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{}: {errors:#?}", model.key));
    }
}

#[test]
fn the_quickstart_asks_what_the_readme_says() {
    let sweep = resolve(&read("sweeps/quickstart.yaml"), &[], &vocabulary()).expect("a sweep");
    let mut cursor = sweep.space.cursor(0);
    let mut points = 0;
    while cursor.next_point(sweep.space.len()).is_some() {
        points += 1;
        cursor.step();
    }
    assert!(points >= 20_000, "{points}");
}
