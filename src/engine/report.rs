//! The report: what a program cost, by account and by dimension.

use crate::system::MAX_DIMS;
use crate::units::Time;
use crate::workload::program::Account;

/// What happened in a step, on the NPUs of the stage that binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// From the start of the step to its end.
    pub total: Time,
    /// Exposed time by account: time in which nothing else goes on. With the bubble it adds up to the total.
    pub exposed: [Time; Account::COUNT],
    /// Idle for want of a microbatch.
    pub bubble: Time,
    /// Of the model's own arithmetic what kernels take that the local memory bounds.
    pub memory_bound: Time,
    /// Time in which data-parallel traffic goes on, hidden or not: without what it waits for.
    pub data_busy: Time,
    /// Bytes that the NPU sends in each dimension.
    pub sent: [u64; MAX_DIMS],
    /// Time on the wire in each dimension, by bytes and bandwidth alone.
    pub wire: [Time; MAX_DIMS],
}

impl Report {
    /// The exposed time of one account.
    #[must_use]
    pub const fn exposed(&self, account: Account) -> Time {
        self.exposed[account as usize]
    }

    /// The dimension that is longest on the wire, the innermost of equals; none if nothing is sent.
    #[must_use]
    pub fn busiest(&self) -> Option<usize> {
        let longest = self.wire.iter().copied().max()?;
        if longest == Time::ZERO { None } else { self.wire.iter().position(|&time| time == longest) }
    }
}
