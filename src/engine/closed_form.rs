//! The closed form: a program's time by multiplication, a microsecond a point; nothing is unfolded.

use arrayvec::ArrayVec;

use super::memo::Memo;
use super::prices::{Prices, Tally};
use super::report::Report;
use crate::system::{MAX_DIMS, System};
use crate::units::{Bytes, Time};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Placement;
use crate::workload::program::{Account, Phase, Program, RankClass};
use crate::workload::schedule::{Pace, Passage};

/// The cost of one rank class: a microbatch there, back, and for the weights' gradients where that is apart; the end of the step.
#[derive(Debug, Default)]
struct ClassCost {
    forward: Tally,
    backward: Tally,
    weights: Tally,
    step: Tally,
    passage: Passage,
}

impl ClassCost {
    /// Nothing, in a network of so many dimensions.
    fn clear(&mut self, dimensions: usize) {
        for tally in [&mut self.forward, &mut self.backward, &mut self.weights, &mut self.step] {
            tally.clear(dimensions);
        }
        self.passage = Passage::default();
    }
}

/// How long a program takes on a machine.
///
/// ```text
/// T = m * max(F + B) + bubble + max(step - drain)                              [Narayanan21]
/// ```
///
/// m microbatches, F and B the passes of one microbatch through one stage (B in two halves in some schedules), max over the p stages; the bubble is the schedule's. A stage begins
/// the end of its step while the last microbatch goes back through those before it, its drain. Even stages without communication give the bubble's share (p - 1) / (m + p - 1), and interleaved (p - 1) / (v m) of the rest.
///
/// Worked: 1F1B, p = 4, m = 8, F + B = 3 ms: 8 * 3 + 3 * 3 = 33 ms, bubble 9 of 33 = 3 / 11.
///
/// # Errors
/// [`Reason::TimeRange`] if the time does not fit.
pub fn evaluate(
    program: &Program,
    placement: &Placement,
    system: &System,
    memo: &mut Memo,
) -> Result<Report, Infeasible> {
    memo.turn_to(system);
    let mut prices = Prices::new(placement, system, memo);
    // The slowest so far, and the next: the one is where the other is not.
    let mut costs = [ClassCost::default(), ClassCost::default()];
    let mut slowest: Option<(Time, usize)> = None;
    let mut end = Time::ZERO;
    let mut met = Time::ZERO;
    let mut pace = Pace::default();
    let schedule = program.schedule.part();
    let mut is_beyond = false;
    for class in &program.classes {
        let place = slowest.map_or(0, |slowest| 1 - slowest.1);
        let cost = &mut costs[place];
        class_cost(program, class, &mut prices, cost);
        let once = cost.forward.total() + cost.backward.total() + cost.weights.total();
        is_beyond |= [&cost.forward, &cost.backward, &cost.weights, &cost.step].iter().any(|tally| tally.is_beyond);
        end = end.max(cost.step.total().saturating_sub(schedule.drain(&pace, &program.shape())));
        pace.add(cost.passage, class.stage, class.stages, &program.shape());
        if schedule.is_open() && cost.step.exposed[Account::Pipeline as usize] > Time::ZERO {
            // What the first stage waits for before its next step.
            met = pace.last_done(program.microbatches) + cost.step.total();
        }
        if slowest.as_ref().is_none_or(|slowest| once > slowest.0) {
            slowest = Some((once, place));
        }
    }
    let too_long = Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds());
    let Some((_, place)) = slowest else { return Err(too_long) };
    let slowest = &costs[place];
    let mut sum = prices.tally();
    sum.add(&slowest.forward, program.microbatches);
    sum.add(&slowest.backward, program.microbatches);
    if schedule.splits() {
        sum.add(&slowest.weights, program.microbatches);
    }
    let total = sum.total() + schedule.bubble(&pace, &program.shape()) + end;
    sum.add(&slowest.step, 1);
    // Not before the slowest stage has done its own part, which it may begin late and end last.
    let total = total.max(sum.total());
    // Nor before a stage that the first one meets at the end is done.
    let total = total.max(met);
    // Nor before all is sent: messages beside the computation take no time of their own but that.
    let wire: ArrayVec<Time, MAX_DIMS> = system
        .network
        .dims
        .iter()
        .zip(&sum.traffic)
        .map(|(dim, traffic)| (Bytes::from_real(traffic.sent) / dim.bandwidth).round())
        .collect();
    let total = total.max(wire.iter().copied().max().unwrap_or(Time::ZERO));
    let bubble = total.saturating_sub(sum.total());
    if is_beyond || total == Time::MAX || pace.all == Time::MAX {
        return Err(too_long);
    }
    let (memory_bound, data_busy) = (sum.memory_bound, sum.data_busy);
    let mut report = Report { total, exposed: sum.exposed, bubble, memory_bound, data_busy, ..Report::default() };
    for (k, (traffic, &wire)) in sum.traffic.iter().zip(&wire).enumerate() {
        report.sent[k] = Bytes::from_real(traffic.sent).get();
        report.wire[k] = wire;
    }
    Ok(report)
}

