//! Smallest first: that with the fewest bytes; in its last phase but one a chunk goes to the end [ASTRA2].

use super::{Queued, Queueing, before};

/// See the module.
pub struct SmallestFirst;

impl Queueing for SmallestFirst {
    fn place(&self, queue: &[Queued], new: Queued) -> usize {
        if new.to_go == 1 { queue.len() } else { before(queue, |other| other.bytes >= new.bytes) }
    }

    fn summary(&self) -> &'static str {
        "that with the fewest bytes [ASTRA2]"
    }
}
