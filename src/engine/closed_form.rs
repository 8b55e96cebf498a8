//! The closed form: a program's time by multiplication, a microsecond a point; nothing is unfolded.

use arrayvec::ArrayVec;

use super::report::Report;
use crate::system::collective::Collective;
use crate::system::hierarchy::{self, Cost};
use crate::system::{MAX_DIMS, System};
use crate::units::{Bytes, Time, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::{Group, Placement};
use crate::workload::program::{Account, Operation, Phase, Program, RankClass, Work};

/// What one microbatch, or the end of a step, costs an NPU.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    exposed: [Time; Account::COUNT],
    data_busy: Time,
}

impl Tally {
    fn total(&self) -> Time {
        self.exposed.iter().copied().sum()
    }

    fn add(&mut self, other: &Self, times: u64) {
        for (mine, theirs) in self.exposed.iter_mut().zip(&other.exposed) {
            *mine += *theirs * times;
        }
        self.data_busy += other.data_busy * times;
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
    /// Bytes sent by each known one in each span of its group.
    sent: ArrayVec<ArrayVec<f64, MAX_DIMS>, REMEMBERED>,
}

impl Prices<'_> {
    /// The time of a collective; what it sends, `times` over, is added to `sent`.
    fn collective(
        &mut self,
        (collective, group, size): (Collective, Group, Bytes),
        times: f64,
        sent: &mut [f64; MAX_DIMS],
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
            self.sent.push(cost.sent);
            self.known.len() - 1
        });
        for (span, bytes) in spans.iter().zip(&self.sent[k]) {
            sent[span.dim] += bytes * times;
        }
        self.known[k].3
    }
}

/// How long a program takes on a machine.
///
/// ```text
/// T = m * max(F + B) + (p - 1) / v * mean(F + B) + max(step)                    [Narayanan21]
/// ```
///
/// m microbatches, p stages, v chunks of each, F and B the passes of one microbatch through one stage; max over the
/// kinds of stages, mean over all. Even stages without communication give the bubble's share (p - 1) / (m + p - 1), and
/// interleaved (p - 1) / (v m) of the rest.
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
    for class in &program.classes {
        let cost = class_cost(program, class, &mut prices);
        let once = cost.forward.total() + cost.backward.total();
        all_stages += once * class.stages;
        if cost.step.total() > step.total() {
            step = cost.step;
        }
        if slowest.as_ref().is_none_or(|slowest| once > slowest.0) {
            slowest = Some((once, cost));
        }
    }
    let too_long = Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds());
    let Some((_, slowest)) = slowest else { return Err(too_long) };
    let mut sum = Tally::default();
    sum.add(&slowest.forward, program.microbatches);
    sum.add(&slowest.backward, program.microbatches);
    sum.add(&step, 1);
    let idle = all_stages * (program.stages - 1);
    let bubble = idle / (program.stages * program.chunks);
    let total = sum.total() + bubble;
    if total == Time::MAX || idle == Time::MAX {
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
            // exposed = max(data / L, data - pass (L - 1) / L). 262 ms beneath 37 ms of 8 layers leave 230 ms.
            let but_one = |time: Time| time.saturating_sub(time / layers);
            let hidden = match block.hidden_beneath {
                Some(Phase::Forward) => but_one(data).min(but_one(cost.forward.total())),
                Some(_) => but_one(data).min(but_one(cost.backward.total())),
                None if block.phase == Phase::Step => Time::ZERO,
                None => data.min(once.total().saturating_sub(data)),
            };
            once.exposed[Account::Data as usize] = data.saturating_sub(hidden);
        }
        if block.phase == Phase::Forward {
            layers = layers.max(block.repeat);
        }
        let tally = match block.phase {
            Phase::Forward => &mut cost.forward,
            Phase::Backward => &mut cost.backward,
            Phase::Step => &mut cost.step,
        };
        tally.add(&once, block.repeat);
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
            Work::Collective { collective, group, size } => prices.collective((collective, group, size), times, sent),
        };
        tally.exposed[operation.account as usize] += time;
        if operation.is_data_stream() {
            tally.data_busy += time;
        }
    }
    tally
}
