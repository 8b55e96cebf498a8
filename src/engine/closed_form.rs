//! The closed form: a program's time by multiplication, a microsecond a point; nothing is unfolded.

use arrayvec::ArrayVec;

use super::report::Report;
use crate::system::collective::Collective;
use crate::system::hierarchy::{self, Cost};
use crate::system::{MAX_DIMS, System};
use crate::units::{Bytes, Delay, Time, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::{Group, Placement};
use crate::workload::program::{Account, Operation, Phase, Program, RankClass, Work};

/// What one microbatch, or the end of a step, costs an NPU.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    exposed: [Time; Account::COUNT],
    data_busy: Time,
    /// Whether one of the times does not fit.
    is_beyond: bool,
    /// How long each dimension is busy, with data-parallel traffic and with other.
    busy: [[Time; 2]; MAX_DIMS],
}

impl Tally {
    fn total(&self) -> Time {
        self.exposed.iter().copied().sum()
    }

    fn add(&mut self, other: &Self, times: u64, dimensions: usize) {
        for (mine, theirs) in self.exposed.iter_mut().zip(&other.exposed) {
            *mine += *theirs * times;
        }
        self.data_busy += other.data_busy * times;
        self.is_beyond |= other.is_beyond;
        for (mine, theirs) in self.busy.iter_mut().zip(&other.busy).take(dimensions) {
            *mine = [mine[0] + theirs[0] * times, mine[1] + theirs[1] * times];
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
    fn left(data: Time, pass: Time, own: &[[Time; 2]; MAX_DIMS], others: impl Fn(usize) -> Time) -> Time {
        let most = own.iter().map(|busy| busy[0]).max().unwrap_or(Time::ZERO).as_seconds();
        let mut waits = 0.0_f64;
        for (k, busy) in own.iter().enumerate().filter(|(_, busy)| busy[0] > Time::ZERO) {
            let share = busy[0].as_seconds() / most;
            waits = waits.max(share * f64::midpoint(1.0, share) * others(k).as_seconds());
        }
        (data + Delay::seconds(waits).round()).saturating_sub(pass).min(data)
    }
}

/// The cost of one rank class: a microbatch there, a microbatch back, the end of the step; and what it sends in a step.
#[derive(Debug, Clone, Copy)]
struct ClassCost {
    forward: Tally,
    backward: Tally,
    step: Tally,
    sent: [f64; MAX_DIMS],
}

/// How many prices are remembered: more than the different collectives of any class.
const REMEMBERED: usize = 24;

/// Prices of the collectives of one program: the classes and passes of a job ask for the same few again and again.
struct Prices<'a> {
    placement: &'a Placement,
    system: &'a System,
    known: ArrayVec<(Collective, Group, Bytes, Time), REMEMBERED>,
    /// Bytes sent by each known one in each span of its group, and how long they keep it busy.
    sent: ArrayVec<ArrayVec<(f64, Time), MAX_DIMS>, REMEMBERED>,
}

impl Prices<'_> {
    /// The time of a collective; what it sends, `times` over, is added to `sent`.
    fn collective(
        &mut self,
        (collective, group, size): (Collective, Group, Bytes),
        times: f64,
        sent: &mut [f64; MAX_DIMS],
        mut busy: impl FnMut(usize, Time),
    ) -> Time {
        let spans = self.placement.spans(group);
        let found = self.known.iter().position(|known| (known.0, known.1, known.2) == (collective, group, size));
        let k = found.unwrap_or_else(|| {
            if self.known.is_full() {
                self.known.clear();
                self.sent.clear();
            }
            let cost = Cost::of(collective, size, spans, self.system);
            self.known.push((collective, group, size, cost.delay.round()));
            self.sent.push(cost.sent.iter().copied().zip(cost.busy.iter().map(|busy| busy.round())).collect());
            self.known.len() - 1
        });
        for (span, &(bytes, time)) in spans.iter().zip(&self.sent[k]) {
            sent[span.dim] += bytes * times;
            busy(span.dim, time);
        }
        self.known[k].3
    }
}

/// Kinds of stages at most: the first, those between, the last.
const CLASSES: usize = 4;

/// Interleaved, what the first stage has more than others and what the last has more fall into different chunks, so neither
/// hides the other while the first p microbatches go through: p times the smaller of the two. `passes` are ascending.
fn uneven(passes: &[Time], program: &Program) -> Time {
    match passes {
        [least, .., second, _] if program.chunks > 1 => {
            second.saturating_sub(*least) * program.microbatches.min(program.stages)
        }
        _ => Time::ZERO,
    }
}

