//! The system file of the reference simulator: how collectives are cut, queued and carried out, and how long things take.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Options;
use super::fields::{Fields, Form, counted, open};
use crate::input::diagnostic::suggest;
use crate::input::tree::Value;
use crate::input::{Place, Remarks};
use crate::system::collective::{Algorithm, Collective};
use crate::system::dimension_order::DimensionOrder;
use crate::system::machine::{Bus, Entry, Hierarchy, Machine, Own, Pace};
use crate::system::queue_order::QueueOrder;
use crate::system::rules::Quirk;
use crate::units::{single, whole};

/// What the file is, in remarks.
const WHAT: &str = "the system file";

/// Collectives as the keys name them.
pub const COLLECTIVES: [(&str, Collective); 4] = [
    ("all-reduce", Collective::AllReduce),
    ("reduce-scatter", Collective::ReduceScatter),
    ("all-gather", Collective::AllGather),
    ("all-to-all", Collective::AllToAll),
];

/// The collective whose algorithms one has: its own, or those of what it resembles.
#[must_use]
pub const fn like(collective: Collective) -> Collective {
    match collective {
        Collective::Broadcast => Collective::AllReduce,
        Collective::Scatter => Collective::ReduceScatter,
        own => own,
    }
}

/// What follows the name of a collective in the key of its algorithms.
const ALGORITHMS: &str = "-implementation";
/// What follows it in the key of its own trace.
const CUSTOM: &str = "-implementation-custom";
/// Traces of their own by the number of an operation.
const PER_OPERATION: &str = "per-node-custom-implementation";
/// Orders of dimensions, which the reference no longer reads.
const DIMENSION_ORDER: &str = "inter-dimension-scheduling";
/// Orders of queues, which the reference no longer reads.
const QUEUE_ORDER: &str = "intra-dimension-scheduling";
/// Into how many chunks a collective is cut.
const CHUNKS: &str = "preferred-dataset-splits";
/// Keys that are read, beside those of collectives.
const KEYS: [&str; 21] = [
    "scheduling-policy",
    "collective-optimization",
    "endpoint-delay",
    "active-chunks-per-dimension",
    CHUNKS,
    PER_OPERATION,
    "local-mem-bw",
    "peak-perf",
    "roofline-enabled",
    "replay-only",
    "trace-enabled",
    "track-local-mem",
    "local-mem-trace-filename",
    "model-shared-bus",
    "L",
    "o",
    "g",
    "G",
    "local-reduction-delay",
    DIMENSION_ORDER,
    QUEUE_ORDER,
];
/// Keys that the reference's own examples have and that count for nothing.
const IDLE: [&str; 2] = ["boost-mode", "seprate-log"];

/// Words for the orders of dimensions.
pub const DIMENSION_ORDERS: [(&str, DimensionOrder); 4] = [
    ("ascending", DimensionOrder::Ascending),
    ("roundRobin", DimensionOrder::RoundRobin),
    ("offlineGreedy", DimensionOrder::Themis),
    ("offlineGreedyFlex", DimensionOrder::ThemisFlex),
];
/// Words for the orders of queues.
pub const QUEUE_ORDERS: [(&str, QueueOrder); 4] = [
    ("FIFO", QueueOrder::Fifo),
    ("RG", QueueOrder::Rg),
    ("smallestFirst", QueueOrder::SmallestFirst),
    ("lessRemainingPhaseFirst", QueueOrder::LessRemainingPhaseFirst),
];
/// Words for the shapes of an all-reduce.
pub const HIERARCHIES: [(&str, Hierarchy); 2] =
    [("baseline", Hierarchy::PerDimension), ("localBWAware", Hierarchy::ScatterGather)];
/// Words for algorithms, without windows.
const ALGORITHM_WORDS: [(&str, Algorithm); 4] = [
    ("ring", Algorithm::Ring),
    ("direct", Algorithm::Direct),
    ("halvingDoubling", Algorithm::HalvingDoubling),
    ("doubleBinaryTree", Algorithm::DoubleBinaryTree),
];

