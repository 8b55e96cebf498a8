//! Collective algorithms: a collective of one group on one dimension as a list of steps.

use arrayvec::ArrayVec;

use super::topology::{Pattern, Topology};
use crate::registry::registry;

/// What a collective does, in Chakra's terms. `size` is always the whole buffer: what each rank starts with for
/// all-reduce, reduce-scatter and all-to-all, what each ends with for all-gather and broadcast, what the first starts with
/// for scatter.
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
    /// Every rank ends with what the first had.
    Broadcast,
    /// Every rank ends with its part of what the first had.
    Scatter,
}

impl Collective {
    /// Every collective, in the order of [`Collective::NAMES`].
    pub const ALL: [Self; 6] =
        [Self::AllReduce, Self::ReduceScatter, Self::AllGather, Self::AllToAll, Self::Broadcast, Self::Scatter];
    /// The names that people write.
    pub const NAMES: [&'static str; 6] =
        ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "scatter"];

    /// The two collectives that one comes to, one after the other: the way inwards out, and the way back. A broadcast is a
    /// scatter and an all-gather [Thakur05].
    #[must_use]
    pub const fn halves(self) -> Option<(Self, Self)> {
        match self {
            Self::AllReduce => Some((Self::ReduceScatter, Self::AllGather)),
            Self::Broadcast => Some((Self::Scatter, Self::AllGather)),
            Self::ReduceScatter | Self::AllGather | Self::AllToAll | Self::Scatter => None,
        }
    }

    /// Whether what is received is added to what is there.
    #[must_use]
    pub const fn sums(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter)
    }

    /// Whether each rank ends with a part of what is there at first.
    #[must_use]
    pub const fn scatters(self) -> bool {
        matches!(self, Self::ReduceScatter | Self::Scatter)
    }

    /// Bytes that leave it, of `bytes` that each of so many members brings in.
    #[must_use]
    pub const fn outcome(self, bytes: u64, members: u32) -> u64 {
        match self {
            Self::AllReduce | Self::AllToAll | Self::Broadcast => bytes,
            Self::AllGather => bytes * members as u64,
            Self::ReduceScatter | Self::Scatter => bytes / members as u64,
        }
    }
}

/// Which members send in a step. Each member has one role all through a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Those that carry the collective; in most algorithms all.
    Core,
    /// Those that are folded into the core, and stand by while it works.
    Surplus,
    /// Now these, now those: none of them sends in every such step, and none as much as one of the core.
    Others,
}

impl Role {
    /// How many roles there are in which somebody sends in every step.
    pub const COUNT: usize = 2;

    /// The number of a role in which somebody sends in every step.
    #[must_use]
    pub const fn number(self) -> Option<usize> {
        match self {
            Self::Core => Some(0),
            Self::Surplus => Some(1),
            Self::Others => None,
        }
    }
}

/// One synchronous exchange, repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Who sends: of this role at least one member does in every such step, the same one each time, unless it is [`Role::Others`].
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

/// Whom a member sends to, and from whom it receives, in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peers {
    /// Nobody.
    None,
    /// The members so far ahead, and those so far behind.
    Round {
        /// The nearest.
        nearest: u32,
        /// The farthest.
        farthest: u32,
    },
    /// One member, both ways.
    Partner(u32),
    /// Sends to some members, an equal part of its bytes to each.
    Gives(Few),
    /// Receives from some members.
    Takes(Few),
}

/// One or two members.
pub type Few = ArrayVec<u32, 2>;

impl Peers {
    /// Sends to one member.
    #[must_use]
    pub fn gives(to: u32) -> Self {
        Self::Gives(std::iter::once(to).collect())
    }

    /// Receives from one member.
    #[must_use]
    pub fn takes(from: u32) -> Self {
        Self::Takes(std::iter::once(from).collect())
    }
}

/// Where one member is in the steps of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// The collective.
    pub collective: Collective,
    /// Who sends.
    pub role: Role,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// How many times the step is done, and how many times it has been.
    pub repeat: u32,
    /// See `repeat`.
    pub times: u32,
    /// Which of the steps it is.
    pub place: u32,
    /// Whether it is the last one.
    pub is_last: bool,
    /// Whether the chunk is an odd one: trees take turns.
    pub is_odd: bool,
    /// The member, and among how many.
    pub me: u32,
    /// See `me`.
    pub members: u32,
}

/// One member's part of a collective, as messages that follow each other [ASTRA2].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The collective.
    pub collective: Collective,
    /// Bytes that the member brings in.
    pub bytes: u64,
    /// The member, and among how many.
    pub me: u32,
    /// See `me`.
    pub members: u32,
    /// One forwards round the members, or backwards, as a step that is added.
    pub step: u32,
    /// How many messages are under way at once.
    pub window: u32,
    /// Whether the members are a group of some ranks.
    pub is_group: bool,
}

impl Part {
    /// Bytes of a message among equals: what the member brings in to an all-gather, else a part of it for each member.
    #[must_use]
    pub fn block(&self) -> u64 {
        let is_part = self.collective != Collective::AllGather;
        if is_part { self.bytes / u64::from(self.members) } else { self.bytes }
    }

