//! The wire: messages from NPU to NPU, matched with the receives that wait for them.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::clock::{Clock, Event};
use crate::system::machine::{Congestion, Machine};
use crate::system::topology::Topology;
use crate::units::{narrow, real};

/// What goes on when a message has arrived, or a receive is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// A chunk has received.
    Received {
        /// The chunk.
        chunk: u32,
    },
    /// An operation is done.
    Done {
        /// Of which graph under way.
        run: u32,
        /// The operation.
        operation: u32,
    },
    /// A receiver has asked: the message itself may go.
    Send {
        /// The waiting message.
        waiting: u32,
    },
    /// The receiver's question has arrived: its receive may be posted.
    Receive {
        /// The waiting receive.
        waiting: u32,
    },
}

/// What makes a message and a receive a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Who receives.
    pub to: u32,
    /// Who sends.
    pub from: u32,
    /// The tag.
    pub tag: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A message under way, with what follows its arrival.
#[derive(Debug, Clone, Copy)]
struct Message {
    address: Address,
    sent: Then,
    received: Option<Then>,
    has_arrived: bool,
    /// The device where it is, and the step round a ring.
    at: u32,
}

/// A directed link of a network that is aware of congestion.
#[derive(Debug, Default)]
struct Cable {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

/// What waits under one address: messages whose receive is not posted, or receives whose message is not sent.
#[derive(Debug, Clone, Copy)]
struct Channel {
    address: Address,
    waits: Waits,
    /// The first and the last that wait, by their places among all that wait.
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Messages,
    Receives,
}

/// One that waits: a message's place or what follows a receive, and the next that waits.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    message: u32,
    then: Then,
    next: u32,
}

/// No place.
const NONE: u32 = u32::MAX;

/// A message that is to be sent once its receiver has asked, or a receive that is to be posted.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The pair's address.
    pub address: Address,
    /// What follows.
    pub then: Then,
}

/// Everything that is on the wire.
#[derive(Debug, Default)]
pub struct Wire {
    messages: Vec<Message>,
    free: Vec<u32>,
    channels: HashTable<Channel>,
    waiters: Vec<Waiter>,
    free_waiters: Vec<u32>,
    links: BTreeMap<(u32, u32), u32>,
    cables: Vec<Cable>,
    /// What waits for the handshake of a rendezvous.
    waiting: Vec<Waiting>,
    free_waiting: Vec<u32>,
    /// How many messages were sent.
    messages_sent: u64,
    /// Bytes sent, by NPU and dimension.
    sent: Vec<u64>,
    dimensions: usize,
}

impl Address {
    /// Spreads addresses over a table.
    const fn hash(&self) -> u64 {
        let ends = (self.to as u64) << 32 | self.from as u64;
        let mixed = (ends ^ self.tag.rotate_left(20)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 32) ^ self.bytes).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 32)
    }
}

/// Keeps one that waits; its place.
fn keep(waiters: &mut Vec<Waiter>, free: &mut Vec<u32>, waiter: Waiter) -> u32 {
    if let Some(k) = free.pop() {
        waiters[k as usize] = waiter;
        return k;
    }
    waiters.push(waiter);
    narrow(waiters.len() as u64 - 1)
}

impl Wire {
    /// A wire on which nothing is under way.
    #[must_use]
    pub fn new(machine: &Machine, npus: usize) -> Self {
        let dimensions = machine.dimensions.len();
        Self { sent: vec![0; npus * dimensions], dimensions, ..Self::default() }
    }

    /// Keeps what waits for a handshake; its place.
    pub fn keep(&mut self, waiting: Waiting) -> u32 {
        if let Some(k) = self.free_waiting.pop() {
            self.waiting[k as usize] = waiting;
            return k;
        }
        self.waiting.push(waiting);
        narrow(self.waiting.len() as u64 - 1)
    }

    /// What has waited for a handshake: its place is free.
    pub fn waited(&mut self, k: u32) -> Waiting {
        self.free_waiting.push(k);
        self.waiting[k as usize]
    }