/// Reads a machine without its network and remote memory, and the traces of collectives that are graphs.
///
/// `dimensions` says how many the network has, if that is known. None if something is wrong, which is remarked.
pub fn read(
    path: &Path,
    dimensions: Option<usize>,
    options: &Options,
    remarks: &mut Remarks,
) -> Option<(Machine, Vec<PathBuf>)> {
    let node = open(path, WHAT, Form::Json, remarks)?;
    let before = remarks.errors();
    let mut fields = Fields::new(&node, WHAT, remarks);
    report_unread(&mut fields);
    let lists = COLLECTIVES.map(|(name, collective)| (collective, algorithms(name, dimensions, &mut fields)));
    let list = |collective: Collective| lists.iter().find(|list| list.0 == like(collective));
    let algorithms = Collective::ALL.map(|collective| list(collective).map_or_else(Vec::new, |list| list.1.clone()));
    let (own, traces) = own(path, &mut fields);
    let roofline = fields.switch("roofline-enabled").unwrap_or(false);
    let memory_bandwidth = memory_bandwidth(roofline, &mut fields);
    let machine = Machine {
        dimensions: Vec::new(),
        congestion: options.congestion,
        algorithms,
        hierarchy: hierarchy(&mut fields),
        chunks: chunks(!traces.is_empty(), &mut fields),
        own,
        active_chunks: fields.count("active-chunks-per-dimension", 1).unwrap_or(1),
        queues: options.queues_per_dim,
        endpoint_delay: endpoint_delay(options, &mut fields),
        memory_bandwidth,
        pace: pace(roofline, memory_bandwidth, &mut fields),
        remote: None,
        bus: bus(&mut fields),
        rendezvous: options.rendezvous,
        dimension_order: order(DIMENSION_ORDER, &DIMENSION_ORDERS, options, &mut fields),
        queue_order: order(QUEUE_ORDER, &QUEUE_ORDERS, options, &mut fields),
        rules: options.rules,
    };
    policy(&mut fields);
    (remarks.errors() == before).then_some((machine, traces))
}

/// Says which keys count for nothing.
fn report_unread(fields: &mut Fields<'_>) {
    let of_collectives =
        COLLECTIVES.iter().flat_map(|(name, _)| [ALGORITHMS, CUSTOM].map(|end| format!("{name}{end}")));
    let of_collectives: Vec<String> = of_collectives.collect();
    let known: Vec<&str> = KEYS.into_iter().chain(IDLE).chain(of_collectives.iter().map(String::as_str)).collect();
    fields.unknown(&known);
    for key in IDLE {
        if let Some(entry) = fields.entry(key) {
            fields.caution(
                entry.place,
                format!("`{key}` counts for nothing"),
                "the reference simulator does not read it either",
            );
        }
    }
    let tracks = fields.switch("track-local-mem") == Some(true);
    if let (true, Some(entry)) = (tracks, fields.entry("track-local-mem")) {
        let message = "`track-local-mem` is on: which tensors live in the local memory is not told here";
        fields.caution(entry.place, message, "times are those without it");
    }
}

/// The algorithms of a collective, one for each dimension.
fn algorithms(name: &str, dimensions: Option<usize>, fields: &mut Fields<'_>) -> Vec<Entry> {
    let key = format!("{name}{ALGORITHMS}");
    let Some(items) = fields.list(&key) else { return Vec::new() };
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        let entry = fields.text(&key, item).and_then(|text| {
            entry(text).map_err(|help| fields.error(item.place, format!("`{key}` knows no `{text}`"), help)).ok()
        });
        entries.extend(entry);
    }
    let Some(dimensions) = dimensions else { return entries };
    let place = fields.get(&key).map_or_else(Place::default, |node| node.place);
    if items.len() > dimensions {
        let message =
            format!("`{key}` has {} for {}", counted(items.len(), "algorithm"), counted(dimensions, "dimension"));
        fields.error(place, message, "one algorithm for each dimension, innermost first");
    } else if items.len() < dimensions && !entries.iter().any(|entry| entry.whole) {
        let message =
            format!("`{key}` has {} for {}", counted(items.len(), "algorithm"), counted(dimensions, "dimension"));
        fields.caution(place, message, "the outer dimensions take no part, as in the reference simulator");
    }
    entries
}