    /// The members so far ahead and so far behind, in the part's own direction; `far` is below the number of members.
    #[must_use]
    pub const fn apart(&self, far: u32) -> (u32, u32) {
        let (ahead, behind) = (around(self.me + far, self.members), around(self.me + self.members - far, self.members));
        if self.step == 1 { (ahead, behind) } else { (behind, ahead) }
    }
}

/// A position that may be once round the members too far.
const fn around(position: u32, members: u32) -> u32 {
    if position >= members { position - members } else { position }
}

/// One message of a member's part: with it comes one of the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// How many bytes.
    pub bytes: u64,
    /// The position to which it goes.
    pub to: u32,
    /// The position from which the other comes.
    pub from: u32,
}

/// Where a member stands in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its parent.
    pub parent: Option<u32>,
    /// Its children.
    pub children: [Option<u32>; 2],
}

/// A way to run collectives on one dimension.
///
/// It says the same thing twice: as steps that all members do together, which our rules know, with their costs; and as messages of
/// each member that follow each other, which the reference simulator's rules know.
pub trait CollectiveAlgorithm {
    /// The steps of a collective over so many members, at least two, with so many messages under way at once, in order.
    fn steps(&self, collective: Collective, members_and_window: (u32, u32), emit: &mut dyn FnMut(Step));

    /// The peers of a member in a step.
    fn peers(&self, stage: &Stage) -> Peers;

    /// How many messages a member sends.
    fn count(&self, part: &Part) -> u32;

    /// The message of a number; behind the last a number may be asked for, and is not sent.
    fn message(&self, part: &Part, number: u32) -> Message;

    /// Bytes of a message that are added to what is there when so many have been received; none if the last was no part of a sum.
    fn sum(&self, part: &Part, received: u32) -> Option<u64>;

    /// In the reference's count of what is reduced: how many messages a round has behind its first window.
    fn round(&self, part: &Part) -> u32 {
        (part.members - 1) * part.window
    }

    /// How many messages are under way at once, of as many as are asked for, in a group of `members`.
    fn window(&self, _asked: Option<u32>, _members: u32) -> u32 {
        1
    }

    /// Whether the second half of a collective waits until all of the first has come in.
    fn waits_between_halves(&self) -> bool {
        false
    }

    /// Where a member stands in the tree of a chunk, if members pass bytes up and down a tree: trees take turns.
    fn branch(&self, _me: u32, _members: u32, _is_odd: bool) -> Option<Branch> {
        None
    }

    /// Whether messages of a collective reach their goal only among a power of two of members.
    fn needs_power_of_two(&self, _collective: Collective) -> bool {
        false
    }

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;
}

registry! {
    /// How a collective runs on one dimension.
    pub enum Algorithm: CollectiveAlgorithm {
        ring::Ring,
        direct::Direct,
        halving_doubling::HalvingDoubling,
        double_binary_tree::DoubleBinaryTree,
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
        algorithm.part().steps(collective, (members, members - 1), &mut |step| {
            if let Some(role) = step.role.number() {
                sent[role] += f64::from(step.repeat) * step.sent;
            }
        });
        sent.into_iter().fold(0.0, f64::max)
    }

    /// Every byte that a member must send at least, as a share of the size.
    fn least(collective: Collective, members: u32) -> f64 {
        let share = f64::from(members - 1) / f64::from(members);
        match collective {
            Collective::AllReduce => 2.0 * share,
            // The first must send all that it has.
            Collective::Broadcast => 1.0,
            _ => share,
        }
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
        for algorithm in [Algorithm::Ring, Algorithm::Direct, Algorithm::HalvingDoubling] {
            for collective in [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather] {
                for members in [2, 4, 8, 64, 1024] {
                    let sent = busiest(algorithm, collective, members);
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
                algorithm
                    .part()
                    .steps(collective, (8, 7), &mut |step| reduced += f64::from(step.repeat) * step.reduced);
                assert!((reduced - expect).abs() < 1e-12, "{algorithm:?} {collective:?}");
            }
        }
    }

    #[test]
    fn messages_have_the_bytes_of_steps() {
        for algorithm in Algorithm::ALL {
            for collective in Collective::ALL {
                for members in [2, 4, 8, 16] {
                    let whole = 1 << 20;
                    let own = if collective == Collective::AllGather { whole / u64::from(members) } else { whole };
                    let window = algorithm.part().window(None, members);
                    let part = Part { collective, bytes: own, me: 0, members, step: 1, window, is_group: false };
                    let messages = (0..algorithm.part().count(&part)).map(|k| algorithm.part().message(&part, k).bytes);
                    let mut steps = 0.0;
                    algorithm.part().steps(collective, (members, window), &mut |step| {
                        steps += f64::from(step.repeat) * step.sent;
                    });
                    let has_tree =
                        algorithm.part().branch(0, members, false).is_some() && collective.halves().is_some();
                    let sent = crate::units::real(messages.sum()) / crate::units::real(whole);
                    assert!(has_tree || (sent - steps).abs() < 1e-9, "{algorithm:?} {collective:?} over {members}");
                }
            }
        }
    }
}
