//! One collective over many dimensions: reduce-scatter inwards out, all-gather back, in chunks that pipeline.

use arrayvec::ArrayVec;

use super::collective::{Algorithm, Collective, Role};
use super::network::{Dimension, MAX_DIMS, Span};
use super::topology::Pattern;
use super::{Collectives, System};
use crate::units::{Bandwidth, Bytes, Delay, real};

/// Local memory traffic of adding a received byte to an own one: two reads and a write [ASTRA2].
const REDUCTION_TRAFFIC: f64 = 3.0;

/// How a collective runs over several dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiDim {
    /// An all-reduce is a reduce-scatter inwards out, an all-reduce on the last dimension, and an all-gather back.
    Hierarchical,
    /// All of it in each dimension after the other.
    PerDimension,
    /// Over all NPUs at once, as if they were one dimension.
    Flat,
}

impl MultiDim {
    /// Every way; the first holds where nothing is said.
    pub const ALL: [Self; 3] = [Self::Hierarchical, Self::PerDimension, Self::Flat];
    /// The names that people write, in the same order.
    pub const NAMES: [&'static str; 3] = ["hierarchical", "per_dimension", "flat"];
}

/// What a collective costs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// From its start to its end on every rank.
    pub delay: Delay,
    /// Bytes that the busiest NPU sends in each of the group's spans, in their order.
    pub sent: ArrayVec<f64, MAX_DIMS>,
    /// How long chunks keep each of the spans busy.
    pub busy: ArrayVec<Delay, MAX_DIMS>,
}

/// The time and traffic of one phase of one chunk.
#[derive(Debug, Clone, Copy, Default)]
struct Phase {
    delay: Delay,
    /// Bytes that a member sends, by its role.
    sent: [f64; Role::COUNT],
}

impl Cost {
    /// A collective of `size` bytes (the whole buffer) over the group that lies on `spans`.
    ///
    /// All-reduce is a reduce-scatter over the dimensions from the innermost outwards, an all-reduce on the outermost, an
    /// all-gather back [ASTRA2, Cho19]; with group sizes g0, g1, ... dimension k handles S / (g0 * ... * g(k-1)) and each
    /// NPU sends 2 (gk - 1) / gk of that. A broadcast is a scatter and an
    /// all-gather in the same way. All-to-all goes through every dimension with all of its bytes, and so does what runs
    /// [`MultiDim::PerDimension`]. The K chunks are
    /// equal, and one chunk at a time uses a dimension: bandwidth is never spent twice.
    ///
    /// Worked: 2 dimensions of 4 and 2, phases of one chunk P1 = 16,990 ns, P2 = 4,215 ns, P3 = 5,200 ns, K = 4 gives
    /// max(4 * 16,990 + 4 * 5,200, 16,990 + 4,215 + 3 * 16,990 + 5,200) = 88,760 ns, as the reference's program does.
    #[must_use]
    pub fn of(collective: Collective, size: Bytes, spans: &[Span], system: &System) -> Self {
        if spans.is_empty() || size == Bytes::ZERO {
            let nothing = spans.iter().map(|_| 0.0).collect();
            return Self { delay: Delay::ZERO, sent: nothing, busy: spans.iter().map(|_| Delay::ZERO).collect() };
        }
        let chunks = real(system.collectives.chunks);
        let mut inwards: ArrayVec<Phase, MAX_DIMS> = ArrayVec::new();
        let mut outwards: ArrayVec<Phase, MAX_DIMS> = ArrayVec::new();
        let mut running = size.as_real() / chunks;
        let is_per_dimension = system.collectives.multi_dim == MultiDim::PerDimension;
        let halves = collective.halves().filter(|_| !is_per_dimension);
        // Bytes become fewer outwards where each member keeps, or has at first, a part of them.
        let is_split = halves.is_some() || collective.scatters() || collective == Collective::AllGather;
        for (k, span) in spans.iter().enumerate() {
            let outermost = k + 1 == spans.len();
            let place = Place::of(span, system);
            let algorithm = system.algorithm(collective, place.dimension);
            let phase = |kind: Collective| Phase::of(kind, running, algorithm, &place);
            let (first, second) = match halves.filter(|_| !outermost) {
                Some((out, back)) => (phase(out), phase(back)),
                None => (phase(collective), Phase::default()),
            };
            outwards.push(first);
            inwards.push(second);
            if is_split {
                running /= f64::from(span.members);
            }
        }
        let sent = outwards.iter().zip(&inwards).map(|(out, back)| chunks * busiest(out, back)).collect();
        let busy = outwards.iter().zip(&inwards).map(|(out, back)| (out.delay + back.delay) * chunks).collect();
        // Spans of one dimension take turns on it: nothing is spent twice.
        let taken_twice = spans.windows(2).any(|pair| pair[0].dim == pair[1].dim);
        let delay = if taken_twice {
            outwards.iter().chain(&inwards).fold(Delay::ZERO, |sum, phase| sum + phase.delay) * chunks
        } else if halves.is_some() {
            there_and_back(&outwards, &inwards, chunks)
        } else {
            one_way(&outwards, chunks)
        };
        Self { delay, sent, busy }
    }
}