/// The algorithm that a word means; or what to write.
fn entry(text: &str) -> Result<Entry, String> {
    let (plain, whole) = match text.strip_prefix("one").and_then(|rest| rest.chars().next().map(|first| (first, rest)))
    {
        Some((first, rest)) if first.is_ascii_uppercase() => {
            (format!("{}{}", first.to_ascii_lowercase(), &rest[first.len_utf8()..]), true)
        }
        _ => (text.to_owned(), false),
    };
    if let Some(&(name, algorithm)) = ALGORITHM_WORDS.iter().find(|word| word.0 == plain) {
        return match algorithm {
            Algorithm::DoubleBinaryTree if whole => Err(format!("it runs on one dimension alone: write `{name}`")),
            algorithm => Ok(Entry { whole, ..Entry::of(algorithm) }),
        };
    }
    if let Some(window) = plain.strip_prefix("direct") {
        let direct = |window| Ok(Entry { algorithm: Algorithm::Direct, window, whole });
        return match window.parse::<i32>() {
            Ok(-1) => direct(None),
            Ok(window) if window > 0 => direct(Some(window.unsigned_abs())),
            _ => Err("`direct8` has at most 8 messages under way, `direct` all".to_owned()),
        };
    }
    let whole = ["oneRing", "oneDirect", "oneHalvingDoubling"];
    Err(suggest(text, ALGORITHM_WORDS.iter().map(|word| word.0).chain(whole)).unwrap_or_default())
}

/// The word for an algorithm.
#[must_use]
pub fn word(entry: Entry) -> String {
    let name = ALGORITHM_WORDS.iter().find(|word| word.1 == entry.algorithm).map_or("", |word| word.0);
    let window = entry.window.filter(|_| entry.algorithm == Algorithm::Direct);
    let plain = window.map_or_else(|| name.to_owned(), |window| format!("{name}{window}"));
    if entry.whole { format!("one{}{}", plain[..1].to_uppercase(), &plain[1..]) } else { plain }
}

/// The collectives that are traces of their own, and the prefixes of these.
fn own(file: &Path, fields: &mut Fields<'_>) -> (Own, Vec<PathBuf>) {
    let (mut own, mut traces) = (Own::default(), Vec::new());
    let number = |prefix: &str, traces: &mut Vec<PathBuf>| {
        let prefix = beside(file, prefix);
        let place = traces.iter().position(|known| *known == prefix).unwrap_or_else(|| {
            traces.push(prefix);
            traces.len() - 1
        });
        crate::units::narrow(place as u64)
    };
    for (name, collective) in COLLECTIVES {
        let key = format!("{name}{CUSTOM}");
        let Some(items) = fields.list(&key) else { continue };
        if let [item] = items {
            own.of_collective[collective as usize] = fields.text(&key, item).map(|prefix| number(prefix, &mut traces));
        } else if let Some(node) = fields.get(&key) {
            let message = format!("`{key}` names {} traces", items.len());
            fields.error(node.place, message, "it names one: the path before `.0.et`");
        }
    }
    if let Some(node) = fields.get(PER_OPERATION)
        && let Some(path) = fields.text(PER_OPERATION, node)
    {
        let prefixes = per_operation(&beside_file(file, path), fields.remarks).unwrap_or_default();
        own.of_operation = prefixes.iter().map(|(&id, prefix)| (id, number(prefix, &mut traces))).collect();
    }
    (own, traces)
}

/// The prefixes of traces by the number of an operation, a file of its own.
fn per_operation(path: &Path, remarks: &mut Remarks) -> Option<BTreeMap<u64, String>> {
    let what = "the file of operations with traces of their own";
    let node = open(path, what, Form::Yaml, remarks)?;
    let mut fields = Fields::new(&node, what, remarks);
    let Value::Map(entries) = &node.value else { return None };
    let mut found = BTreeMap::new();
    for entry in entries {
        match entry.key.parse::<u64>() {
            Ok(id) => {
                let prefix = fields.text(&entry.key, &entry.node)?;
                found.insert(id, prefix.to_owned());
            }
            Err(_) => {
                fields.error(entry.place, format!("`{}` is no number of an operation", entry.key), "`12: prefix`");
            }
        }
    }
    Some(found)
}

