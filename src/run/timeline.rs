//! The timeline: what every rank did when, as trace events that Perfetto and Chrome open.
//!
//! The file is a JSON array. Every rank that was simulated is a process, named with those for which it stands; every kind of
//! thing that it does has as many threads as go on at once. Times are microseconds with three decimals: whole nanoseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::simulate::alike;
use crate::engine::event_driven::Outcome;
use crate::engine::event_driven::outcome::Span;
use crate::system::collective::Collective;
use crate::units::Time;
use crate::workload::trace::fault::ranks_text;
use crate::workload::trace::{Node, Trace, Work};

/// A timeline cannot be written.
#[derive(Debug, Error)]
#[error("cannot write the timeline `{}`", .path.display())]
pub struct Unwritten {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// Kinds of what a rank does.
const KINDS: [&str; 4] = ["compute", "communication", "host", "receive"];
/// The first thread that is not the first of its kind: receives have none of their own.
const FIRST: usize = 3;

/// Writes the timeline of a simulation, of which every operation's start and end were kept.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, trace: &Trace, outcome: &Outcome) -> Result<(), Unwritten> {
    let file = File::create(path).map(BufWriter::new);
    let written = file.and_then(|mut out| {
        events(&mut out, trace, outcome)?;
        out.flush()
    });
    written.map_err(|source| Unwritten { path: path.to_owned(), source })
}

/// Writes the events, rank by rank, in the order of their starts.
fn events(out: &mut impl Write, trace: &Trace, outcome: &Outcome) -> io::Result<()> {
    let mut spans = outcome.spans.clone();
    spans.sort_unstable_by_key(|span| (span.rank, span.start, span.end, span.operation));
    let alike = alike(outcome);
    let mut comma = "[\n";
    for of_rank in spans.chunk_by(|a, b| a.rank == b.rank) {
        let rank = of_rank[0].rank;
        let ranks = alike.get(&rank).map_or_else(|| format!("rank {rank}"), |ranks| ranks_text(ranks));
        meta(out, &mut comma, "process_name", rank, 0, &ranks)?;
        let mut threads = Threads::default();
        for span in of_rank {
            let place = span.operation as usize;
            let node = trace.graph(rank).nodes()[place];
            let (thread, name) = threads.take(&node, span);
            if let Some(name) = name {
                meta(out, &mut comma, "thread_name", rank, thread, &name)?;
            }
            let what = describe(node.work);
            let name = Some(trace.graph(rank).name(place)).filter(|name| !name.is_empty()).unwrap_or(&what);
            write!(out, "{comma}{{\"ph\":\"X\",\"pid\":{rank},\"tid\":{thread},\"ts\":")?;
            microseconds(out, span.start)?;
            out.write_all(b",\"dur\":")?;
            microseconds(out, span.end.saturating_sub(span.start))?;
            out.write_all(b",\"name\":")?;
            serde_json::to_writer(&mut *out, name)?;
            write!(out, ",\"args\":{{\"operation\":{},\"what\":", node.id)?;
            serde_json::to_writer(&mut *out, &what)?;
            out.write_all(b"}}")?;
        }
    }
    out.write_all(if comma == "[\n" { b"[]\n" } else { b"\n]\n" })
}

/// Names a process or a thread.
fn meta(
    out: &mut impl Write,
    comma: &mut &'static str,
    what: &str,
    rank: u32,
    thread: usize,
    name: &str,
) -> io::Result<()> {
    let before = std::mem::replace(comma, ",\n");
    write!(
        out,
        "{before}{{\"ph\":\"M\",\"pid\":{rank},\"tid\":{thread},\"name\":\"{what}\",\"args\":{{\"name\":\"{name}\"}}}}"
    )
}

/// A time as microseconds, to the nanosecond.
fn microseconds(out: &mut impl Write, time: Time) -> io::Result<()> {
    let nanoseconds = time.as_picoseconds() / 1000;
    write!(out, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

/// The threads of one rank.
#[derive(Debug)]
struct Threads {
    /// What is under way of each kind: until when, on which thread.
    open: [BinaryHeap<Reverse<(Time, usize)>>; KINDS.len()],
    /// The threads of each kind that were used.
    used: [Vec<usize>; KINDS.len()],
    /// The next thread that is of no kind yet.
    next: usize,
}

impl Default for Threads {
    fn default() -> Self {
        Self { open: Default::default(), used: Default::default(), next: FIRST }
    }
}

impl Threads {
    /// The thread of an operation, and its name if it is used for the first time. Operations come in the order of their starts.
    fn take(&mut self, node: &Node, span: &Span) -> (usize, Option<String>) {
        let kind = match node.work {
            _ if node.on_host => 2,
            Work::Compute { .. } | Work::Lasts { .. } => 0,
            Work::Receive { .. } => 3,
            _ => 1,
        };
        let open = &mut self.open[kind];
        let free = open.peek().filter(|open| open.0.0 <= span.start).map(|open| open.0.1);
        if let Some(thread) = free {
            open.pop();
            open.push(Reverse((span.end, thread)));
            return (thread, None);
        }
        let used = &mut self.used[kind];
        let is_first = used.is_empty() && kind < FIRST;
        let thread = if is_first { kind } else { self.next };
        self.next += usize::from(!is_first);
        used.push(thread);
        self.open[kind].push(Reverse((span.end, thread)));
        let name = if is_first { KINDS[kind].to_owned() } else { format!("{} {}", KINDS[kind], self.used[kind].len()) };
        (thread, Some(name))
    }
}

/// What an operation does, in words.
fn describe(work: Work) -> String {
    match work {
        Work::Compute { .. } | Work::Lasts { .. } => "compute".to_owned(),
        Work::Collective { collective, bytes, .. } => {
            format!("{} of {bytes} bytes", Collective::NAMES[collective as usize])
        }
        Work::Send { to, bytes, tag } => format!("send {bytes} bytes to rank {to}, tag {tag}"),
        Work::Receive { from, bytes, tag } => format!("receive {bytes} bytes from rank {from}, tag {tag}"),
        Work::Load { bytes } => format!("load {bytes} bytes"),
        Work::Store { bytes } => format!("store {bytes} bytes"),
        Work::Sum { .. } => "blocks".to_owned(),
        Work::Nothing => "nothing".to_owned(),
    }
}
