//! What each rank does, operation by operation: the execution graph as the event-driven engine runs it.

use super::machine::Machine;
use crate::system::collective::Collective;

/// An operation of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Its number: of several that could start, the smallest goes first.
    pub id: u64,
    /// What it does.
    pub kind: Kind,
    /// Operations of the same rank that must be done before, by their numbers.
    pub after: Vec<u64>,
}

impl Kind {
    /// What the operation of a rank names that is not there.
    #[must_use]
    pub fn stranger(self, machine: &Machine, rank: u32) -> Option<&'static str> {
        let other = match self {
            Self::Compute { .. } => None,
            Self::Collective { group, .. } => {
                return match machine.groups.get(group? as usize) {
                    None => Some("a group that is not there"),
                    Some(group) if !group.ranks.contains(&rank) => Some("a group that the rank is not in"),
                    Some(_) => None,
                };
            }
            Self::Send { to, .. } => Some(to),
            Self::Receive { from, .. } => Some(from),
        };
        match other {
            Some(other) if other == rank => Some("the rank itself"),
            Some(other) if other >= machine.npus() => Some("a rank that is not there"),
            _ => None,
        }
    }
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Computes for so many nanoseconds.
    Compute {
        /// How long.
        nanoseconds: u64,
    },
    /// Takes part in a collective.
    Collective {
        /// Which.
        collective: Collective,
        /// Bytes: of one rank's whole buffer; of its shard for an all-gather.
        bytes: u64,
        /// Among the ranks of a group, by its place in the machine's list; all if there is none.
        group: Option<u32>,
        /// The dimensions that take part, a bit each.
        dimensions: u32,
    },
    /// Sends.
    Send {
        /// To whom.
        to: u32,
        /// How many bytes.
        bytes: u64,
        /// Under which tag.
        tag: u64,
    },
    /// Receives.
    Receive {
        /// From whom.
        from: u32,
        /// How many bytes.
        bytes: u64,
        /// Under which tag.
        tag: u64,
    },
}