impl Phase {
    /// One phase of a chunk of `size` bytes on one dimension: its steps one after the other.
    ///
    /// ```text
    /// T = sum over steps of (D + h * a + m / (B * share) + 3 r / M)
    /// ```
    ///
    /// D the endpoint delay, h hops of latency a, m bytes sent, r bytes reduced, B the dimension's bandwidth of which
    /// the building block leaves a share, M the local memory's bandwidth (no reduction term without `local_reduction`).
    fn of(collective: Collective, size: f64, algorithm: Algorithm, place: &Place<'_>) -> Self {
        let mut total = Self::default();
        place.legs(algorithm, collective, size, &mut |leg| {
            let repeat = f64::from(leg.repeat);
            total.delay = total.delay + leg.total() * repeat;
            if let Some(role) = leg.role.number() {
                total.sent[role] += repeat * leg.sent;
            }
        });
        total
    }
}

/// Where a phase takes place, and what else it costs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The part of a dimension.
    pub span: &'a Span,
    /// The dimension.
    pub dimension: &'a Dimension,
    /// What an NPU needs before each step.
    pub endpoint_delay: Delay,
    /// The local memory's bandwidth, if reductions cost it.
    pub memory_bandwidth: Option<Bandwidth>,
    /// How many messages of a direct exchange are under way at once; all if there is none.
    pub window: Option<u32>,
}

/// A step of a phase with what it costs, repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leg {
    /// Who sends.
    pub role: Role,
    /// How many times.
    pub repeat: u32,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// Before a message is sent.
    pub endpoint: Delay,
    /// From then until it has arrived.
    pub message: Delay,
    /// Until what has arrived is added to what was there.
    pub reduction: Delay,
    /// Bytes that a member sends.
    pub sent: f64,
}

impl Leg {
    /// One of them.
    #[must_use]
    pub fn total(&self) -> Delay {
        self.endpoint + self.message + self.reduction
    }
}

impl<'a> Place<'a> {
    /// A part of a system's network.
    #[must_use]
    pub fn of(span: &'a Span, system: &'a System) -> Self {
        let Collectives { endpoint_delay, local_reduction, window, .. } = system.collectives;
        let memory_bandwidth = local_reduction.then_some(system.npu.memory_bandwidth);
        let dimension = &system.network.dims[span.dim];
        Self { span, dimension, endpoint_delay, memory_bandwidth, window: dimension.window.or(window) }
    }

    /// The steps of a collective of `size` bytes here, in order.
    pub fn legs(&self, algorithm: Algorithm, collective: Collective, size: f64, emit: &mut dyn FnMut(Leg)) {
        let Dimension { block, bandwidth, hop_latency, .. } = *self.dimension;
        let (algorithm, members) = (algorithm.part(), self.span.members);
        let window = algorithm.window(self.window, members);
        algorithm.steps(collective, (members, window), &mut |step| {
            let carry = block.part().carry(step.pattern, self.span);
            let reduction = self
                .memory_bandwidth
                .map_or(Delay::ZERO, |memory| over(REDUCTION_TRAFFIC * step.reduced * size, memory));
            emit(Leg {
                role: step.role,
                repeat: step.repeat,
                pattern: step.pattern,
                endpoint: self.endpoint_delay,
                message: hop_latency * carry.hops + over(step.sent * size, bandwidth * carry.share),
                reduction,
                sent: step.sent * size,
            });
        });
    }

    /// A message to the next member of the group.
    #[must_use]
    pub fn send(&self, size: Bytes) -> Delay {
        let carry = self.dimension.block.part().carry(Pattern::Send { distance: 1 }, self.span);
        self.endpoint_delay + self.dimension.hop_latency * carry.hops + size / (self.dimension.bandwidth * carry.share)
    }
}

/// What the busiest NPU sends on the way out and back: it has the same role in both.
fn busiest(out: &Phase, back: &Phase) -> f64 {
    out.sent.iter().zip(&back.sent).map(|(out, back)| out + back).fold(0.0, f64::max)
}

