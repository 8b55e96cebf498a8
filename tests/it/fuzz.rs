//! Does any file of the reference simulator make us panic or wait, whether we read it, check what it says or simulate it?

use std::io::{Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use starsweep::astra_sim::{Files, Input, Options, read};
use starsweep::engine::event_driven::{Ask, Path, Refused};
use starsweep::run::simulate::{Impossible, simulate};
use starsweep::system::machine::Congestion;
use starsweep::system::rules::Rules;

use crate::astra_sim::{Case, GROUPS, NETWORK, SYSTEM, right};
use crate::chakra::{self, COLLECTIVE, COMPUTE, LOAD, Node, RECEIVE, SEND, Value, node};

/// How long one file may take.
const LONG: Duration = Duration::from_secs(10);
/// How many events a simulation may have.
const EVENTS: u64 = 100_000;

/// A small generator of numbers that look random.
struct Dice(u64);

impl Dice {
    /// Another one at each run: what breaks is shown with its bytes.
    fn new() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        let nanoseconds = u64::from(since.subsec_nanos()) ^ since.as_secs() << 30;
        Self(nanoseconds.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        starsweep::units::index(self.0 % below.max(1) as u64)
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.roll(among.len())]
    }

    /// A number, most of them at the edge of what some kind can hold.
    fn number(&mut self) -> u64 {
        let near = self.pick(&[0_u64, 1, 2, 3, 4, 5, 7, 8, 9, 16, 64, 1000]);
        match self.roll(6) {
            0..=2 => near,
            3 => (1_u64 << self.roll(64)).wrapping_sub(near.min(1)),
            4 => u64::MAX - near,
            _ => self.0 >> self.roll(64),
        }
    }

    /// Changes some bytes: others in their place, some more, some less, another number.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len());
            let byte = self.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'[', b'{', b'9', b'-']);
            match self.roll(8) {
                0 => bytes.insert(at, byte),
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                3 if !bytes.is_empty() => {
                    let end = (at + self.roll(9)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
                4 if !bytes.is_empty() => bytes[at] ^= 1 << self.roll(8),
                5 if !bytes.is_empty() => bytes[at] = byte,
                _ => self.change_number(bytes, at),
            }
        }
    }

    /// Puts another number in the place of the first behind a byte.
    fn change_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let Some(start) = (at..bytes.len()).find(|&k| bytes[k].is_ascii_digit()) else { return };
        let end = (start..bytes.len()).find(|&k| !bytes[k].is_ascii_digit()).unwrap_or(bytes.len());
        let number = self.number().to_string();
        let number = if self.roll(8) == 0 { format!("1e{}", self.roll(400)) } else { number };
        bytes.splice(start..end, number.into_bytes());
    }

    /// Changes some operations: what remains is a trace whose records are whole.
    fn change_nodes(&mut self, nodes: &mut Vec<Node>) {
        for _ in 0..=self.roll(3) {
            if nodes.is_empty() {
                return;
            }
            let (k, number) = (self.roll(nodes.len()), self.number());
            let other = nodes[self.roll(nodes.len())].id;
            let node = &mut nodes[k];
            match self.roll(12) {
                0 => drop(nodes.remove(k)),
                1 => {
                    let id = number;
                    nodes.push(Node { id, ..nodes[k].clone() });
                }
                2 => node.id = number,
                3 => node.kind = i32::try_from(self.roll(9)).expect("a small number"),
                4 => node.duration_micros = number,
                5 => node.ctrl_deps.push(other),
                6 => node.data_deps.clear(),
                7 if !node.attributes.is_empty() => {
                    let at = self.roll(node.attributes.len());
                    node.attributes.remove(at);
                }
                8 => {
                    let name = self.pick(&["is_cpu_op", "num_ops", "tensor_size", "comm_type", "comm_size", "pg_name"]);
                    let value = Some(Value::Uint64(number));
                    node.attributes.push(chakra::Attribute { name: name.to_owned(), comment: String::new(), value });
                }
                _ if !node.attributes.is_empty() => {
                    let at = self.roll(node.attributes.len());
                    let flags = || (0..number % 40).map(|bit| number >> bit & 1 == 1).collect();
                    node.attributes[at].value = Some(match self.roll(8) {
                        0 => Value::Int64(number.cast_signed()),
                        1 => Value::Text(number.to_string()),
                        2 => Value::Bools(chakra::Flags { values: flags() }),
                        3 => Value::Bool(number > 1),
                        4 => Value::Uint32(u32::try_from(number % (1 << 32)).expect("a short number")),
                        _ => Value::Uint64(number),
                    });
                }
                _ => {}
            }
        }
    }
}

