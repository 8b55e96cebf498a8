//! Double binary tree: chunks go up a tree and down again, two trees take turns; all but all-reduce and broadcast as a ring [Sanders09].
//!
//! A tree has one root with a balanced tree of all others below it, numbered in order; the root is the first member in one tree and
//! the last in the other, so the leaves of one are inner in the other [ASTRA2].

use arrayvec::ArrayVec;

use super::ring::Ring;
use super::{Branch, Collective, CollectiveAlgorithm, Message, Part, Peers, Role, Stage, Step};
use crate::system::topology::Pattern;

/// See the module.
pub struct DoubleBinaryTree;

impl CollectiveAlgorithm for DoubleBinaryTree {
    /// All-reduce up a tree and down again: the root has one child, every other up to two, which take turns.
    ///
    /// ```text
    /// T = 2 (2D - 1) * (a + S / B)      D = floor(log2(n - 1)) + 1 levels below the root         [Sanders09]
    /// ```
    ///
    /// n members, S bytes of a chunk, a a step's latency, B the bandwidth: 8 members, D = 3, 10 steps. A chunk goes as a whole: those
    /// of one dimension follow each other. A broadcast is the way down.
    fn steps(&self, collective: Collective, (members, window): (u32, u32), emit: &mut dyn FnMut(Step)) {
        if !has_tree(collective) {
            return Ring.steps(collective, (members, window), emit);
        }
        let levels = levels(members);
        // A member above the lowest level sends once up and to two children.
        let counted = levels.len() - 1;
        let step = |role, distance, reduced| Step {
            role,
            repeat: 1,
            pattern: Pattern::Send { distance },
            sent: 1.0,
            reduced,
        };
        if collective == Collective::AllReduce {
            for (k, level) in levels.iter().enumerate().rev() {
                let mut role = if k + 1 == counted.max(1) { Role::Core } else { Role::Others };
                for distance in level.sides() {
                    emit(step(role, distance, 1.0));
                    role = Role::Others;
                }
            }
        }
        for (k, level) in levels.iter().enumerate() {
            let is_counted = k == counted && (k > 0 || collective == Collective::Broadcast);
            for distance in level.sides() {
                emit(step(if is_counted { Role::Core } else { Role::Others }, distance, 0.0));
            }
        }
    }

    fn peers(&self, stage: &Stage) -> Peers {
        let Stage { collective, me, members, place, .. } = *stage;
        if !has_tree(collective) {
            return Ring.peers(stage);
        }
        // The sides of the levels as they follow each other upwards; the way down is the reverse of levels, not of sides.
        let levels = levels(members);
        let sides = levels.iter().zip(1_u32..).flat_map(|(level, depth)| level.which().map(move |side| (depth, side)));
        let down: ArrayVec<(u32, usize), 64> = sides.collect();
        let climbs = collective == Collective::AllReduce && (place as usize) < down.len();
        let (depth, side) = if climbs {
            let mut up = down.clone();
            up.sort_by_key(|&(depth, side)| (std::cmp::Reverse(depth), side));
            up[place as usize]
        } else {
            down[place as usize % down.len()]
        };
        let at = position(me, members, stage.is_odd);
        let peers = |up: bool, other: u32| if up == climbs { Peers::Gives(other) } else { Peers::Takes(other) };
        match (at.depth, at.branch.parent, at.branch.children) {
            // The root's only child counts as its first.
            (here, Some(parent), _) if here == depth && (depth == 1 || at.side == side) => peers(true, parent),
            (0, _, [one, other]) if depth == 1 => one.or(other).map_or(Peers::None, |child| peers(false, child)),
            (here, _, children) if here > 0 && here + 1 == depth => {
                children[side].map_or(Peers::None, |child| peers(false, child))
            }
            _ => Peers::None,
        }
    }

    fn count(&self, part: &Part) -> u32 {
        Ring.count(part)
    }

    fn message(&self, part: &Part, number: u32) -> Message {
        Ring.message(part, number)
    }

    fn sum(&self, part: &Part, received: u32) -> Option<u64> {
        Ring.sum(part, received)
    }

    fn branch(&self, me: u32, members: u32, is_odd: bool) -> Option<Branch> {
        Some(position(me, members, is_odd).branch)
    }

    fn needs_power_of_two(&self) -> bool {
        true
    }

    fn summary(&self) -> &'static str {
        "chunks up a tree and down again, two trees take turns; all but all-reduce and broadcast as a ring [Sanders09]"
    }
}

/// Whether a collective goes by a tree.
const fn has_tree(collective: Collective) -> bool {
    matches!(collective, Collective::AllReduce | Collective::Broadcast)
}

/// The links between the members at one depth and their parents: how far they are apart at most, by side; none where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level([Option<u32>; 2]);

impl Level {
    /// How far, side by side.
    fn sides(self) -> impl Iterator<Item = u32> {
        self.0.into_iter().flatten()
    }

