//! Steps: one NPU's part of a phase on the fabric, exchange by exchange, and messages that take their turn there.

use arrayvec::ArrayVec;

use super::chunk::{Chunk, Machinery, Of, Open};
use super::clock::Local;
use super::fabric::{self, Steps};
use super::phase::{Course, Logical, Members, Phase};
use super::wire::{Address, Then};
use super::{Refused, Simulation};
use crate::system::collective::{Algorithm, Collective, Few, Peers, Stage};
use crate::system::dimension_order::MOST;
use crate::system::machine::Machine;
use crate::system::topology::Pattern;
use crate::units::{Bytes, narrow, real};

impl Machine {
    /// The queue of flat rings, trees and traces that are counted in a dimension: their messages take turns in those of dimensions.
    pub(super) fn line(&self, dimension: u32) -> u32 {
        narrow(self.dimensions.len() as u64) * self.queues + dimension
    }
}

impl Simulation<'_> {
    /// A rank enters a collective on the fabric: its chunks are equal and add up to it.
    pub(super) fn on_fabric(
        &mut self,
        open: Open,
        (collective, bytes, group, dimensions): (Collective, u64, Option<u32>, u32),
    ) {
        let machine = self.machine;
        let npu = self.npu_of(open.run);
        let logical = self.on_spans(npu, collective, group, dimensions);
        if bytes == 0 || logical.is_empty() {
            self.last(open.run as usize, open.operation, 0);
            return;
        }
        if self.spend(machine.chunks) {
            return;
        }
        let k = self.chunks.open(Open { chunks: u64::MAX, ..open });
        if self.rank_of(npu) == 0 && self.is_by_load(group, &logical) {
            self.loads.begin(self.clock.now(), logical.len());
        }
        let gives_way = self.runs[open.run as usize].gives_way(open.operation);
        let is_flexible = machine.dimension_order.part().is_flexible();
        let each = real(bytes) / real(machine.chunks);
        let mut left = bytes;
        let mut chunks = 0;
        let mut last = None;
        while if is_flexible { left > 0 } else { chunks < machine.chunks } {
            chunks += 1;
            let (order, taken) = self.order(npu, (collective, group), &logical, left, bytes.div_ceil(machine.chunks));
            left -= taken.min(left);
            let size = if is_flexible { real(taken) } else { each };
            if let Err(refused) = self.phases_on_fabric(npu, (collective, group), size, (&logical, &order)) {
                self.refused.get_or_insert(refused);
                return;
            }
            let chunk = self.chunks.chunk(last);
            last = Some(chunk);
            self.chunks.all[chunk as usize].gives_way = gives_way;
            self.chunk(npu, k, group, chunk);
            if self.crowds() {
                return;
            }
        }
        self.chunks.collectives[k as usize].chunks = chunks;
    }

    /// Makes the phases of the next chunk of `size` bytes.
    fn phases_on_fabric(
        &mut self,
        npu: u32,
        (collective, group): (Collective, Option<u32>),
        size: f64,
        (logical, order): (&[Logical], &[u8]),
    ) -> Result<(), Refused> {
        let plan = self.plan(collective, logical, order);
        let machine = self.machine;
        let mut whole: ArrayVec<(Collective, &Logical, f64), { 2 * MOST }> = ArrayVec::new();
        let parts = plan.iter().map(|&(part, logical, _)| (part, logical));
        fabric::phases(parts, size, |part, logical, size| whole.push((part, logical, size)));
        for (part, logical, size) in whole {
            let Logical { entry, members, count, me, .. } = *logical;
            let dimension = narrow(logical.dimension as u64);
            // Members of another group have made other trees: each group counts for itself.
            let is_odd = self.tree_of(npu, (part, collective, group), logical)?.unwrap_or(false);
            let steps = match (&mut self.fabric, logical.span) {
                (Some(fabric), Some(span)) => Some(fabric.steps(machine, entry, part, size, &span)),
                _ if entry.algorithm.part().needs_power_of_two(part) && !count.is_power_of_two() => {
                    return Err(Refused::NoPower { algorithm: entry.algorithm.name(), members: count });
                }
                _ => None,
            };
            // As messages an all-gather's part is what the member brings in.
            let is_shard = steps.is_none() && part == Collective::AllGather;
            let entering = if is_shard { size / f64::from(count) } else { size };
            self.chunks.made.push(Phase {
                bytes: Bytes::from_real(entering).get(),
                queue: if steps.is_some() { dimension * machine.queues } else { machine.line(dimension) },
                algorithm: entry.algorithm,
                collective: part,
                clockwise: true,
                is_odd,
                window: entry.algorithm.part().window(entry.window, count),
                members,
                count,
                me,
                dimension,
                course: steps.map_or(Course::Messages, Course::Steps),
            });
        }
        Ok(())
    }

    /// A message goes out, after its receiver has asked for it if there is a rendezvous.
    pub(super) fn send_on_fabric(&mut self, npu: u32, to: u32, address: Address, then: Then) {
        if self.machine.rendezvous {
            self.await_question(address, then);
        } else {
            self.go_on_fabric(npu, to, address, then);
        }
    }

    /// A message takes its turn in every dimension of its way, then it has arrived.
    pub(super) fn go_on_fabric(&mut self, npu: u32, to: u32, address: Address, then: Then) {
        let machine = self.machine;
        let from = self.rank_of(npu);
        let Some(fabric) = &self.fabric else { return };
        let made = &mut self.chunks.made;
        let mut held = |dimension: u32, total: u64| {
            let steps = Steps { first: 0, end: 0, total, sent: address.bytes };
            made.push(Phase {
                bytes: address.bytes,
                queue: dimension * machine.queues,
                algorithm: Algorithm::Ring,
                collective: Collective::AllToAll,
                clockwise: true,
                is_odd: false,
                window: 1,
                members: Members::Every { first: 0, stride: 1 },
                count: 2,
                me: 0,
                dimension,
                course: Course::Steps(steps),
            });
        };
        match self.pipeline {
            Some(spans) => {
                let time = spans.iter().map(|span| fabric.send(machine, address.bytes, span)).max();
                if let (Some(time), Some(last)) = (time, spans.last()) {
                    held(narrow(last.dim as u64), time);
                }
            }
            None => {
                for way in machine.ways(from, to) {
                    held(way.dimension, fabric.message(machine, way, address.bytes));
                }
            }
        }
        let k = self.chunks.chunk(None);
        let chunk = &mut self.chunks.all[k as usize];
        (chunk.npu, chunk.gives_way) = (npu, false);
        chunk.of = Of::Message { address, then };
        (chunk.at, chunk.is_queued, chunk.machinery) = (0, false, Machinery::Waiting);
        self.enter(k);
    }

    /// A chunk does its next step, or is through.
    pub(super) fn step(&mut self, k: u32) {
        loop {
            let Some((leg, peers, ..)) = self.peers(k) else {
                self.enter(k);
                return;
            };
            if peers != Peers::None {
                let npu = self.chunks.all[k as usize].npu;
                self.clock.local(npu, leg.endpoint, Local::Ready { chunk: k });
                return;
            }
            if let Machinery::Steps { leg, .. } = &mut self.chunks.all[k as usize].machinery {
                *leg += 1;
            }
        }
    }

    /// The step that a chunk is at, and its peers; none behind the last.
    fn peers(&self, k: u32) -> Option<(fabric::Leg, Peers, u32, u32)> {
        let chunk = &self.chunks.all[k as usize];
        let phase = self.chunks.phase(k);
        let (Machinery::Steps { leg, times, .. }, Course::Steps(steps)) = (&chunk.machinery, phase.course) else {
            return None;
        };
        if *leg == steps.end {
            return None;
        }
        let step = self.fabric.as_ref()?.leg(*leg);
        let stage = Stage {
            collective: phase.collective,
            role: step.role,
            pattern: step.pattern,
            repeat: step.repeat,
            times: *times,
            place: *leg - steps.first,
            is_last: *leg + 1 == steps.end,
            is_odd: phase.is_odd,
            me: phase.me,
            members: phase.count,
        };
        Some((step, phase.algorithm.part().peers(&stage), phase.me, phase.count))
    }

    /// A chunk's endpoint is ready: it sends what the step sends, and waits for what it receives.
    pub(super) fn step_ready(&mut self, k: u32) {
        let Some((leg, peers, me, count)) = self.peers(k) else { return };
        let one = |member: u32| Few::from_iter([member]);
        // How many messages each way, and to and from whom where they do not go round.
        let (rounds, to, from) = match peers {
            Peers::Round { nearest, farthest } => (nearest..farthest + 1, Few::new(), Few::new()),
            Peers::Partner(other) => (0..0, one(other), one(other)),
            Peers::Gives(to) => (0..0, to, Few::new()),
            Peers::Takes(from) => (0..0, Few::new(), from),
            Peers::None => return,
        };
        let round = narrow(rounds.len() as u64);
        let bytes = match leg.pattern {
            // Whoever has one member to send to sends half.
            Pattern::Part { .. } => leg.sent / 2,
            _ => leg.sent / u64::from(round.max(1)),
        };
        let (sent, taken) = (round + narrow(to.len() as u64), round + narrow(from.len() as u64));
        // Its own messages too: until they have arrived, they take the bandwidth.
        if let Machinery::Steps { awaited, reduction, .. } = &mut self.chunks.all[k as usize].machinery {
            *awaited = sent + taken;
            *reduction = if taken > 0 { leg.reduction } else { 0 };
        }
        if sent > 0 {
            let (npu, dimension) = (self.chunks.all[k as usize].npu, self.chunks.phase(k).dimension);
            let whole = if round > 0 { leg.sent } else { bytes * u64::from(sent) };
            self.wire.add(npu, dimension as usize, whole);
        }
        for far in rounds {
            self.step_send(k, (me + far) % count, bytes, leg.message);
            self.step_receive(k, (me + count - far) % count, bytes);
        }
        for other in to {
            self.step_send(k, other, bytes, leg.message);
        }
        for other in from {
            self.step_receive(k, other, bytes);
        }
    }

    /// A chunk sends a message of a step.
    fn step_send(&mut self, k: u32, to: u32, bytes: u64, delay: u64) {
        let Chunk { npu, tag, .. } = self.chunks.all[k as usize];
        let address = Address { tag, from: npu, to: self.rank(k, to), bytes };
        self.wire.send(self.machine, &mut self.clock, address, Some(delay), Then::Received { chunk: k });
    }

    /// A chunk waits for a message of a step.
    fn step_receive(&mut self, k: u32, from: u32, bytes: u64) {
        let Chunk { npu, tag, .. } = self.chunks.all[k as usize];
        let address = Address { tag, from: self.rank(k, from), to: npu, bytes };
        self.wire.receive(&mut self.clock, address, Then::Received { chunk: k });
    }

    /// A message of a chunk's step has arrived, here or there: after the last, what was received is added to what is there.
    pub(super) fn step_received(&mut self, k: u32) {
        let chunk = &mut self.chunks.all[k as usize];
        let Machinery::Steps { awaited, reduction, .. } = &mut chunk.machinery else { return };
        *awaited -= 1;
        if *awaited == 0 {
            self.clock.local(chunk.npu, *reduction, Local::Stepped { chunk: k });
        }
    }

    /// A step is over.
    pub(super) fn stepped(&mut self, k: u32) {
        let Some(fabric) = &self.fabric else { return };
        if let Machinery::Steps { leg, times, .. } = &mut self.chunks.all[k as usize].machinery {
            *times += 1;
            if *times == fabric.leg(*leg).repeat {
                (*leg, *times) = (*leg + 1, 0);
            }
        }
        self.step(k);
    }
}
