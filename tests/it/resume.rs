//! Killed at any moment, does a sweep end with the same bytes? On one and two threads, after an edit, after damage?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use starsweep::results::folder::Folder;

use crate::support::{code, program, segments, text};

/// Nine segments of 65,536 numbers, of which a few thousand are points.
const SWEEP: &str = "\
model: Llama-2-7B
seq_len: 4096
global_batch: 512 seq
precision: bf16
cluster:
  npu: H100-SXM-80GB
  npus: {from: 8, to: 128, times: 2}
  network:
    nvlink: {block: switch, size: 8, bandwidth: {from: 100 GB/s, to: 450 GB/s, step: 50 GB/s}, hop_latency: 500 ns}
    leaf: {block: switch, size: rest, bandwidth: 50 GB/s, hop_latency: 500 ns}
plan: {tp: all, pp: all, vpp: [1, 2], micro_batch_size: [1 seq, 2 seq], zero: all, recompute: all, order: all}
where: {few: tp == 8 or pp == 8}
";

fn sweep_file(folder: &Path, yaml: &str) -> PathBuf {
    let file = folder.join("sweep.yaml");
    fs::write(&file, yaml).expect("a file");
    file
}

fn command(file: &Path, out: &Path, threads: &str) -> Command {
    let mut command = program(&["run"]);
    command.arg(file).arg("--out").arg(out).args(["--threads", threads]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to the end; what was printed.
fn whole(file: &Path, out: &Path, threads: &str) -> String {
    let output = command(file, out, threads).output().expect("the program starts");
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Every file that must not depend on how a run went.
fn bytes(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files: Vec<PathBuf> = segments(out);
    files.extend(["pareto.parquet", "pareto.csv", "sweep.yaml"].map(|name| out.join(name)));
    files
        .iter()
        .map(|file| (file.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(file).expect("a file")))
        .collect()
}

fn segments_done(out: &Path) -> u64 {
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).expect("a manifest")).expect("JSON");
    manifest["segments_done_by_this_run"].as_u64().expect("a count")
}

fn ids(out: &Path) -> Vec<String> {
    let folder = Folder::open(out).expect("results");
    let mut found = Vec::new();
    for file in 0..folder.files.len() {
        let frame = folder.read(file, Some(&["id".to_owned()])).expect("a segment");
        found.extend(
            frame.column("id").expect("ids").str().expect("texts").iter().map(|id| id.expect("an id").to_owned()),
        );
    }
    found
}

fn no_torn_files(out: &Path) {
    for entry in fs::read_dir(out).expect("a folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with(".writing-"), "{name} is left over");
    }
}

#[test]
fn killed_at_random_moments_it_ends_with_the_same_bytes_on_one_and_two_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = sweep_file(folder.path(), SWEEP);
    let undisturbed = folder.path().join("undisturbed");
    let started = Instant::now();
    whole(&file, &undisturbed, "1");
    let lasted = started.elapsed();
    let expected = bytes(&undisturbed);
    assert!(expected.len() > 8, "several segments");

    let killed = folder.path().join("killed");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut hits = 0;
    for round in 0..200 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut child: Child =
            command(&file, &killed, if round % 2 == 0 { "1" } else { "2" }).spawn().expect("the program starts");
        sleep(lasted.mul_f64(f64::from(u32::try_from(random % 1000).expect("small")) / 4000.0));
        if child.try_wait().expect("a status").is_none() {
            child.kill().expect("SIGKILL");
            hits += 1;
        }
        child.wait().expect("an end");
        // When all is there, begin again: moments matter, not progress.
        if segments_there(&killed) == expected.len() - 3 {
            if hits >= 20 {
                break;
            }
            fs::remove_dir_all(&killed).expect("a folder to remove");
        }
    }
    assert!(hits >= 20, "{hits} kills");
    whole(&file, &killed, "2");
    assert_eq!(bytes(&killed), expected);
    no_torn_files(&killed);

    let two = folder.path().join("two");
    whole(&file, &two, "2");
    assert_eq!(bytes(&two), expected);
}

fn segments_there(out: &Path) -> usize {
    fs::read_dir(out.join("points")).map_or(0, Iterator::count)
}

