//! The clock: what happens when, and in which order at one instant.
//!
//! There are two levels. What the network does happens in the order in which it was foreseen. What one NPU does by itself at
//! one instant happens as one block, at the place in that order where the first of it was foreseen [ASTRA2].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::bus::Port;
use crate::units::narrow;

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
    /// A chunk has held its dimension for its time.
    Held {
        /// The chunk.
        chunk: u32,
        /// The time of the chunk's that this is the end of.
        held: u32,
    },
    /// The endpoint of a chunk's step is ready.
    Ready {
        /// The chunk.
        chunk: u32,
    },
    /// A chunk's step is over.
    Stepped {
        /// The chunk.
        chunk: u32,
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
    /// Whether a chunk of a queue can begin is looked at again.
    Look {
        /// The NPU.
        npu: u32,
        /// The queue.
        queue: u32,
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

/// What is to happen at one instant, in the order in which it was foreseen.
#[derive(Debug, Default)]
struct Bucket {
    events: Vec<Event>,
    /// How many of them have happened.
    happened: usize,
}

/// The clock.
#[derive(Debug, Default)]
pub struct Clock {
    now: u64,
    /// The latest instant that was foreseen.
    latest: u64,
    /// The instants at which something is to happen, with their buckets.
    instants: BinaryHeap<Reverse<(u64, u32)>>,
    buckets: Vec<Bucket>,
    free_buckets: Vec<u32>,
    /// The bucket of each instant.
    bucket_of: HashTable<(u64, u32)>,
    /// The bucket of now, and that of the last instant for which something was foreseen.
    current: Option<u32>,
    last: Option<(u64, u32)>,
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    /// The open blocks of each NPU.
    open: Vec<Vec<u32>>,
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

    /// The latest instant that was foreseen.
    #[must_use]
    pub const fn latest(&self) -> u64 {
        self.latest
    }

    /// Foresees an event after a delay.
    pub fn after(&mut self, delay: u64, event: Event) {
        let time = self.now.saturating_add(delay);
        self.latest = self.latest.max(time);
        let bucket = self.bucket(time);
        self.buckets[bucket as usize].events.push(event);
    }

    /// The bucket of an instant.
    fn bucket(&mut self, time: u64) -> u32 {
        if let Some((_, bucket)) = self.last.filter(|last| last.0 == time) {
            return bucket;
        }
        let found = self.bucket_of.entry(hash(time), |entry| entry.0 == time, |entry| hash(entry.0));
        let bucket = match found {
            Entry::Occupied(entry) => entry.get().1,
            Entry::Vacant(place) => {
                let bucket = self.free_buckets.pop().unwrap_or_else(|| {
                    self.buckets.push(Bucket::default());
                    narrow(self.buckets.len() as u64 - 1)
                });
                self.instants.push(Reverse((time, bucket)));
                place.insert((time, bucket));
                bucket
            }
        };
        self.last = Some((time, bucket));
        bucket
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
            narrow(self.blocks.len() as u64 - 1)
        });
        self.blocks[block as usize].time = time;
        self.blocks[block as usize].events.push(event);
        self.open[npu as usize].push(block);
        self.after(delay, Event::Block { npu, block });
    }

    /// The next event; none if nothing is foreseen.
    pub fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(current) = self.current {
                let bucket = &mut self.buckets[current as usize];
                if let Some(&event) = bucket.events.get(bucket.happened) {
                    bucket.happened += 1;
                    return Some(event);
                }
                bucket.events.clear();
                bucket.happened = 0;
                self.current = None;
                self.last = None;
                self.free_buckets.push(current);
                if let Ok(entry) = self.bucket_of.find_entry(hash(self.now), |entry| entry.0 == self.now) {
                    entry.remove();
                }
            }
            let Reverse((time, bucket)) = self.instants.pop()?;
            self.now = time;
            self.current = Some(bucket);
        }
    }

    /// The k-th thing of a block, also one that was added while it happens; none, and the block is gone, behind the last.
    pub fn of_block(&mut self, npu: u32, block: u32, k: usize) -> Option<Local> {
        let events = &mut self.blocks[block as usize].events;
        if let Some(&event) = events.get(k) {
            return Some(event);
        }
        events.clear();
        let open = &mut self.open[npu as usize];
        if let Some(place) = open.iter().position(|&open| open == block) {
            open.swap_remove(place);
        }
        self.free_blocks.push(block);
        None
    }
}

/// Spreads instants over a table.
const fn hash(time: u64) -> u64 {
    let mixed = (time ^ (time >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}
