//! What came of a simulation: when each rank was done, what it was busy with, who waits for ever.

use thiserror::Error;

use crate::system::machine::Contradiction;
use crate::units::{Time, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::trace::{Node, Stranger, Work};

/// What came of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rank by rank.
    pub ranks: Vec<Rank>,
    /// How many messages were sent.
    pub messages: u64,
    /// The class of each rank: of ranks of one class one was simulated, the first.
    pub classes: Vec<u32>,
    /// Why every message of every rank was simulated; none if ranks stood for each other.
    pub asymmetry: Option<&'static str>,
    /// Operations that wait for ever, of the ranks that were simulated: none unless there is a deadlock.
    pub stuck: Vec<Stuck>,
    /// Every operation of the ranks that were simulated with its start and end, in the order of ends, if that was asked for.
    pub spans: Vec<Span>,
}

/// What came of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rank {
    /// When it was done; none if it waits for ever.
    pub finish: Option<Time>,
    /// Its NPU's computations, added up.
    pub computed: Time,
    /// Time in which at least one operation of each activity went on, in the order of [`Activity::ALL`].
    pub busy: [Time; Activity::ALL.len()],
    /// Time in which at least one operation went on.
    pub engaged: Time,
    /// Bytes that it sent in each dimension.
    pub sent: Vec<u64>,
}

impl Rank {
    /// Time in which an activity went on.
    #[must_use]
    pub const fn busy(&self, activity: Activity) -> Time {
        self.busy[activity as usize]
    }

    /// Its end less its computations, as the reference counts exposed communication; none if it waits for ever [ASTRA2].
    #[must_use]
    pub fn exposed(&self) -> Option<Time> {
        Some(self.finish?.saturating_sub(self.computed))
    }
}

/// What a rank may be busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Its NPU computes.
    Compute,
    /// A collective, a send or a receive.
    Communication,
    /// Its host works.
    Host,
    /// A memory beyond the NPU's own.
    Memory,
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Compute, Self::Communication, Self::Host, Self::Memory];

    /// Under which an operation is counted.
    #[must_use]
    pub const fn of(node: &Node) -> Self {
        match node.work {
            _ if node.on_host => Self::Host,
            Work::Compute { .. } | Work::Lasts { .. } | Work::Sum { .. } => Self::Compute,
            Work::Load { .. } | Work::Store { .. } => Self::Memory,
            _ => Self::Communication,
        }
    }
}

/// An operation that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its rank.
    pub rank: u32,
    /// Its place in the rank's graph.
    pub operation: u32,
    /// When it started.
    pub start: Time,
    /// When it ended.
    pub end: Time,
}

/// An operation that waits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    /// Its rank.
    pub rank: u32,
    /// Its number.
    pub operation: u64,
    /// What it waits for.
    pub wait: Wait,
}

/// What an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It has begun, and other ranks do not do their part.
    Others,
    /// It has not begun: an operation of its rank holds the slot that it needs.
    Slot,
    /// It has not begun: so many operations of its rank that it depends on do not end.
    Operations(u32),
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The machine contradicts itself.
    #[error(transparent)]
    Machine(#[from] Contradiction),
    /// The trace does not fit the machine, or itself.
    #[error("{0}")]
    Trace(&'static str),
    /// A rank takes part in a group that it is not in, or talks to a rank that is not there.
    #[error("operation {} of rank {} names {}", .0.operation, .0.rank, .0.what)]
    Stranger(Stranger),
    /// An operation cannot be done.
    #[error("operation {operation} of rank {rank}: {what}")]
    Operation {
        /// Its rank.
        rank: u32,
        /// Its number.
        operation: u64,
        /// Why not.
        what: &'static str,
    },
    /// A time does not fit.
    #[error("something lasts beyond 213 days, and no time is longer")]
    TimeRange,
    /// There is more to simulate than is allowed.
    #[error("there are more than {0} events")]
    Limit(u64),
    /// More chunks are under way than can be kept.
    #[error("more than {0} chunks are under way at once: cut collectives into fewer")]
    Crowded(usize),
    /// Ranks cannot stand for each other.
    #[error("ranks cannot stand for each other: {0}")]
    Asymmetric(&'static str),
    /// An algorithm needs a power of two.
    #[error("{algorithm} takes a power of two of members, not {members}")]
    NoPower {
        /// Which.
        algorithm: &'static str,
        /// How many there are.
        members: u32,
    },
}

impl Refused {
    /// Why a point of a sweep has no time.
    #[must_use]
    pub fn infeasible(&self) -> Infeasible {
        let plain = |reason| Infeasible::new(reason, f64::NAN, f64::NAN);
        match *self {
            Self::Limit(limit) => Infeasible::new(Reason::Limit, f64::INFINITY, real(limit)),
            Self::Crowded(most) => Infeasible::new(Reason::Limit, f64::INFINITY, real(most as u64)),
            Self::TimeRange => Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds()),
            Self::NoPower { members, .. } => {
                Infeasible::new(Reason::PowerOfTwo, members.into(), members.next_power_of_two().into())
            }
            Self::Operation { .. } => plain(Reason::Deadlock),
            Self::Machine(_) | Self::Trace(_) | Self::Stranger(_) | Self::Asymmetric(_) => plain(Reason::Trace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_has_its_reason() {
        let reason = |refused: Refused| refused.infeasible().reason;
        assert_eq!(reason(Refused::Crowded(1)), Reason::Limit);
        assert_eq!(reason(Refused::TimeRange), Reason::TimeRange);
        assert_eq!(reason(Refused::NoPower { algorithm: "halving_doubling", members: 6 }), Reason::PowerOfTwo);
        assert_eq!(reason(Refused::Trace("no trace")), Reason::Trace);
    }
}
