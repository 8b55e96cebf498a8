//! The fabric: collectives and messages where an NPU's bandwidth in a dimension is never spent twice.
//!
//! Every dimension of an NPU serves one chunk, or one message, at a time, first come first served. A chunk's phase is the steps
//! of its algorithm, as the building block carries them: the same steps, with the same costs, as the closed form's.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;

use super::phase::Logical;
use crate::system::MAX_DIMS;
use crate::system::collective::{Algorithm, Collective, Role};
use crate::system::hierarchy::Place;
use crate::system::machine::{Dimension, Entry, Machine, Way};
use crate::system::network::{self, Span, Spans};
use crate::system::rules::Quirk;
use crate::system::topology::{Pattern, Topology};
use crate::units::{Bandwidth, Bytes, Delay, narrow};
use crate::workload::trace::Trace;

/// A step of a phase in ticks of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Who sends.
    pub role: Role,
    /// How many times.
    pub repeat: u32,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// Before a message is sent.
    pub endpoint: u64,
    /// From then until it has arrived.
    pub message: u64,
    /// Until what has arrived is added to what was there.
    pub reduction: u64,
    /// Bytes that a member sends.
    pub sent: u64,
}

/// The steps of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// The first of them, among all.
    pub first: u32,
    /// Behind the last.
    pub end: u32,
    /// How long all take one after the other.
    pub total: u64,
    /// Bytes that a member sends in all, of the role that sends most.
    pub sent: u64,
}

/// What a phase is known by: collective, algorithm, window, span, and the bits of its bytes.
type Key = (Collective, Algorithm, u32, (usize, u32, u32), u64);

/// The network as the fabric sees it, and what it has worked out.
#[derive(Debug)]
pub struct Fabric {
    dimensions: ArrayVec<network::Dimension, MAX_DIMS>,
    /// Where each group lies; none if its members are no regular part of the network.
    spans: Vec<Option<Spans>>,
    everyone: Spans,
    legs: Vec<Leg>,
    known: BTreeMap<Key, Steps>,
}

