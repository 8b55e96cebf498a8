//! What does an answer say of what is compared? One line an alternative, tried or not.

use crate::support::{self, code, read, run, sweep, text};

/// Two clusters with axes of their own, two jobs.
const CLUSTERS: &str = "
define:
  node: {npu: H100-SXM-80GB, network: {nvlink: {preset: NVLink4, size: 8}, leaf: {preset: IB-NDR400, size: [2, 4]}}}
  rack: {npu: H100-SXM-80GB, network: {nvlink: {preset: NVLink4, size: [32, 64]}}}
model: Llama-3-8B
seq_len: [2048, 4096]
global_batch: 64 seq
cluster: [node, rack]
memory: {host: {preset: host-PCIe5, bandwidth: [20 GB/s, 40 GB/s]}}
plan: {tp: [1, 2, 4, 8], dp: rest}
";

/// The lines of the comparison that a run prints.
fn lines(yaml: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.yaml");
    std::fs::write(&file, yaml).expect("a file");
    let out = folder.path().join("r");
    let output = run(&["run", file.to_str().expect("UTF-8"), "--out", out.to_str().expect("UTF-8")]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let compared = said.lines().skip_while(|line| !line.starts_with("compared")).skip(2);
    compared.take_while(|line| !line.is_empty() && !line.starts_with("  the same")).map(str::to_owned).collect()
}

#[test]
fn an_alternative_has_one_line_whatever_axes_it_holds() {
    let found = lines(&format!("{CLUSTERS}decide: {{compare: [cluster, seq_len], tune: plan}}"));
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(found.iter().filter(|line| line.trim_start().starts_with("node")).count(), 2, "{found:#?}");
}

#[test]
fn an_alternative_of_which_nothing_is_tried_has_a_line_with_the_rule_that_removed_it() {
    let found =
        lines(&format!("{CLUSTERS}where: {{small: npus < 32 or tp < 0}}\ndecide: {{compare: [cluster, seq_len]}}"));
    let racks: Vec<_> = found.iter().filter(|line| line.trim_start().starts_with("rack")).collect();
    assert!(racks.len() == 2 && racks.iter().all(|line| line.ends_with("none tried (small)")), "{found:#?}");
    assert!(found.len() == 4 && !found[0].contains("none tried"), "{found:#?}");
}

/// The ratio of each line to what it is measured against, by the first words of the line.
fn ratios(yaml: &str, words: usize, ratio: usize) -> Vec<(String, f64)> {
    let cells =
        |line: &String| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
    let line = |cells: Vec<String>| (cells[..words].join(" "), cells[ratio].parse().expect("a ratio"));
    lines(yaml).iter().map(cells).map(line).collect()
}

#[test]
fn a_line_is_measured_against_what_agrees_with_it_in_the_job() {
    for (decide, baseline) in
        [("compare: [seq_len, cluster]", "rack"), ("compare: [seq_len, cluster], baseline: node", "node")]
    {
        let found = ratios(&format!("{CLUSTERS}decide: {{{decide}}}"), 2, 3);
        assert_eq!(found.len(), 4, "{found:?}");
        for (name, ratio) in found {
            assert_eq!(ratio == 1.0, name.ends_with(baseline), "{name} {ratio}");
        }
    }
}

#[test]
fn the_answer_says_what_its_lines_agree_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.yaml");
    let yaml = CLUSTERS.replace("seq_len: [2048, 4096]", "seq_len: 2048");
    std::fs::write(&file, format!("{yaml}decide: {{compare: cluster}}")).expect("a file");
    let out = folder.path().join("r");
    let output = run(&["run", file.to_str().expect("UTF-8"), "--out", out.to_str().expect("UTF-8")]);
    let said = text(&output.stdout);
    assert!(said.contains("the same in all:") && said.contains("tp "), "{said}");
    // And `top` shows every input in which its rows differ.
    let top = text(&run(&["top", out.to_str().expect("UTF-8"), "-n", "40", "--min", "npus"]).stdout);
    assert!(top.lines().next().is_some_and(|head| head.contains("dim1_size")), "{top}");
}

#[test]
fn values_are_shown_with_their_units() {
    let found = lines(&format!("{CLUSTERS}decide: {{compare: [host.bandwidth, seq_len]}}"));
    assert!(found.iter().all(|line| line.contains("20 GB/s") != line.contains("40 GB/s")), "{found:#?}");
}

#[test]
fn whatever_part_of_the_file_holds_an_axis_can_be_compared() {
    let columns = |name: &str| {
        let found = sweep(&format!("{CLUSTERS}decide: {{compare: \"{name}\", tune: [plan, collectives]}}"));
        found.decide.columns().join(" ")
    };
    for (name, expected) in [
        ("cluster", "cluster"),
        ("network", "dim1_size dim0_size"),
        ("cluster.network.leaf", "dim1_size"),
        ("leaf", "dim1_size"),
        ("leaf.size", "dim1_size"),
        ("nvlink", "dim0_size"),
        ("dim1", "dim1_size"),
        ("rack", "dim0_size"),
        ("memory", "host_bandwidth_bytes_per_s"),
        ("host", "host_bandwidth_bytes_per_s"),
        ("plan", "tp"),
        ("plan.tp", "tp"),
        ("seq_len", "seq_len_tok"),
        ("dim1_size", "dim1_size"),
    ] {
        assert_eq!(columns(name), expected, "{name}");
    }
}

#[test]
fn an_axis_that_changes_the_job_is_compared_or_cautioned_about() {
    let cautions = |compare: &str| {
        let mut found = sweep(&format!("{CLUSTERS}decide: {{compare: {compare}}}")).cautions;
        // Nothing lives in the tier that is compared: that is told too.
        found.retain(|caution| !caution.message.starts_with("nothing lives in the tier"));
        found
    };
    let found = cautions("cluster");
    assert!(found.len() == 1 && found[0].message.starts_with("`seq_len` changes the job"), "{found:#?}");
    assert_eq!(found[0].help.as_deref(), Some("write `compare: [cluster, seq_len]` for a line of each job"));
    assert_eq!(cautions("[cluster, seq_len]"), []);
}

#[test]
fn every_sweep_in_the_readme_resolves() {
    let readme = read("README.md");
    let blocks: Vec<&str> = readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(support::points(&sweep(block)).len() > 1, "{block}");
    }
}
