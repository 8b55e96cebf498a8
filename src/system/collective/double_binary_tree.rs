//! Double binary tree: chunks go up a tree and down again, two trees take turns; all but all-reduce and broadcast as a ring [Sanders09].
//!
//! A tree has one root with a balanced tree of all others below it, numbered in order; the root is the first member in one tree and
//! the last in the other, so the leaves of one are inner in the other [ASTRA2].

use arrayvec::ArrayVec;

use super::ring::Ring;
use super::{Branch, Collective, CollectiveAlgorithm, Few, Message, Part, Peers, Role, Stage, Step};
use crate::system::topology::Pattern;
use crate::units::narrow;

/// See the module.
pub struct DoubleBinaryTree;

impl CollectiveAlgorithm for DoubleBinaryTree {
    /// All-reduce up a tree and down again: the root has one child, every other up to two.
    ///
    /// ```text
    /// T = 2 (D a + (2D - 1) S / B)      D = floor(log2(n - 1)) + 1 levels below the root         [Sanders09]
    /// ```
    ///
    /// n members, S bytes of a chunk, a a step's latency, B the bandwidth of a switch's port, which both children of one share: 8
    /// members, D = 3, 6 steps that take the time of 10 S / B. A chunk goes as a whole: those of one dimension follow each other. A
    /// broadcast is the way down.
    fn steps(&self, collective: Collective, (members, window): (u32, u32), emit: &mut dyn FnMut(Step)) {
        if !has_tree(collective) {
            return Ring.steps(collective, (members, window), emit);
        }
        let levels = levels(members);
        let deepest = levels.len() - 1;
        let role = |is_core| if is_core { Role::Core } else { Role::Others };
        let step = |role, pattern, sent, reduced| Step { role, repeat: 1, pattern, sent, reduced };
        if collective == Collective::AllReduce {
            for (k, &Level { distance, is_pair }) in levels.iter().enumerate().rev() {
                // A parent of the deepest level sends up once.
                let role = role(k + 1 == deepest.max(1));
                if is_pair {
                    emit(step(role, Pattern::Meet { distance }, 1.0, 2.0));
                } else {
                    emit(step(role, Pattern::Send { distance }, 1.0, 1.0));
                }
            }
        }
        for (k, &Level { distance, is_pair }) in levels.iter().enumerate() {
            let role = role(k == deepest && (k > 0 || collective == Collective::Broadcast));
            if is_pair {
                emit(step(role, Pattern::Part { distance }, 2.0, 0.0));
            } else {
                emit(step(role, Pattern::Send { distance }, 1.0, 0.0));
            }
        }
    }

    fn peers(&self, stage: &Stage) -> Peers {
        let Stage { collective, me, members, place, .. } = *stage;
        if !has_tree(collective) {
            return Ring.peers(stage);
        }
        let levels = narrow(levels(members).len() as u64);
        let climbs = collective == Collective::AllReduce && place < levels;
        let depth = if climbs { levels - place } else { place % levels + 1 };
        let at = position(me, members, stage.is_odd);
        let children = || at.branch.children.into_iter().flatten().collect::<Few>();
        match at.branch.parent {
            Some(parent) if at.depth == depth && climbs => Peers::gives(parent),
            Some(parent) if at.depth == depth => Peers::takes(parent),
            _ if at.depth + 1 != depth || children().is_empty() => Peers::None,
            _ if climbs => Peers::Takes(children()),
            _ => Peers::Gives(children()),
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

    fn needs_power_of_two(&self, collective: Collective) -> bool {
        has_tree(collective)
    }

    fn summary(&self) -> &'static str {
        "chunks up a tree and down again, two trees take turns; all but all-reduce and broadcast as a ring [Sanders09]"
    }
}

/// Whether a collective goes by a tree.
const fn has_tree(collective: Collective) -> bool {
    matches!(collective, Collective::AllReduce | Collective::Broadcast)
}

/// The links between the members at one depth and their parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    /// How far they are apart at most.
    distance: u32,
    /// Whether a parent has two children.
    is_pair: bool,
}

