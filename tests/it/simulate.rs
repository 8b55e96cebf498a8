//! Does `simulate` take the reference's own files and command lines, and say what it found?

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{code, run, text};

/// Types of a node in an execution trace.
const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

/// A number in base 128, as a trace has it.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits");
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A field that is a number, and one that is bytes.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// An operation of an execution trace.
fn node(id: u64, name: &str, kind: u64, after: &[u64], microseconds: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut node = [number(1, id), bytes(2, name.as_bytes()), number(3, kind), number(7, microseconds)].concat();
    node.extend(after.iter().flat_map(|&before| number(5, before)));
    for &(name, value) in attributes {
        node.extend(bytes(10, &[bytes(1, name.as_bytes()), number(13, value)].concat()));
    }
    node
}

fn compute(id: u64, after: &[u64], microseconds: u64) -> Vec<u8> {
    node(id, "mul", COMPUTE, after, microseconds, &[])
}

fn send(id: u64, after: &[u64], to: u64, size: u64, tag: u64) -> Vec<u8> {
    node(id, "give", SEND, after, 0, &[("comm_dst", to), ("comm_size", size), ("comm_tag", tag)])
}

fn receive(id: u64, after: &[u64], from: u64, size: u64, tag: u64) -> Vec<u8> {
    node(id, "take", RECEIVE, after, 0, &[("comm_src", from), ("comm_size", size), ("comm_tag", tag)])
}

fn all_reduce(id: u64, after: &[u64], size: u64, group: &str) -> Vec<u8> {
    let mut node = node(id, "sum", COLLECTIVE, after, 0, &[("comm_type", 0), ("comm_size", size)]);
    node.extend(bytes(10, &[bytes(1, b"pg_name"), bytes(29, group.as_bytes())].concat()));
    node
}

/// Files of the reference in a folder.
struct Case(TempDir);

impl Case {
    /// A ring of so many NPUs, 50 GiB/s and 500 ns a link, and what each does.
    fn new(block: &str, traces: &[Vec<Vec<u8>>]) -> Self {
        let case = Self(tempfile::tempdir().expect("a folder"));
        let network = format!("topology: [{block}]\nnpus_count: [{}]\nbandwidth: [50]\nlatency: [500]\n", traces.len());
        case.write("network.yml", network);
        case.system(&[]);
        case.write("memory.json", r#"{"memory-type": "NO_MEMORY_EXPANSION"}"#);
        for (rank, nodes) in traces.iter().enumerate() {
            let records = std::iter::once(bytes(1, b"0.0.4")).chain(nodes.iter().cloned());
            let framed: Vec<u8> = records.flat_map(|record| [varint(record.len() as u64), record].concat()).collect();
            case.write(&format!("w.{rank}.et"), framed);
        }
        case
    }

    /// Every rank does the same.
    fn same(block: &str, npus: usize, nodes: &[Vec<u8>]) -> Self {
        Self::new(block, &vec![nodes.to_vec(); npus])
    }

    /// The system file, with some keys other.
    fn system(&self, changes: &[(&str, Value)]) {
        let mut system = json!({
            "scheduling-policy": "LIFO",
            "endpoint-delay": 10,
            "active-chunks-per-dimension": 1,
            "preferred-dataset-splits": 4,
            "all-reduce-implementation": ["ring"],
            "all-gather-implementation": ["ring"],
            "reduce-scatter-implementation": ["ring"],
            "all-to-all-implementation": ["ring"],
            "collective-optimization": "localBWAware",
            "local-mem-bw": 1600,
        });
        for (key, value) in changes {
            system[key] = value.clone();
        }
        self.write("system.json", serde_json::to_string_pretty(&system).expect("JSON"));
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), content).expect("a file");
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// The reference's command line, with more behind it.
    fn simulate(&self, more: &[&str]) -> Output {
        let args = [
            format!("--workload-configuration={}", self.path("w")),
            format!("--system-configuration={}", self.path("system.json")),
            format!("--network-configuration={}", self.path("network.yml")),
            format!("--remote-memory-configuration={}", self.path("memory.json")),
        ];
        let args: Vec<&str> = std::iter::once("simulate").chain(args.iter().map(String::as_str)).collect();
        run(&[&args, more].concat())
    }