/// Real bytes over a bandwidth.
fn over(bytes: f64, bandwidth: Bandwidth) -> Delay {
    if bytes == 0.0 { Delay::ZERO } else { Delay::seconds(bytes / bandwidth.get()) }
}

/// K chunks through a line of phases, each on a dimension of its own: the first chunk sees all of them, the others
/// follow at the pace of the slowest [ASTRA2].
///
/// ```text
/// T = sum of P + (K - 1) * max of P
/// ```
fn one_way(phases: &[Phase], chunks: f64) -> Delay {
    let sum = phases.iter().fold(Delay::ZERO, |sum, phase| sum + phase.delay);
    let slowest = phases.iter().fold(Delay::ZERO, |most, phase| most.max(phase.delay));
    sum + slowest * (chunks - 1.0)
}

/// K chunks out through the dimensions and back, a dimension serving both ways of all chunks, first come first served.
///
/// Worked from the outermost dimension inwards. With chunks that arrive at dimension k at a spacing of g, reduce-scatter
/// R and all-gather A on it, and everything beyond it returning the first chunk after F' and the last after L':
///
/// ```text
/// F = R + F' + A                       the first chunk, which meets no queue
/// L = max of   R + L' + A              the last chunk back
///              R + F' + K * A          all-gathers one after the other once the first is back
///              K * (R + A)             the dimension never idle
///              (K - 1) * g + F         the last chunk to arrive, if it meets no queue
/// ```
///
/// and on the innermost, where all chunks wait from the start, all K reduce-scatters go before the first all-gather:
///
/// ```text
/// T = max(R + L' + A, max(R + F', K * R) + K * A)
/// ```
///
/// which is exact for one and two dimensions, and never below K * (R + A) of any dimension.
fn there_and_back(outwards: &[Phase], inwards: &[Phase], chunks: f64) -> Delay {
    let last = outwards.len() - 1;
    // The spacing at which chunks reach each dimension: the slowest reduce-scatter before it.
    let mut spacing: ArrayVec<Delay, MAX_DIMS> = ArrayVec::new();
    let mut slowest = Delay::ZERO;
    for phase in outwards {
        spacing.push(slowest);
        slowest = slowest.max(phase.delay);
    }
    let outermost = outwards[last].delay;
    let mut first_back = outermost;
    let mut last_back = outermost + spacing[last].max(outermost) * (chunks - 1.0);
    for k in (0..last).rev() {
        let (out, back) = (outwards[k].delay, inwards[k].delay);
        let first = out + first_back;
        let arrivals = if k == 0 { out * chunks } else { Delay::ZERO };
        let served = first.max(arrivals) + back * chunks;
        let busy = (out + back) * chunks;
        let unqueued = spacing[k] * (chunks - 1.0) + first + back;
        last_back = (out + last_back + back).max(served).max(busy).max(unqueued);
        first_back = first + back;
    }
    last_back
}

/// A message to the next member of a group: on the slowest of the dimensions it may have to cross.
#[must_use]
pub fn send(size: Bytes, spans: &[Span], system: &System) -> Delay {
    spans.iter().map(|span| Place::of(span, system).send(size)).fold(Delay::ZERO, Delay::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(delays: &[f64]) -> Vec<Phase> {
        delays.iter().map(|&delay| Phase { delay: Delay::nanoseconds(delay), ..Phase::default() }).collect()
    }

    #[test]
    fn two_dimensions_in_four_chunks_take_the_references_88_760_ns() {
        let total = there_and_back(&phases(&[16_990.0, 4_215.0]), &phases(&[5_200.0, 0.0]), 4.0);
        assert_eq!(total, Delay::nanoseconds(88_760.0));
    }

    #[test]
    fn one_chunk_sees_every_phase_once() {
        let total = there_and_back(&phases(&[3.0, 5.0, 7.0]), &phases(&[2.0, 4.0, 0.0]), 1.0);
        assert_eq!(total, Delay::nanoseconds(21.0));
    }

    #[test]
    fn many_chunks_keep_the_busiest_dimension_busy() {
        let total = there_and_back(&phases(&[1.0, 8.0, 1.0]), &phases(&[1.0, 8.0, 0.0]), 1000.0);
        let busiest = 16_000.0;
        assert!(total.as_nanoseconds() >= busiest && total.as_nanoseconds() <= busiest + 20.0, "{total:?}");
    }

    #[test]
    fn a_line_of_phases_runs_at_the_pace_of_the_slowest() {
        assert_eq!(one_way(&phases(&[2.0, 5.0, 3.0]), 4.0), Delay::nanoseconds(25.0));
    }
}
