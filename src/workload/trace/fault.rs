//! Faults: what certainly goes wrong in a trace, as data and in words.

use std::fmt;

use super::{Trace, Work};
use crate::system::collective::Collective;
use crate::units::count;

/// How many steps of a circle are told.
const STEPS: usize = 16;

/// An operation of a rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The rank.
    pub rank: u32,
    /// The operation's number.
    pub operation: u64,
    /// Its name; empty if it has none.
    pub name: String,
}

/// A message as its sender or its receiver names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The operation: of several alike, the last.
    pub at: Spot,
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
    /// Under which tag.
    pub tag: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// What certainly goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A rank receives what is never sent.
    Unsent {
        /// The receive.
        receive: End,
        /// How many receives there are alike, and how many sends.
        counts: (u64, u64),
        /// The send that was perhaps meant, and what it has other.
        near: Option<(End, &'static str)>,
    },
    /// A rank sends what is never received.
    Unreceived {
        /// The send.
        send: End,
        /// How many sends there are alike, and how many receives.
        counts: (u64, u64),
        /// The receive that was perhaps meant, and what it has other.
        near: Option<(End, &'static str)>,
        /// Whether a send waits for its receive.
        waits: bool,
    },
    /// Members of a group take part in different numbers of its collectives.
    Unequal {
        /// The group's number; none if it is all ranks.
        group: Option<u64>,
        /// How many collectives which ranks take part in, the most first.
        counts: Vec<(u64, Vec<u32>)>,
        /// Whether that keeps ranks from their end.
        is_fatal: bool,
    },
    /// Two members of a group do something else as the same collective.
    Different {
        /// The group's number; none if it is all ranks.
        group: Option<u64>,
        /// Which collective of the group, from 1, if their order is forced.
        which: Option<u64>,
        /// What one does.
        one: (Spot, Collective, u64),
        /// What the other does.
        other: (Spot, Collective, u64),
        /// Whether that keeps ranks from their end.
        is_fatal: bool,
    },
    /// A collective halves and doubles among members whose number is no power of two [ASTRA2].
    NoPower {
        /// The first that does.
        at: Spot,
        /// What it is.
        collective: Collective,
        /// How many members there are.
        members: u32,
    },
    /// Operations of several ranks wait for each other.
    Circle(Vec<Step>),
}

/// A step of a circle: an operation, and for what it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The operation.
    pub waits: Spot,
    /// The operation that it waits for; the next step begins there.
    pub waited: Spot,
    /// Why.
    pub why: Why,
}

/// Why an operation waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It depends on it.
    Depends,
    /// It receives what the other sends.
    Receives,
    /// Both are parts of one collective.
    TakesPart,
}

