//! Collective algorithms: a collective of one group on one dimension as a list of steps.

use super::topology::{Pattern, Topology};
use crate::registry::registry;

/// What a collective does, in Chakra's terms. `size` is always the whole buffer: what each rank starts with for
/// all-reduce, reduce-scatter and all-to-all, what each ends with for all-gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collective {
    /// Every rank ends with the sum of all.
    AllReduce,
    /// Every rank ends with its part of the sum.
    ReduceScatter,
    /// Every rank ends with everybody's part.
    AllGather,
    /// Every rank sends a different part to each.
    AllToAll,
}

impl Collective {
    /// Every collective, in the order of [`Collective::NAMES`].
    pub const ALL: [Self; 4] = [Self::AllReduce, Self::ReduceScatter, Self::AllGather, Self::AllToAll];
    /// The names that people write.
    pub const NAMES: [&'static str; 4] = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all"];
}

/// Which members send in a step. Each member has one role all through a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Those that carry the collective; in most algorithms all.
    Core,
    /// Those that are folded into the core, and stand by while it works.
    Surplus,
}

impl Role {
    /// How many roles there are.
    pub const COUNT: usize = 2;
}

/// One synchronous exchange, repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Who sends: of this role at least one member does in every such step, the same one each time.
    pub role: Role,
    /// How many times.
    pub repeat: u32,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// What a member that sends sends in one of them, as a share of the collective's size.
    pub sent: f64,
    /// What each member adds to its own after one of them, as a share of the collective's size.
    pub reduced: f64,
}

/// A way to run collectives on one dimension.
pub trait CollectiveAlgorithm {
    /// The steps of a collective over `members` ranks, at least two, in order.
    fn steps(&self, collective: Collective, members: u32, emit: &mut dyn FnMut(Step));
    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;
}

registry! {
    /// How a collective runs on one dimension.
    pub enum Algorithm: CollectiveAlgorithm {
        ring::Ring,
        direct::Direct,
        halving_doubling::HalvingDoubling,
    }
}

/// Which algorithm a dimension uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The one that fits its building block.
    ByBlock,
    /// This one.
    Always(Algorithm),
}

impl Choice {
    /// The words that people write: `by_block`, and the algorithms.
    #[must_use]
    pub const fn words() -> [&'static str; 1 + Algorithm::NAMES.len()] {
        let mut names = ["by_block"; 1 + Algorithm::NAMES.len()];
        let mut k = 0;
        while k < Algorithm::NAMES.len() {
            names[k + 1] = Algorithm::NAMES[k];
            k += 1;
        }
        names
    }

    /// What a word means.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let place = Self::words().iter().position(|known| *known == word)?;
        Some(place.checked_sub(1).map_or(Self::ByBlock, |k| Self::Always(Algorithm::ALL[k])))
    }

    /// The algorithm for a building block. All-to-all by block is `direct` on a switch: halving and doubling has none
    /// that moves only what is needed.
    #[must_use]
    pub fn of(self, block: Topology, collective: Collective) -> Algorithm {
        match (self, block, collective) {
            (Self::Always(algorithm), ..) => algorithm,
            (Self::ByBlock, Topology::Switch, Collective::AllToAll) => Algorithm::Direct,
            (Self::ByBlock, block, _) => block.part().algorithm(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the busiest member sends, as a share of the size.
    fn busiest(algorithm: Algorithm, collective: Collective, members: u32) -> f64 {
        let mut sent = [0.0; Role::COUNT];
        algorithm.part().steps(collective, members, &mut |step| {
            sent[step.role as usize] += f64::from(step.repeat) * step.sent;
        });
        sent.into_iter().fold(0.0, f64::max)
    }

    /// Every byte that a member must send at least, as a share of the size.
    fn least(collective: Collective, members: u32) -> f64 {
        let share = f64::from(members - 1) / f64::from(members);
        if collective == Collective::AllReduce { 2.0 * share } else { share }
    }

    #[test]
    fn no_algorithm_sends_less_than_must_be_sent() {
        for algorithm in Algorithm::ALL {
            for collective in Collective::ALL {
                for members in 2..70 {
                    let sent = busiest(*algorithm, collective, members);
                    let bound = least(collective, members);
                    assert!(sent > bound - 1e-9, "{algorithm:?} {collective:?} over {members}: {sent} < {bound}");
                }
            }
        }
    }

    #[test]
    fn ring_direct_and_halving_doubling_on_powers_of_two_send_no_more() {
        for algorithm in Algorithm::ALL {
            for collective in [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather] {
                for members in [2, 4, 8, 64, 1024] {
                    let sent = busiest(*algorithm, collective, members);
                    assert!((sent - least(collective, members)).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn of_seven_members_a_partner_of_a_surplus_one_sends_most() {
        // The core of four halves and doubles, 1/2 + 1/4 twice; a partner gives the whole result back besides.
        assert_eq!(busiest(Algorithm::HalvingDoubling, Collective::AllReduce, 7), 1.5 + 1.0);
        // A surplus member hands in all that it has, its partner halves and gives back a block of a seventh.
        assert_eq!(busiest(Algorithm::HalvingDoubling, Collective::ReduceScatter, 7), 1.0);
    }

    #[test]
    fn all_of_a_sum_is_reduced_once() {
        for algorithm in Algorithm::ALL {
            for (collective, expect) in [(Collective::ReduceScatter, 7.0 / 8.0), (Collective::AllGather, 0.0)] {
                let mut reduced = 0.0;
                algorithm.part().steps(collective, 8, &mut |step| reduced += f64::from(step.repeat) * step.reduced);
                assert!((reduced - expect).abs() < 1e-12, "{algorithm:?} {collective:?}");
            }
        }
    }
}
