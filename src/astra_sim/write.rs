//! A machine and a trace as files of the reference simulator: what is read from them again is the same.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::chakra::{COMM_TYPES, kind};
use super::fields::{inverse, number};
use super::record::{Written, append, put_after, put_attribute, put_bytes, put_number};
use super::system::{COLLECTIVES, DIMENSION_ORDERS, HIERARCHIES, QUEUE_ORDERS, word};
use super::{Files, Options, groups, memory, network, trace};
use crate::system::MAX_DIMS;
use crate::system::collective::Collective;
use crate::system::machine::{Machine, Pace};
use crate::workload::trace::{Graph, Group, Node, Trace, Work};

/// Why files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file could not be written.
    #[error("cannot write `{}`", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The files know no such thing.
    #[error("{0}")]
    Inexpressible(String),
}

/// What the files do not say and the reference takes from its command line.
#[must_use]
pub const fn options(machine: &Machine) -> Options {
    Options {
        queues_per_dim: machine.queues,
        injection_scale: 1.0,
        rendezvous: machine.rendezvous,
        congestion: machine.congestion,
        heeds_scheduling_keys: true,
        rules: machine.rules,
    }
}

/// Writes a machine and what its ranks do into a folder, which is there.
///
/// # Errors
/// If a file cannot be written, or the files know no such machine or trace.
pub fn write(machine: &Machine, trace: &Trace, folder: &Path) -> Result<Files, Failure> {
    let files = write_machine(machine, &trace.groups, folder)?;
    write_trace(trace, &files.workload)?;
    for (k, members) in trace.own.iter().enumerate() {
        for (member, graph) in (0..).zip(members) {
            write_rank(graph, &[], &folder.join(own(k)), member)?;
        }
    }
    Ok(files)
}

/// Writes a machine and the groups of its ranks into a folder, which is there; the path of their traces is in the answer.
///
/// # Errors
/// If a file cannot be written, or the files know no such machine.
pub fn write_machine(machine: &Machine, groups: &[Group], folder: &Path) -> Result<Files, Failure> {
    let files = Files {
        workload: folder.join("trace"),
        system: folder.join("system.json"),
        network: folder.join("network.yml"),
        memory: Some(folder.join("memory.json")),
        groups: (!groups.is_empty()).then(|| folder.join("groups.json")),
    };
    put(&files.network, network::write(&machine.dimensions))?;
    put(&files.system, system(machine)?)?;
    if let Some(path) = &files.memory {
        put(path, memory::write(machine.remote, machine.npus()))?;
    }
    if let Some(path) = &files.groups {
        put(path, groups::write(groups))?;
    }
    if !machine.own.of_operation.is_empty() {
        put(&folder.join(PER_OPERATION), per_operation(machine))?;
    }
    Ok(files)
}

/// Writes the graph of one rank, whose collectives name some of these groups; the file's name is a prefix and what the reference
/// puts behind it.
///
/// # Errors
/// If the file cannot be written, or an operation cannot be said.
pub fn write_rank(graph: &Graph, groups: &[Group], prefix: &Path, rank: u32) -> Result<(), Failure> {
    put(&trace::path(prefix, rank), records(graph, groups)?)
}

/// Writes the graph of all ranks as one file, which the reference does not know.
///
/// # Errors
/// If the file cannot be written, or an operation cannot be said.
pub fn write_common(graph: &Graph, prefix: &Path) -> Result<(), Failure> {
    put(&trace::common(prefix), records(graph, &[])?)
}

/// Writes the graphs of all ranks, a file each, their names a prefix and what the reference puts behind it.
///
/// # Errors
/// If a file cannot be written, or an operation cannot be said.
pub fn write_trace(trace: &Trace, prefix: &Path) -> Result<(), Failure> {
    let texts: Vec<Vec<u8>> =
        trace.graphs.iter().map(|graph| records(graph, &trace.groups)).collect::<Result<_, _>>()?;
    for (rank, &graph) in (0..).zip(&trace.of_rank) {
        put(&trace::path(prefix, rank), &texts[graph as usize])?;
    }
    Ok(())
}

fn put(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(path, content).map_err(|source| Failure::File { path: path.to_owned(), source })
}

/// The file of operations with traces of their own.
const PER_OPERATION: &str = "operations.yml";

/// The prefix of a collective's own trace.
fn own(place: usize) -> String {
    format!("own{place}")
}

fn per_operation(machine: &Machine) -> String {
    let mut text = String::new();
    for (id, &place) in &machine.own.of_operation {
        let _ = writeln!(text, "{id}: {}", own(place as usize));
    }
    text
}

/// The word that stands for a value.
fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Json {
    words.iter().find(|word| word.1 == *value).map_or(Json::Null, |word| word.0.into())
}

