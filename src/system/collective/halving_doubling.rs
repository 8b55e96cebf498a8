//! Halving and doubling: log2(n) exchanges with partners 1, 2, 4, ... away; surplus ranks are folded in [Thakur05].

use super::{Collective, CollectiveAlgorithm, Message, Part, Peers, Role, Stage, Step};
use crate::system::topology::Pattern;

/// See the module.
pub struct HalvingDoubling;

impl CollectiveAlgorithm for HalvingDoubling {
    /// Recursive halving, then recursive doubling, over the largest power of two 2^k <= n.
    ///
    /// ```text
    /// T = 2k * a + 2 (1 - 2^-k) * S / B                                         [Thakur05]
    /// ```
    ///
    /// a a step's latency, S bytes on each member, B the bandwidth. The n - 2^k surplus members hand their buffer to
    /// a partner first and get the result from it last [Thakur05, section 4.5]: a step of S before, and one after of S
    /// (S / n where only a block is due, or given). Most is sent by such a partner, or by a surplus member. All-to-all is Bruck's: ceil(log2 n) steps of S / 2 [Bruck97].
    fn steps(&self, collective: Collective, (members, _): (u32, u32), emit: &mut dyn FnMut(Step)) {
        if collective == Collective::AllToAll {
            return bruck(members, emit);
        }
        let levels = members.ilog2();
        let core = 1 << levels;
        let block = 1.0 / f64::from(members);
        let (scatters, gathers) = (collective != Collective::AllGather, !collective.scatters());
        let comes_from_one = matches!(collective, Collective::Broadcast | Collective::Scatter);
        let added = |sent: f64| if collective.sums() { sent } else { 0.0 };
        let fold = |role, sent, reduced| Step { role, ..exchange(1, sent, reduced) };
        if core < members && !comes_from_one {
            let sent = if scatters { 1.0 } else { block };
            emit(fold(Role::Surplus, sent, added(sent)));
        }
        if scatters {
            for level in 0..levels {
                let sent = halved(level + 1);
                emit(exchange(1 << level, sent, added(sent)));
            }
        }
        if gathers {
            for level in (0..levels).rev() {
                let sent = halved(level + 1);
                emit(exchange(1 << level, sent, 0.0));
            }
        }
        if core < members {
            emit(fold(Role::Core, if gathers { 1.0 } else { block }, 0.0));
        }
    }

    fn peers(&self, stage: &Stage) -> Peers {
        let Stage { me, members, .. } = *stage;
        let Pattern::Exchange { distance } = stage.pattern else { return Peers::None };
        let core = 1 << members.ilog2();
        let surplus = members - core;
        // Surplus members give what they have first and take the result last.
        match stage.role {
            _ if stage.collective == Collective::AllToAll => Peers::Round { nearest: distance, farthest: distance },
            Role::Surplus if me >= core => Peers::gives(me - core),
            Role::Surplus if me < surplus => Peers::takes(me + core),
            Role::Surplus => Peers::None,
            _ if surplus > 0 && stage.is_last && me >= core => Peers::takes(me - core),
            _ if surplus > 0 && stage.is_last && me < surplus => Peers::gives(me + core),
            _ if surplus > 0 && stage.is_last => Peers::None,
            _ if me >= core => Peers::None,
            _ if (me / distance).is_multiple_of(2) => Peers::Partner(me + distance),
            _ => Peers::Partner(me - distance),
        }
    }

    fn count(&self, part: &Part) -> u32 {
        if part.collective == Collective::AllToAll {
            part.members.next_power_of_two().ilog2()
        } else if part.collective.halves().is_some() {
            (u64::from(part.members) * u64::from(part.members)).ilog2()
        } else {
            part.members.ilog2()
        }
    }

