//! Queues: which chunk of an NPU goes through a dimension next [ASTRA2].

use std::collections::VecDeque;

use super::Simulation;
use super::chunk::{Machinery, Of};
use super::phase::Course;
use crate::system::collective::Collective;
use crate::system::queue_order::Queued;

impl Simulation<'_> {
    /// A chunk leaves its phase, if it is in one, and queues for the next.
    pub(super) fn enter(&mut self, k: u32) {
        if self.chunks.all[k as usize].is_queued {
            self.goes_on(k, false);
        }
        let (chunk, phases) = self.chunks.both(k);
        let npu = chunk.npu as usize;
        let left = chunk.is_queued.then(|| phases[chunk.at].queue);
        if left.is_some() {
            chunk.at += 1;
            chunk.machinery = Machinery::Waiting;
        }
        let next = phases.get(chunk.at).map(|phase| phase.queue);
        chunk.is_queued = next.is_some();
        if next.is_none() {
            match chunk.of {
                Of::Collective(collective) => {
                    let open = &mut self.chunks.collectives[collective as usize];
                    open.done += 1;
                    if open.done == open.chunks {
                        let (run, operation) = (open.run, open.operation);
                        self.chunks.close(collective);
                        self.done(run as usize, operation);
                    }
                }
                Of::Message { address, then } => {
                    self.wire.send(self.machine, &mut self.clock, address, Some(0), then);
                }
            }
            self.chunks.free(k);
        }
        if let Some(left) = left {
            let queued = &mut self.npus[npu].queued[left as usize];
            if let Some(place) = queued.iter().position(|&queued| queued == k) {
                queued.remove(place);
            }
        }
        if let Some(next) = next {
            self.give_way(npu, next as usize, k);
            let place = self.place(npu, next as usize, k);
            self.npus[npu].queued[next as usize].insert(place, k);
            self.join_gang(k);
        }
        if let Some(left) = left {
            self.npus[npu].running[left as usize] -= 1;
            self.kick(npu, left as usize);
        }
        if let Some(next) = next {
            self.kick(npu, next as usize);
        }
    }

    /// The place of a chunk in a queue.
    fn place(&self, npu: usize, queue: usize, k: u32) -> usize {
        let queued = &self.npus[npu].queued[queue];
        if self.has_streams && self.gives_way(queued) && !self.chunks.all[k as usize].gives_way {
            // Before all that give way and do not run.
            let place = queued.iter().rposition(|&other| {
                let other = &self.chunks.all[other as usize];
                !other.gives_way || !matches!(other.machinery, Machinery::Waiting)
            });
            return place.map_or(0, |place| place + 1);
        }
        // On the fabric, who goes message by message waits for the others' same chunk: none may overtake on one rank alone.
        let waits = self.fabric.is_some() && self.chunks.phase(k).course == Course::Messages;
        if waits || self.machine.queue_order.part().is_plain() {
            return queued.len();
        }
        let seen = |&chunk: &u32| {
            let phases = self.chunks.phases(chunk);
            let chunk = &self.chunks.all[chunk as usize];
            // One that is through stands in its queue until what follows its collective has begun.
            let is_through = chunk.at == phases.len();
            let is_running = is_through || !matches!(chunk.machinery, Machinery::Waiting);
            let phase = &phases[chunk.at - usize::from(is_through)];
            let leaves = self.machine.leaves(phase.algorithm, phase.collective, phase.bytes, phase.count);
            let to_go = (phases.len() - chunk.at).saturating_sub(1);
            Queued { is_running, collective: phase.collective, bytes: phase.bytes.max(leaves), to_go }
        };
        let new = seen(&k);
        if !matches!(new.collective, Collective::ReduceScatter | Collective::AllGather) {
            return queued.len();
        }
        let mut queue: Vec<Queued> = queued.iter().map(seen).collect();
        if self.fabric.is_some()
            && let Some(first) = queue.first_mut()
        {
            // It begins as soon as the last of its gang is there.
            first.is_running = true;
        }
        if !matches!(new.collective, Collective::ReduceScatter | Collective::AllGather) {
            return queued.len();
        }
        self.machine.queue_order.part().place(&queue, new)
    }

    /// Whether some of a queue's chunks give way.
    fn gives_way(&self, queued: &VecDeque<u32>) -> bool {
        queued.iter().any(|&other| self.chunks.all[other as usize].gives_way)
    }

    /// A chunk that is held and gives way stops for one that does not, and goes on with what is left behind it.
    fn give_way(&mut self, npu: usize, queue: usize, new: u32) {
        let Some(&first) = self.npus[npu].queued[queue].front() else { return };
        let gives_way = !self.chunks.all[new as usize].gives_way;
        let chunk = &mut self.chunks.all[first as usize];
        if gives_way && chunk.gives_way && matches!(chunk.machinery, Machinery::Held) {
            chunk.left = Some(chunk.until - self.clock.now());
            chunk.held += 1;
            chunk.machinery = Machinery::Waiting;
            self.npus[npu].running[queue] -= 1;
            self.goes_on(first, false);
        }
    }

    /// A chunk has held its dimension for its time, unless it gave way meanwhile.
    pub(super) fn held(&mut self, k: u32, held: u32) {
        let chunk = &self.chunks.all[k as usize];
        if chunk.held == held {
            let phase = self.chunks.phase(k);
            let sent = if let Course::Steps(steps) = phase.course { steps.sent } else { 0 };
            self.wire.add(chunk.npu, phase.dimension as usize, sent);
            self.enter(k);
        }
    }

    /// Starts what a queue has room for.
    fn kick(&mut self, npu: usize, queue: usize) {
        let most = if self.fabric.is_some() { 1 } else { self.machine.active_chunks.div_ceil(self.machine.queues) };
        loop {
            let state = &self.npus[npu];
            let running = state.running[queue];
            let Some(&chunk) = state.queued[queue].get(running as usize).filter(|_| running < most) else { return };
            if self.fabric.is_none() {
                self.npus[npu].running[queue] += 1;
                self.begin(chunk);
            } else if !self.begin_gang(npu, queue, chunk) {
                return;
            }
        }
    }
}
