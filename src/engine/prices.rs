//! Prices: what the operations of a block cost on a machine, side by side where they may be.

use arrayvec::ArrayVec;

use super::memo::{Memo, Priced, Question};
use crate::system::hierarchy::{self, Cost};
use crate::system::network::Spans;
use crate::system::npu::Bound;
use crate::system::{MAX_DIMS, System};
use crate::units::{Delay, Time, real};
use crate::workload::placement::{Group, Placement};
use crate::workload::program::{Account, Beside, Block, Operation, Phase, Program, RankClass, Work};

/// What goes through one dimension.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    /// How long it is busy, with data-parallel traffic and with other.
    pub busy: [Time; 2],
    /// Bytes that the NPU sends.
    pub sent: f64,
}

/// What one microbatch, or the end of a step, costs an NPU. It is written over and used again: most of its room is for dimensions
/// that few networks have.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub exposed: [Time; Account::COUNT],
    pub data_busy: Time,
    /// Of the model's own arithmetic what kernels take that the local memory bounds.
    pub memory_bound: Time,
    /// Whether one of the times does not fit.
    pub is_beyond: bool,
    /// Bytes of data-parallel traffic that the NPU sends, in all dimensions.
    pub data_sent: f64,
    /// Messages between stages that run beside the computation: they take no time but on the way through all stages.
    pub hidden_sends: Time,
    /// By dimension.
    pub traffic: ArrayVec<Traffic, MAX_DIMS>,
}

impl Tally {
    /// Nothing, in a network of so many dimensions.
    pub fn clear(&mut self, dimensions: usize) {
        self.exposed = [Time::ZERO; Account::COUNT];
        [self.data_busy, self.memory_bound, self.hidden_sends] = [Time::ZERO; 3];
        (self.is_beyond, self.data_sent) = (false, 0.0);
        self.traffic.clear();
        self.traffic.extend(std::iter::repeat_n(Traffic::default(), dimensions));
    }

    /// The same as another.
    fn copy(&mut self, other: &Self) {
        self.exposed = other.exposed;
        (self.data_busy, self.memory_bound) = (other.data_busy, other.memory_bound);
        (self.is_beyond, self.data_sent, self.hidden_sends) = (other.is_beyond, other.data_sent, other.hidden_sends);
        self.traffic.clone_from(&other.traffic);
    }

    pub fn total(&self) -> Time {
        self.exposed.iter().copied().sum()
    }

    pub fn add(&mut self, other: &Self, times: u64) {
        // Most accounts of most blocks are empty.
        for (mine, theirs) in self.exposed.iter_mut().zip(&other.exposed).filter(|pair| *pair.1 > Time::ZERO) {
            *mine += *theirs * times;
        }
        self.data_busy += other.data_busy * times;
        self.memory_bound += other.memory_bound * times;
        self.hidden_sends += other.hidden_sends * times;
        self.is_beyond |= other.is_beyond;
        for (Traffic { busy, sent }, theirs) in self.traffic.iter_mut().zip(&other.traffic) {
            *busy = [busy[0] + theirs.busy[0] * times, busy[1] + theirs.busy[1] * times];
            *sent += theirs.sent * real(times);
        }
    }

    /// What is left of data-parallel traffic, `data` in all, once it has hidden beneath `pass`.
    ///
    /// It gives way to other traffic on the dimensions that both use, and waits the longer the nearer such a dimension is to
    /// being its slowest:
    ///
    /// ```text
    /// left = max(0, data + max of (x (1 + x) / 2 * others) - pass)            x = P / max P
    /// ```
    ///
    /// P the time of data-parallel traffic on a dimension, others that of other traffic there. One dimension: 8 ms beneath a
    /// pass of 10 ms in which others send for 4 ms leave 2 ms.
    pub fn left(
        data: Time,
        pass: Time,
        own: impl Iterator<Item = Time> + Clone,
        others: impl Fn(usize) -> Time,
    ) -> Time {
        (data + Delay::seconds(Self::waits(own, others)).round()).saturating_sub(pass).min(data)
    }

    /// How long data-parallel traffic waits, in seconds, while others use its dimensions.
    pub fn waits(own: impl Iterator<Item = Time> + Clone, others: impl Fn(usize) -> Time) -> f64 {
        let most = own.clone().max().unwrap_or(Time::ZERO).as_seconds();
        let mut waits = 0.0_f64;
        for (k, busy) in own.enumerate().filter(|(_, busy)| *busy > Time::ZERO) {
            let share = busy.as_seconds() / most;
            waits = waits.max(share * f64::midpoint(1.0, share) * others(k).as_seconds());
        }
        waits
    }
}

