//! Do the reference simulator's own files give its numbers, to the cycle?

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rayon::prelude::*;
use starsweep::astra_sim::{Files, Options, read};
use starsweep::engine::event_driven::{self, Activity, Ask, Outcome, simulate_by};
use starsweep::system::machine::Congestion;
use starsweep::units::Time;
use starsweep::workload::trace::Fault;

use crate::support::root;

type Row = BTreeMap<String, String>;

/// A file of golden data, unpacked.
fn data(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(root().join("tests/data/astra_sim").join(name)).expect("golden data");
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("a compressed file");
    bytes
}

/// The rows of a table.
fn rows(name: &str) -> Vec<Row> {
    let bytes = data(&format!("{name}.csv.gz"));
    csv::Reader::from_reader(bytes.as_slice()).deserialize().collect::<Result<_, _>>().expect("rows")
}

/// The files of an archive in a folder of their own.
fn folder(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = data(&format!("{name}.tar.gz"));
    tar::Archive::new(bytes.as_slice()).unpack(folder.path()).expect("an archive");
    folder
}

/// The options of a row.
fn options(row: &Row) -> Options {
    let mut options = Options {
        congestion: if row["backend"] == "aware" { Congestion::Aware } else { Congestion::Unaware },
        ..Options::default()
    };
    for option in row["options"].split_whitespace() {
        match option.split_once('=').expect("an option with its value") {
            ("--num-queues-per-dim", queues) => options.queues_per_dim = queues.parse().expect("a number"),
            ("--rendezvous-protocol", on) => options.rendezvous = on == "true",
            (other, _) => panic!("{other}"),
        }
    }
    options
}

/// The files of a row of workloads.
fn files(folder: &Path, row: &Row) -> Files {
    let file = |key: &str| (!row[key].is_empty()).then(|| folder.join(&row[key]));
    Files {
        workload: folder.join(&row["workload"]),
        system: folder.join(&row["system"]),
        network: folder.join(&row["network"]),
        memory: file("memory"),
        groups: file("groups"),
    }
}

/// The files of a random program.
fn program(folder: &Path, row: &Row) -> Files {
    let at = |name: &str| folder.join(&row["program"]).join(name);
    let there = |path: PathBuf| path.exists().then_some(path);
    Files {
        workload: at("w"),
        system: at("sys.json"),
        network: at("net.yml"),
        memory: there(at("mem.json")),
        groups: there(at("groups.json")),
    }
}

/// What came of files, message by message and by symmetry where that can be, or what is wrong with them.
fn outcome(files: &Files, options: &Options) -> Result<Outcome, String> {
    let input = read(files, options)
        .map_err(|problems| problems.found.iter().map(|found| found.message.as_str()).collect::<Vec<_>>().join("; "))?;
    let by = |path| {
        let ask = Ask { path, ..Ask::default() };
        simulate_by(&input.machine, &input.trace, ask).map_err(|refused| refused.to_string())
    };
    let outcome = by(event_driven::Path::Messages)?;
    let is_fatal = |fault: &Fault| fault.is_fatal();
    if let Some(fault) =
        input.trace.check(&input.machine).into_iter().find(is_fatal).filter(|_| outcome.stuck.is_empty())
    {
        return Err(format!("it ends, and a check says: {fault}"));
    }
    let as_can_be = by(event_driven::Path::Automatic)?;
    if as_can_be.asymmetry.is_none() && as_can_be.ranks != outcome.ranks {
        return Err("by symmetry there is another outcome".into());
    }
    Ok(outcome)
}

/// Values rank by rank, of which equal ones stand together: `12x3 5x1`; none where a value is missing.
fn each(text: &str) -> Vec<Option<u64>> {
    let parts = text.split_whitespace().map(|part| part.split_once('x').expect("a value and a count"));
    parts.flat_map(|(value, count)| vec![value.parse().ok(); count.parse().expect("a count")]).collect()
}

/// How many rows are right, and which are wrong.
fn compare<'a>(rows: &'a [Row], name: &str, wrong: impl Fn(&'a Row) -> Option<String> + Sync) -> usize {
    let wrong: Vec<String> =
        rows.par_iter().filter_map(|row| wrong(row).map(|why| format!("{}: {why}", row[name]))).collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    rows.len()
}