    /// The sides that there are.
    fn which(self) -> impl Iterator<Item = usize> {
        (0..2).filter(move |&side| self.0[side].is_some())
    }
}

/// The levels below the root, from the top. Of m members in order the middle one is the parent of floor((m - 1) / 2) before it and of
/// the others behind it.
fn levels(members: u32) -> ArrayVec<Level, 32> {
    let mut levels = ArrayVec::new();
    let mut most = members - 1;
    // The root stands beside the row of the others.
    levels.push(Level([Some(1 + most / 2), None]));
    while most > 1 {
        let (left, right) = ((most - 1) / 2, most / 2);
        levels.push(Level([(left > 0).then_some(1 + left / 2), (right > 0).then(|| 1 + (right - 1) / 2)]));
        most = right;
    }
    levels
}

/// Where a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    branch: Branch,
    /// Links to the root.
    depth: u32,
    /// Whether it is its parent's first or second child.
    side: usize,
}

/// The position of a member in one of the two trees: the root is the first member, or the last in an odd one.
fn position(me: u32, members: u32, is_odd: bool) -> Position {
    let (root, mut low, mut high) = if is_odd { (members - 1, 0, members - 2) } else { (0, 1, members - 1) };
    let top = u32::midpoint(low, high);
    if me == root {
        let child = (members > 1).then_some(top);
        let children = if is_odd { [child, None] } else { [None, child] };
        return Position { branch: Branch { parent: None, children }, depth: 0, side: 0 };
    }
    let (mut parent, mut depth, mut side) = (root, 1, 0);
    loop {
        let middle = u32::midpoint(low, high);
        if me == middle {
            let left = (low < middle).then(|| u32::midpoint(low, middle - 1));
            let right = (middle < high).then(|| u32::midpoint(middle + 1, high));
            return Position { branch: Branch { parent: Some(parent), children: [left, right] }, depth, side };
        }
        (parent, depth, side) = (middle, depth + 1, usize::from(me > middle));
        if me < middle {
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_its_parents_child_and_leaves_of_one_tree_are_inner_in_the_other() {
        for members in [2, 3, 4, 7, 8, 64] {
            for is_odd in [true, false] {
                let places: Vec<Branch> = (0..members).map(|me| position(me, members, is_odd).branch).collect();
                assert_eq!(places.iter().filter(|place| place.parent.is_none()).count(), 1);
                for (me, at) in places.iter().enumerate() {
                    for child in at.children.into_iter().flatten() {
                        assert_eq!(places[child as usize].parent, u32::try_from(me).ok());
                    }
                }
            }
        }
    }

    #[test]
    fn eight_members_take_ten_steps_and_an_inner_one_sends_three_times() {
        let mut steps = Vec::new();
        DoubleBinaryTree.steps(Collective::AllReduce, (8, 1), &mut |step| steps.push(step));
        assert_eq!(steps.len(), 10);
        let distances: Vec<Pattern> = steps.iter().map(|step| step.pattern).collect();
        let far = |distance| Pattern::Send { distance };
        assert_eq!(distances, [1, 1, 2, 2, 4, 4, 2, 2, 1, 1].map(far));
        assert_eq!(steps.iter().filter(|step| step.role == Role::Core).count(), 3);
    }

    #[test]
    fn in_every_step_those_who_send_are_awaited_and_all_links_are_used_once_each_way() {
        for collective in [Collective::AllReduce, Collective::Broadcast] {
            for members in 2..40 {
                for is_odd in [false, true] {
                    let mut steps = Vec::new();
                    DoubleBinaryTree.steps(collective, (members, 1), &mut |step| steps.push(step));
                    let mut used = 0;
                    for (step, place) in steps.iter().zip(0..) {
                        let stage = |me| Stage {
                            collective,
                            role: step.role,
                            pattern: step.pattern,
                            repeat: 1,
                            times: 0,
                            place,
                            is_last: false,
                            is_odd,
                            me,
                            members,
                        };
                        let peers = |me| DoubleBinaryTree.peers(&stage(me));
                        let given = (0..members).filter_map(|me| match peers(me) {
                            Peers::Gives(to) => Some((me, to)),
                            _ => None,
                        });
                        let mut given: Vec<_> = given.collect();
                        assert!(!given.is_empty(), "{collective:?} over {members}: step {place}");
                        let Pattern::Send { distance } = step.pattern else { panic!("a send") };
                        for &(me, to) in &given {
                            assert_eq!(peers(to), Peers::Takes(me), "{collective:?} over {members}: step {place}");
                            assert!(me.abs_diff(to) <= distance);
                        }
                        used += given.len();
                        given.dedup();
                    }
                    let ways = if collective == Collective::AllReduce { 2 } else { 1 };
                    assert_eq!(used, ways * (members as usize - 1));
                }
            }
        }
    }
}