    /// The one object of `--json`.
    fn json(&self, more: &[&str]) -> Value {
        serde_json::from_slice(&self.simulate(&[&["--json"], more].concat()).stdout).expect("one object")
    }
}

/// A line as its words.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_command_line_of_the_reference_gives_one_line_for_equal_ranks() {
    let case = Case::same("Ring", 8, &[all_reduce(1, &[], 1 << 20, "")]);
    let output = case.simulate(&["--comm-group-configuration=/nowhere/empty", "--rendezvous-protocol=false"]);
    let said = text(&output.stdout);
    assert_eq!((code(&output), text(&output.stderr).as_str()), (0, ""), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let end = "end at 64,440 ns (64.44 us); rules astra_sim, congestion_unaware";
    assert_eq!(lines[0], format!("8 ranks, 56 messages simulated, {end}, symmetric path"));
    let all = text(&case.simulate(&["--path=messages"]).stdout);
    assert_eq!(
        all.replace("448 messages simulated", "56 messages simulated").replace("message by message", "symmetric path"),
        said
    );
    assert_eq!(words(lines[2]), ["rank", "finish", "compute", "communication", "exposed", "idle"]);
    let row = "0..7 64,440 ns 0 ns 64,440 ns 64,440 ns 0 ns";
    assert_eq!(words(lines[3]).join(" "), row, "{said}");
    // 7/4 of a MiB from each, over two links.
    let row = "1 ring 8 2 53.69 GB/s 0 1,835,008 B 14,680,064 B 26.5 %";
    assert!(lines.iter().any(|line| words(line).join(" ") == row), "{said}");

    let aware = case.simulate(&["--backend", "congestion_aware", "--num-queues-per-dim", "2"]);
    assert!(code(&aware) == 0 && text(&aware.stdout).contains("congestion_aware"), "{}", text(&aware.stderr));
    let handshake = case.simulate(&["--rendezvous-protocol"]);
    assert!(code(&handshake) == 0 && !text(&handshake.stdout).contains(" 64,440 ns"));
}

#[test]
fn ranks_that_differ_have_lines_of_their_own_and_idle_is_what_is_left() {
    let traces = [
        vec![compute(1, &[], 2), send(2, &[1], 1, 1 << 20, 7)],
        vec![compute(1, &[], 1), receive(3, &[1], 0, 1 << 20, 7)],
        vec![compute(1, &[], 5)],
        vec![compute(1, &[], 5)],
    ];
    let case = Case::new("Switch", &traces);
    let said = text(&case.simulate(&[]).stdout);
    let rows: Vec<String> = said.lines().map(|line| words(line).join(" ")).collect();
    for row in [
        "0 22,531 ns 2,000 ns 20,531 ns 20,531 ns 0 ns",
        "1 22,531 ns 1,000 ns 21,531 ns 21,531 ns 0 ns",
        "2..3 5,000 ns 5,000 ns 0 ns 0 ns 0 ns",
    ] {
        assert!(rows.iter().any(|found| found == row), "{row}\n{said}");
    }
}

#[test]
fn json_is_one_object_with_a_list_of_ranks() {
    let case = Case::same("Ring", 8, &[compute(1, &[], 3), all_reduce(2, &[1], 1 << 20, "")]);
    let found = case.json(&[]);
    let ranks = found["ranks"].as_array().expect("a list");
    assert_eq!(ranks.len(), 8);
    for (k, rank) in ranks.iter().enumerate() {
        let expected = [
            ("rank", k as u64),
            ("finish_ns", 67_440),
            ("compute_ns", 3_000),
            ("communication_ns", 64_440),
            ("exposed_communication_ns", 64_440),
        ];
        for (key, value) in expected {
            assert_eq!(rank[key], value, "{key}: {rank}");
        }
    }
    assert_eq!(found["dimensions"][0]["busiest_rank_sent_bytes"], 1_835_008);
    assert_eq!((&found["rules"], &found["path"]), (&json!("astra_sim"), &json!("symmetric")));
    assert_eq!(case.json(&["--path", "messages"])["messages"], 448);
    assert_eq!((&found["stuck"], &found["cautions"]), (&json!([]), &json!([])));
}