#[test]
fn workloads_of_the_reference_take_its_time() {
    // Sizes beyond 32 bits in a rendezvous, and a fifth dimension that is read behind the end of a list: see below.
    const OTHERWISE: [&str; 2] = ["edge-rendezvous-3GiB", "edge-5d-allreduce"];
    let folder = folder("workloads");
    let rows: Vec<Row> = rows("workloads")
        .into_iter()
        .filter(|row| {
            row["npus_finished"] == row["npus"] && !OTHERWISE.iter().any(|name| row["workload"].contains(name))
        })
        .filter(|row| each(&row["finish"]).iter().all(Option::is_some))
        .collect();
    let count = compare(&rows, "workload", |row| {
        let outcome = match outcome(&files(folder.path(), row), &options(row)) {
            Ok(outcome) => outcome,
            Err(why) => return Some(why),
        };
        let finish: Vec<_> = outcome.ranks.iter().map(|rank| rank.finish.map(Time::whole_nanoseconds)).collect();
        let expected = each(&row["finish"]);
        if finish != expected {
            return Some(format!("{} {} {finish:?} {expected:?}", row["backend"], row["system"]));
        }
        for (key, activity) in [("gpu_time", Activity::Compute), ("comm_time", Activity::Communication)] {
            for (rank, expected) in outcome.ranks.iter().zip(each(&row[key])) {
                // Computations follow each other: their sum is the time in which one goes on.
                let sum = if activity == Activity::Compute { rank.computed } else { rank.busy(activity) };
                let found = [rank.busy(activity), sum].map(Time::whole_nanoseconds);
                if expected.is_some_and(|expected| found != [expected; 2]) {
                    return Some(format!("{key} {found:?} {expected:?}"));
                }
            }
        }
        None
    });
    assert_eq!(count, 267);
}

#[test]
fn random_programs_take_the_references_time() {
    let folder = folder("random_programs");
    let rows = rows("random_programs");
    let count = compare(&rows, "program", |row| {
        let expected = each(&row["finish"]);
        match outcome(&program(folder.path(), row), &options(row)) {
            Ok(outcome) => {
                let finish: Vec<_> =
                    outcome.ranks.iter().map(|rank| rank.finish.map(Time::whole_nanoseconds)).collect();
                (finish != expected).then(|| format!("{finish:?} {expected:?}"))
            }
            Err(why) => Some(why),
        }
    });
    assert_eq!(count, 600);
}

