//! Ring: every member passes blocks on to the next, n - 1 times; all-to-all is a relay over n(n - 1)/2 steps [Thakur05].

use super::{Collective, CollectiveAlgorithm, Role, Step};
use crate::system::topology::Pattern;

/// See the module.
pub struct Ring;

impl CollectiveAlgorithm for Ring {
    /// Ring all-reduce: a reduce-scatter, then an all-gather, n - 1 steps each.
    ///
    /// ```text
    /// T = 2(n - 1) * (a + S / (n * B))                                          [Thakur05]
    /// ```
    ///
    /// n members, S bytes on each, a a step's latency, B the bandwidth. All-to-all relays every block to its goal:
    /// n(n - 1)/2 steps of S/n, as the reference does [ASTRA2].
    fn steps(&self, collective: Collective, members: u32, emit: &mut dyn FnMut(Step)) {
        let block = 1.0 / f64::from(members);
        let step = |repeat, reduced| Step { role: Role::Core, repeat, pattern: Pattern::Shift, sent: block, reduced };
        match collective {
            Collective::ReduceScatter => emit(step(members - 1, block)),
            Collective::AllGather => emit(step(members - 1, 0.0)),
            Collective::AllReduce => {
                emit(step(members - 1, block));
                emit(step(members - 1, 0.0));
            }
            Collective::AllToAll => emit(step((members - 1) * members / 2, 0.0)),
        }
    }

    fn summary(&self) -> &'static str {
        "n - 1 steps to the next member, bandwidth-optimal, latency grows with n [Thakur05]"
    }
}
