//! Ring: every member passes blocks on to the next, n - 1 times; all-to-all is a relay over n(n - 1)/2 steps [Thakur05].

use super::{Collective, CollectiveAlgorithm, Message, Part, Peers, Role, Stage, Step};
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
    /// n members, S bytes on each, a a step's latency, B the bandwidth. A broadcast is a scatter and an all-gather, as many
    /// steps, with nothing to add. All-to-all relays every block to its goal: n(n - 1)/2 steps of S/n, as the reference does
    /// [ASTRA2].
    fn steps(&self, collective: Collective, (members, _): (u32, u32), emit: &mut dyn FnMut(Step)) {
        let block = 1.0 / f64::from(members);
        let step = |repeat, reduced| Step { role: Role::Core, repeat, pattern: Pattern::Shift, sent: block, reduced };
        let added = if collective.sums() { block } else { 0.0 };
        match collective {
            Collective::ReduceScatter | Collective::Scatter | Collective::AllGather => emit(step(members - 1, added)),
            Collective::AllReduce | Collective::Broadcast => {
                emit(step(members - 1, added));
                emit(step(members - 1, 0.0));
            }
            Collective::AllToAll => emit(step((members - 1) * members / 2, 0.0)),
        }
    }

    fn peers(&self, _stage: &Stage) -> Peers {
        Peers::Round { nearest: 1, farthest: 1 }
    }

    fn count(&self, part: &Part) -> u32 {
        let others = part.members - 1;
        match part.collective {
            Collective::AllReduce | Collective::Broadcast => 2 * others,
            Collective::AllToAll => part.members * others / 2,
            Collective::ReduceScatter | Collective::Scatter | Collective::AllGather => others,
        }
    }

    fn message(&self, part: &Part, _number: u32) -> Message {
        let (to, from) = part.apart(1);
        Message { bytes: part.block(), to, from }
    }

    fn sum(&self, part: &Part, received: u32) -> Option<u64> {
        (received < part.members).then(|| part.block())
    }

    fn summary(&self) -> &'static str {
        "n - 1 steps to the next member, bandwidth-optimal, latency grows with n [Thakur05]"
    }
}