/// Files that belong together, and the bytes of those that are changed.
struct Base {
    case: Case,
    files: Vec<(&'static str, Vec<u8>)>,
}

/// Those that are changed, of each kind at least one: traces plain and compressed, of a rank and of a collective of its own.
const CHANGED: [&str; 8] =
    ["network.yml", "system.json", "memory.json", "groups.json", "own.yml", "w.0.et", "w.1.et", "own.0.et"];

fn message(id: u64, kind: i32, key: &'static str, peer: u32, after: &[u64]) -> Node {
    let flags = Value::Bools(chakra::Flags { values: vec![true, false, true] });
    let attributes = [
        (key, Value::Uint32(peer)),
        ("comm_size", Value::Fixed64(8)),
        ("comm_tag", Value::Sint64(1)),
        ("involved_dim", flags),
    ];
    node(id, kind, after, &attributes)
}

fn collective(id: u64, kind: i64, after: &[u64], more: (&'static str, Value)) -> Node {
    let attributes = [("comm_type", Value::Int64(kind)), ("comm_size", Value::Int64(900)), more];
    node(id, COLLECTIVE, after, &attributes)
}

fn packed(trace: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(trace).expect("bytes");
    packer.finish().expect("bytes")
}

impl Base {
    /// A case of every kind of file; `own.yml` says which operations are traces of their own.
    fn new(own: &str, traces: impl Fn(u32) -> Vec<Node>) -> Self {
        let case = Case::new();
        let system = SYSTEM.replace(
            "\"local-mem-bw\"",
            "\"per-node-custom-implementation\": \"own.yml\", \"all-gather-implementation-custom\": [\"own\"], \
             \"reduce-scatter-implementation\": [\"direct2\"], \"peak-perf\": 9, \"roofline-enabled\": 0, \
             \"local-mem-bw\"",
        );
        let memory = "{\"memory-type\": \"PER_NODE_MEMORY_EXPANSION\", \"remote-mem-latency\": 3, \"remote-mem-bw\": 12, \
                      \"num-nodes\": 2, \"num-npus-per-node\": 2}";
        case.put("network.yml", NETWORK);
        case.put("system.json", system);
        case.put("memory.json", memory);
        case.put("groups.json", GROUPS);
        case.put("own.yml", own);
        for rank in 0..4 {
            let (next, last) = ((rank + 1) % 4, (rank + 3) % 4);
            let trace = chakra::trace(&traces(rank));
            case.put(&format!("w.{rank}.et"), if rank == 1 { packed(&trace) } else { trace });
            let nodes = [message(1, SEND, "comm_dst", next, &[]), message(2, RECEIVE, "comm_src", last, &[])];
            case.put(&format!("own.{rank}.et"), chakra::trace(&nodes));
        }
        let bytes = |name| std::fs::read(case.folder.path().join(name)).expect("a file");
        let files = CHANGED.map(|name| (name, bytes(name))).to_vec();
        Self { case, files }
    }

    /// Files that are all right: a rank does one thing of each kind.
    fn right() -> Self {
        Self::new("7: own\n70: own\n", |rank| {
            let (next, last) = ((rank + 1) % 4, (rank + 3) % 4);
            let group = Value::Text(if rank < 2 { "1" } else { "2" }.to_owned());
            let flags = |values| ("involved_dim", Value::Bools(chakra::Flags { values }));
            let work = [("num_ops", Value::Int64(1000)), ("tensor_size", Value::Int64(10))];
            let moved = [("tensor_size", Value::Uint64(4096))];
            vec![
                node(1, COMPUTE, &[], &work),
                collective(2, 0, &[1], flags(vec![true])),
                message(3, SEND, "comm_dst", next, &[1, 2]),
                message(4, RECEIVE, "comm_src", last, &[1, 2]),
                collective(5, 0, &[3, 4], ("pg_name", group)),
                node(6, LOAD, &[1], &moved),
                collective(7, 2, &[8, 9], flags(vec![true, true])),
                collective(8, 7, &[5], flags(vec![true])),
                collective(9, 5, &[8], flags(vec![])),
                node(10, COMPUTE, &[6], &[("is_cpu_op", Value::Bool(true))]),
            ]
        })
    }

    /// Files with a trap: the trace of a collective's own is that of the ranks, and it names itself.
    fn with_a_trap() -> Self {
        Self::new("2: w\n7: w\n", |_| {
            let mut nodes = right();
            nodes.push(message(3, SEND, "comm_dst", 1, &[1, 2]));
            nodes.push(message(4, RECEIVE, "comm_src", 3, &[1, 2]));
            nodes.push(collective(5, 0, &[3, 4], ("pg_name", Value::Text("1".into()))));
            nodes
        })
    }

    /// Puts a changed file in the place of one, which is told.
    fn change(&self, name: &str, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.files.iter().find(|file| file.0 == name).expect("a file that is changed").1.clone();
        let changes_nodes = name.contains(".et") && dice.roll(2) == 0;
        if changes_nodes {
            let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
            if is_packed {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).expect("a packed file");
                bytes = plain;
            }
            let mut nodes = chakra::nodes(&bytes);
            dice.change_nodes(&mut nodes);
            bytes = chakra::trace(&nodes);
            if dice.roll(4) == 0 {
                dice.change(&mut bytes);
            }
            if is_packed {
                bytes = packed(&bytes);
            }
        } else {
            dice.change(&mut bytes);
        }
        self.case.put(name, &bytes);
        bytes
    }

    /// Puts the file back.
    fn restore(&self, name: &str) {
        let file = self.files.iter().find(|file| file.0 == name).expect("a file that is changed");
        self.case.put(name, &file.1);
    }
}

/// How far files come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// Something is wrong in them.
    Nothing,
    /// They are right, but the trace has a fault, or it is refused.
    Check,
    /// So many events are simulated, and there are more.
    Limit,
    /// Some ranks wait for ever.
    Deadlock,
    /// All ranks are done.
    End,
}