/// The cost of one rank class, into `cost`.
fn class_cost(program: &Program, class: &RankClass, prices: &mut Prices<'_>, cost: &mut ClassCost) {
    cost.clear(prices.system.network.dims.len());
    let mut once = Tally::default();
    let mut layers = 1;
    let schedule = program.schedule.part();
    for block in program.blocks_of(class) {
        prices.block(program, block, &mut once);
        if program.overlap_sends && program.is_message(block) {
            once.hidden_sends = std::mem::take(&mut once.exposed[Account::Pipeline as usize]);
        }
        let data = once.exposed[Account::Data as usize];
        if program.overlap && data > Time::ZERO {
            // Within a pass, traffic of the data stream hides beneath the rest of its own block. What is due once a step
            // hides beneath a pass of the last, or the next, microbatch, but for the layer that is ready last, or due first:
            // exposed = max(data / L, data - pass (L - 1) / L) if nothing else uses its dimensions. 262 ms beneath 37 ms of
            // 8 layers leave 230 ms.
            //
            // Of a stage with v chunks all but one have their gradients some passes of one chunk earlier, and need their
            // weights as much later.
            let v = program.chunks;
            let lead = || schedule.lead(class.stage..class.stage + class.stages, &program.shape());
            let beneath = |own: &Tally, lead: [(&Tally, u64); 2]| {
                let part = |share: u64, window: [(&Tally, u64); 2]| {
                    let all = once.traffic.iter().map(|traffic| traffic.busy[0] * share / layers);
                    let window = |of: &dyn Fn(&Tally) -> Time| {
                        let passes: Time = window.iter().map(|&(pass, times)| of(pass) * times).sum();
                        (passes / v).saturating_sub(of(own) / layers)
                    };
                    let others = |k: usize| window(&|pass| pass.traffic[k].busy[0] + pass.traffic[k].busy[1]);
                    Tally::left(data * share / layers, window(&Tally::total), all, others)
                };
                // All but one layer of one chunk beneath that chunk, or all but one layer of all.
                let one = part((layers / v).saturating_sub(1), [(own, 1), (own, 0)]);
                if v == 1 { one } else { one.max(part(layers - 1, lead)) }
            };
            let but_one = |time: Time| time.saturating_sub(time / layers);
            // What could hide if nothing else used its dimensions.
            let beneath_at_most = |pass: &Tally| but_one(data).min(but_one(pass.total()));
            let rest = once.total().saturating_sub(data);
            let hidden = match block.hidden_beneath {
                Some(Phase::Forward) => beneath_at_most(&cost.forward),
                Some(Phase::Weights) => beneath_at_most(&cost.weights),
                Some(_) => beneath_at_most(&cost.backward),
                None if block.phase == Phase::Step => Time::ZERO,
                None => data.min(rest),
            };
            let left = match block.hidden_beneath {
                Some(Phase::Forward) => {
                    let lead = [(&cost.forward, lead().forward), (&cost.forward, 0)];
                    data / layers + beneath(&cost.forward, lead)
                }
                Some(made) => {
                    let lead = [(&cost.backward, lead().backward), (&cost.weights, lead().weights)];
                    let own = if made == Phase::Weights { &cost.weights } else { &cost.backward };
                    data / layers + beneath(own, lead)
                }
                None if block.phase == Phase::Step => data,
                None => {
                    let own = once.traffic.iter().map(|traffic| traffic.busy[0]);
                    Tally::left(data, rest, own, |k| once.traffic[k].busy[1])
                }
            };
            once.exposed[Account::Data as usize] = left + prices.system.paid(hidden, data, once.data_sent);
        }
        if block.phase == Phase::Forward {
            layers = layers.max(block.repeat);
        }
        let tally = match block.phase {
            Phase::Forward => &mut cost.forward,
            Phase::Backward => &mut cost.backward,
            Phase::Weights => &mut cost.weights,
            Phase::Step => &mut cost.step,
        };
        cost.passage.add(once.total(), once.hidden_sends, block);
        tally.add(&once, block.repeat);
    }
}