#[cfg(unix)]
fn interrupted(signal: &str, expected: i32) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = sweep_file(folder.path(), &SWEEP.replace("step: 50 GB/s", "step: 10 GB/s"));
    let out = folder.path().join("out");
    let child = command(&file, &out, "2").spawn().expect("the program starts");
    while segments_there(&out) == 0 {
        sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    let asked = Instant::now();
    let output = child.wait_with_output().expect("an end");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(code(&output), expected);
    assert!(text(&output.stderr).contains("the same command goes on"));
    assert!(segments_there(&out) > 0);
    no_torn_files(&out);
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_is_whole_and_ends_with_130() {
    interrupted("-INT", 130);
}

#[cfg(unix)]
#[test]
fn being_told_to_end_keeps_what_is_whole_and_ends_with_143() {
    interrupted("-TERM", 143);
}

#[test]
fn an_edited_sweep_runs_again_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = SWEEP.replace("order: all", "order: tp-dp-pp");
    let out = folder.path().join("out");
    let file = sweep_file(folder.path(), &small);
    whole(&file, &out, "2");
    let (before, old_ids) = (bytes(&out), ids(&out));

    sweep_file(folder.path(), &small.replace("vpp: [1, 2]", "vpp: [1, 2, 4]"));
    assert!(whole(&file, &out, "2").contains("earlier/"));
    let new_ids: std::collections::HashSet<String> = ids(&out).into_iter().collect();
    assert!(old_ids.iter().all(|id| new_ids.contains(id)), "ids survive an added value");
    let earlier: Vec<PathBuf> =
        fs::read_dir(out.join("earlier")).expect("earlier").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(earlier.len(), 1);
    for path in segments(&earlier[0]) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(&fs::read(&path).expect("a segment"), &before[&name]);
    }

    sweep_file(folder.path(), &small);
    assert!(whole(&file, &out, "2").contains("used again"));
    assert_eq!(segments_done(&out), 0);
    assert_eq!(bytes(&out), before);
}

#[test]
fn comments_key_order_and_notation_run_nothing_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = SWEEP.replace("order: all", "order: tp-dp-pp");
    let out = folder.path().join("out");
    let file = sweep_file(folder.path(), &small);
    whole(&file, &out, "2");
    let before: Vec<_> = segments(&out).iter().map(|file| fs::read(file).expect("a segment")).collect();
    let rewritten = "\
# The same question in other words.
where: {few: tp  ==  8 or pp == 8}
plan: {order: tp-dp-pp, recompute: [none, selective, full], zero: [0, 1, 2, 3], micro_batch_size: [1 seq, 2 seq], vpp: [1, 2], pp: all, tp: all}
cluster:
  network:
    nvlink: {hop_latency: 0.5 us, bandwidth: {step: 0.05 TB/s, to: 450 GB/s, from: 100 GB/s}, size: 8, block: switch}
    leaf: {size: rest, block: switch, hop_latency: 500 ns, bandwidth: 400 Gb/s}
  npus: [8, 16, 32, 64, 128]
  npu: H100-SXM-80GB
precision: bf16
global_batch: 512 seq
seq_len: 4096   # a comment
model: Llama-2-7B
";
    sweep_file(folder.path(), rewritten);
    whole(&file, &out, "1");
    assert_eq!(segments_done(&out), 0);
    let after: Vec<_> = segments(&out).iter().map(|file| fs::read(file).expect("a segment")).collect();
    assert_eq!(before, after);
}

#[test]
fn a_damaged_segment_is_put_aside_and_done_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = SWEEP.replace("order: all", "order: tp-dp-pp");
    let out = folder.path().join("out");
    let file = sweep_file(folder.path(), &small);
    whole(&file, &out, "2");
    let before = bytes(&out);
    let victim = segments(&out).remove(0);
    let half = fs::read(&victim).expect("a segment");
    fs::write(&victim, &half[..half.len() / 2]).expect("damage");
    whole(&file, &out, "2");
    assert_eq!(bytes(&out), before);
    assert_eq!(segments_done(&out), 1);
}

#[test]
fn a_fresh_run_keeps_the_old_points_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = SWEEP.replace("order: all", "order: tp-dp-pp");
    let out = folder.path().join("out");
    let file = sweep_file(folder.path(), &small);
    whole(&file, &out, "2");
    let before = bytes(&out);
    let output = command(&file, &out, "2").arg("--fresh").output().expect("the program starts");
    assert_eq!(code(&output), 0);
    assert_eq!(bytes(&out), before);
    assert!(out.join("earlier").is_dir());
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("photos");
    fs::create_dir(&out).expect("a folder");
    fs::write(out.join("cat.jpg"), "cat").expect("a file");
    let file = sweep_file(folder.path(), SWEEP);
    let output = command(&file, &out, "1").output().expect("the program starts");
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("is not a folder of results"));
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), 1);
}
