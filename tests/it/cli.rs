//! The program as a person meets it: help, exit codes, whole runs.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{code, run, segments, text};

#[test]
fn every_subcommand_has_help_and_nothing_is_a_wrong_call() {
    for subcommand in ["run", "preview", "top", "pareto", "query", "simulate", "list"] {
        assert_eq!(code(&run(&[subcommand, "--help"])), 0);
    }
    assert_eq!(code(&run(&[])), 2);
    assert_eq!(code(&run(&["rnu"])), 2);
}

#[test]
fn a_file_that_cannot_be_read_ends_as_any_mistake_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let png = file("image.yaml", b"\x89PNG\r\n\x1a\n");
    let large = file("large.yaml", &vec![b'#'; 20 << 20]);
    let wrong = file("wrong.yaml", b"modle: GPT-3-175B\n");
    let missing = folder.path().join("missing.yaml").to_str().expect("UTF-8").to_owned();
    for name in [png, large, wrong, missing, folder.path().to_str().expect("UTF-8").to_owned()] {
        let output = run(&["run", &name]);
        let said = text(&output.stderr);
        let last = said.lines().last().expect("a line");
        let closing = last.ends_with(&format!("in `{name}`; nothing was run or written"));
        assert!(code(&output) == 2 && closing, "{said}");
    }
}

#[test]
fn where_nothing_is_feasible_it_says_what_is_nearest_and_exits_with_3() {
    let out = tempfile::tempdir().expect("a folder");
    let output =
        run(&["run", "tests/data/reader_infeasible.yaml", "--out", out.path().join("r").to_str().expect("UTF-8")]);
    assert_eq!(code(&output), 3);
    let said = text(&output.stdout);
    assert!(said.contains("nearest: this point lacks") && said.contains("what would help: zero"), "{said}");
}