/// Reads files, checks what they say and simulates it in a way.
fn reach(files: &Files, options: &Options, path: Path, despite_faults: bool) -> Reached {
    let Ok(Input { machine, trace, .. }) = read(files, options) else { return Reached::Nothing };
    let ask = Ask { path, limit: Some(EVENTS), ..Ask::default() };
    match simulate(&machine, &trace, ask, despite_faults) {
        Ok(answer) if answer.outcome.stuck.is_empty() => Reached::End,
        Ok(_) => Reached::Deadlock,
        Err(Impossible::Refused(Refused::Limit(_))) => Reached::Limit,
        Err(_) => Reached::Check,
    }
}

/// Changes a file again and again, for so long and so often at most, and tells what came of it.
fn fuzz(name: &str, dice: &mut Dice, most: u64, time: Duration) {
    let bases = [Base::right(), Base::with_a_trap()];
    let started = Instant::now();
    let mut came = [0_u64; 5];
    let (mut tried, mut longest) = (0_u64, Duration::ZERO);
    while tried < most && started.elapsed() < time {
        // The trap is rarely left, so it is tried less often.
        let base = &bases[usize::from(tried % 4 == 3)];
        let changed = base.change(name, dice);
        let options = Options {
            rules: dice.pick(&Rules::NAMED),
            congestion: dice.pick(&[Congestion::Unaware, Congestion::Unaware, Congestion::Aware]),
            rendezvous: dice.roll(4) == 0,
            heeds_scheduling_keys: dice.roll(2) == 0,
            ..base.case.options
        };
        let (path, despite_faults) = (dice.pick(&[Path::Automatic, Path::Messages]), dice.roll(2) == 0);
        let shown = || {
            let text = String::from_utf8_lossy(&changed).escape_debug().to_string();
            format!("{options:?}, {path:?}, despite faults: {despite_faults}\n{text}\nbytes: {changed:?}")
        };
        let begun = Instant::now();
        let reached = catch_unwind(AssertUnwindSafe(|| reach(&base.case.files, &options, path, despite_faults)));
        came[reached.unwrap_or_else(|_| panic!("{name} makes us panic: {}", shown())) as usize] += 1;
        let took = begun.elapsed();
        assert!(took < LONG, "{name} takes {took:?}: {}", shown());
        if took > longest {
            longest = took;
            println!("{name}: {took:?} for {}", if took > LONG / 10 { shown() } else { format!("try {tried}") });
        }
        tried += 1;
        base.restore(name);
    }
    let [wrong, faulty, long, stuck, ended] = came;
    println!(
        "{name}: {tried} tried, {} right ({faulty} faulty, {long} too long, {stuck} stuck, {ended} ended), {wrong} wrong, \
         the longest took {longest:?}, {} s",
        tried - wrong,
        started.elapsed().as_secs()
    );
    if tried >= 1000 {
        assert!(tried > wrong, "no changed {name} is right");
    }
}

