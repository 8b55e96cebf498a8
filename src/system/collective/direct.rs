//! Direct: every member sends to all others at once, one step for each half of an all-reduce [ASTRA2].

use super::{Collective, CollectiveAlgorithm, Role, Step};
use crate::system::topology::Pattern;

/// See the module.
pub struct Direct;

impl CollectiveAlgorithm for Direct {
    /// Direct all-reduce: everybody's block to its owner, then every sum to everybody.
    ///
    /// ```text
    /// T = 2 * (a + S (n - 1) / (n * B))                                         [ASTRA2]
    /// ```
    ///
    /// n members, S bytes on each, a a step's latency, B the bandwidth of all links together.
    fn steps(&self, collective: Collective, members: u32, emit: &mut dyn FnMut(Step)) {
        let sent = f64::from(members - 1) / f64::from(members);
        let step = |reduced| Step { role: Role::Core, repeat: 1, pattern: Pattern::Spread, sent, reduced };
        match collective {
            Collective::ReduceScatter => emit(step(sent)),
            Collective::AllGather | Collective::AllToAll => emit(step(0.0)),
            Collective::AllReduce => {
                emit(step(sent));
                emit(step(0.0));
            }
        }
    }

    fn summary(&self) -> &'static str {
        "one step to all others at once for each half of an all-reduce [ASTRA2]"
    }
}
