//! Execution traces in Chakra's form: the records of a rank as a graph, every mistake named by its operation.

use std::collections::BTreeMap;

use super::record::{Attributes, Raw, Value, next, node};
use crate::system::collective::Collective;
use crate::units::narrow;
use crate::workload::trace::graph::Draft;
use crate::workload::trace::{Graph, Node, Work};

/// Kinds of nodes.
pub mod kind {
    pub const INVALID: u64 = 0;
    pub const METADATA: u64 = 1;
    pub const LOAD: u64 = 2;
    pub const STORE: u64 = 3;
    pub const COMPUTE: u64 = 4;
    pub const SEND: u64 = 5;
    pub const RECEIVE: u64 = 6;
    pub const COLLECTIVE: u64 = 7;
}

/// The collectives of `comm_type`, by their numbers.
pub const COMM_TYPES: [(&str, Option<Collective>); 10] = [
    ("ALL_REDUCE", Some(Collective::AllReduce)),
    ("REDUCE", None),
    ("ALL_GATHER", Some(Collective::AllGather)),
    ("GATHER", None),
    ("SCATTER", Some(Collective::Scatter)),
    ("BROADCAST", Some(Collective::Broadcast)),
    ("ALL_TO_ALL", Some(Collective::AllToAll)),
    ("REDUCE_SCATTER", Some(Collective::ReduceScatter)),
    ("REDUCE_SCATTER_BLOCK", None),
    ("BARRIER", None),
];
/// How many mistakes of a file are told.
const MANY: usize = 8;

/// What the reference takes otherwise than we do, or leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// A node of the kind METADATA.
    Metadata,
    /// A node of the kind INVALID.
    Invalid,
    /// A broadcast.
    Broadcast,
    /// A collective of a group that names the dimensions which take part.
    Dimensions,
    /// A collective of no bytes.
    Empty,
    /// A collective that is not simulated, or not whole, in a trace that is replayed.
    Replayed,
    /// A rank does nothing.
    Idle,
}

impl Oddity {
    /// What is to be said of it, and its consequence.
    #[must_use]
    pub const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Metadata => {
                ("METADATA nodes take no time", "the reference simulator aborts on them when it counts its statistics")
            }
            Self::Invalid => {
                ("INVALID nodes take no time", "in the reference simulator what follows them may wait for ever")
            }
            Self::Broadcast => (
                "broadcasts take the time that was recorded, or 1 ns, under the reference simulator's rules",
                "under ours they are sent",
            ),
            Self::Dimensions => {
                ("`involved_dim` of a collective in a group counts for nothing", "as in the reference simulator")
            }
            Self::Empty => (
                "collectives of no bytes are there",
                "an all-gather ends at once, where the reference simulator waits for ever; others are made larger by its rules, and end at once by ours",
            ),
            Self::Replayed => (
                "collectives that cannot be simulated are replayed",
                "they last as long as was recorded, as in the reference simulator",
            ),
            Self::Idle => {
                ("a rank does nothing: it is done at once", "the reference simulator refuses a trace without nodes")
            }
        }
    }
}

/// What oddities there are: how often each, and the operation that is the first.
pub type Oddities = BTreeMap<Oddity, (u64, Option<u64>)>;

/// A graph that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The graph.
    pub graph: Graph,
    /// The rank for which it says that it is, and the operation that says so.
    pub claim: Option<(u32, u64)>,
    /// What is odd in it.
    pub oddities: Oddities,
    /// Operations that took the place of earlier ones with their numbers: the number, and both names.
    pub replaced: Vec<(u64, [String; 2])>,
}

/// What a graph may name.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The places of groups by their numbers.
    pub groups: &'a BTreeMap<u64, u32>,
    /// How many ranks, or members of a collective's own trace, there are.
    pub ranks: u32,
    /// Whether every operation lasts as long as was recorded, so that it does not matter what a collective is.
    pub is_replayed: bool,
    /// Whether of operations with one number the last counts; else that is a mistake.
    pub keeps_last: bool,
}

/// Reads a graph from the bytes of a file, not compressed.
///
/// # Errors
/// What is wrong, mistake by mistake, at most a few.
pub fn read(bytes: &[u8], scope: Scope<'_>) -> Result<Read, Vec<String>> {
    let mut reader = Reader { scope, mistakes: Vec::new(), more: 0, claim: None, oddities: Oddities::default() };
    let mut draft = Draft::default();
    if let Err(why) = reader.records(bytes, &mut draft) {
        reader.mistakes.push(why);
        return Err(reader.mistakes());
    }
    let replaced = if scope.keeps_last { draft.keep_last() } else { Vec::new() };
    match draft.finish() {
        Ok(graph) if reader.mistakes.is_empty() => {
            if graph.nodes().is_empty() {
                reader.odd(Oddity::Idle, None);
            }
            Ok(Read { graph, claim: reader.claim, oddities: reader.oddities, replaced })
        }
        Ok(_) => Err(reader.mistakes()),
        Err(broken) => {
            reader.mistakes.push(broken.to_string());
            Err(reader.mistakes())
        }
    }
}