#[test]
fn what_is_changed_is_right_before_and_comes_to_its_end() {
    let base = Base::right();
    let input = base.case.read().unwrap_or_else(|problems| panic!("{:#?}", problems.found));
    assert_eq!((input.trace.own.len(), input.trace.own[0].len()), (1, 4));
    assert!(input.machine.remote.is_some() && input.trace.groups.len() == 2);
    for rules in Rules::NAMED {
        let options = Options { rules, ..base.case.options };
        for path in [Path::Automatic, Path::Messages] {
            assert_eq!(reach(&base.case.files, &options, path, false), Reached::End, "{rules:?}");
        }
    }
    let trap = Base::with_a_trap();
    assert_eq!(reach(&trap.case.files, &trap.case.options, Path::Automatic, false), Reached::Nothing);
}

#[test]
fn no_bytes_make_us_panic_or_wait() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for name in CHANGED {
        fuzz(name, &mut dice, 300, LONG);
    }
}

/// One test for each file, so that each can be fuzzed alone, and two at a time.
macro_rules! fuzz_each {
    ($($test:ident: $name:literal;)+) => {
        $(
            #[test]
            #[ignore = "takes STARSWEEP_FUZZ_SECONDS"]
            fn $test() {
                let seconds = std::env::var("STARSWEEP_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
                fuzz($name, &mut Dice::new(), u64::MAX, Duration::from_secs(seconds.unwrap_or(5)));
            }
        )+

        #[test]
        fn each_file_that_is_changed_has_its_fuzz() {
            assert_eq!([$($name),+], CHANGED);
        }
    };
}

fuzz_each! {
    fuzz_network: "network.yml";
    fuzz_system: "system.json";
    fuzz_memory: "memory.json";
    fuzz_groups: "groups.json";
    fuzz_operations_of_their_own: "own.yml";
    fuzz_trace: "w.0.et";
    fuzz_compressed_trace: "w.1.et";
    fuzz_trace_of_a_collective: "own.0.et";
}