/// The text of a system file.
fn system(machine: &Machine) -> Result<String, Failure> {
    let mut file = Map::new();
    let mut set = |key: &str, value: Json| file.insert(key.to_owned(), value);
    set("scheduling-policy", "FIFO".into());
    set("collective-optimization", word_of(&HIERARCHIES, &machine.hierarchy));
    set("inter-dimension-scheduling", word_of(&DIMENSION_ORDERS, &machine.dimension_order));
    set("intra-dimension-scheduling", word_of(&QUEUE_ORDERS, &machine.queue_order));
    set("endpoint-delay", number(machine.endpoint_delay));
    set("active-chunks-per-dimension", machine.active_chunks.into());
    set("preferred-dataset-splits", machine.chunks.into());
    for (name, collective) in COLLECTIVES {
        let k = collective as usize;
        if !machine.algorithms[k].is_empty() {
            let words: Vec<String> = machine.algorithms[k].iter().map(|entry| word(*entry)).collect();
            set(&format!("{name}-implementation"), words.into());
        }
        if let Some(place) = machine.own.of_collective[k] {
            set(&format!("{name}-implementation-custom"), vec![own(place as usize)].into());
        }
    }
    if !machine.own.of_operation.is_empty() {
        set("per-node-custom-implementation", PER_OPERATION.into());
    }
    if machine.memory_bandwidth.is_finite() {
        set("local-mem-bw", number(scaled(machine.memory_bandwidth, 1e9)));
    }
    match machine.pace {
        Pace::Recorded => {}
        Pace::Replayed => drop(set("replay-only", 1.into())),
        Pace::Roofline { memory, .. } if memory != machine.memory_bandwidth => {
            let why = "reductions and the roofline have one bandwidth of the local memory in a system file";
            return Err(Failure::Inexpressible(why.to_owned()));
        }
        Pace::Roofline { peak, .. } => {
            set("roofline-enabled", 1.into());
            set("peak-perf", number(scaled(peak, 1e12)));
        }
    }
    if let Some(bus) = machine.bus {
        set("model-shared-bus", 1.into());
        for (key, time) in [("L", bus.latency), ("o", bus.overhead), ("g", bus.gap)] {
            set(key, time.into());
        }
        set("G", number(bus.per_byte));
        set("local-reduction-delay", bus.processing.into());
    }
    Ok(format!("{:#}\n", Json::Object(file)))
}

/// The number which a unit makes a value of.
fn scaled(value: f64, unit: f64) -> f64 {
    inverse(value, value / unit, |it| it * unit)
}

/// The records of a graph.
fn records(graph: &Graph, groups: &[Group]) -> Result<Vec<u8>, Failure> {
    let mut after: Vec<Vec<u64>> = vec![Vec::new(); graph.nodes().len()];
    for (place, node) in graph.nodes().iter().enumerate() {
        for &follower in graph.followers(place) {
            after[follower as usize].push(node.id);
        }
    }
    let (mut bytes, mut record) = (Vec::new(), Vec::new());
    put_bytes(1, b"0.0.4", &mut record);
    append(&record, &mut bytes);
    for (place, (node, after)) in graph.nodes().iter().zip(&after).enumerate() {
        record.clear();
        operation(node, graph.name(place), after, groups, &mut record)
            .map_err(|why| Failure::Inexpressible(format!("operation {}: {why}", node.id)))?;
        append(&record, &mut bytes);
    }
    Ok(bytes)
}

/// The record of an operation.
fn operation(node: &Node, name: &str, after: &[u64], groups: &[Group], to: &mut Vec<u8>) -> Result<(), String> {
    put_number(1, node.id, to);
    put_bytes(2, name.as_bytes(), to);
    put_number(3, kind_of(node.work), to);
    put_after(after, to);
    if !node.recorded.is_multiple_of(1000) {
        return Err(format!("it lasts {} ns, and a trace has whole microseconds", node.recorded));
    }
    put_number(7, node.recorded / 1000, to);
    put_attribute("is_cpu_op", Written::Flag(node.on_host), to);
    let mut whole = |name: &str, number: u64| put_attribute(name, Written::Whole(number), to);
    match node.work {
        Work::Nothing => {}
        Work::Sum { .. } => return Err("it is the sum of others".to_owned()),
        Work::Lasts { .. } => return Err("a trace has no time of its own for it".to_owned()),
        Work::Compute { operations, bytes } => {
            for (name, number) in [("num_ops", operations), ("tensor_size", bytes)] {
                if let Some(number) = number {
                    whole(name, number);
                }
            }
        }
        Work::Load { bytes } | Work::Store { bytes } => whole("tensor_size", bytes),
        Work::Send { to: peer, bytes, tag } | Work::Receive { from: peer, bytes, tag } => {
            if u32::try_from(tag).is_err() {
                return Err(format!("tag {tag} has more than 32 bits"));
            }
            let is_send = matches!(node.work, Work::Send { .. });
            whole(if is_send { "comm_dst" } else { "comm_src" }, peer.into());
            whole("comm_size", bytes);
            whole("comm_tag", tag);
        }
        Work::Collective { collective, bytes, group, dimensions } => {
            let Some(number) = COMM_TYPES.iter().position(|entry| entry.1 == Some(collective)) else {
                return Err(format!("no trace has a {}", Collective::NAMES[collective as usize]));
            };
            whole("comm_type", number as u64);
            whole("comm_size", bytes);
            if let Some(group) = group {
                let group = groups.get(group as usize).ok_or("it names a group that is not there")?;
                put_attribute("pg_name", Written::Text(&group.id.to_string()), to);
            }
            if group.is_none() && dimensions != u32::MAX {
                let last = MAX_DIMS.max(32 - dimensions.leading_zeros() as usize);
                let flags: Vec<u8> = (0..last).map(|k| u8::from(dimensions >> k & 1 == 1)).collect();
                put_attribute("involved_dim", Written::Flags(&flags), to);
            }
        }
    }
    Ok(())
}

/// The kind of node that does some work.
const fn kind_of(work: Work) -> u64 {
    match work {
        Work::Nothing | Work::Sum { .. } => kind::INVALID,
        Work::Compute { .. } | Work::Lasts { .. } => kind::COMPUTE,
        Work::Load { .. } => kind::LOAD,
        Work::Store { .. } => kind::STORE,
        Work::Send { .. } => kind::SEND,
        Work::Receive { .. } => kind::RECEIVE,
        Work::Collective { .. } => kind::COLLECTIVE,
    }
}
