//! Killed at any moment, does a sweep end with the same bytes? On one and two threads, after an edit, after damage?

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
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

/// A small sweep, run to its end: its folder, its file, its results.
fn small_run() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = sweep_file(folder.path(), &small());
    let out = folder.path().join("out");
    whole(&file, &out, "2");
    (folder, file, out)
}

/// Half of the sweep.
fn small() -> String {
    SWEEP.replace("order: all", "order: tp-dp-pp")
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

fn manifest(out: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).expect("a manifest")).expect("JSON")
}

fn segments_done(out: &Path) -> u64 {
    manifest(out)["parts_done_by_this_run"].as_u64().expect("a count")
}

fn identity(out: &Path) -> String {
    manifest(out)["identity"].as_str().expect("an identity").to_owned()
}

/// The bytes of the segments that a run put aside under a name.
fn aside(out: &Path, name: &str) -> Vec<Vec<u8>> {
    segments(&out.join("earlier").join(name)).iter().map(|file| fs::read(file).expect("a segment")).collect()
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
        }
        // Only a process that died of the signal was alive when it came.
        hits += u32::from(child.wait().expect("an end").signal() == Some(9));
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

/// Starts a run on one thread and comes back when its first segment is there.
fn begun(file: &Path, out: &Path) -> Child {
    let mut child = command(file, out, "1").spawn().expect("the program starts");
    while segments_there(out) == 0 {
        assert!(child.try_wait().expect("a status").is_none(), "it ended before its first segment");
        sleep(Duration::from_millis(2));
    }
    child
}

fn interrupted(signal: &str, expected: i32) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = sweep_file(folder.path(), SWEEP);
    let undisturbed = folder.path().join("undisturbed");
    whole(&file, &undisturbed, "2");
    let reference = bytes(&undisturbed);

    let out = folder.path().join("out");
    let child = begun(&file, &out);
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    let asked = Instant::now();
    let output = child.wait_with_output().expect("an end");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(code(&output), expected);
    assert!(text(&output.stderr).contains("the same command goes on"));
    no_torn_files(&out);
    let kept = segments(&out);
    assert!(!kept.is_empty() && kept.len() < reference.len() - 3, "{} segments", kept.len());
    for path in &kept {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(&fs::read(path).expect("a segment"), &reference[&name], "{name} is not whole");
    }

    whole(&file, &out, "2");
    assert_eq!(segments_done(&out), (reference.len() - 3 - kept.len()) as u64);
    assert_eq!(bytes(&out), reference);
}

#[test]
fn an_interrupt_keeps_what_is_whole_and_ends_with_130() {
    interrupted("-INT", 130);
}

#[test]
fn being_told_to_end_keeps_what_is_whole_and_ends_with_143() {
    interrupted("-TERM", 143);
}

#[test]
fn an_edited_sweep_runs_again_and_loses_nothing() {
    let (folder, file, out) = small_run();
    let (before, old_ids, old_identity) = (bytes(&out), ids(&out), identity(&out));

    sweep_file(folder.path(), &small().replace("vpp: [1, 2]", "vpp: [1, 2, 4]"));
    assert!(whole(&file, &out, "2").contains("earlier/"));
    let new_ids: std::collections::HashSet<String> = ids(&out).into_iter().collect();
    assert!(old_ids.iter().all(|id| new_ids.contains(id)), "ids survive an added value");
    let earlier: Vec<PathBuf> =
        fs::read_dir(out.join("earlier")).expect("earlier").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(earlier, [out.join("earlier").join(old_identity)]);
    assert_eq!(segments(&earlier[0]).len(), before.len() - 3, "every old segment is kept");
    for path in segments(&earlier[0]) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(&fs::read(&path).expect("a segment"), &before[&name]);
    }

    sweep_file(folder.path(), &small());
    assert!(whole(&file, &out, "2").contains("used again"));
    assert_eq!(segments_done(&out), 0);
    assert_eq!(bytes(&out), before);
}

