//! The closed form: a program's time by multiplication, a microsecond a point; nothing is unfolded.

use super::report::Report;
use crate::system::hierarchy::{self, Cost};
use crate::system::{MAX_DIMS, System};
use crate::units::{Bytes, Time, real, whole};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::{Group, Placement};
use crate::workload::program::{Account, Operation, Phase, Program, RankClass, Work};

/// What one microbatch, or the end of a step, costs an NPU.
#[derive(Debug, Clone, Copy)]
struct Tally {
    exposed: [Time; Account::COUNT],
    data_busy: Time,
    sent: [f64; MAX_DIMS],
}

impl Default for Tally {
    fn default() -> Self {
        Self { exposed: [Time::ZERO; Account::COUNT], data_busy: Time::ZERO, sent: [0.0; MAX_DIMS] }
    }
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
        for (mine, theirs) in self.sent.iter_mut().zip(&other.sent) {
            *mine += theirs * real(times);
        }
    }
}

/// The cost of one rank class: a microbatch there, a microbatch back, the end of the step.
#[derive(Debug, Clone, Copy, Default)]
struct ClassCost {
    forward: Tally,
    backward: Tally,
    step: Tally,
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
    let mut slowest = ClassCost::default();
    let mut pace = Time::ZERO;
    let mut all_stages = Time::ZERO;
    let mut step = Tally::default();
    for class in &program.classes {
        let cost = class_cost(program, class, placement, system);
        let once = cost.forward.total() + cost.backward.total();
        all_stages += once * class.stages;
        if once > pace || class.stage == 0 {
            (pace, slowest) = (once, cost);
        }
        if cost.step.total() > step.total() || class.stage == 0 {
            step = cost.step;
        }
    }
    let mut sum = Tally::default();
    sum.add(&slowest.forward, program.microbatches);
    sum.add(&slowest.backward, program.microbatches);
    sum.add(&step, 1);
    let bubble = all_stages * (program.stages - 1) / (program.stages * program.chunks);
    let total = sum.total() + bubble;
    if total == Time::MAX || all_stages * program.stages == Time::MAX {
        return Err(Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds()));
    }
    let wire = std::array::from_fn(|k| {
        system.network.dims.get(k).map_or(Time::ZERO, |dim| (Bytes::from_real(sum.sent[k]) / dim.bandwidth).round())
    });
    Ok(Report { total, exposed: sum.exposed, bubble, data_busy: sum.data_busy, sent: sum.sent.map(|sent| whole(sent.round())), wire })
}

/// The cost of one rank class.
fn class_cost(program: &Program, class: &RankClass, placement: &Placement, system: &System) -> ClassCost {
    let mut cost = ClassCost::default();
    let mut layers = 1;
    for block in program.blocks_of(class) {
        let mut once = block_cost(program.operations_of(block), placement, system);
        let data = once.exposed[Account::Data as usize];
        if program.overlap {
            // Within a pass, traffic of the data stream hides beneath the rest of its own block. What is due once a step
            // hides beneath a pass of the last, or the next, microbatch, but for the layer that is ready last, or due first.
            let hidden = match block.hidden_beneath {
                Some(Phase::Forward) => data.min(cost.forward.total()).saturating_sub(data / layers),
                Some(_) => data.min(cost.backward.total()).saturating_sub(data / layers),
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

/// The operations of one block, once, one after the other.
fn block_cost(operations: &[Operation], placement: &Placement, system: &System) -> Tally {
    let mut tally = Tally::default();
    for operation in operations {
        let time = match operation.work {
            Work::Compute { flops, moved } => system.npu.time(flops, moved),
            Work::Transfer { tier, size } => {
                system.memory.tiers.get(usize::from(tier)).map_or_else(Default::default, |tier| tier.transfer(size))
            }
            Work::Send { size } => {
                let spans = placement.spans(Group::Pipeline);
                if let Some(span) = spans.last() {
                    tally.sent[span.dim] += size.as_real();
                }
                hierarchy::send(size, spans, system)
            }
            Work::Collective { collective, group, size } => {
                let spans = placement.spans(group);
                let cost = Cost::of(collective, size, spans, system);
                for (span, sent) in spans.iter().zip(&cost.sent) {
                    tally.sent[span.dim] += sent;
                }
                cost.delay
            }
        };
        let time = time.round();
        tally.exposed[operation.account as usize] += time;
        if operation.is_data_stream() {
            tally.data_busy += time;
        }
    }
    tally
}
