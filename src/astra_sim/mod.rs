//! The reference simulator's own files: its network, system, memory and groups, and execution traces in Chakra's form [ASTRA2].
//!
//! What the reference would ignore or take otherwise than it says is remarked with its place; what cannot be right is refused,
//! all mistakes at once.

mod chakra;
mod content;
mod fields;
mod groups;
mod memory;
mod network;
mod record;
mod system;
mod trace;
mod write;

use std::path::{Path, PathBuf};

pub use fields::{Form, inverse, open};
pub use system::word as algorithm_word;
pub use trace::contents;
pub use write::{Failure, options, write, write_common, write_machine, write_rank, write_trace};

use crate::input::{Diagnostic, Remarks};
use crate::system::collective::Collective;
use crate::system::machine::{Congestion, Dimension, Machine, Own, Pace, RemoteMemory};
use crate::system::rules::{Quirk, Rules};
use crate::workload::trace::{Graph, Trace, Work};

/// The files of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The path of every rank's trace, without the rank and what follows it.
    pub workload: PathBuf,
    /// The system.
    pub system: PathBuf,
    /// The network.
    pub network: PathBuf,
    /// The memory beyond the NPUs' own, if there is one.
    pub memory: Option<PathBuf>,
    /// The communicator groups, if there are any.
    pub groups: Option<PathBuf>,
}

/// What the reference takes from its command line, and what it takes from nowhere any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Queues of a dimension.
    pub queues_per_dim: u32,
    /// By which the delay of an endpoint is multiplied, if the system file has one.
    pub injection_scale: f64,
    /// Whether a receiver asks for a message before it is sent.
    pub rendezvous: bool,
    /// Which of the reference's two programs is meant.
    pub congestion: Congestion,
    /// Whether the two keys of scheduling count, which the reference no longer reads.
    pub heeds_scheduling_keys: bool,
    /// Which quirks of the reference are in force; those that the files' numbers go through are taken as they are read.
    pub rules: Rules,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queues_per_dim: 1,
            injection_scale: 1.0,
            rendezvous: false,
            congestion: Congestion::Unaware,
            heeds_scheduling_keys: false,
            rules: Rules::ASTRA_SIM,
        }
    }
}

/// What the files say.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The machine.
    pub machine: Machine,
    /// What each rank does on it.
    pub trace: Trace,
    /// What is worth knowing.
    pub remarks: Remarks,
}

/// Everything that is wrong in the files, and what is worth knowing besides.
pub type Problems = Remarks;

/// A machine, and the collectives of its system file that are traces.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// The machine.
    pub machine: Machine,
    /// The prefixes of traces that its collectives are, by the places that [`Machine::own`] names.
    pub own: Vec<PathBuf>,
}

/// The pieces of a machine, each there if its file is right.
struct Pieces {
    dimensions: Option<Vec<Dimension>>,
    system: Option<(Machine, Vec<PathBuf>)>,
    /// Also none if the file says that there is no such memory.
    remote: Option<RemoteMemory>,
}

impl Pieces {
    fn read(files: &Files, options: &Options, remarks: &mut Remarks) -> Self {
        if options.queues_per_dim == 0 {
            remarks.say(Diagnostic::error("a dimension has no queue").help("one queue for each dimension, or more"));
        }
        if !options.injection_scale.is_finite() || options.injection_scale < 0.0 {
            remarks.say(Diagnostic::error("the scale of injection is no number from 0"));
        }
        let dimensions = network::read(&files.network, remarks);
        let count = dimensions.as_ref().map(Vec::len);
        let is_one = options.rules.has(Quirk::LowestDimension);
        if options.congestion == Congestion::Aware && is_one && count.is_some_and(|count| count > 1) {
            let message =
                format!("a network that is aware of congestion has one dimension, not {}", count.unwrap_or(0));
            remarks.say(Diagnostic::error(message).help("leave congestion out, or write a network of one dimension"));
        }
        let system = system::read(&files.system, count, options, remarks);
        let npus = dimensions.as_deref().map(ranks);
        let remote = files.memory.as_ref().and_then(|path| memory::read(path, npus, options.rules, remarks));
        Self { dimensions, system, remote }
    }

    fn join(self) -> Option<Parts> {
        let (machine, own) = self.system?;
        let machine = Machine { dimensions: self.dimensions?, remote: self.remote, ..machine };
        Some(Parts { machine, own })
    }
}

/// The ranks of a network.
fn ranks(dimensions: &[Dimension]) -> u32 {
    dimensions.iter().map(|dimension| dimension.size).product()
}

/// Reads the dimensions of a network file; none if something is wrong, which is remarked.
pub fn read_network(path: &Path, remarks: &mut Remarks) -> Option<Vec<Dimension>> {
    network::read(path, remarks)
}

/// Reads a system file as a machine without its network, with the prefixes of collectives that are traces; none if something is
/// wrong, which is remarked.
pub fn read_system(path: &Path, options: &Options, remarks: &mut Remarks) -> Option<(Machine, Vec<PathBuf>)> {
    system::read(path, None, options, remarks)
}

/// Reads a machine without a trace; none if something is wrong, which is remarked.
pub fn read_machine(files: &Files, options: &Options, remarks: &mut Remarks) -> Option<Parts> {
    let before = remarks.errors();
    let parts = Pieces::read(files, options, remarks).join();
    parts.filter(|_| remarks.errors() == before)
}

