//! Is the plan search of `sweeps/calculon_gpt3_175b.yaml` as large as its page says, and the same on any number of threads?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use starsweep::run::vocabulary;
use starsweep::sweep::{Sweep, resolve};

use crate::support::{code, program, read, text};

const FILE: &str = "sweeps/calculon_gpt3_175b.yaml";
const NPUS: u64 = 4096;
const SEQUENCES: u64 = 1536;
const LAYERS: u64 = 96;

/// The search with some keys set over it.
fn search(settings: &[&str]) -> Sweep {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    resolve(&read(FILE), &settings, &vocabulary()).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// How many points a tp and a pp have, knob by knob.
fn points(tp: u64, pp: u64) -> u64 {
    let divisors = |number: u64| (1..=number).filter(|k| number.is_multiple_of(*k)).count() as u64;
    let dp = NPUS / (tp * pp);
    if dp == 0 || !SEQUENCES.is_multiple_of(dp) {
        return 0;
    }
    let chunks = if pp == 1 { 1 } else { divisors(LAYERS / pp) };
    let microbatches = divisors(SEQUENCES / dp);
    // What is sent between tensor ranks and between stages, and what of it runs beside computations.
    let communication = if tp == 1 { 1 } else { 3 * if pp == 1 { 2 } else { 3 } };
    let (zero, recompute, overlap_dp, offloads) = (2, 3, 2, 8);
    let orders = if tp == 1 && pp == 1 { 1 } else { 6 };
    chunks * microbatches * communication * zero * recompute * overlap_dp * offloads * orders
}

#[test]
fn the_search_is_as_large_as_its_file_says() {
    let degrees = [1, 2, 4, 8, 16, 32];
    let all: u64 = degrees.iter().flat_map(|&tp| degrees.map(|pp| points(tp, pp))).sum();
    let said = read(FILE);
    assert!(
        said.contains("5,248,512 of them points") && said.contains("373,800,960 numbers"),
        "the page of the search"
    );
    assert_eq!(all, 5_248_512);
    assert_eq!(search(&[]).space.len(), 373_800_960);
    for (tp, pp) in [(1, 32), (8, 1), (32, 32), (8, 1024), (3, 4)] {
        let sweep = search(&[&format!("plan.tp={tp}"), &format!("plan.pp={pp}")]);
        let mut cursor = sweep.space.cursor(0);
        let mut found = 0;
        while cursor.next_point(sweep.space.len()).is_some() {
            found += 1;
            cursor.step();
        }
        let expected = if degrees.contains(&tp) && degrees.contains(&pp) { points(tp, pp) } else { 0 };
        assert_eq!(found, expected, "tp {tp}, pp {pp}");
    }
}

/// The files of a folder's points with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.join("points")).expect("points").map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("a file"))
        })
        .collect()
}

#[test]
fn one_and_two_threads_find_the_same_plan_in_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let slice =
        ["plan.tp=8", "plan.pp=[2, 4]", "plan.zero=1", "plan.offload_weights=none", "plan.offload_optimizer=none"];
    let [one, two] = ["1", "2"].map(|threads| {
        let out = folder.path().join(threads);
        let mut command = program(&["run", FILE, "--threads", threads]);
        for setting in slice {
            command.args(["-s", setting]);
        }
        let output = command.arg("--out").arg(&out).output().expect("the program starts");
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        let best = program(&["top"]).arg(&out).output().expect("the program starts");
        (files(&out), text(&best.stdout))
    });
    assert!(one.0.len() > 2, "{} files are too few to be shared", one.0.len());
    assert_eq!(one, two);
    let best = one.1.lines().nth(1).expect("a plan");
    assert!(best.contains("selective"), "{best}");
}