struct Reader<'a> {
    scope: Scope<'a>,
    mistakes: Vec<String>,
    /// Mistakes beyond those that are told.
    more: usize,
    claim: Option<(u32, u64)>,
    oddities: Oddities,
}

impl Reader<'_> {
    fn mistakes(mut self) -> Vec<String> {
        if self.more > 0 {
            self.mistakes.push(format!("{} other mistakes", self.more));
        }
        self.mistakes
    }

    /// Every record: the first is about the whole, the others are nodes.
    fn records(&mut self, bytes: &[u8], draft: &mut Draft) -> Result<(), String> {
        let mut rest = bytes;
        let mut after = Vec::new();
        let mut count = 0_u64;
        loop {
            let start = bytes.len() - rest.len();
            let at = |why: super::record::Malformed| format!("{why} (record {count}, at byte {start})");
            let Some(record) = next(&mut rest).map_err(at)? else { break };
            if count > 0 {
                after.clear();
                let raw = node(record, &mut after).map_err(at)?;
                self.operation(&raw, &after, draft);
            }
            count += 1;
        }
        if count == 0 {
            return Err("the file is empty: a trace begins with a record about the whole".to_owned());
        }
        Ok(())
    }

    fn operation(&mut self, raw: &Raw<'_>, after: &[u64], draft: &mut Draft) {
        let work = self.work(raw).unwrap_or_else(|why| {
            if self.mistakes.len() < MANY {
                let name = String::from_utf8_lossy(raw.name);
                let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
                self.mistakes.push(format!("operation {}{name} {why}", raw.id));
            } else {
                self.more += 1;
            }
            (Work::Nothing, false, 0)
        });
        let (work, on_host, recorded) = work;
        let node = Node { id: raw.id, work, recorded, on_host };
        draft.push(node, &String::from_utf8_lossy(raw.name), after.iter().copied());
    }

    fn odd(&mut self, oddity: Oddity, id: impl Into<Option<u64>>) {
        self.oddities.entry(oddity).or_insert((0, id.into())).0 += 1;
    }

    /// What an operation does, whether the host does it, and how long it was recorded to take.
    fn work(&mut self, raw: &Raw<'_>) -> Result<(Work, bool, u64), String> {
        let attributes = &raw.attributes;
        let on_host = match attributes.is_cpu_op {
            None => false,
            Some(Value::Whole(flag)) => flag != 0,
            Some(_) => return Err("has an `is_cpu_op` that is neither true nor false".to_owned()),
        };
        let recorded = raw.duration_micros.checked_mul(1000).ok_or("lasts longer than can be counted")?;
        if on_host && matches!(raw.kind, kind::SEND | kind::RECEIVE | kind::COLLECTIVE) {
            return Err("communicates, and is said to run on the host (`is_cpu_op`)".to_owned());
        }
        let work = match raw.kind {
            kind::INVALID => {
                self.odd(Oddity::Invalid, raw.id);
                Work::Nothing
            }
            kind::METADATA => {
                self.odd(Oddity::Metadata, raw.id);
                Work::Nothing
            }
            kind::LOAD => Work::Load { bytes: needed("tensor_size", attributes.tensor_size)? },
            kind::STORE => Work::Store { bytes: needed("tensor_size", attributes.tensor_size)? },
            kind::COMPUTE => Work::Compute {
                operations: count("num_ops", attributes.num_ops)?,
                bytes: count("tensor_size", attributes.tensor_size)?,
            },
            kind::SEND => {
                self.claim(raw.id, "comm_src", attributes.comm_src)?;
                let (to, bytes, tag) = self.message("comm_dst", attributes.comm_dst, attributes)?;
                Work::Send { to, bytes, tag }
            }
            kind::RECEIVE => {
                self.claim(raw.id, "comm_dst", attributes.comm_dst)?;
                let (from, bytes, tag) = self.message("comm_src", attributes.comm_src, attributes)?;
                Work::Receive { from, bytes, tag }
            }
            kind::COLLECTIVE => match self.collective(raw) {
                Err(_) if self.scope.is_replayed => {
                    self.odd(Oddity::Replayed, raw.id);
                    Work::Nothing
                }
                work => work?,
            },
            other => return Err(format!("is of a kind that is not known: {other}")),
        };
        Ok((work, on_host, recorded))
    }

    /// Another rank, the bytes and the tag of a message.
    fn message(
        &self,
        key: &str,
        peer: Option<Value<'_>>,
        attributes: &Attributes<'_>,
    ) -> Result<(u32, u64, u64), String> {
        let peer = short(key, needed(key, peer)?)?;
        if peer >= self.scope.ranks {
            return Err(format!("names rank {peer} (`{key}`), and there are {}", self.scope.ranks));
        }
        let bytes = needed("comm_size", attributes.comm_size)?;
        if bytes == 0 {
            return Err("sends or receives nothing: `comm_size` is 0".to_owned());
        }
        let tag = short("comm_tag", needed("comm_tag", attributes.comm_tag)?)?;
        Ok((peer, bytes, tag.into()))
    }

    /// A message that names its own end says whose trace this is.
    fn claim(&mut self, id: u64, key: &str, value: Option<Value<'_>>) -> Result<(), String> {
        let Some(rank) = count(key, value)? else { return Ok(()) };
        let rank = short(key, rank)?;
        match self.claim {
            Some((other, by)) if other != rank => Err(format!(
                "says that this is the trace of rank {rank} (`{key}`), and operation {by} that of rank {other}"
            )),
            _ => {
                self.claim.get_or_insert((rank, id));
                Ok(())
            }
        }
    }

    fn collective(&mut self, raw: &Raw<'_>) -> Result<Work, String> {
        let attributes = &raw.attributes;
        let number = needed("comm_type", attributes.comm_type)?;
        let Some(&(name, collective)) = usize::try_from(number).ok().and_then(|number| COMM_TYPES.get(number)) else {
            return Err(format!("is a collective that is not known: `comm_type` is {number}"));
        };
        let bytes = needed("comm_size", attributes.comm_size)?;
        let group = self.group(attributes.pg_name)?;
        if bytes == 0 {
            self.odd(Oddity::Empty, raw.id);
        }
        let mut dimensions = match attributes.involved_dim {
            None => u32::MAX,
            Some(Value::Flags(bits)) => bits,
            Some(_) => return Err("has an `involved_dim` that is no list of true and false".to_owned()),
        };
        if group.is_some() && attributes.involved_dim.is_some() {
            if dimensions.count_ones() != dimensions.trailing_ones() {
                self.odd(Oddity::Dimensions, raw.id);
            }
            dimensions = u32::MAX;
        }
        match collective {
            Some(collective) => {
                if collective == Collective::Broadcast {
                    self.odd(Oddity::Broadcast, raw.id);
                }
                Ok(Work::Collective { collective, bytes, group, dimensions })
            }
            None => Err(format!(
                "is a {name}, which is not simulated; all-reduce, all-gather, reduce-scatter, all-to-all and broadcast are"
            )),
        }
    }

    fn group(&self, name: Option<Value<'_>>) -> Result<Option<u32>, String> {
        let text = match name {
            None => return Ok(None),
            Some(Value::Text(text)) => String::from_utf8_lossy(text),
            Some(_) => return Err("names its group by a number: `pg_name` is a text".to_owned()),
        };
        if text.is_empty() || text == "0" {
            return Ok(None);
        }
        let id = text.parse::<u64>().map_err(|_| format!("names group `{text}` (`pg_name`), which is no number"))?;
        match self.scope.groups.get(&id) {
            Some(&place) => Ok(Some(place)),
            None => Err(format!("names group {id} (`pg_name`), which the group file does not have")),
        }
    }
}

/// A whole number that may be missing.
fn count(key: &str, value: Option<Value<'_>>) -> Result<Option<u64>, String> {
    match value {
        None => Ok(None),
        Some(Value::Whole(number)) => {
            u64::try_from(number).map(Some).map_err(|_| format!("has {number} as its `{key}`, which is below 0"))
        }
        Some(_) => Err(format!("has a `{key}` that is no whole number")),
    }
}

/// A whole number that must be there.
fn needed(key: &str, value: Option<Value<'_>>) -> Result<u64, String> {
    count(key, value)?.ok_or_else(|| format!("has no `{key}`"))
}

/// A number of 32 bits.
fn short(key: &str, number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("has {number} as its `{key}`, which is more than 32 bits hold"))
}

/// The places of groups by their numbers.
#[must_use]
pub fn places(groups: &[crate::workload::trace::Group]) -> BTreeMap<u64, u32> {
    groups.iter().enumerate().map(|(place, group)| (group.id, narrow(place as u64))).collect()
}
