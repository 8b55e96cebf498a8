//! The double binary tree: one NPU's part of an all-reduce up a tree and down again [ASTRA2].
//!
//! The tree has one root with a perfect tree of all others below it, numbered in order; the root is the last member in one
//! tree and the first in the other, and chunks take turns.

use super::bus::Trip;

/// Where a member stands in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its parent.
    pub parent: Option<u32>,
    /// Its children.
    pub children: [Option<u32>; 2],
}

/// What a member does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Prepare the message, reducing first or not.
    Prepare {
        /// Whether it is reduced first.
        reduces: bool,
        /// Its trip over a memory bus.
        trip: Trip,
    },
    /// Send to a member.
    Send(u32),
    /// Post a receive from a member.
    Receive(u32),
    /// The phase is over.
    End,
}

/// What happened to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// The phase begins.
    Begins,
    /// A message was received.
    Received,
    /// A message is prepared.
    Prepared,
}

const OUT: Trip = Trip { is_outward: true, comes_back: false };
const IN: Trip = Trip { is_outward: false, comes_back: false };
const AND_BACK: Trip = Trip { is_outward: false, comes_back: true };

/// What one NPU does in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    place: Place,
    /// Whether an inner node reduces once more what comes down.
    reduces_down: bool,
    state: u8,
    reduced: u8,
}

impl Tree {
    /// The machine of member `me` of `members`, a power of two.
    #[must_use]
    pub fn new(me: u32, members: u32, root_is_last: bool, reduces_down: bool) -> Self {
        Self { place: place(me, members, root_is_last), reduces_down, state: 0, reduced: 0 }
    }

    /// What is to be done now.
    pub fn next(&mut self, happening: Happening, deed: &mut dyn FnMut(Deed)) {
        use Happening::{Prepared, Received};
        let [left, right] = self.place.children;
        match (self.place.parent, left.or(right), self.state) {
            // A leaf.
            (Some(_), None, 0) => {
                deed(Deed::Prepare { reduces: false, trip: OUT });
                self.state = 1;
            }
            (Some(parent), None, 1) => {
                deed(Deed::Send(parent));
                deed(Deed::Receive(parent));
                self.state = 2;
            }
            (Some(_), None, 2) => {
                deed(Deed::Prepare { reduces: false, trip: IN });
                self.state = 3;
            }
            (Some(_), None, _) => deed(Deed::End),
            // An inner node.
            (Some(_), Some(_), 0) => {
                self.state = 1;
                [left, right].into_iter().flatten().for_each(|child| deed(Deed::Receive(child)));
            }
            (Some(_), Some(_), 1 | 2) if happening == Received => {
                // The second child's comes back, the first one's stays.
                deed(Deed::Prepare { reduces: true, trip: if self.state == 2 { AND_BACK } else { IN } });
                self.state += 1;
            }
            (Some(_), Some(_), _) if self.reduced < 1 && happening == Prepared => self.reduced += 1,
            (Some(parent), Some(_), 3) => {
                self.state = 4;
                deed(Deed::Send(parent));
                deed(Deed::Receive(parent));
            }
            (Some(_), Some(_), 4) if happening == Received => {
                deed(Deed::Prepare { reduces: self.reduces_down, trip: AND_BACK });
                self.state = 5;
            }
            (Some(_), Some(_), 5) => {
                [left, right].into_iter().flatten().for_each(|child| deed(Deed::Send(child)));
                deed(Deed::End);
            }
            // The root.
            (None, Some(child), 0) => {
                self.state = 1;
                deed(Deed::Receive(child));
            }
            (None, _, 1) => {
                deed(Deed::Prepare { reduces: true, trip: AND_BACK });
                self.state = 2;
            }
            (None, Some(child), _) => {
                deed(Deed::Send(child));
                deed(Deed::End);
            }
            // What comes later changes nothing; a tree of one has nothing to do.
            (Some(_), Some(_), _) | (None, None, _) => {}
        }
    }
}

/// The place of a member.
fn place(me: u32, members: u32, root_is_last: bool) -> Place {
    let (root, mut low, mut high) = if root_is_last { (members - 1, 0, members - 2) } else { (0, 1, members - 1) };
    let top = u32::midpoint(low, high);
    if me == root {
        let child = (members > 1).then_some(top);
        return Place { parent: None, children: if root_is_last { [child, None] } else { [None, child] } };
    }
    let mut parent = root;
    loop {
        let middle = u32::midpoint(low, high);
        if me == middle {
            let left = (low < middle).then(|| u32::midpoint(low, middle - 1));
            let right = (middle < high).then(|| u32::midpoint(middle + 1, high));
            return Place { parent: Some(parent), children: [left, right] };
        }
        parent = middle;
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
        for members in [2, 4, 8, 64] {
            for last in [true, false] {
                let places: Vec<Place> = (0..members).map(|me| place(me, members, last)).collect();
                assert_eq!(places.iter().filter(|place| place.parent.is_none()).count(), 1);
                for (me, at) in places.iter().enumerate() {
                    for child in at.children.into_iter().flatten() {
                        assert_eq!(places[child as usize].parent, u32::try_from(me).ok());
                    }
                }
            }
        }
    }
}