#[test]
fn what_has_no_effect_is_said_with_its_place() {
    let case = Case::same("Ring", 8, &[all_reduce(1, &[], 1 << 20, "")]);
    case.system(&[("intra-dimension-scheduling", json!("SCF"))]);
    let output = case.simulate(&["--comm-scale=2", "--logging-folder", "log"]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.contains("caution: `--comm-scale` has no effect"), "{said}");
    assert!(said.contains("caution: `--logging-folder` has no effect"), "{said}");
    assert!(said.contains("intra-dimension-scheduling") && said.contains("system.json:"), "{said}");
    let cautions = case.json(&[])["cautions"].clone();
    let of_key = cautions.as_array().expect("a list").iter().find(|caution| caution["line"].is_u64());
    let file = of_key.expect("a place")["file"].as_str().expect("a name").to_owned();
    assert!(Path::new(&file).ends_with("system.json"), "{file}");
}

#[test]
fn what_beats_the_wire_is_told_and_kept() {
    let case = Case::same("Switch", 8, &[all_reduce(1, &[], 1 << 30, "")]);
    assert_eq!(case.json(&[])["cautions"], json!([]));
    case.system(&[("active-chunks-per-dimension", json!(4))]);
    let output = case.simulate(&[]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 0);
    assert!(said.contains("but dimension 1 alone needs 35,000,000 ns"), "{said}");
}

#[test]
fn a_receive_that_nothing_meets_is_an_error_before_anything_is_simulated() {
    let traces = |tag: u64| {
        [
            vec![send(1, &[], 1, 512, 7)],
            vec![receive(1, &[], 0, 512, tag), compute(2, &[1], 1)],
            vec![compute(1, &[], 1)],
        ]
    };
    let output = Case::new("Ring", &traces(8)).simulate(&[]);
    let said = text(&output.stderr);
    assert_eq!((code(&output), text(&output.stdout).as_str()), (2, ""));
    assert!(said.contains("error: operation 1 (take) of rank 1 waits for 512 bytes under tag 8 from rank 0"), "{said}");
    assert!(said.contains("another tag") && said.ends_with("1 mistake; nothing was simulated\n"), "{said}");
    // For a program that reads it, the object says who waits.
    let found = Case::new("Ring", &traces(8)).json(&[]);
    assert_eq!(found["ranks"][1]["finish_ns"], Value::Null);
    assert_eq!(found["stuck"][0]["operation"], 1);
    assert_eq!(found["errors"].as_array().expect("a list").len(), 1);

    // A send without a receive ends all the same.
    let output = Case::new("Ring", &[vec![send(1, &[], 1, 512, 7)], vec![compute(1, &[], 1)]]).simulate(&[]);
    let said = text(&output.stderr);
    assert!(code(&output) == 0 && said.contains("caution: operation 1 (give) of rank 0 sends"), "{said}");
    assert!(code(&Case::new("Ring", &traces(7)).simulate(&[])) == 0);
}