impl Fault {
    /// Whether it keeps a rank from its end whatever else happens.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        match self {
            Self::Unsent { .. } | Self::Circle(_) => true,
            Self::Unreceived { waits, .. } => *waits,
            // Some end, though not all have heard of each other.
            Self::NoPower { .. } => false,
            Self::Unequal { is_fatal, .. } | Self::Different { is_fatal, .. } => *is_fatal,
        }
    }

    /// What to look at.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unsent { near, .. } => near
                .as_ref()
                .map(|(end, what)| format!("{} sends {} to rank {}: another {what}", end.at, message(end), end.to)),
            Self::Unreceived { near, .. } => near.as_ref().map(|(end, what)| {
                format!("{} receives {} from rank {}: another {what}", end.at, message(end), end.from)
            }),
            Self::NoPower { .. } => Some("take `ring` or `direct` for it, or a power of two".to_owned()),
            Self::Unequal { .. } | Self::Different { .. } | Self::Circle(_) => None,
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {}", self.operation)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        write!(f, " of rank {}", self.rank)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent { receive, counts, .. } => {
                let (at, from) = (&receive.at, receive.from);
                write!(f, "{at} waits for {} from rank {from}, which ", message(receive))?;
                match counts {
                    (_, 0) => f.write_str("never sends them"),
                    (receives, sends) => write!(f, "sends them {}, and not {}", times(*sends), times(*receives)),
                }
            }
            Self::Unreceived { send, counts, waits, .. } => {
                let (at, to) = (&send.at, send.to);
                write!(f, "{at} sends {} to rank {to}, which ", message(send))?;
                match counts {
                    (_, 0) => f.write_str("never receives them")?,
                    (sends, receives) => {
                        write!(f, "receives them {}, and not {}", times(*receives), times(*sends))?;
                    }
                }
                f.write_str(if *waits { "; with a rendezvous the send never begins" } else { "" })
            }
            Self::Unequal { group, counts, .. } => {
                match group {
                    Some(id) => write!(f, "members of group {id} take part in different numbers of its collectives: ")?,
                    None => f.write_str("ranks take part in different numbers of the collectives of all ranks: ")?,
                }
                for (k, (number, ranks)) in counts.iter().enumerate() {
                    let comma = if k == 0 { "" } else { ", " };
                    write!(f, "{comma}{} in {}", ranks_text(ranks), count(*number))?;
                }
                Ok(())
            }
            Self::Different { group, which, one, other, .. } => {
                match which {
                    Some(which) => write!(f, "collective {} of {}", count(*which), group_text(*group))?,
                    None => write!(f, "a collective of {}", group_text(*group))?,
                }
                let part = |(at, collective, bytes): &(Spot, Collective, u64)| {
                    format!("{} of {} bytes in {at}", Collective::NAMES[*collective as usize], count(*bytes))
                };
                write!(f, " is {}, and {}", part(one), part(other))
            }
            Self::NoPower { at, collective, members } => {
                let kind = Collective::NAMES[*collective as usize];
                write!(
                    f,
                    "{at} is of {kind} and halves and doubles among {members} members, no power of two: ASTRA-sim waits for \
                     ever or ends before all have heard of each other"
                )
            }
            Self::Circle(steps) => {
                f.write_str("ranks wait for each other in a circle:")?;
                for Step { waits, waited, why } in steps.iter().take(STEPS) {
                    match why {
                        Why::Depends => write!(f, "\n  {waits} waits for {waited}")?,
                        Why::Receives => write!(f, "\n  {waits} receives what {waited} sends")?,
                        Why::TakesPart => write!(f, "\n  {waits} takes part with {waited}")?,
                    }
                }
                match steps.len().saturating_sub(STEPS) {
                    0 => Ok(()),
                    more => write!(f, "\n  and so on, {} steps back to the first", count(more as u64)),
                }
            }
        }
    }
}

/// A message in words.
fn message(end: &End) -> String {
    format!("{} bytes under tag {}", count(end.bytes), end.tag)
}

/// A number of times in words.
fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        number => format!("{} times", count(number)),
    }
}

/// A group in words.
#[must_use]
pub fn group_text(group: Option<u64>) -> String {
    group.map_or_else(|| "all ranks".to_owned(), |id| format!("group {id}"))
}

/// Ascending ranks in words, neighbours folded: `ranks 0..3, 7`.
#[must_use]
pub fn ranks_text(ranks: &[u32]) -> String {
    const FEW: usize = 8;
    let runs: Vec<&[u32]> = ranks.chunk_by(|a, b| *b == a + 1).collect();
    let run = |run: &&[u32]| match run {
        [first, .., last] => format!("{first}..{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    let more = if runs.len() > FEW { ", ..." } else { "" };
    let plural = if ranks.len() == 1 { "" } else { "s" };
    format!("rank{plural} {}{more}", runs.iter().take(FEW).map(run).collect::<Vec<_>>().join(", "))
}

impl Trace {
    /// An operation by the place in its rank's graph.
    #[must_use]
    pub fn spot(&self, rank: u32, place: usize) -> Spot {
        let graph = self.graph(rank);
        Spot { rank, operation: graph.nodes()[place].id, name: graph.name(place).to_owned() }
    }

    /// A send or a receive as a message.
    pub(super) fn end(&self, rank: u32, place: usize) -> Option<End> {
        let at = self.spot(rank, place);
        match self.graph(rank).nodes()[place].work {
            Work::Send { to, bytes, tag } => Some(End { at, from: rank, to, tag, bytes }),
            Work::Receive { from, bytes, tag } => Some(End { at, from, to: rank, tag, bytes }),
            _ => None,
        }
    }
}