/// The prefix of a trace: as seen from the folder in which we are, or else from that of the file which names it.
fn beside(file: &Path, prefix: &str) -> PathBuf {
    let there = |prefix: &Path| {
        [".0.et", ".0.et.gz"].iter().any(|end| {
            let mut path = prefix.as_os_str().to_owned();
            path.push(end);
            Path::new(&path).exists()
        })
    };
    candidates(file, prefix).find(|prefix| there(prefix)).unwrap_or_else(|| PathBuf::from(prefix))
}

/// The path of a file: likewise.
fn beside_file(file: &Path, path: &str) -> PathBuf {
    candidates(file, path).find(|path| path.exists()).unwrap_or_else(|| PathBuf::from(path))
}

/// Where a path that a file names may lead: from here, from the file's folder, from the one above.
fn candidates(file: &Path, path: &str) -> impl Iterator<Item = PathBuf> {
    const ABOVE: usize = 2;
    let folders = file.ancestors().skip(1).take(ABOVE).map(move |folder| folder.join(path));
    std::iter::once(PathBuf::from(path)).chain(folders)
}

fn hierarchy(fields: &mut Fields<'_>) -> Hierarchy {
    let key = "collective-optimization";
    if fields.entry(key).is_none() {
        let help = "the reference simulator reads memory that nobody wrote: write one of `localBWAware`, `baseline`";
        fields.missing(false, format!("{WHAT} lacks `{key}`: `localBWAware` counts"), help);
    }
    fields.word(key, &HIERARCHIES).unwrap_or(Hierarchy::ScatterGather)
}

/// Checks the policy, which changes nothing: a rank is in one collective at a time.
fn policy(fields: &mut Fields<'_>) {
    let key = "scheduling-policy";
    if fields.entry(key).is_none() {
        let help = "the reference simulator reads memory that nobody wrote: write one of `FIFO`, `LIFO`, `EXPLICIT`";
        fields.missing(false, format!("{WHAT} lacks `{key}`: `FIFO` counts"), help);
    }
    fields.word(key, &[("FIFO", ()), ("LIFO", ()), ("EXPLICIT", ())]);
}

fn chunks(has_own: bool, fields: &mut Fields<'_>) -> u64 {
    if fields.entry(CHUNKS).is_none() {
        let help = format!("write `\"{CHUNKS}\": 1`; the reference simulator divides by zero");
        fields.missing(true, format!("{WHAT} lacks `{CHUNKS}`, into how many chunks a collective is cut"), help);
    }
    let chunks = fields.count(CHUNKS, 1).unwrap_or(1);
    if let (true, true, Some(node)) = (has_own, chunks > 1, fields.get(CHUNKS)) {
        let message = format!("a collective with a trace of its own is one chunk, whatever `{CHUNKS}` says");
        fields.caution(node.place, message, "the reference simulator never ends unless it is 1");
    }
    u64::from(chunks)
}

/// Nanoseconds of an endpoint; scaled only if the file has the key, as the reference does.
fn endpoint_delay(options: &Options, fields: &mut Fields<'_>) -> f64 {
    const KEY: &str = "endpoint-delay";
    const DEFAULT: f64 = 10.0;
    let scale = options.injection_scale;
    let Some(node) = fields.get(KEY) else {
        if scale != 1.0 {
            let message = format!("the scale of injection counts for nothing: {WHAT} lacks `{KEY}`");
            fields.missing(false, message, format!("write `\"{KEY}\": {DEFAULT}`, and it is scaled"));
        }
        return DEFAULT;
    };
    let delay = fields.number(KEY).unwrap_or(0.0);
    if !(0.0..=f64::from(i32::MAX)).contains(&delay) {
        let help = format!("nanoseconds, from 0 to {}", i32::MAX);
        fields.error(node.place, format!("`{KEY}` is {delay}"), help);
    }
    if options.rules.has(Quirk::WholeNanoseconds) {
        fields.cut(KEY, node.place, delay);
        return (delay.trunc() * scale).trunc();
    }
    delay * scale
}