#[test]
fn where_nothing_is_left_the_rules_are_named() {
    let out = tempfile::tempdir().expect("a folder");
    let said = |more: &str| {
        let out = out.path().join("r");
        let output = run(&[
            "run",
            "tests/data/reader_feasible.yaml",
            "--fresh",
            "--out",
            out.to_str().expect("UTF-8"),
            "-s",
            more,
        ]);
        assert_eq!(code(&output), 3, "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let none = said("where={none: tp > 1000000}");
    assert!(none.contains("0 points") && none.contains("none: tp > 1000000"), "{none}");
    let unmet = said("require={fast: iteration_time < 1 ns, small: npus < 0}");
    assert!(unmet.contains("required: fast: iteration_time < 1 ns"), "{unmet}");
    let row = unmet.lines().find(|line| line.trim_start().starts_with("fast "));
    assert!(row.is_some_and(|row| row.contains(" s")), "{unmet}");
}

#[test]
fn a_finished_folder_answers_top_pareto_query_and_csv() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("r").to_str().expect("UTF-8").to_owned();
    let output = run(&["run", "tests/data/reader_feasible.yaml", "--out", &out, "--csv"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert!(text(&output.stdout).lines().count() <= 40);
    assert!(segments(folder.path().join("r").as_path()).len() > 1);
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(format!("{out}/manifest.json")).expect("a manifest")).expect("JSON");
    for key in [
        "starsweep",
        "physics_version",
        "format_version",
        "identity",
        "command",
        "host",
        "threads",
        "started_unix_s",
        "finished_unix_s",
        "parts",
        "parts_done_by_this_run",
        "rows",
        "counts",
    ] {
        assert!(!manifest[key].is_null(), "the manifest lacks `{key}`");
    }
    let rows = manifest["rows"].as_u64().expect("a count");
    let counted: u64 = manifest["counts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|count| count["rows"].as_u64().expect("a count"))
        .sum();
    assert_eq!(counted, rows);
    assert_eq!(text(&fs::read(format!("{out}/points.csv")).expect("CSV")).lines().count() as u64, rows + 1);

    let top = run(&["top", &out, "-n", "3", "--min", "iteration_time"]);
    assert_eq!(text(&top.stdout).lines().count(), 4);
    let front = run(&["pareto", &out, "-n", "1000"]);
    assert_eq!(code(&front), 0);
    let members = fs::read_to_string(format!("{out}/pareto.csv")).expect("CSV").lines().count();
    assert_eq!(text(&front.stdout).lines().count(), members, "{}", text(&front.stdout));
    let wrong = run(&["top", &out, "--min", "iteration_tme"]);
    assert!(code(&wrong) == 2 && text(&wrong.stderr).contains("did you mean `iteration_time_s`?"));
    let texts = run(&["pareto", &out, "--min", "model"]);
    assert!(code(&texts) == 2 && text(&texts.stderr).contains("`model` holds no numbers"), "{}", text(&texts.stderr));
    assert_eq!(code(&run(&["top", &out, "-n", "0"])), 2);
    if cfg!(feature = "query") {
        let answer = run(&["query", &out, "SELECT count(*) AS n FROM points", "--csv"]);
        assert_eq!(text(&answer.stdout), format!("n\n{rows}\n"), "{}", text(&answer.stderr));
    }

    // The frozen file asks the same question.
    let again = folder.path().join("again").to_str().expect("UTF-8").to_owned();
    assert_eq!(code(&run(&["run", &format!("{out}/sweep.yaml"), "--out", &again, "--quiet"])), 0);
    let bytes = |out: &str| {
        segments(std::path::Path::new(out)).iter().map(|file| fs::read(file).expect("a file")).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&out), bytes(&again));
}

#[test]
fn objectives_are_those_typed_in_their_order_else_those_of_the_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("r").to_str().expect("UTF-8").to_owned();
    let objectives = "decide={objectives: {mfu: max, npus: min}}";
    let output = run(&["run", "tests/data/reader_feasible.yaml", "--out", &out, "--quiet", "-s", objectives]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    // What a finished run writes is not there after an interrupted one.
    fs::remove_file(format!("{out}/manifest.json")).expect("a manifest");
    let header = |args: &[&str]| {
        let said = text(&run(&[&["top", &out], args].concat()).stdout);
        let words = said.lines().next().expect("a header").split_whitespace().take(2);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(header(&[]), ["mfu", "npus"]);
    assert_eq!(header(&["--max", "dp", "--min", "iteration_time"]), ["dp", "iteration_time_s"]);
    assert_eq!(header(&["--min", "iteration_time", "--max", "dp"]), ["iteration_time_s", "dp"]);
}

#[test]
fn a_preview_adds_up() {
    let said = text(&run(&["preview", "sweeps/quickstart.yaml"]).stdout);
    let number = |line: &str| {
        line.split_whitespace().find_map(|word| word.replace(',', "").parse::<u64>().ok()).expect("a number")
    };
    let product = said.lines().find(|line| line.starts_with("product")).map(number).expect("the product");
    let parts = |what: &str| said.lines().filter(|line| line.trim_start().starts_with(what)).map(number).sum::<u64>();
    assert_eq!(product, parts("not tried") + parts("left"), "{said}");
    assert_eq!(parts("left"), parts("cannot be") + parts("can be"), "{said}");
}

#[test]
fn a_preview_of_a_million_million_points_is_exact_in_the_product_and_says_what_is_a_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("huge.yaml");
    let yaml = "workload: {collective: all_reduce, size: {from: 1 MB, to: 10000 MB, step: 1 MB}}\n\
                network: {a: {block: ring, size: 8, bandwidth: {from: 1 GB/s, to: 10000 GB/s, step: 1 GB/s}}}\n\
                collectives: {local_reduction: false, chunks: {from: 1, to: 10000, step: 1}}\nwhere: {odd: chunks % 2 == 1}\n";
    fs::write(&file, yaml).expect("a file");
    let begun = Instant::now();
    let output = run(&["preview", file.to_str().expect("UTF-8")]);
    let lasted = begun.elapsed();
    let said = text(&output.stdout);
    assert!(said.contains("a sample of") && said.contains("+-"), "{said}");
    assert!(said.lines().any(|line| line == "product = 1,000,000,000,000"), "{said}");
    // Nothing of the sample is left, so at most about 3 / 200,000 of the product is.
    let none = run(&["preview", file.to_str().expect("UTF-8"), "-s", "where={never: chunks < 1}"]);
    assert!(text(&none.stdout).contains("fewer than about 15,000,000"), "{}", text(&none.stdout));
    // Under a second where it is optimised; a build for debugging may take ten.
    let allowed = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
    assert!(lasted < allowed, "{lasted:?}");
}

#[test]
fn lists_are_there_and_a_wrong_one_gets_the_nearest() {
    let all = run(&["list"]);
    assert!(code(&all) == 0 && text(&all.stdout).contains("models"), "{}", text(&all.stdout));
    for what in [
        "models",
        "npus",
        "links",
        "clusters",
        "precisions",
        "tiers",
        "topologies",
        "algorithms",
        "strategies",
        "metrics",
        "keys",
    ] {
        let output = run(&["list", what]);
        assert!(code(&output) == 0 && text(&output.stdout).lines().count() > 1, "{what}");
    }
    let wrong = run(&["list", "modles"]);
    assert!(code(&wrong) == 2 && text(&wrong.stderr).contains("did you mean `models`?"));
}
