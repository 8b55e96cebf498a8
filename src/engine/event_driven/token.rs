//! The token machine: one NPU's part of a ring, a direct exchange, or halving and doubling [ASTRA2].
//!
//! A message is prepared (an endpoint delay, and a reduction where one is due), becomes a token, and goes out if messages
//! are left to send; with each message out goes a receive, and what is received prepares the next.

use std::collections::VecDeque;

use super::bus::Trip;
use crate::system::collective::Collective;
use crate::system::machine::Recipe;

/// A message that is prepared: bytes, and the positions of whom it comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// How many bytes.
    pub bytes: u64,
    /// The position from which one of the same size comes.
    pub from: u32,
    /// The position to which it goes.
    pub to: u32,
}

/// What one NPU does in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    recipe: Recipe,
    collective: Collective,
    members: u32,
    me: u32,
    /// +1 or -1 round the ring, as a step that is added.
    step: u32,
    is_group: bool,
    /// Whether the bytes that are reduced are the next message's, window by window, or those that were received.
    misplaces: bool,
    whole: u64,
    window: u32,
    left: u32,
    tokens: u32,
    first: u32,
    reducing: u32,
    toggle: bool,
    received: u32,
    bytes: u64,
    from: u32,
    to: u32,
    /// Halving and doubling: how far the partner is; whether bytes are halved or doubled.
    distance: u32,
    halves: bool,
    prepared: VecDeque<Prepared>,
}

impl Default for Token {
    /// One that has nothing to do.
    fn default() -> Self {
        Self {
            recipe: Recipe::Ring,
            collective: Collective::AllReduce,
            members: 1,
            me: 0,
            step: 0,
            is_group: false,
            misplaces: true,
            whole: 0,
            window: 1,
            left: 0,
            tokens: 0,
            first: 0,
            reducing: 0,
            toggle: false,
            received: 0,
            bytes: 0,
            from: 0,
            to: 0,
            distance: 0,
            halves: false,
            prepared: VecDeque::new(),
        }
    }
}

/// Bytes that leave a phase of `bytes` bytes.
#[must_use]
pub const fn outcome(recipe: Recipe, collective: Collective, bytes: u64, members: u32) -> u64 {
    match (recipe, collective) {
        (Recipe::DoubleBinaryTree, _) | (_, Collective::AllReduce | Collective::AllToAll) => bytes,
        (_, Collective::AllGather) => bytes * members as u64,
        (_, Collective::ReduceScatter) => bytes / members as u64,
    }
}

impl Token {
    /// Begins again, as the member at `me` of a ring of `members`.
    pub fn restart(
        &mut self,
        recipe: Recipe,
        collective: Collective,
        bytes: u64,
        (me, members): (u32, u32),
        clockwise: bool,
        (is_group, misplaces): (bool, bool),
    ) {
        use Collective::{AllGather, AllReduce, AllToAll, ReduceScatter};
        let step = if clockwise { 1 } else { members - 1 };
        let others = members - 1;
        let window = match recipe {
            Recipe::Direct { window } => window.map_or(others, |window| window.min(others)),
            _ => 1,
        };
        let left = match (recipe, collective) {
            (Recipe::HalvingDoubling, AllReduce) => (u64::from(members) * u64::from(members)).ilog2(),
            (Recipe::HalvingDoubling, _) => members.ilog2(),
            (_, AllReduce) => 2 * others,
            (Recipe::Ring, AllToAll) => members * others / 2,
            _ => others,
        };
        let part = bytes / u64::from(members);
        let mut prepared = std::mem::take(&mut self.prepared);
        prepared.clear();
        *self = Self {
            recipe,
            collective,
            members,
            me,
            step,
            is_group,
            misplaces,
            whole: bytes,
            window,
            left,
            tokens: 0,
            first: 0,
            reducing: 0,
            toggle: false,
            received: 0,
            bytes: if collective == AllGather { bytes } else { part },
            from: (me + members - step) % members,
            to: (me + step) % members,
            distance: 0,
            halves: true,
            prepared,
        };
        if recipe == Recipe::HalvingDoubling {
            (self.bytes, self.distance, self.halves) = match collective {
                AllGather => (bytes, members / 2, false),
                ReduceScatter | AllReduce | AllToAll => (bytes / 2, 1, true),
            };
            self.find_partner();
        }
    }

