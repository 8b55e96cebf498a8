//! The wire: messages from NPU to NPU, matched with the receives that wait for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::clock::{Clock, Event};
use crate::system::machine::{Congestion, Machine, Way};
use crate::system::topology::Topology;
use crate::units::{narrow, real, whole};

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
struct Link {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

/// Messages and receives of one address, in their order.
#[derive(Debug, Default)]
struct Channel {
    /// Messages whose receive is not posted.
    messages: VecDeque<u32>,
    /// Receives whose message is not sent.
    receives: VecDeque<Then>,
}

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
    channels: BTreeMap<Address, Channel>,
    links: BTreeMap<(u32, u32), u32>,
    link: Vec<Link>,
    /// What waits for the handshake of a rendezvous.
    pub waiting: Vec<Waiting>,
    /// How many messages were sent.
    messages_sent: u64,
    /// Bytes sent, by NPU and dimension.
    sent: Vec<u64>,
    dimensions: usize,
}

impl Wire {
    /// A wire on which nothing is under way.
    #[must_use]
    pub fn new(machine: &Machine, npus: usize) -> Self {
        let dimensions = machine.dimensions.len();
        Self { sent: vec![0; npus * dimensions], dimensions, ..Self::default() }
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

    /// Counts a message.
    pub fn count(&mut self, from: u32, way: Way, bytes: u64) {
        self.messages_sent += 1;
        self.sent[from as usize * self.dimensions + way.dimension as usize] += bytes;
    }

    /// Sends a message; `then` follows its arrival.
    pub fn send(&mut self, machine: &Machine, clock: &mut Clock, address: Address, way: Way, then: Then) {
        self.count(address.from, way, address.bytes);
        let message = Message { address, sent: then, received: None, has_arrived: false, at: address.from };
        let k = if let Some(k) = self.free.pop() {
            self.messages[k as usize] = message;
            k
        } else {
            self.messages.push(message);
            narrow(self.messages.len() as u64 - 1)
        };
        match self.channels.entry(address) {
            Entry::Occupied(mut channel) => match channel.get_mut().receives.pop_front() {
                Some(receive) => {
                    self.messages[k as usize].received = Some(receive);
                    if channel.get().receives.is_empty() {
                        channel.remove();
                    }
                }
                None => channel.get_mut().messages.push_back(k),
            },
            Entry::Vacant(place) => place.insert(Channel::default()).messages.push_back(k),
        }
        match machine.congestion {
            Congestion::Unaware => {
                clock.after(machine.message(way, address.bytes), Event::Arrive { message: k });
            }
            Congestion::Aware => self.hop(machine, clock, k),
        }
    }

    /// Posts a receive; `then` follows the arrival of its message, or now if that has arrived.
    pub fn receive(&mut self, clock: &mut Clock, address: Address, then: Then) {
        let k = match self.channels.entry(address) {
            Entry::Occupied(mut channel) => {
                let Some(k) = channel.get_mut().messages.pop_front() else {
                    channel.get_mut().receives.push_back(then);
                    return;
                };
                if channel.get().messages.is_empty() {
                    channel.remove();
                }
                k
            }
            Entry::Vacant(place) => {
                place.insert(Channel::default()).receives.push_back(then);
                return;
            }
        };
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
            message.at = next_device(machine, message.at, message.address);
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
        self.link[link as usize].is_busy = false;
        if let Some(k) = self.link[link as usize].waiting.pop_front() {
            self.enter(machine, clock, link, k);
        }
    }

    /// A message goes for the next link of its way.
    fn hop(&mut self, machine: &Machine, clock: &mut Clock, k: u32) {
        let message = self.messages[k as usize];
        let ends = (message.at, next_device(machine, message.at, message.address));
        let count = narrow(self.link.len() as u64);
        let link = *self.links.entry(ends).or_insert(count);
        if link == count {
            self.link.push(Link::default());
        }
        if self.link[link as usize].is_busy {
            self.link[link as usize].waiting.push_back(k);
        } else {
            self.enter(machine, clock, link, k);
        }
    }

    /// A message enters an idle link: it is at the next device after latency and bytes, the link is free after the bytes.
    fn enter(&mut self, machine: &Machine, clock: &mut Clock, link: u32, k: u32) {
        self.link[link as usize].is_busy = true;
        let dimension = &machine.dimensions[0];
        let bytes = real(self.messages[k as usize].address.bytes) / dimension.bandwidth;
        clock.after(whole((dimension.latency + bytes).floor()), Event::Arrive { message: k });
        clock.after(whole(bytes.floor()), Event::Free { link });
    }
}

/// The device behind another on the way of a message: the shorter way round a ring, a tie clockwise.
fn next_device(machine: &Machine, at: u32, address: Address) -> u32 {
    let dimension = &machine.dimensions[0];
    let size = dimension.size;
    match dimension.block {
        Topology::Switch if at == address.from => size,
        Topology::Switch | Topology::FullyConnected => address.to,
        Topology::Ring => {
            let way = (address.to + size - address.from) % size;
            if size - way < way { (at + size - 1) % size } else { (at + 1) % size }
        }
    }
}