/// Reads the trace of a machine's ranks; none if something is wrong, which is remarked.
///
/// It depends on the number of ranks, on [`Machine::own`], on whether the trace is replayed and whether of operations with one
/// number the last counts, so machines that agree in these
/// may share it.
pub fn read_trace(files: &Files, parts: &Parts, remarks: &mut Remarks) -> Option<Trace> {
    let pieces = trace::Parts {
        workload: &files.workload,
        groups: files.groups.as_deref(),
        own: &parts.machine.own,
        own_prefixes: &parts.own,
        ranks: parts.machine.npus(),
        is_replayed: parts.machine.pace == Pace::Replayed,
        keeps_last: parts.machine.rules.has(Quirk::RepeatedNumbers),
    };
    trace::read(pieces, remarks)
}

/// Reads the graphs of a collective of so many members that is a trace of its own; none if something is wrong, which is remarked.
pub fn read_own(prefix: &Path, members: u32, remarks: &mut Remarks) -> Option<Vec<Graph>> {
    trace::read_own(prefix, members, remarks)
}

/// Reads the trace of so many ranks, with the collectives that are traces of their own and the prefixes of these; none if
/// something is wrong, which is remarked.
pub fn read_recorded(
    prefix: &Path,
    groups: Option<&Path>,
    ranks: u32,
    (own, own_prefixes): (&Own, &[PathBuf]),
    remarks: &mut Remarks,
) -> Option<Trace> {
    let pieces =
        trace::Parts { workload: prefix, groups, own, own_prefixes, ranks, is_replayed: false, keeps_last: false };
    trace::read(pieces, remarks)
}

/// Reads everything, and checks that the trace can run on the machine.
///
/// # Errors
/// Everything that is wrong, in all files.
pub fn read(files: &Files, options: &Options) -> Result<Input, Problems> {
    let mut remarks = Remarks::default();
    let pieces = Pieces::read(files, options, &mut remarks);
    let default = crate::system::machine::Own::default();
    let trace = pieces.dimensions.as_deref().and_then(|dimensions| {
        let (own, own_prefixes) =
            pieces.system.as_ref().map_or((&default, &[][..]), |(machine, own)| (&machine.own, own.as_slice()));
        let pieces = trace::Parts {
            workload: &files.workload,
            groups: files.groups.as_deref(),
            own,
            own_prefixes,
            ranks: ranks(dimensions),
            is_replayed: pieces.system.as_ref().is_some_and(|(machine, _)| machine.pace == Pace::Replayed),
            keeps_last: options.rules.has(Quirk::RepeatedNumbers),
        };
        trace::read(pieces, &mut remarks)
    });
    let (Some(Parts { machine, .. }), Some(trace)) = (pieces.join(), trace) else { return Err(remarks) };
    if remarks.errors() == 0 {
        fit(&machine, &trace, &mut remarks);
    }
    if remarks.errors() > 0 { Err(remarks) } else { Ok(Input { machine, trace, remarks }) }
}

/// Checks that a trace has what a machine needs of it, and the machine what the trace asks for.
pub fn fit(machine: &Machine, trace: &Trace, remarks: &mut Remarks) {
    if let Err(contradiction) = machine.check() {
        remarks.say(Diagnostic::error(contradiction.to_string()));
    }
    if machine.pace == Pace::Replayed {
        return;
    }
    let mut lacking: [Option<String>; Collective::ALL.len()] = Default::default();
    let (mut unknown, mut moves, mut strange) = (None, None, None);
    for (place, graph) in (0..).zip(&trace.graphs) {
        let rank = || trace.of_rank.iter().position(|&of| of == place).unwrap_or(0);
        for node in graph.nodes() {
            let name = || format!("operation {} of rank {}", node.id, rank());
            match node.work {
                Work::Collective { collective: Collective::Scatter, .. } if machine.rules == Rules::ASTRA_SIM => {
                    strange.get_or_insert_with(name);
                }
                Work::Collective { collective, .. } if !machine.is_delay(collective) => {
                    let k = collective as usize;
                    let has = !machine.algorithms[k].is_empty()
                        || machine.own.of_collective[k].is_some()
                        || machine.own.of_operation.contains_key(&node.id);
                    if !has {
                        lacking[system::like(collective) as usize].get_or_insert_with(name);
                    }
                }
                Work::Compute { operations, bytes }
                    if !node.on_host
                        && matches!(machine.pace, Pace::Roofline { .. })
                        && (operations.is_none() || bytes.is_none()) =>
                {
                    unknown.get_or_insert_with(name);
                }
                Work::Load { .. } | Work::Store { .. } if machine.remote.is_none() => {
                    moves.get_or_insert_with(name);
                }
                _ => {}
            }
        }
    }
    for (name, collective) in system::COLLECTIVES {
        if let Some(operation) = &lacking[collective as usize] {
            let message = format!("{operation} needs an algorithm for {name}, and the system file has none");
            remarks.say(Diagnostic::error(message).help(format!("write `\"{name}-implementation\": [\"ring\"]`")));
        }
    }
    if let Some(operation) = strange {
        let message = format!("{operation} is a SCATTER, which the reference simulator does not know");
        remarks.say(Diagnostic::error(message).help("write `--rules ours`: there it is sent"));
    }
    if let Some(operation) = unknown {
        let message = format!("{operation} lacks `num_ops` or `tensor_size`, and the roofline needs both");
        remarks.say(Diagnostic::error(message).help("write `\"roofline-enabled\": 0`, and recorded durations count"));
    }
    if let Some(operation) = moves {
        let message = format!("{operation} uses a memory beyond the NPU's own, and the machine has none");
        let help = "name a memory file, with a `memory-type` other than `NO_MEMORY_EXPANSION`";
        remarks.say(Diagnostic::error(message).help(help));
    }
}