    /// How many messages are prepared at the start.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// Prepares a message: its bytes, how many are reduced first, if any are, and its trip over a memory bus.
    pub fn prepare(&mut self) -> (u64, Option<u64>, Trip) {
        if self.first == 0 && self.reducing == 0 {
            self.first = self.window;
            self.reducing = match self.recipe {
                Recipe::HalvingDoubling => self.members.ilog2() - 1,
                Recipe::Direct { .. } if !self.is_group => self.window,
                _ => (self.members - 1) * self.window,
            };
            self.toggle = !self.toggle;
        }
        self.prepared.push_back(Prepared { bytes: self.bytes, from: self.from, to: self.to });
        let is_due = match self.collective {
            Collective::ReduceScatter => true,
            Collective::AllReduce => self.toggle,
            Collective::AllGather | Collective::AllToAll => false,
        };
        let is_outward = self.first > 0;
        let trip = Trip { is_outward, comes_back: !is_outward && self.reducing > self.window };
        let reduced = if self.misplaces { (!is_outward && is_due).then_some(self.bytes) } else { self.received_sum() };
        let prepared = (self.bytes, reduced, trip);
        self.turn();
        if self.first > 0 {
            self.first -= 1;
        } else {
            self.reducing -= 1;
        }
        prepared
    }

    /// Bytes of the message that was received last, if they are part of a sum.
    fn received_sum(&self) -> Option<u64> {
        let members = u64::from(self.members);
        let (sums, bytes) = match self.recipe {
            Recipe::HalvingDoubling => (self.members.ilog2(), self.whole >> self.received),
            Recipe::Ring | Recipe::Direct { .. } | Recipe::DoubleBinaryTree => (self.members - 1, self.whole / members),
        };
        let is_sum = matches!(self.collective, Collective::AllReduce | Collective::ReduceScatter);
        (is_sum && self.received > 0 && self.received <= sums).then_some(bytes)
    }

    /// A message has been received: it is counted, and the next is to be prepared.
    pub fn receive(&mut self) {
        self.received += 1;
    }

    /// A prepared message has become a token: how many messages may try to go out now.
    pub fn token(&mut self) -> u32 {
        self.tokens += 1;
        let is_direct = matches!(self.recipe, Recipe::Direct { .. });
        if is_direct && self.collective == Collective::AllReduce && self.left < self.members {
            // The second half of a direct all-reduce waits for the whole first.
            if self.received < self.members - 1 { 0 } else { self.window }
        } else {
            1
        }
    }

    /// The next message that goes out; none if nothing is prepared, no token is there or nothing is left to send.
    pub fn send(&mut self) -> Option<Prepared> {
        if self.left == 0 || self.tokens == 0 {
            return None;
        }
        let prepared = self.prepared.pop_front()?;
        self.left -= 1;
        self.tokens -= 1;
        Some(prepared)
    }

    /// Whether all is sent and all that was prepared has come back.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.left == 0 && self.tokens == self.window
    }

    /// Turns to the next peers.
    fn turn(&mut self) {
        match self.recipe {
            Recipe::Direct { .. } => {
                let next = |at: u32, step: u32| {
                    let next = (at + step) % self.members;
                    if next == self.me { (next + step) % self.members } else { next }
                };
                (self.to, self.from) = (next(self.to, self.step), next(self.from, self.members - self.step));
            }
            Recipe::HalvingDoubling => {
                self.halve_or_double();
                if self.distance == self.members && self.collective == Collective::AllReduce {
                    self.halves = false;
                    self.halve_or_double();
                }
                self.find_partner();
            }
            Recipe::Ring | Recipe::DoubleBinaryTree => {}
        }
    }

    const fn halve_or_double(&mut self) {
        if self.halves {
            self.distance *= 2;
            self.bytes /= 2;
        } else {
            self.distance /= 2;
            self.bytes *= 2;
        }
    }

    /// The partner so far away: before or behind, as the place among pairs says.
    fn find_partner(&mut self) {
        if self.distance == 0 {
            return;
        }
        let before = (self.me / self.distance).is_multiple_of(2);
        let away = self.distance % self.members;
        self.to = (self.me + if before { away } else { self.members - away }) % self.members;
        self.from = self.to;
    }
}