#[test]
fn a_deadlock_says_who_waits_and_for_what_and_ends_with_2() {
    // Both could take part in either; each begins with another, and a rank does one at a time.
    let traces = [
        vec![all_reduce(1, &[], 4096, "1"), all_reduce(2, &[], 4096, "2")],
        vec![all_reduce(1, &[], 4096, "2"), all_reduce(2, &[], 4096, "1"), compute(3, &[1], 1)],
        vec![compute(1, &[], 1)],
    ];
    let case = Case::new("Ring", &traces);
    case.write("groups.json", r#"{"1": [0, 1], "2": [0, 1]}"#);
    let groups = format!("--comm-group-configuration={}", case.path("groups.json"));
    let output = case.simulate(&[&groups]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("error: a deadlock: 2 of 3 ranks never come to their end"), "{said}");
    let line = "rank 0: operation 1 (sum) waits for rank 1 to take part in all_reduce of 4,096 bytes among group 1";
    assert!(said.contains(line), "{said}");
    assert!(said.contains("and 3 more operations"), "{said}");
    assert!(text(&output.stdout).contains("3 ranks"), "{}", text(&output.stdout));
    let found = case.json(&[&groups]);
    assert_eq!(found["finish_ns"], Value::Null);
    assert_eq!(found["ranks"][2]["finish_ns"], 1000);
    assert_eq!(found["stuck"].as_array().expect("a list").len(), 5);
}

#[test]
fn a_circle_is_told_step_by_step_before_anything_is_simulated() {
    let of = |other: u64| vec![receive(1, &[], other, 8, 0), send(2, &[1], other, 8, 0)];
    let output = Case::new("Ring", &[of(1), of(0), vec![compute(1, &[], 1)]]).simulate(&[]);
    let said = text(&output.stderr);
    assert_eq!((code(&output), text(&output.stdout).as_str()), (2, ""), "{said}");
    for line in [
        "error: ranks wait for each other in a circle:",
        "operation 1 (take) of rank 0 receives what operation 2 (give) of rank 1 sends",
        "operation 2 (give) of rank 1 waits for operation 1 (take) of rank 1",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn ranks_that_made_other_chunks_before_do_not_meet_and_are_told_why() {
    // The reference numbers the chunks of all groups together: rank 2 is behind by those of group 1.
    let both = vec![all_reduce(1, &[], 4096, "1"), all_reduce(2, &[1], 4096, "")];
    let traces = [both.clone(), both, vec![all_reduce(2, &[], 4096, "")]];
    let case = Case::new("Ring", &traces);
    case.write("groups.json", r#"{"1": [0, 1]}"#);
    let output = case.simulate(&["--comm-group-configuration", &case.path("groups.json")]);
    let said = text(&output.stderr);
    assert!(code(&output) == 2 && said.contains("a deadlock: 3 of 3 ranks"), "{said}");
    assert!(
        said.contains("ranks 0..2: operation 2 (sum) waits for the other members, which wait in the same"),
        "{said}"
    );
    assert!(said.contains("help: ASTRA-sim numbers the chunks of all groups together"), "{said}");
}

#[test]
fn halving_and_doubling_among_six_is_told_and_waits_for_ever() {
    let case = Case::same("Switch", 6, &[all_reduce(1, &[], 1 << 20, "")]);
    case.system(&[("all-reduce-implementation", json!(["halvingDoubling"]))]);
    let output = case.simulate(&[]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), 2, "{said}");
    assert!(
        said.contains("caution: operation 1 (sum) of rank 0 is of all_reduce and halves and doubles among 6"),
        "{said}"
    );
    assert!(said.contains("a deadlock: 6 of 6 ranks") && !said.contains("numbers the chunks"), "{said}");
}

#[test]
fn a_timeline_has_no_two_things_at_once_on_one_thread() {
    let traces = [
        vec![compute(1, &[], 2), send(2, &[1], 1, 4096, 1), send(3, &[], 1, 4096, 2), all_reduce(9, &[1], 4096, "")],
        vec![
            receive(1, &[], 0, 4096, 1),
            receive(2, &[], 0, 4096, 2),
            compute(4, &[1], 3),
            all_reduce(9, &[4], 4096, ""),
        ],
    ];
    let case = Case::new("Switch", &traces);
    let path = case.path("timeline.json");
    let output = case.simulate(&["--timeline", &path]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let events: Vec<Value> = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("a list of events");
    let names = |what: &str| events.iter().filter(|event| event["name"] == what && event["ph"] == "M").count();
    assert_eq!([names("process_name"), names("thread_name")], [2, 6]);
    let mut spans: Vec<(u64, u64, f64, f64)> = Vec::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let real = |key: &str| event[key].as_f64().expect("a number");
        let whole = |key: &str| event[key].as_u64().expect("a number");
        spans.push((whole("pid"), whole("tid"), real("ts"), real("ts") + real("dur")));
    }
    assert_eq!(spans.len(), 8);
    spans.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    for pair in spans.windows(2) {
        let [a, b] = pair else { unreachable!("two") };
        assert!((a.0, a.1) != (b.0, b.1) || a.3 <= b.2 + 1e-6, "{a:?} {b:?}");
    }
    let last = spans.iter().map(|span| span.3).fold(0.0, f64::max);
    let finish = case.json(&[])["finish_ns"].as_f64().expect("an end");
    assert!((last * 1000.0 - finish).abs() < 0.5, "{last} {finish}");
    let unwritten = case.simulate(&["--timeline", &case.path("missing/timeline.json")]);
    assert!(code(&unwritten) == 1 && text(&unwritten.stderr).contains("cannot write the timeline"));
}

#[test]
fn rules_are_asked_for_by_name_and_quirk_by_quirk() {
    // Two messages of a MiB: one after the other, or at once over a bandwidth of their own; ours share it.
    let receive = || vec![receive(1, &[], 0, 1 << 20, 7)];
    let traces = [vec![send(1, &[], 1, 1 << 20, 7), send(2, &[], 2, 1 << 20, 7)], receive(), receive()];
    let case = Case::new("Switch", &traces);
    let head = |more: &[&str]| {
        let output = case.simulate(more);
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout).lines().next().expect("a line").to_owned()
    };
    assert!(head(&[]).contains("end at 41,062 ns (41.06 us); rules astra_sim, congestion"));
    let free = head(&["--without", "one_communication"]);
    assert!(
        free.contains("end at 20,531 ns (20.53 us); rules astra_sim without one_communication, congestion"),
        "{free}"
    );
    // 2 * (10 + 1,000 + 19,531.25) ns.
    let ours = head(&["--rules=ours"]);
    assert!(ours.contains("end at 41,082.500 ns (41.08 us); rules ours, congestion"), "{ours}");
    let whole = head(&["--rules", "ours", "--with", "whole_nanoseconds", "--with=lowest_dimension"]);
    assert!(whole.contains("rules ours with whole_nanoseconds and lowest_dimension, congestion"), "{whole}");
    let found = case.json(&["--rules=ours", "--with=group_delay"]);
    assert_eq!((&found["rules"], &found["quirks"]), (&json!("ours"), &json!(["group_delay"])));
    assert_eq!(found["finish_ns"], 41_082.5);
    let found = case.json(&["--heed-scheduling-keys", "--without=group_delay"]);
    let quirks = found["quirks"].as_array().expect("a list");
    let all = text(&run(&["list", "quirks"]).stdout).lines().filter(|line| line.contains("ours: ")).count();
    assert_eq!(quirks.len() + 2, all);
    assert!(!quirks.iter().any(|quirk| *quirk == "group_delay" || *quirk == "scheduling_keys_ignored"), "{found}");
}

#[test]
fn a_wrong_command_line_is_told_and_ends_with_2() {
    let case = Case::same("Ring", 4, &[compute(1, &[], 1)]);
    for (wrong, says) in [
        ("--num-queues-per-dim=0", "num-queues-per-dim"),
        ("--injection-scale=-1", "a factor is 0 or more"),
        ("--rendezvous-protocol=maybe", "`true` or `false`"),
        ("--backend=ns3", "congestion_aware"),
        ("--rules=theirs", "astra_sim"),
        ("--without=group_delays", "did you mean `group_delay`?"),
        ("--with=haste", "`starsweep list quirks` has all"),
        ("--num-queue-per-dim=1", "--num-queues-per-dim"),
    ] {
        let output = case.simulate(&[wrong]);
        assert!(code(&output) == 2 && text(&output.stderr).contains(says), "{wrong}: {}", text(&output.stderr));
    }
    let output = run(&["simulate", "--workload-configuration=w"]);
    assert!(code(&output) == 2 && text(&output.stderr).contains("--system-configuration"), "{}", text(&output.stderr));
    let missing = case.simulate(&["--comm-group-configuration", "/nowhere/groups.json"]);
    assert!(code(&missing) == 2 && text(&missing.stderr).contains("/nowhere/groups.json"), "{}", text(&missing.stderr));
}

#[test]
fn ranks_without_files_of_their_own_share_one() {
    let case = Case::same("Ring", 4, &[all_reduce(1, &[], 1 << 20, "")]);
    let own = case.json(&[]);
    fs::rename(case.path("w.0.et"), case.path("w.et")).expect("a file");
    (1..4).for_each(|rank| fs::remove_file(case.path(&format!("w.{rank}.et"))).expect("a file"));
    assert_eq!(case.json(&[])["ranks"], own["ranks"]);
}