/// How many blocks of a program are found by their place: layers of two kinds, in each pass.
const SHARED: usize = 6;

/// Prices of the operations of one program.
pub(super) struct Prices<'a> {
    placement: &'a Placement,
    pub system: &'a System,
    /// Of this machine.
    pub memo: &'a mut Memo,
    /// Layers that stages share, by their first operation.
    layers: ArrayVec<(usize, Tally), SHARED>,
}

impl<'a> Prices<'a> {
    pub fn new(placement: &'a Placement, system: &'a System, memo: &'a mut Memo) -> Self {
        Self { placement, system, memo, layers: ArrayVec::new() }
    }

    /// An empty tally for this network.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        tally.clear(self.system.network.dims.len());
        tally
    }

    /// The operations of one block, once, into `tally`.
    pub fn block(&mut self, program: &Program, block: &Block, tally: &mut Tally) {
        let operations = program.operations_of(block);
        if block.dispatches == 0.0 {
            return self.operations(operations, program.overlap, tally);
        }
        let manner = (block.dispatches, program.overlap);
        if let Some((_, known)) = self.layers.iter().find(|layer| layer.0 == block.start) {
            return tally.copy(known);
        }
        if let Some(known) = self.memo.layer(operations, manner, self.placement) {
            tally.copy(known);
        } else {
            self.operations(operations, program.overlap, tally);
            let busy = tally.total().saturating_sub(tally.exposed[Account::Data as usize]);
            let wait = self.system.software.host_wait(busy.as_delay(), block.dispatches).round();
            tally.exposed[Account::Host as usize] += wait;
            self.memo.keep(operations, manner, self.placement, tally);
        }
        let _ = self.layers.try_push((block.start, tally.clone()));
    }

    /// Operations one after the other, but for communication that runs beside the computations behind it, and transfers beside
    /// all; these beside data-parallel traffic too, if that has its place in the order.
    fn operations(&mut self, operations: &[Operation], overlap: bool, tally: &mut Tally) {
        tally.clear(self.system.network.dims.len());
        let (mut pair, mut whole) = (Pair::default(), Pair::default());
        let mut beside = Transfers::default();
        for operation in operations {
            let (time, sent) = self.operation(operation, tally);
            tally.is_beyond |= time == Time::MAX;
            let account = operation.account as usize;
            if operation.account.is_data_parallel() {
                tally.data_busy += time;
            }
            match operation.work {
                Work::Compute(_) => {
                    pair.computing += time;
                    whole.computing += time;
                    tally.exposed[account] += time;
                }
                _ if operation.is_data_stream() => {
                    tally.data_sent += sent;
                    tally.exposed[account] += time;
                }
                Work::Transfer { read, written, .. } if operation.beside == Beside::Block => {
                    beside.time += time;
                    beside.moved += (read + written).as_real();
                }
                _ if operation.beside == Beside::Block => {
                    whole.add(account, time, sent);
                }
                _ if operation.beside == Beside::Next => {
                    if pair.computing > Time::ZERO {
                        pair.close(tally, self.system);
                    }
                    pair.add(account, time, sent);
                }
                _ => {
                    pair.close(tally, self.system);
                    tally.exposed[account] += time;
                }
            }
        }
        pair.close(tally, self.system);
        whole.close(tally, self.system);
        beside.close(tally, overlap, self.system);
    }

    /// One operation by itself: how long it takes, and bytes that it sends, as what these move in the local memory counts; in which
    /// dimensions is added to `tally`.
    fn operation(&mut self, operation: &Operation, tally: &mut Tally) -> (Time, f64) {
        let (placement, system) = (self.placement, self.system);
        match operation.work {
            Work::Compute(kernel) => {
                let (delay, bound) = system.npu.cost(&kernel, &system.software);
                let time = delay.round();
                if bound == Bound::Memory && operation.account == Account::Compute {
                    tally.memory_bound += time;
                }
                (time, 0.0)
            }
            Work::Transfer { tier, read, written } => {
                let tier = system.memory.tiers.get(usize::from(tier));
                (tier.map_or(Time::ZERO, |tier| tier.transfer(read.max(written)).round()), 0.0)
            }
            Work::Send { size } => {
                let spans = placement.spans(Group::Pipeline);
                let delay = hierarchy::send(size, spans, system) + system.software.collective_latency;
                let sent = spans.last().map_or(0.0, |span| {
                    tally.traffic[span.dim].sent += size.as_real();
                    size.as_real()
                });
                (delay.round(), sent)
            }
            Work::Collective { collective, group, size } => {
                let spans = placement.spans(group);
                let price = || price((collective, group, size), spans, system);
                let priced = self.memo.collective((collective, group, size), spans, price);
                let kind = usize::from(!operation.is_data_stream());
                let mut sent = 0.0;
                for (span, &(bytes, time)) in spans.iter().zip(&priced.sent) {
                    let traffic = &mut tally.traffic[span.dim];
                    traffic.sent += bytes;
                    traffic.busy[kind] += time;
                    sent += bytes;
                }
                (priced.time, sent * operation.local_traffic())
            }
        }
    }
}