    /// Halving sends S/2, S/4, ... to partners 1, 2, ... away; doubling the reverse. Over no power of two the reference halves
    /// for ever.
    fn message(&self, part: &Part, number: u32) -> Message {
        let Part { bytes, me, members, .. } = *part;
        if part.collective == Collective::AllToAll {
            // Bruck's: the blocks whose number has a bit go as far as the bit says.
            let level = number % self.count(part).max(1);
            let blocks = u64::from(bruck_blocks(members, level));
            let (to, from) = part.apart(1 << level);
            return Message { bytes: bytes / u64::from(members) * blocks, to, from };
        }
        let levels = members.ilog2();
        let shifted = |bytes: u64, times: u32| bytes.checked_shl(times).unwrap_or(0);
        let (bytes, distance) = match part.collective {
            Collective::AllGather => (shifted(bytes, number), (members / 2).checked_shr(number).unwrap_or(0)),
            _ if part.collective.halves().is_some() && members.is_power_of_two() && number >= levels => {
                let back = number - levels;
                (shifted(bytes >> (levels + 1), back + 1), (members / 2).checked_shr(back).unwrap_or(0))
            }
            _ => (bytes.checked_shr(number + 1).unwrap_or(0), 1_u32.checked_shl(number).unwrap_or(0)),
        };
        // Behind the last, the partner is none.
        let is_before = (me / distance.max(1)).is_multiple_of(2);
        let away = distance % members;
        let peer = (me + if is_before { away } else { members - away }) % members;
        Message { bytes, to: peer, from: peer }
    }

    fn sum(&self, part: &Part, received: u32) -> Option<u64> {
        (received <= part.members.ilog2()).then(|| part.bytes >> received)
    }

    fn round(&self, part: &Part) -> u32 {
        part.members.ilog2() - 1
    }

    fn needs_power_of_two(&self, collective: Collective) -> bool {
        collective != Collective::AllToAll
    }

    fn summary(&self) -> &'static str {
        "log2(n) exchanges with partners 1, 2, 4, ... away; surplus ranks folded in [Thakur05]"
    }
}

/// One exchange of the core with partners so far away.
const fn exchange(distance: u32, sent: f64, reduced: f64) -> Step {
    Step { role: Role::Core, repeat: 1, pattern: Pattern::Exchange { distance }, sent, reduced }
}

/// 1 / 2^times, exactly.
fn halved(times: u32) -> f64 {
    1.0 / f64::from(1_u32 << times)
}

/// Bruck's all-to-all: in step i every member sends the half of its blocks whose number has bit i set.
fn bruck(members: u32, emit: &mut dyn FnMut(Step)) {
    for level in 0..members.next_power_of_two().ilog2() {
        let bit = 1_u32 << level;
        let sent = f64::from(bruck_blocks(members, level)) / f64::from(members);
        let distance = bit.min(members - bit);
        emit(exchange(distance, sent, 0.0));
    }
}

/// How many of so many blocks have a bit in their number.
const fn bruck_blocks(members: u32, level: u32) -> u32 {
    let bit = 1_u32 << level;
    let period = 2 * bit;
    (members / period) * bit + (members % period).saturating_sub(bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(collective: Collective, members: u32) -> Vec<f64> {
        let mut sent = Vec::new();
        HalvingDoubling.steps(collective, (members, 1), &mut |step| sent.push(step.sent));
        sent
    }

    #[test]
    fn eight_members_halve_three_times_and_double_three_times() {
        assert_eq!(sent(Collective::AllReduce, 8), [0.5, 0.25, 0.125, 0.125, 0.25, 0.5]);
    }

    #[test]
    fn six_members_fold_two_into_four() {
        // The two surplus ranks' whole buffer, then 2^2 members, then the whole result back.
        assert_eq!(sent(Collective::AllReduce, 6), [1.0, 0.5, 0.25, 0.25, 0.5, 1.0]);
        assert_eq!(sent(Collective::ReduceScatter, 6), [1.0, 0.5, 0.25, 1.0 / 6.0]);
    }

    #[test]
    fn brucks_all_to_all_sends_half_in_each_of_three_steps_of_eight() {
        assert_eq!(sent(Collective::AllToAll, 8), [0.5, 0.5, 0.5]);
        // Blocks 1 3 5, 2 3, 4 5 of six.
        assert_eq!(sent(Collective::AllToAll, 6), [0.5, 2.0 / 6.0, 2.0 / 6.0]);
    }
}
