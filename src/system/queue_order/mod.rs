//! Queue orders: which chunk that waits for a dimension goes first. Only reduce-scatters and all-gathers overtake [ASTRA2].

use super::collective::Collective;
use crate::registry::registry;

/// A chunk in a queue, as its order sees it.
#[derive(Debug, Clone, Copy)]
pub struct Queued {
    /// Whether it is under way.
    pub is_running: bool,
    /// What its phase is.
    pub collective: Collective,
    /// The larger of the bytes that enter and leave its phase.
    pub bytes: u64,
    /// Phases behind this one.
    pub to_go: usize,
}

/// A way to order the chunks that wait for a dimension.
pub trait Queueing {
    /// The place of a new reduce-scatter or all-gather in a queue; those under way stand first.
    fn place(&self, queue: &[Queued], new: Queued) -> usize;

    /// Whether every chunk goes to the end.
    fn is_plain(&self) -> bool {
        false
    }

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;
}

registry! {
    /// Which chunk of a queue goes first; the first holds where nothing is said.
    pub enum QueueOrder: Queueing {
        fifo::Fifo,
        smallest_first::SmallestFirst,
        less_remaining_phase_first::LessRemainingPhaseFirst,
        rg::Rg,
    }
}

/// The place before the first that waits and comes later than the new one; the end if there is none.
fn before(queue: &[Queued], comes_later: impl Fn(&Queued) -> bool) -> usize {
    queue.iter().position(|other| !other.is_running && comes_later(other)).unwrap_or(queue.len())
}
