//! The clock: what happens when, and in which order at one instant.
//!
//! There are two levels. What the network does happens in the order in which it was foreseen. What one NPU does by itself at
//! one instant happens as one block, at the place in that order where the first of it was foreseen [ASTRA2].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::bus::Port;

/// A thing that is to happen in an NPU.
#[derive(Debug, Clone, Copy)]
pub enum Local {
    /// A message is prepared, after its endpoint delay; if bytes are to be reduced first, how long that takes.
    Prepared {
        /// The chunk.
        chunk: u32,
        /// Nanoseconds of the reduction that follows; none if there is none.
        reduction: Option<u64>,
    },
    /// A message is prepared and reduced.
    Reduced {
        /// The chunk.
        chunk: u32,
    },
    /// A port of the memory bus has sent.
    BusSent {
        /// The port.
        port: Port,
    },
    /// A port of the memory bus has received.
    BusReceived {
        /// The port.
        port: Port,
    },
    /// A port of the memory bus has processed.
    BusProcessed {
        /// The port.
        port: Port,
    },
    /// An operation is done.
    Done {
        /// The graph under way.
        run: u32,
        /// The operation, by its place in the graph.
        operation: u32,
    },
    /// The memory beyond the NPU's own has served its request.
    Served,
}

/// A thing that is to happen.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A message reaches the next device of its way.
    Arrive {
        /// The message.
        message: u32,
    },
    /// A link can take the next message.
    Free {
        /// The link.
        link: u32,
    },
    /// A receive that was posted behind its message's arrival.
    Late {
        /// The message.
        message: u32,
    },
    /// A message and its twin reach the members of a class.
    Twin {
        /// The chunk that has sent the one and receives the other.
        chunk: u32,
    },
    /// What an NPU does by itself.
    Block {
        /// The NPU.
        npu: u32,
        /// The block.
        block: u32,
    },
}

/// What is to happen in one NPU at one instant.
#[derive(Debug, Default)]
struct Block {
    time: u64,
    events: Vec<Local>,
}

/// The clock.
#[derive(Debug, Default)]
pub struct Clock {
    now: u64,
    foreseen: u64,
    events: BinaryHeap<Reverse<(u64, u64, Packed)>>,
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    /// The open blocks of each NPU.
    open: Vec<Vec<u32>>,
}

/// An event that compares as nothing: its place in the order decides.
#[derive(Debug, Clone, Copy)]
struct Packed(Event);

impl PartialEq for Packed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Packed {}

impl PartialOrd for Packed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Packed {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Clock {
    /// A clock for so many NPUs, at zero.
    #[must_use]
    pub fn new(npus: u32) -> Self {
        Self { open: (0..npus).map(|_| Vec::new()).collect(), ..Self::default() }
    }

    /// Now, in nanoseconds.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Foresees an event after a delay.
    pub fn after(&mut self, delay: u64, event: Event) {
        self.events.push(Reverse((self.now.saturating_add(delay), self.foreseen, Packed(event))));
        self.foreseen += 1;
    }

    /// Foresees a thing in an NPU after a delay.
    pub fn local(&mut self, npu: u32, delay: u64, event: Local) {
        let time = self.now.saturating_add(delay);
        let open = &self.open[npu as usize];
        if let Some(&block) = open.iter().find(|&&block| self.blocks[block as usize].time == time) {
            self.blocks[block as usize].events.push(event);
            return;
        }
        let block = self.free_blocks.pop().unwrap_or_else(|| {
            self.blocks.push(Block::default());
            crate::units::narrow(self.blocks.len() as u64 - 1)
        });
        self.blocks[block as usize].time = time;
        self.blocks[block as usize].events.push(event);
        self.open[npu as usize].push(block);
        self.after(delay, Event::Block { npu, block });
    }

    /// The next event; none if nothing is foreseen.
    pub fn next(&mut self) -> Option<Event> {
        let Reverse((time, _, event)) = self.events.pop()?;
        self.now = time;
        Some(event.0)
    }

    /// The k-th thing of a block, also one that was added while it happens; none, and the block is gone, behind the last.
    pub fn of_block(&mut self, npu: u32, block: u32, k: usize) -> Option<Local> {
        let events = &mut self.blocks[block as usize].events;
        if let Some(&event) = events.get(k) {
            return Some(event);
        }
        events.clear();
        self.open[npu as usize].retain(|&open| open != block);
        self.free_blocks.push(block);
        None
    }
}