/// What we do with a workload on which the reference stops, waits, or is wrong.
#[derive(Debug)]
enum Does {
    /// It ends: when each rank is done.
    Ends(&'static str),
    /// It is a deadlock: when each rank is done, and the ranks and operations that wait.
    Waits(&'static str, &'static [(u32, u64)]),
    /// It is refused, in these words.
    Refuses(&'static str),
}

use Does::{Ends, Refuses, Waits};

/// By the name of a workload, or what its system file begins with.
const OTHERWISE: &[(&str, Does)] = &[
    // Nothing is computed, and bytes are moved.
    ("comp-num-ops-zero", Ends("3000x4")),
    // A gather of nothing is over at once, and one of a single rank.
    ("edge-allgather-size-zero", Ends("1000x4")),
    ("group-single-member", Ends("0x1 1000x3")),
    // The fifth dimension takes part: one of the two answers that the reference has.
    ("edge-5d-allreduce", Ends("25695x32")),
    ("edge-rendezvous-3GiB", Ends("60001152x2 1000x2")),
    ("edge-empty-trace", Ends("1000x3 0x1")),
    ("edge-invalid-node-first", Ends("1000x4")),
    ("edge-invalid-node-mid", Ends("2000x4")),
    ("edge-metadata-node", Ends("1000x4")),
    ("edge-zero-tensor-size-first", Ends("1000x4")),
    // Something may last no time at the very beginning.
    ("edge-runtime-below-1ns-first", Ends("1000x4")),
    ("edge-send-1-byte-tick0", Ends("500x2 1000x2")),
    ("mem-per-npu-then-recv-last", Ends("40131x2 1000x2")),
    ("edge-one-rank-missing-coll", Waits("1000x1 x3", &[(1, 1), (2, 1), (3, 1)])),
    ("edge-recv-unmatched", Waits("1000x1 x1 1000x2", &[(1, 1)])),
    ("edge-size-mismatch", Waits("x4", &[(0, 1), (1, 1), (2, 1), (3, 1)])),
    ("edge-barrier-unsupported", Refuses("trace.0.et`: operation 1 (9) is a BARRIER")),
    ("edge-reduce-unsupported", Refuses("trace.0.et`: operation 1 (1) is a REDUCE")),
    ("edge-cycle", Refuses("1 (comp1) waits for 2 (comp2) waits for 1 (comp1)")),
    ("edge-missing-dep", Refuses("operation 2 waits for operation 99, which is not there")),
    ("edge-group-id-zero", Refuses("`0` is no number of a group")),
    ("edge-group-name-not-number", Refuses("names group `tp` (`pg_name`), which is no number")),
    ("edge-group-rank-not-member", Refuses("trace.2.et`: operation 1 takes part in group 1, and rank 2 is not in it")),
    ("edge-unknown-group", Refuses("names group 5 (`pg_name`), which the group file does not have")),
    ("edge-send-to-self", Refuses("operation 1 is a message of rank 0 to itself")),
    ("edge-no-tensor-size-roofline", Refuses("lacks `num_ops` or `tensor_size`")),
    ("mem-none-", Refuses("uses a memory beyond the NPU's own, and the machine has none")),
    ("dgx_v100_8gpu.json", Refuses("`bandwidth` is a text `tbd`, not a number")),
    // Their only trouble is that lifetimes of tensors are asked for, which the traces do not tell.
    ("hgx_h100_", Ends("")),
];

#[test]
fn what_the_reference_cannot_do_has_an_answer_or_a_reason() {
    let folder = folder("workloads");
    let mut seen = vec![0; OTHERWISE.len()];
    for row in rows("workloads") {
        let name = |key: &str| row[key].split('/').nth(if key == "system" { 2 } else { 1 }).expect("a name").to_owned();
        let names = [name("workload"), name("system")];
        let fails = row["npus_finished"] != row["npus"];
        let Some(k) = OTHERWISE.iter().position(|other| names.iter().any(|name| name.starts_with(other.0))) else {
            assert!(!fails, "{names:?}");
            continue;
        };
        if matches!(OTHERWISE[k].1, Ends("")) && !fails {
            continue;
        }
        seen[k] += 1;
        let outcome = outcome(&files(folder.path(), &row), &options(&row));
        match (&OTHERWISE[k].1, outcome) {
            (Refuses(words), Err(why)) => assert!(why.contains(words), "{names:?}: {why}"),
            (Ends(""), Ok(outcome)) => assert!(outcome.ranks.iter().all(|rank| rank.finish.is_some()), "{names:?}"),
            (Ends(expected), Ok(outcome)) => {
                let finish: Vec<_> =
                    outcome.ranks.iter().map(|rank| rank.finish.map(Time::whole_nanoseconds)).collect();
                assert_eq!(finish, each(expected), "{names:?}");
                assert!(outcome.stuck.is_empty());
            }
            (Waits(expected, stuck), Ok(outcome)) => {
                let finish: Vec<_> =
                    outcome.ranks.iter().map(|rank| rank.finish.map(Time::whole_nanoseconds)).collect();
                assert_eq!(finish, each(expected), "{names:?}");
                let found: Vec<_> = outcome.stuck.iter().map(|stuck| (stuck.rank, stuck.operation)).collect();
                assert_eq!(found, *stuck, "{names:?}");
            }
            (expected, found) => panic!("{names:?}: {expected:?}, and {found:?}"),
        }
    }
    assert!(!seen.contains(&0), "{seen:?}");
}

#[test]
fn all_of_them_are_read_again_as_they_are_written() {
    let (workloads, programs) = (folder("workloads"), folder("random_programs"));
    let all = rows("workloads").into_iter().map(|row| (files(workloads.path(), &row), options(&row)));
    let all = all.chain(rows("random_programs").into_iter().map(|row| (program(programs.path(), &row), options(&row))));
    let all: Vec<_> = all.collect();
    let count = |(files, options): &(Files, Options)| {
        let Ok(input) = read(files, options) else { return 0 };
        crate::astra_sim::check_again(&input.machine, &input.trace);
        1
    };
    assert_eq!(all.par_iter().map(count).sum::<u32>(), 899);
}
