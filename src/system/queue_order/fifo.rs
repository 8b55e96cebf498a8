//! First in, first out [ASTRA2].

use super::{Queued, Queueing};

/// See the module.
pub struct Fifo;

impl Queueing for Fifo {
    fn place(&self, queue: &[Queued], _new: Queued) -> usize {
        queue.len()
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn summary(&self) -> &'static str {
        "that which came first [ASTRA2]"
    }
}
