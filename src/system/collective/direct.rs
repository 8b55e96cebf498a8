//! Direct: every member sends to all others at once, one step for each half of an all-reduce [ASTRA2].

use super::{Collective, CollectiveAlgorithm, Message, Part, Peers, Role, Stage, Step};
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
    /// n members, S bytes on each, a a step's latency, B the bandwidth of all links together. In windows of w messages each
    /// step is done (n - 1) / w times, rounded up, with an equal part of its bytes.
    fn steps(&self, collective: Collective, (members, window): (u32, u32), emit: &mut dyn FnMut(Step)) {
        let repeat = (members - 1).div_ceil(window);
        let sent = f64::from(members - 1) / f64::from(members) / f64::from(repeat);
        let step = |reduced| Step { role: Role::Core, repeat, pattern: Pattern::Spread, sent, reduced };
        let added = if collective.sums() { sent } else { 0.0 };
        emit(step(added));
        if collective.halves().is_some() {
            emit(step(0.0));
        }
    }

    fn peers(&self, stage: &Stage) -> Peers {
        let others = stage.members - 1;
        let window = others.div_ceil(stage.repeat);
        Peers::Round { nearest: 1 + stage.times * window, farthest: ((stage.times + 1) * window).min(others) }
    }

    fn count(&self, part: &Part) -> u32 {
        (part.members - 1) * if part.collective.halves().is_some() { 2 } else { 1 }
    }

    fn message(&self, part: &Part, number: u32) -> Message {
        let (to, from) = part.apart(1 + number % (part.members - 1));
        Message { bytes: part.block(), to, from }
    }

    fn sum(&self, part: &Part, received: u32) -> Option<u64> {
        (received < part.members).then(|| part.block())
    }

    /// Among all ranks of a dimension the reference counts a window; in a group of some as a ring does.
    fn round(&self, part: &Part) -> u32 {
        if part.is_group { (part.members - 1) * part.window } else { part.window }
    }

    fn window(&self, asked: Option<u32>, members: u32) -> u32 {
        asked.map_or(members - 1, |window| window.min(members - 1))
    }

    fn waits_between_halves(&self) -> bool {
        true
    }

    fn summary(&self) -> &'static str {
        "one step to all others at once for each half of an all-reduce [ASTRA2]"
    }
}