/// How long a program takes on a machine.
///
/// ```text
/// T = m * max(F + B) + (sum(F + B) - max(F + B)) / v + U + max(step)            [Narayanan21]
/// ```
///
/// m microbatches, v chunks of a stage, F and B the passes of one microbatch through one stage; max and sum over the p
/// stages: the first microbatch goes through all of them, the others follow at the pace of the slowest. Even stages without
/// communication give the bubble's share (p - 1) / (m + p - 1), and interleaved (p - 1) / (v m) of the rest. U is what two
/// uneven stages cost besides, interleaved.
///
/// Worked: p = 4, m = 8, v = 1, F + B = 3 ms: 8 * 3 + 3 * 3 = 33 ms, bubble 9 of 33 = 3 / 11.
///
/// # Errors
/// [`Reason::TimeRange`] if the time does not fit.
pub fn evaluate(program: &Program, placement: &Placement, system: &System) -> Result<Report, Infeasible> {
    let mut prices = Prices { placement, system, known: ArrayVec::new(), sent: ArrayVec::new() };
    let mut slowest: Option<(Time, ClassCost)> = None;
    let mut step = Tally::default();
    let mut all_stages = Time::ZERO;
    let mut is_beyond = false;
    let mut passes: ArrayVec<Time, CLASSES> = ArrayVec::new();
    for class in &program.classes {
        let cost = class_cost(program, class, &mut prices);
        let once = cost.forward.total() + cost.backward.total();
        is_beyond |= [&cost.forward, &cost.backward, &cost.step].iter().any(|tally| tally.is_beyond);
        all_stages += once * class.stages;
        let _ = passes.try_push(once);
        if cost.step.total() > step.total() {
            step = cost.step;
        }
        if slowest.as_ref().is_none_or(|slowest| once > slowest.0) {
            slowest = Some((once, cost));
        }
    }
    let too_long = Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds());
    let Some((longest, slowest)) = slowest else { return Err(too_long) };
    let mut sum = Tally::default();
    sum.add(&slowest.forward, program.microbatches, 0);
    sum.add(&slowest.backward, program.microbatches, 0);
    sum.add(&step, 1, 0);
    let idle = all_stages.saturating_sub(longest);
    passes.sort_unstable();
    let bubble = idle / program.chunks + uneven(&passes, program);
    let total = sum.total() + bubble;
    if is_beyond || total == Time::MAX || all_stages == Time::MAX {
        return Err(too_long);
    }
    let mut report = Report { total, exposed: sum.exposed, bubble, data_busy: sum.data_busy, ..Report::default() };
    for (k, dim) in system.network.dims.iter().enumerate() {
        let sent = Bytes::from_real(slowest.sent[k]);
        report.sent[k] = sent.get();
        report.wire[k] = (sent / dim.bandwidth).round();
    }
    Ok(report)
}

/// The cost of one rank class.
fn class_cost(program: &Program, class: &RankClass, prices: &mut Prices<'_>) -> ClassCost {
    let mut cost = ClassCost {
        forward: Tally::default(),
        backward: Tally::default(),
        step: Tally::default(),
        sent: [0.0; MAX_DIMS],
    };
    let mut layers = 1;
    for block in program.blocks_of(class) {
        let passes = if block.phase == Phase::Step { 1 } else { program.microbatches };
        let times = real(passes) * real(block.repeat);
        let mut once = block_cost(program.operations_of(block), prices, times, &mut cost.sent);
        let data = once.exposed[Account::Data as usize];
        if program.overlap && data > Time::ZERO {
            // Within a pass, traffic of the data stream hides beneath the rest of its own block. What is due once a step
            // hides beneath a pass of the last, or the next, microbatch, but for the layer that is ready last, or due first:
            // exposed = max(data / L, data - pass (L - 1) / L) if nothing else uses its dimensions. 262 ms beneath 37 ms of
            // 8 layers leave 230 ms.
            let but_one = |time: Time| time.saturating_sub(time / layers);
            //
            // A stage with v chunks has the gradients of each but the last a pass of p microbatches through one chunk earlier,
            // and its weights as much later.
            let v = program.chunks;
            let ahead = (v - 1) * program.stages;
            let beneath = |pass: &Tally| {
                let part = |share: u64, window: u64| {
                    let own = once.busy.map(|busy| busy.map(|time| time * share / layers));
                    let window = |time: Time| but_one(time) * window / v;
                    let others = |k: usize| window(pass.busy[k][1]);
                    Tally::left(data * share / layers, window(pass.total()), &own, others)
                };
                // All but one layer of one chunk beneath that chunk, or all but one layer of all.
                part((layers / v).saturating_sub(1), 1).max(part(layers - 1, ahead + 1))
            };
            // Weights that are late make a stage that waits for its first backward pass wait the less.
            let waits = if v == 1 { cost.backward.total() * (program.stages - 1) } else { Time::ZERO };
            once.exposed[Account::Data as usize] = match block.hidden_beneath {
                Some(Phase::Forward) => data / layers + beneath(&cost.forward).saturating_sub(waits),
                Some(_) => data / layers + beneath(&cost.backward),
                None if block.phase == Phase::Step => data,
                None => {
                    let rest = once.total().saturating_sub(data);
                    Tally::left(data, rest, &once.busy, |k| once.busy[k][1])
                }
            };
        }
        if block.phase == Phase::Forward {
            layers = layers.max(block.repeat);
        }
        let tally = match block.phase {
            Phase::Forward => &mut cost.forward,
            Phase::Backward => &mut cost.backward,
            Phase::Step => &mut cost.step,
        };
        tally.add(&once, block.repeat, prices.system.network.dims.len());
    }
    cost
}

/// The operations of one block, once, one after the other; what they send is counted `times` over.
fn block_cost(operations: &[Operation], prices: &mut Prices<'_>, times: f64, sent: &mut [f64; MAX_DIMS]) -> Tally {
    let mut tally = Tally::default();
    for operation in operations {
        let time = match operation.work {
            Work::Compute { flops, moved } => prices.system.npu.time(flops, moved).round(),
            Work::Transfer { tier, size } => {
                let tier = prices.system.memory.tiers.get(usize::from(tier));
                tier.map_or(Time::ZERO, |tier| tier.transfer(size).round())
            }
            Work::Send { size } => {
                let spans = prices.placement.spans(Group::Pipeline);
                if let Some(span) = spans.last() {
                    sent[span.dim] += size.as_real() * times;
                }
                hierarchy::send(size, spans, prices.system).round()
            }
            Work::Collective { collective, group, size } => {
                let kind = usize::from(!operation.is_data_stream());
                prices.collective((collective, group, size), times, sent, |dim, time| tally.busy[dim][kind] += time)
            }
        };
        tally.is_beyond |= time == Time::MAX;
        tally.exposed[operation.account as usize] += time;
        if operation.is_data_stream() {
            tally.data_busy += time;
        }
    }
    tally
}
