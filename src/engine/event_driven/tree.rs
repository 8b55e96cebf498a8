//! The tree machine: one NPU's part of an all-reduce up a tree and down again, or of a broadcast down it [ASTRA2].

use super::bus::Trip;
use crate::system::collective::Branch;

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
    place: Branch,
    /// Whether bytes go down alone, as those of a broadcast do.
    goes_down: bool,
    /// Whether an inner node reduces once more what comes down.
    reduces_down: bool,
    state: u8,
    reduced: u8,
}

impl Tree {
    /// The machine of a member at its place.
    #[must_use]
    pub const fn new(place: Branch, goes_down: bool, reduces_down: bool) -> Self {
        Self { place, goes_down, reduces_down, state: 0, reduced: 0 }
    }

    /// What is to be done now.
    pub fn next(&mut self, happening: Happening, deed: &mut dyn FnMut(Deed)) {
        use Happening::{Prepared, Received};
        let [left, right] = self.place.children;
        match (self.place.parent, left.or(right), self.state) {
            // Down alone: as behind the way up.
            (Some(parent), child, 0) if self.goes_down => {
                (self.state, self.reduced) = if child.is_some() { (4, 1) } else { (2, 0) };
                deed(Deed::Receive(parent));
            }
            (None, Some(_), 0) if self.goes_down => {
                deed(Deed::Prepare { reduces: false, trip: OUT });
                self.state = 2;
            }
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
