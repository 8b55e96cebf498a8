//! Halving and doubling: log2(n) exchanges with partners 1, 2, 4, ... away; surplus ranks are folded in [Thakur05].

use super::{Collective, CollectiveAlgorithm, Role, Step};
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
    fn steps(&self, collective: Collective, members: u32, emit: &mut dyn FnMut(Step)) {
        if collective == Collective::AllToAll {
            return bruck(members, emit);
        }
        let levels = members.ilog2();
        let core = 1 << levels;
        let block = 1.0 / f64::from(members);
        let (scatters, gathers) = (collective != Collective::AllGather, collective != Collective::ReduceScatter);
        let fold = |role, sent, reduced| Step { role, ..exchange(1, sent, reduced) };
        if core < members {
            let (sent, reduced) = if scatters { (1.0, 1.0) } else { (block, 0.0) };
            emit(fold(Role::Surplus, sent, reduced));
        }
        if scatters {
            for level in 0..levels {
                let sent = halved(level + 1);
                emit(exchange(1 << level, sent, sent));
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
        let period = 2 * bit;
        let blocks = (members / period) * bit + (members % period).saturating_sub(bit);
        let sent = f64::from(blocks) / f64::from(members);
        let distance = bit.min(members - bit);
        emit(exchange(distance, sent, 0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(collective: Collective, members: u32) -> Vec<f64> {
        let mut sent = Vec::new();
        HalvingDoubling.steps(collective, members, &mut |step| sent.push(step.sent));
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
