//! Strands: communication and the computations beside it, while a block of a graph is written.

use crate::units::Time;
use crate::workload::program::Account;

/// For whom an operation waits: one of each stream at most.
pub type After = [Option<u64>; 4];

/// For one operation alone.
#[must_use]
pub const fn only(id: u64) -> After {
    [Some(id), None, None, None]
}

/// The main stream of a block: communication and computations beside it, since both began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Strand {
    /// What they wait for.
    pub begin: After,
    /// The last computation since.
    pub last: Option<u64>,
    /// The last communication beside it since.
    pub beside: Option<u64>,
    /// How long the computations take.
    pub computing: Time,
    /// How long the communication takes.
    pub communicating: Time,
    /// Bytes that are sent.
    pub sent: f64,
    /// On whose account the communication is.
    pub account: Option<Account>,
    /// What went by before.
    pub busy: Time,
}
