//! Broadcasts that are sent: a binomial tree over the members, by messages of the machine.
//!
//! Whoever has the bytes passes them on, to one member after the other, so after so many messages' time twice as many have them
//! each time. A member's part is over when it has the bytes and those whom it sends to have them too.

use super::wire::{Address, Then};
use super::{Simulation, TAGS};
use crate::units::narrow;

/// Tags of broadcasts begin here, beyond those of collectives, messages and questions; each group has its own.
const BROADCASTS: u64 = 8 * TAGS;

/// One rank's part in a broadcast.
#[derive(Debug, Clone, Copy)]
pub struct Broadcast {
    run: u32,
    operation: u32,
    group: Option<u32>,
    bytes: u64,
    /// Its place among the members; the first sends.
    me: u32,
    members: u32,
    /// It sends next to the member this far behind it.
    far: u32,
}

impl Broadcast {
    /// The member from whom this one has the bytes: that with the highest bit of its place cleared; none for the first.
    ///
    /// ```text
    /// 0 -> 1, then 0 -> 2 and 1 -> 3, then 0 -> 4, 1 -> 5, 2 -> 6, 3 -> 7
    /// ```
    fn source(&self) -> Option<u32> {
        self.me.checked_ilog2().map(|bit| self.me - (1 << bit))
    }
}

impl Simulation<'_> {
    /// A rank enters a broadcast from the first member of its group, or from rank 0.
    pub(super) fn broadcast(&mut self, run: usize, operation: u32, bytes: u64, group: Option<u32>) {
        let rank = self.rank_of(self.runs[run].npu);
        let (me, members) = match group {
            None => (rank, self.machine.npus()),
            Some(group) => {
                let ranks = &self.trace.groups[group as usize].ranks;
                let me = ranks.iter().position(|&other| other == rank).unwrap_or(0);
                (narrow(me as u64), narrow(ranks.len() as u64))
            }
        };
        if bytes == 0 || members < 2 {
            self.last(run, operation, 0);
            return;
        }
        let far = me.checked_ilog2().map_or(1, |bit| 2 << bit);
        let part = Broadcast { run: narrow(run as u64), operation, group, bytes, me, members, far };
        self.broadcasts.push(part);
        let part_of = narrow(self.broadcasts.len() as u64 - 1);
        match part.source() {
            None => self.pass_on(part_of),
            Some(source) => {
                let from = self.member(group, source);
                let address = Address { tag: tag(group), from, to: rank, bytes };
                self.receive(address, Then::PassOn { part: part_of });
            }
        }
    }

    /// A rank has the bytes, and those whom it has sent to so far have them: it sends to the next, or its part is over.
    pub(super) fn pass_on(&mut self, k: u32) {
        let part = self.broadcasts[k as usize];
        let next = part.me.saturating_add(part.far);
        if next >= part.members {
            self.done(part.run as usize, part.operation);
            return;
        }
        self.broadcasts[k as usize].far = part.far.saturating_mul(2);
        let npu = self.npu_of(part.run);
        let to = self.member(part.group, next);
        let (address, then) =
            (Address { tag: tag(part.group), from: npu, to, bytes: part.bytes }, Then::PassOn { part: k });
        if self.fabric.is_some() {
            self.send_on_fabric(npu, to, address, then);
        } else {
            self.send(address, self.way(npu, to, part.bytes), then);
        }
    }

    /// The rank of a member of a group; ranks are NPUs, as nobody stands for others where something is broadcast.
    fn member(&self, group: Option<u32>, place: u32) -> u32 {
        group.map_or(place, |group| self.trace.groups[group as usize].ranks[place as usize])
    }
}

/// The tag of a group's broadcasts.
fn tag(group: Option<u32>) -> u64 {
    BROADCASTS + group.map_or(0, |group| u64::from(group) + 1)
}
