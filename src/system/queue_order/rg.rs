//! RG: reduce-scatters and all-gathers take turns [ASTRA2].

use super::{Queued, Queueing};
use crate::system::collective::Collective;

/// See the module.
pub struct Rg;

impl Queueing for Rg {
    fn place(&self, queue: &[Queued], _new: Queued) -> usize {
        alternating(queue)
    }

    fn summary(&self) -> &'static str {
        "reduce-scatters and all-gathers take turns [ASTRA2]"
    }
}

/// Behind what runs and the one that waits next to it, and behind pairs of a reduce-scatter and an all-gather.
fn alternating(queue: &[Queued]) -> usize {
    let differ = |a: Collective, b: Collective| {
        matches!(
            (a, b),
            (Collective::ReduceScatter, Collective::AllGather) | (Collective::AllGather, Collective::ReduceScatter)
        )
    };
    let mut k = 0;
    let mut last: Option<Collective> = None;
    while let Some(entry) = queue.get(k) {
        let previous = last.replace(entry.collective);
        if entry.is_running {
            k += 1;
            if let Some(next) = queue.get(k).filter(|next| !next.is_running) {
                last = Some(next.collective);
                k += 1;
            }
        } else if previous.is_some_and(|previous| differ(previous, entry.collective)) {
            k += 1;
        } else {
            break;
        }
    }
    k
}
