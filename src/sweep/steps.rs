//! The steps of working out what follows from values, and which of them a slot decides.

use super::fidelity;
use super::key::{DIMS_FROM, Id, KEYS, TIERS_FROM};

/// Steps of working out what follows from values: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps(u8);

impl Steps {
    /// Nothing follows.
    pub const NONE: Self = Self(0);
    /// The job alone: degrees, and knobs that matter or do not.
    pub const JOB: Self = Self(1);
    /// Sizes of the network, and what holds in each of its dimensions.
    pub const NETWORK: Self = Self(1 << 1);
    /// Defaults that are the values of other keys.
    pub const LIKES: Self = Self(1 << 2);
    /// Defaults of the tiers that are there.
    pub const TIERS: Self = Self(1 << 3);
    /// What the closed form does not know.
    pub const BEYOND: Self = Self(1 << 4);
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// The steps that a slot decides from which something follows. No default of a plan's key is the value of another.
    #[must_use]
    pub fn of(slot: usize) -> Self {
        let of_evaluators = || {
            let keys = fidelity::QUEUE_KEYS.into_iter().chain(fidelity::MESSAGE_KEYS);
            keys.chain([Id::Rules, Id::Fidelity]).any(|id| id as usize == slot)
        };
        Self::JOB.and(match slot {
            DIMS_FROM..TIERS_FROM => Self::NETWORK,
            TIERS_FROM.. => Self::TIERS,
            _ if slot == Id::Npus as usize => Self::NETWORK,
            _ if KEYS[slot].path.starts_with("plan.") => Self::JOB,
            _ if of_evaluators() => Self::BEYOND.and(Self::LIKES),
            _ => Self::LIKES,
        })
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether one of `others` is among these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}