/// What a collective costs. One that is the whole job pays for no software.
fn price(question: Question, spans: &Spans, system: &System) -> Priced {
    let (collective, group, size) = question;
    let cost = Cost::of(collective, size, spans, system);
    let latency = if group == Group::Everyone { Delay::ZERO } else { system.software.collective_latency };
    let delay = if cost.delay == Delay::ZERO { Delay::ZERO } else { cost.delay + latency };
    let sent = cost.sent.iter().copied().zip(cost.busy.iter().map(|busy| busy.round())).collect();
    Priced { question, spans: spans.clone(), time: delay.round(), sent }
}

/// Of the model's own arithmetic in a step of a rank class, what kernels take that the local memory bounds.
#[must_use]
pub fn memory_bound(program: &Program, class: &RankClass, placement: &Placement, system: &System) -> Time {
    let mut memo = Memo::of_one();
    let mut prices = Prices::new(placement, system, &mut memo);
    let of_block = |block: &Block| {
        let times = if block.phase == Phase::Step { 1 } else { program.microbatches };
        let mut tally = prices.tally();
        let kernels =
            program.operations_of(block).iter().filter(|operation| matches!(operation.work, Work::Compute(_)));
        kernels.for_each(|operation| {
            prices.operation(operation, &mut tally);
        });
        tally.memory_bound * block.repeat * times
    };
    program.blocks_of(class).iter().map(of_block).sum()
}

/// How long an operation takes if nothing else goes on.
#[must_use]
pub fn alone(operation: &Operation, placement: &Placement, system: &System) -> Time {
    let mut memo = Memo::of_one();
    let mut prices = Prices::new(placement, system, &mut memo);
    let mut tally = prices.tally();
    prices.operation(operation, &mut tally).0
}

/// Bytes that an NPU sends in an operation, as what these move in its memory counts.
#[must_use]
pub fn sent(operation: &Operation, placement: &Placement, system: &System) -> f64 {
    let mut memo = Memo::of_one();
    let mut prices = Prices::new(placement, system, &mut memo);
    let mut tally = prices.tally();
    prices.operation(operation, &mut tally).1
}

/// Communication and the computations that it runs beside.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    beside: [Time; Account::COUNT],
    /// Of all accounts.
    all: Time,
    computing: Time,
    /// Bytes that are sent.
    sent: f64,
}

impl Pair {
    fn add(&mut self, account: usize, time: Time, sent: f64) {
        self.beside[account] += time;
        self.all += time;
        self.sent += sent;
    }

    /// Both are over: what is left of communication, and what its hidden part costs [`System::paid`].
    fn close(&mut self, tally: &mut Tally, system: &System) {
        let beside = self.all;
        if beside == Time::ZERO {
            self.computing = Time::ZERO;
        } else {
            let hidden = beside.min(self.computing);
            let exposed = beside.saturating_sub(hidden) + system.paid(hidden, beside, self.sent);
            let share = exposed.as_seconds() / beside.as_seconds();
            for (exposed, &time) in tally.exposed.iter_mut().zip(&self.beside) {
                if time > Time::ZERO {
                    *exposed += (time.as_delay() * share).round();
                }
            }
            *self = Self::default();
        }
    }
}

/// Transfers beside all that goes on in a block.
#[derive(Debug, Clone, Copy, Default)]
struct Transfers {
    time: Time,
    /// Bytes in and out.
    moved: f64,
}

impl Transfers {
    /// The block is over: what is left of them, and what their hidden part costs [`System::slowed`]. Data-parallel traffic that
    /// overlaps runs beside both.
    fn close(self, tally: &mut Tally, overlap: bool, system: &System) {
        if self.time > Time::ZERO {
            let beside = if overlap { tally.exposed[Account::Data as usize] } else { Time::ZERO };
            let busy = tally.total().saturating_sub(beside);
            let hidden = self.time.min(busy);
            let slowed = system.slowed(hidden, self.time, self.moved);
            tally.exposed[Account::Offload as usize] += self.time.saturating_sub(busy) + slowed;
        }
    }
}