/// The levels below the root, from the top. Of m members in order the middle one is the parent of floor((m - 1) / 2) before it and of
/// the others behind it.
fn levels(members: u32) -> ArrayVec<Level, 32> {
    let mut levels = ArrayVec::new();
    let mut most = members - 1;
    // The root stands beside the row of the others.
    levels.push(Level { distance: 1 + most / 2, is_pair: false });
    while most > 1 {
        let (left, right) = ((most - 1) / 2, most / 2);
        levels.push(Level { distance: 1 + (left / 2).max((right - 1) / 2), is_pair: left > 0 });
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
}

/// The position of a member in one of the two trees: the root is the first member, or the last in an odd one.
fn position(me: u32, members: u32, is_odd: bool) -> Position {
    let (root, mut low, mut high) = if is_odd { (members - 1, 0, members - 2) } else { (0, 1, members - 1) };
    let top = u32::midpoint(low, high);
    if me == root {
        let child = (members > 1).then_some(top);
        let children = if is_odd { [child, None] } else { [None, child] };
        return Position { branch: Branch { parent: None, children }, depth: 0 };
    }
    let (mut parent, mut depth) = (root, 1);
    loop {
        let middle = u32::midpoint(low, high);
        if me == middle {
            let left = (low < middle).then(|| u32::midpoint(low, middle - 1));
            let right = (middle < high).then(|| u32::midpoint(middle + 1, high));
            return Position { branch: Branch { parent: Some(parent), children: [left, right] }, depth };
        }
        (parent, depth) = (middle, depth + 1);
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
    fn eight_members_take_six_steps_and_an_inner_one_sends_three_times() {
        let mut steps = Vec::new();
        DoubleBinaryTree.steps(Collective::AllReduce, (8, 1), &mut |step| steps.push(step));
        let patterns: Vec<Pattern> = steps.iter().map(|step| step.pattern).collect();
        let (meet, part) = (|distance| Pattern::Meet { distance }, |distance| Pattern::Part { distance });
        let root = Pattern::Send { distance: 4 };
        assert_eq!(patterns, [meet(1), meet(2), root, root, part(2), part(1)]);
        let sent: f64 = steps.iter().filter(|step| step.role == Role::Core).map(|step| step.sent).sum();
        assert_eq!(sent, 3.0);
    }

    #[test]
    fn in_every_step_those_who_send_are_awaited_and_all_links_are_used_once_each_way() {
        for collective in [Collective::AllReduce, Collective::Broadcast] {
            for (members, is_odd) in (2..40).flat_map(|members| [(members, false), (members, true)]) {
                let mut steps = Vec::new();
                DoubleBinaryTree.steps(collective, (members, 1), &mut |step| steps.push(step));
                let mut used = 0;
                for (step, place) in steps.iter().zip(0..) {
                    let (role, pattern) = (step.role, step.pattern);
                    let peers = |me| {
                        let (repeat, times, is_last) = (1, 0, false);
                        let stage =
                            Stage { collective, role, pattern, repeat, times, place, is_last, is_odd, me, members };
                        DoubleBinaryTree.peers(&stage)
                    };
                    let given = (0..members).flat_map(|me| match peers(me) {
                        Peers::Gives(to) => to.into_iter().map(|to| (me, to)).collect(),
                        _ => Vec::new(),
                    });
                    let given: Vec<(u32, u32)> = given.collect();
                    assert!(!given.is_empty(), "{collective:?} over {members}: step {place}");
                    let (Pattern::Send { distance } | Pattern::Meet { distance } | Pattern::Part { distance }) = pattern
                    else {
                        panic!("a step of a tree")
                    };
                    let most = given.iter().map(|(me, to)| me.abs_diff(*to)).max();
                    assert!(most <= Some(distance), "{collective:?} over {members}: step {place}");
                    for &(me, to) in &given {
                        assert!(matches!(peers(to), Peers::Takes(from) if from.contains(&me)), "{me} of {members}");
                    }
                    used += given.len();
                }
                let ways = if collective == Collective::AllReduce { 2 } else { 1 };
                assert_eq!(used, ways * (members as usize - 1));
            }
        }
    }
}