#[test]
fn comments_key_order_and_notation_run_nothing_again() {
    let (folder, file, out) = small_run();
    let before: Vec<_> = segments(&out).iter().map(|file| fs::read(file).expect("a segment")).collect();
    let rewritten = "\
# The same question in other words.
where: {few: tp  ==  8 or pp == 8}
plan: {order: tp-dp-pp, recompute: [none, selective, full, alternate], zero: [0, 1, 2, 3], micro_batch_size: [1 seq, 2 seq], vpp: [1, 2], pp: all, tp: all}
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
    let (_folder, file, out) = small_run();
    let before = bytes(&out);
    let victim = segments(&out).remove(0);
    let good = fs::read(&victim).expect("a segment");
    let half = good[..good.len() / 2].to_vec();
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 1;
    for (k, damage) in [half, flipped].into_iter().enumerate() {
        fs::write(&victim, &damage).expect("damage");
        assert!(whole(&file, &out, "2").contains("1 damaged part was found"));
        assert_eq!(bytes(&out), before);
        assert_eq!(segments_done(&out), 1);
        let name = victim.file_name().expect("a name").to_string_lossy().into_owned();
        let kept = if k == 0 { name } else { format!("{name}.{}", k + 1) };
        let kept = fs::read(out.join("earlier/damaged/points").join(kept)).expect("what was there");
        assert_eq!(kept, damage, "what was there is not thrown away");
    }
}

#[test]
fn a_fresh_run_that_was_killed_goes_on_when_it_is_repeated() {
    let (_folder, file, out) = small_run();
    let before = bytes(&out);
    let fresh = || {
        let mut command = command(&file, &out, "1");
        command.arg("--fresh");
        command
    };
    let mut child = fresh().spawn().expect("the program starts");
    // The old points go first, then new ones come.
    while !out.join(".fresh").exists() || segments_there(&out) == 0 {
        assert!(child.try_wait().expect("a status").is_none(), "it ended before its first segment");
        sleep(Duration::from_millis(1));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("an end");
    let kept = segments(&out).len() as u64;
    let output = fresh().output().expect("the program starts");
    assert_eq!(code(&output), 0);
    assert_eq!(segments_done(&out), segments(&out).len() as u64 - kept, "what it had done is kept");
    assert!(kept > 0);
    assert_eq!(bytes(&out), before);
    assert!(!out.join(".fresh").exists());
}

#[test]
fn a_fresh_run_keeps_the_old_points_aside() {
    let (_folder, file, out) = small_run();
    let before = bytes(&out);
    let points: Vec<_> = segments(&out).iter().map(|file| fs::read(file).expect("a segment")).collect();
    let output = command(&file, &out, "2").arg("--fresh").output().expect("the program starts");
    assert_eq!(code(&output), 0);
    assert_eq!(segments_done(&out), points.len() as u64, "all is evaluated again");
    assert_eq!(bytes(&out), before);
    assert_eq!(aside(&out, &identity(&out)), points);
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
    assert_eq!(fs::read(out.join("cat.jpg")).expect("a file"), b"cat");
}

#[test]
fn a_second_run_in_a_folder_that_is_being_written_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = sweep_file(folder.path(), SWEEP);
    let out = folder.path().join("out");
    let mut first = begun(&file, &out);
    let second = command(&file, &out, "1").output().expect("the program starts");
    let still_at_work = first.try_wait().expect("a status").is_none();
    first.kill().expect("SIGKILL");
    first.wait().expect("an end");
    assert!(still_at_work, "the first run was over before the second began");
    assert_eq!(code(&second), 1);
    assert!(text(&second.stderr).contains("another run is at work"), "{}", text(&second.stderr));
}

/// A product of which `where` leaves one number in a few thousand.
const SPARSE: &str = "\
workload: {collective: all_reduce, size: 1 GB}
cluster:
  npu: H100-SXM-80GB
  network:
    a: {block: ring, size: 8, bandwidth: {from: 1 GB/s, to: 20000 GB/s, step: 1 GB/s}}
    b: {block: switch, size: 4, bandwidth: {from: 1 GB/s, to: 2000 GB/s, step: 1 GB/s}}
where: {few: a.bandwidth % 1000 GB/s == 0 GB/s, fewer: b.bandwidth % 100 GB/s == 0 GB/s}
";

#[test]
fn a_sparse_sweep_has_few_segments_and_resumes_behind_the_last_whole_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = sweep_file(folder.path(), SPARSE);
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    whole(&file, &one, "1");
    let rows = manifest(&one)["rows"].as_u64().expect("a count");
    assert_eq!(rows, 20 * 20);
    // Forty million numbers would be 611 files of 65,536 numbers each.
    let files = segments(&one).len();
    assert!(files <= 306, "{files} files");
    let before = bytes(&one);
    for (k, victim) in segments(&one).into_iter().enumerate() {
        if k % 3 == 1 {
            fs::remove_file(victim).expect("a segment");
        }
    }
    whole(&file, &one, "2");
    assert_eq!(bytes(&one), before);
    whole(&file, &two, "2");
    assert_eq!(bytes(&two), before);
}
