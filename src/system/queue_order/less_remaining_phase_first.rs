//! Less remaining phase first: that with the fewest phases to go [ASTRA2].

use super::{Queued, Queueing, before};

/// See the module.
pub struct LessRemainingPhaseFirst;

impl Queueing for LessRemainingPhaseFirst {
    fn place(&self, queue: &[Queued], new: Queued) -> usize {
        before(queue, |other| other.to_go >= new.to_go)
    }

    fn summary(&self) -> &'static str {
        "that with the fewest phases to go [ASTRA2]"
    }
}
