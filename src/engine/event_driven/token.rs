//! The token machine: one NPU's part of an algorithm whose messages follow each other [ASTRA2].
//!
//! A message is prepared (an endpoint delay, and a reduction where one is due), becomes a token, and goes out if messages
//! are left to send; with each message out goes a receive, and what is received prepares the next.

use super::bus::Trip;
use crate::system::collective::{Algorithm, Collective, Message, Part};

/// What one NPU does in one phase.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    algorithm: Algorithm,
    part: Part,
    /// Whether the bytes that are reduced are the next message's, window by window, or those that were received.
    misplaces: bool,
    /// Messages prepared, and sent; what lies between has become a token or will.
    prepared: u32,
    sent: u32,
    left: u32,
    tokens: u32,
    first: u32,
    reducing: u32,
    toggle: bool,
    received: u32,
}

impl Token {
    /// The part of one member that begins.
    #[must_use]
    pub fn new(algorithm: Algorithm, part: Part, misplaces: bool) -> Self {
        let left = algorithm.part().count(&part);
        Self {
            algorithm,
            part,
            misplaces,
            prepared: 0,
            sent: 0,
            left,
            tokens: 0,
            first: 0,
            reducing: 0,
            toggle: false,
            received: 0,
        }
    }

    /// How many messages are prepared at the start.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.part.window
    }

    /// Whether the members are a group of some ranks.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        self.part.is_group
    }

    /// Prepares a message: its bytes, how many are reduced first, if any are, and its trip over a memory bus.
    pub fn prepare(&mut self) -> (u64, Option<u64>, Trip) {
        let Self { algorithm, part, .. } = *self;
        if self.first == 0 && self.reducing == 0 {
            self.first = part.window;
            self.reducing = algorithm.part().round(&part);
            self.toggle = !self.toggle;
        }
        let bytes = algorithm.part().message(&part, self.prepared).bytes;
        self.prepared += 1;
        let is_due = match part.collective {
            Collective::ReduceScatter => true,
            Collective::AllReduce => self.toggle,
            Collective::AllGather | Collective::AllToAll | Collective::Broadcast | Collective::Scatter => false,
        };
        let is_outward = self.first > 0;
        let trip = Trip { is_outward, comes_back: !is_outward && self.reducing > part.window };
        let reduced = if self.misplaces {
            (!is_outward && is_due).then_some(bytes)
        } else if part.collective.sums() && self.received > 0 {
            algorithm.part().sum(&part, self.received)
        } else {
            None
        };
        if is_outward {
            self.first -= 1;
        } else {
            self.reducing -= 1;
        }
        (bytes, reduced, trip)
    }

    /// A message has been received: it is counted, and the next is to be prepared.
    pub fn receive(&mut self) {
        self.received += 1;
    }

    /// A prepared message has become a token: how many messages may try to go out now.
    pub fn token(&mut self) -> u32 {
        self.tokens += 1;
        let is_second = self.part.collective.halves().is_some() && self.left < self.part.members;
        if is_second && self.algorithm.part().waits_between_halves() {
            if self.received < self.part.members - 1 { 0 } else { self.part.window }
        } else {
            1
        }
    }

    /// The next message that goes out; none if nothing is prepared, no token is there or nothing is left to send.
    pub fn send(&mut self) -> Option<Message> {
        if self.left == 0 || self.tokens == 0 || self.sent == self.prepared {
            return None;
        }
        let message = self.algorithm.part().message(&self.part, self.sent);
        self.sent += 1;
        self.left -= 1;
        self.tokens -= 1;
        Some(message)
    }

    /// Whether all is sent and all that was prepared has come back.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.left == 0 && self.tokens == self.part.window
    }
}
