//! Gangs: on the fabric, message by message, all members of a phase begin it together, once each has it in its queue and none is
//! busy there.
//!
//! A member that began alone would keep its dimension from the others' chunks while it waits: members that queue chunks in
//! different orders would wait for each other for ever. Where all do the same at the same time nothing is other.

use super::Simulation;
use super::chunk::Of;
use super::clock::Event;
use super::phase::{Course, Members};
use crate::units::narrow;

/// What the members of a gang have in common: the chunk's tag, its phase, the queue, the first member and how far apart they are.
pub type Key = (u64, usize, u32, u32, u32);

impl Simulation<'_> {
    /// The gang of a chunk's phase; none if it begins alone.
    fn gang(&self, k: u32) -> Option<Key> {
        let chunk = &self.chunks.all[k as usize];
        let phase = self.chunks.phase(k);
        match (chunk.of, phase.members) {
            (Of::Collective(_), Members::Every { first, stride })
                if matches!(phase.course, Course::Steps(_)) && !self.is_folded =>
            {
                Some((chunk.tag, chunk.at, phase.queue, first, stride))
            }
            _ => None,
        }
    }

    /// A chunk is queued for its phase.
    pub(super) fn join_gang(&mut self, k: u32) {
        if let Some(gang) = self.gang(k) {
            self.gangs.entry(gang).or_default().push(k);
        }
    }

    /// Whether a chunk that is first in its queue may begin its phase.
    fn may_begin(&self, k: u32) -> bool {
        let Some(gang) = self.gang(k) else { return true };
        let phase = self.chunks.phase(k);
        let is_free = |member: &u32| {
            let npu = self.chunks.all[*member as usize].npu;
            self.npus[npu as usize].running[phase.queue as usize] == 0
        };
        let members = self.gangs.get(&gang).filter(|members| members.len() == phase.count as usize);
        members.is_some_and(|members| members.iter().all(is_free))
    }

    /// A chunk begins its phase if it may, and with it all others of its gang.
    pub(super) fn begin_gang(&mut self, npu: usize, queue: usize, k: u32) -> bool {
        if !self.may_begin(k) {
            if self.npus[npu].queued[queue].len() > 1 {
                self.clock.after(0, Event::Look { npu: narrow(npu as u64), queue: narrow(queue as u64) });
            }
            return false;
        }
        let members = self.gang(k).and_then(|gang| self.gangs.remove(&gang)).unwrap_or_else(|| vec![k]);
        for &member in &members {
            let npu = self.chunks.all[member as usize].npu as usize;
            let state = &mut self.npus[npu];
            let running = state.running[queue] as usize;
            let place = state.queued[queue].iter().position(|&queued| queued == member);
            if let Some(place) = place.filter(|&place| place > running) {
                state.queued[queue].remove(place);
                state.queued[queue].insert(running, member);
            }
            state.running[queue] += 1;
        }
        for member in members {
            self.begin(member);
        }
        true
    }

    /// The first of a queue's chunks could not begin when it was looked at: the first that can now begins.
    pub(super) fn look(&mut self, npu: usize, queue: usize) {
        let state = &self.npus[npu];
        if state.running[queue] > 0 {
            return;
        }
        if let Some(k) = state.queued[queue].iter().copied().find(|&k| self.may_begin(k)) {
            self.begin_gang(npu, queue, k);
        }
    }
}