impl Fabric {
    /// The fabric of a machine for the groups of a trace, or for groups that lie where they are said to.
    #[must_use]
    pub fn new(machine: &Machine, trace: &Trace, given: Option<&[Spans]>) -> Self {
        let dimension = |dimension: &Dimension| network::Dimension {
            block: dimension.block,
            size: dimension.size,
            bandwidth: Bandwidth::bytes_per_second(dimension.npu_bandwidth() * 1e9),
            hop_latency: Delay::nanoseconds(dimension.latency),
            algorithm: None,
            window: None,
        };
        let spans = match given {
            Some(given) => given.iter().cloned().map(Some).collect(),
            None => trace.groups.iter().map(|group| machine.spans(&group.ranks)).collect(),
        };
        let everyone = machine.dimensions.iter().enumerate().map(|(k, dimension)| Span::whole(k, dimension.size));
        let everyone = everyone.filter(|span| span.members > 1);
        Self {
            dimensions: machine.dimensions.iter().take(MAX_DIMS).map(dimension).collect(),
            spans,
            everyone: everyone.take(MAX_DIMS).collect(),
            legs: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// Where a group lies; all ranks if there is none.
    #[must_use]
    pub fn spans(&self, group: Option<u32>) -> Option<&Spans> {
        match group {
            None => Some(&self.everyone),
            Some(group) => self.spans.get(group as usize)?.as_ref(),
        }
    }

    /// The steps of a collective of `size` bytes, the whole buffer, on a part of a dimension.
    pub fn steps(&mut self, machine: &Machine, entry: Entry, collective: Collective, size: f64, span: &Span) -> Steps {
        let window = entry.algorithm.part().window(entry.window, span.members);
        let key = (collective, entry.algorithm, window, (span.dim, span.members, span.stride), size.to_bits());
        if let Some(&steps) = self.known.get(&key) {
            return steps;
        }
        let first = narrow(self.legs.len() as u64);
        let place = Place { window: entry.window, ..self.place(machine, span) };
        let mut legs: ArrayVec<Leg, { 4 * MAX_DIMS + 4 }> = ArrayVec::new();
        place.legs(entry.algorithm, collective, size, &mut |leg| {
            let latency = place.dimension.hop_latency * place.dimension.block.part().carry(leg.pattern, span).hops;
            // All bytes go one way round, over one link of two.
            let slower = if is_one_way(machine, leg.pattern, span) { 2.0 } else { 1.0 };
            legs.push(Leg {
                role: leg.role,
                repeat: leg.repeat,
                pattern: leg.pattern,
                endpoint: machine.ticks(leg.endpoint.as_nanoseconds()),
                message: machine.ticks((latency + (leg.message - latency) * slower).as_nanoseconds()),
                reduction: machine.ticks(leg.reduction.as_nanoseconds()),
                sent: Bytes::from_real(leg.sent).get(),
            });
        });
        self.legs.extend(legs.iter().copied());
        let total = |leg: &Leg| {
            let once = leg.endpoint.saturating_add(leg.message).saturating_add(leg.reduction);
            once.saturating_mul(leg.repeat.into())
        };
        let sent = |role: Role| {
            let of_role = legs.iter().filter(|leg| leg.role == role);
            of_role.map(|leg| leg.sent.saturating_mul(leg.repeat.into())).fold(0, u64::saturating_add)
        };
        let steps = Steps {
            first,
            end: narrow(self.legs.len() as u64),
            total: legs.iter().map(total).fold(0, u64::saturating_add),
            sent: u64::max(sent(Role::Core), sent(Role::Surplus)),
        };
        self.known.insert(key, steps);
        steps
    }

    /// A step, by its place.
    #[must_use]
    pub fn leg(&self, place: u32) -> Leg {
        self.legs[place as usize]
    }

    /// How long a message to the next member on a part of a dimension takes.
    #[must_use]
    pub fn send(&self, machine: &Machine, bytes: u64, span: &Span) -> u64 {
        machine.ticks(self.place(machine, span).send(Bytes::new(bytes)).as_nanoseconds())
    }

    /// How long a message takes in one dimension of its way.
    #[must_use]
    pub fn message(&self, machine: &Machine, way: Way, bytes: u64) -> u64 {
        let dim = way.dimension as usize;
        let dimension = &self.dimensions[dim];
        // As the two members of a group that lie so far apart: it takes every link that it crosses.
        let ends = Span { dim, size: dimension.size, members: 2, stride: way.hops.max(1) };
        let carry = dimension.block.part().carry(Pattern::Send { distance: 1 }, &ends);
        let hops = dimension.hop_latency * f64::from(way.hops);
        let time =
            Delay::nanoseconds(machine.endpoint_delay) + hops + Bytes::new(bytes) / (dimension.bandwidth * carry.share);
        machine.ticks(time.as_nanoseconds())
    }

    fn place<'a>(&'a self, machine: &Machine, span: &'a Span) -> Place<'a> {
        let memory = machine.memory_bandwidth;
        Place {
            span,
            dimension: &self.dimensions[span.dim],
            endpoint_delay: Delay::nanoseconds(machine.endpoint_delay),
            memory_bandwidth: memory.is_finite().then(|| Bandwidth::bytes_per_second(memory)),
            window: None,
        }
    }
}

/// Whether a pattern that could go both ways round a whole ring goes one way, as the reference's rings do [ASTRA2].
fn is_one_way(machine: &Machine, pattern: Pattern, span: &Span) -> bool {
    let is_ring = machine.dimensions[span.dim].block == Topology::Ring && span.size > 2 && span.closes();
    is_ring && pattern == Pattern::Shift && machine.rules.has(Quirk::OneWayRings)
}

/// The whole buffer of each phase of a chunk, which `entering` bytes of each rank enter.
pub fn phases<'a>(
    plan: impl Iterator<Item = (Collective, &'a Logical)>,
    entering: f64,
    mut each: impl FnMut(Collective, &'a Logical, f64),
) {
    let mut running = entering;
    for (part, logical) in plan {
        let members = f64::from(logical.count);
        match part {
            Collective::AllReduce | Collective::AllToAll | Collective::Broadcast => each(part, logical, running),
            Collective::ReduceScatter | Collective::Scatter => {
                each(part, logical, running);
                running /= members;
            }
            Collective::AllGather => {
                running *= members;
                each(part, logical, running);
            }
        }
    }
}