    /// How many messages were sent.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages_sent
    }

    /// Bytes that an NPU sent in each dimension.
    #[must_use]
    pub fn sent(&self, npu: usize) -> &[u64] {
        &self.sent[npu * self.dimensions..(npu + 1) * self.dimensions]
    }

    /// Counts a message that goes from a member of a class to the next.
    pub const fn twin(&mut self) {
        self.messages_sent += 1;
    }

    /// Counts bytes that an NPU sends in a dimension.
    pub fn add(&mut self, from: u32, dimension: usize, bytes: u64) {
        let sent = &mut self.sent[from as usize * self.dimensions + dimension];
        *sent = sent.saturating_add(bytes);
    }

    /// Counts bytes that an NPU sends in each dimension.
    pub fn add_all(&mut self, from: u32, bytes: &[u64]) {
        for (dimension, bytes) in bytes.iter().enumerate() {
            self.add(from, dimension, *bytes);
        }
    }

    /// Sends a message, which takes a known time or its way over links; `then` follows its arrival.
    pub fn send(&mut self, machine: &Machine, clock: &mut Clock, address: Address, delay: Option<u64>, then: Then) {
        self.messages_sent += 1;
        let message = Message { address, sent: then, received: None, has_arrived: false, at: address.from };
        let k = if let Some(k) = self.free.pop() {
            self.messages[k as usize] = message;
            k
        } else {
            self.messages.push(message);
            narrow(self.messages.len() as u64 - 1)
        };
        if let Some(receive) =
            self.meet(address, Waits::Messages, Waiter { message: k, then: Then::Nothing, next: NONE })
        {
            self.messages[k as usize].received = Some(receive.then);
        }
        match delay {
            Some(delay) => clock.after(delay, Event::Arrive { message: k }),
            None => self.hop(machine, clock, k),
        }
    }

    /// The first of the other kind that waits under an address; if there is none, this one waits.
    fn meet(&mut self, address: Address, kind: Waits, own: Waiter) -> Option<Waiter> {
        let same = |channel: &Channel| channel.address == address;
        match self.channels.entry(address.hash(), same, |channel| channel.address.hash()) {
            Entry::Occupied(mut place) => {
                let channel = place.get_mut();
                if channel.waits == kind {
                    let new = keep(&mut self.waiters, &mut self.free_waiters, own);
                    self.waiters[channel.last as usize].next = new;
                    channel.last = new;
                    return None;
                }
                let first = channel.first;
                let met = self.waiters[first as usize];
                self.free_waiters.push(first);
                if met.next == NONE {
                    place.remove();
                } else {
                    channel.first = met.next;
                }
                Some(met)
            }
            Entry::Vacant(place) => {
                let new = keep(&mut self.waiters, &mut self.free_waiters, own);
                place.insert(Channel { address, waits: kind, first: new, last: new });
                None
            }
        }
    }

    /// Posts a receive; `then` follows the arrival of its message, or now if that has arrived.
    pub fn receive(&mut self, clock: &mut Clock, address: Address, then: Then) {
        let Some(met) = self.meet(address, Waits::Receives, Waiter { message: NONE, then, next: NONE }) else { return };
        let k = met.message;
        let message = &mut self.messages[k as usize];
        message.received = Some(then);
        if message.has_arrived {
            clock.after(0, Event::Late { message: k });
        }
    }

    /// A message reaches a device; what follows if that is its receiver.
    pub fn arrive(&mut self, machine: &Machine, clock: &mut Clock, k: u32) -> Option<(Then, Option<Then>)> {
        let message = &mut self.messages[k as usize];
        if machine.congestion == Congestion::Aware {
            message.at = next_device(machine, message.at, message.address.to).0;
            if message.at != message.address.to {
                self.hop(machine, clock, k);
                return None;
            }
        }
        let follows = (message.sent, message.received);
        message.has_arrived = true;
        if follows.1.is_some() {
            self.free.push(k);
        }
        Some(follows)
    }

    /// A receive that was posted behind its message's arrival.
    pub fn late(&mut self, k: u32) -> Option<Then> {
        self.free.push(k);
        self.messages[k as usize].received
    }

    /// A link is free: the next message enters it.
    pub fn link_is_free(&mut self, machine: &Machine, clock: &mut Clock, link: u32) {
        self.cables[link as usize].is_busy = false;
        if let Some(k) = self.cables[link as usize].waiting.pop_front() {
            self.enter(machine, clock, link, k);
        }
    }

    /// A message goes for the next link of its way.
    fn hop(&mut self, machine: &Machine, clock: &mut Clock, k: u32) {
        let message = self.messages[k as usize];
        let ends = (message.at, next_device(machine, message.at, message.address.to).0);
        let count = narrow(self.cables.len() as u64);
        let link = *self.links.entry(ends).or_insert(count);
        if link == count {
            self.cables.push(Cable::default());
        }
        if self.cables[link as usize].is_busy {
            self.cables[link as usize].waiting.push_back(k);
        } else {
            self.enter(machine, clock, link, k);
        }
    }

    /// A message enters an idle link: it is at the next device after latency and bytes, the link is free after the bytes.
    fn enter(&mut self, machine: &Machine, clock: &mut Clock, link: u32, k: u32) {
        self.cables[link as usize].is_busy = true;
        let message = &self.messages[k as usize];
        let dimension = &machine.dimensions[next_device(machine, message.at, message.address.to).1];
        let bytes = real(message.address.bytes) / dimension.bandwidth;
        clock.after(machine.ticks(dimension.latency + bytes), Event::Arrive { message: k });
        clock.after(machine.ticks(bytes), Event::Free { link });
    }
}

/// The device behind another on the way of a message, and the dimension between them.
///
/// Innermost dimensions first; the shorter way round a ring, a tie clockwise. NPUs are devices by their ranks, and behind them each
/// dimension has a switch for every place of the others.
fn next_device(machine: &Machine, at: u32, to: u32) -> (u32, usize) {
    let npus = machine.npus();
    let mut below = 1;
    for (k, dimension) in machine.dimensions.iter().enumerate() {
        let size = dimension.size;
        let switch = npus * (narrow(k as u64) + 1);
        let goal = to / below % size;
        if (switch..switch + npus).contains(&at) {
            return (at - switch + goal * below, k);
        }
        let place = at / below % size;
        if at < npus && place != goal {
            let first = at - place * below;
            let next = match dimension.block {
                Topology::Switch => switch + first,
                Topology::FullyConnected => first + goal * below,
                Topology::Ring => {
                    let way = (goal + size - place) % size;
                    let next = if size - way < way { place + size - 1 } else { place + 1 };
                    first + next % size * below
                }
            };
            return (next, k);
        }
        below *= size;
    }
    (to, 0)
}