/// Bytes a second of the local memory.
fn memory_bandwidth(roofline: bool, fields: &mut Fields<'_>) -> f64 {
    let key = "local-mem-bw";
    let place = fields.get(key).map(|node| node.place);
    let bandwidth = match fields.number(key) {
        Some(gigabytes) => gigabytes * 1e9,
        None if place.is_some() => return f64::INFINITY,
        None => 0.0,
    };
    let is_error = roofline || bandwidth < 0.0;
    if bandwidth <= 0.0 {
        let message = match (place, roofline) {
            (_, true) => format!("the roofline needs `{key}`, gigabytes a second above 0"),
            (None, _) => format!("{WHAT} lacks `{key}`: reductions cost nothing"),
            (Some(_), _) if is_error => format!("`{key}` is below 0"),
            (Some(_), _) => format!("`{key}` is 0: reductions cost nothing"),
        };
        let help = "gigabytes a second of the local memory, 10^9 bytes each";
        match place {
            Some(place) if is_error => fields.error(place, message, help),
            Some(place) => fields.caution(place, message, help),
            None => fields.missing(is_error, message, help),
        }
        return f64::INFINITY;
    }
    bandwidth
}

fn pace(roofline: bool, memory_bandwidth: f64, fields: &mut Fields<'_>) -> Pace {
    let key = "peak-perf";
    let replays = fields.switch("replay-only").unwrap_or(false);
    let peak = fields.number(key);
    if replays {
        return Pace::Replayed;
    }
    if !roofline {
        return Pace::Recorded;
    }
    let peak = peak.unwrap_or(0.0) * 1e12;
    if peak <= 0.0 {
        let message = format!("the roofline needs `{key}`, a peak above 0");
        let help = "teraflops a second, 10^12 operations each";
        match fields.get(key) {
            Some(node) => fields.error(node.place, message, help),
            None => fields.missing(true, message, help),
        }
    }
    Pace::Roofline { peak, memory: memory_bandwidth }
}

fn bus(fields: &mut Fields<'_>) -> Option<Bus> {
    let [latency, overhead, gap, per_byte] = ["L", "o", "g", "G"].map(|key| {
        let number = fields.number(key).unwrap_or(0.0);
        if let (true, Some(node)) = (number < 0.0, fields.get(key)) {
            fields.error(node.place, format!("`{key}` is below 0"), "nanoseconds");
        }
        single(number)
    });
    let processing = fields.count("local-reduction-delay", 0).unwrap_or(1);
    let key = "model-shared-bus";
    let is_on = fields.switch(key).unwrap_or(false);
    if let (true, Some(node)) = (is_on, fields.get(key))
        && node.value != Value::Number(1.0)
    {
        fields.caution(
            node.place,
            format!("`{key}` is on here"),
            "in the reference simulator the number 1 alone is on",
        );
    }
    is_on.then(|| Bus {
        latency: whole(latency),
        overhead: whole(overhead),
        gap: whole(gap),
        per_byte,
        processing: u64::from(processing),
    })
}

/// An order that the reference knows and no longer reads: heeded only if that is asked for.
fn order<T: Copy + PartialEq>(key: &str, words: &[(&str, T)], options: &Options, fields: &mut Fields<'_>) -> T {
    let (default, otherwise) = (words[0].1, words[0].0);
    let Some(node) = fields.get(key) else { return default };
    if options.heeds_scheduling_keys || !options.rules.has(Quirk::SchedulingKeysIgnored) {
        return fields.word(key, words).unwrap_or(default);
    }
    if node.scalar().as_deref() != Some(otherwise) {
        let message = format!("`{key}` counts for nothing: `{otherwise}` is what happens");
        let help =
            "the reference simulator no longer reads it; ask for scheduling keys to be heeded, and it counts here";
        fields.caution(node.place, message, help);
    }
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_algorithms_are_read_and_written() {
        for text in ["ring", "direct", "direct8", "halvingDoubling", "doubleBinaryTree", "oneRing", "oneDirect3"] {
            assert_eq!(entry(text).map(word), Ok(text.to_owned()));
        }
        assert_eq!(entry("oneHalvingDoubling").map(|entry| entry.whole), Ok(true));
        for (wrong, help) in [
            ("rings", "did you mean `ring`?"),
            ("direct0", "`direct8` has at most 8 messages under way, `direct` all"),
            ("oneDoubleBinaryTree", "it runs on one dimension alone: write `doubleBinaryTree`"),
        ] {
            assert_eq!(entry(wrong), Err(help.to_owned()));
        }
    }
}
