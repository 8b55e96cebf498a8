//! The closed form: a program's time by multiplication, a microsecond a point; nothing is unfolded.

use arrayvec::ArrayVec;

use super::class_cost::ClassCost;
use super::memo::Memo;
use super::prices::Prices;
use super::report::Report;
use crate::system::{MAX_DIMS, System};
use crate::units::{Bytes, Time};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Placement;
use crate::workload::program::{Account, Program};
use crate::workload::schedule::{Formula, Pace};

/// How long a program takes on a machine.
///
/// ```text
/// T = m * max(F + B) + bubble + max(step - drain)                              [Narayanan21]
/// ```
///
/// m microbatches, F and B the passes of one microbatch through one stage (B in two halves in some schedules), max over the p stages; the bubble is the schedule's. A stage begins
/// the end of its step while the last microbatch goes back through those before it, its drain. Where no formula tells the bubble, all units
/// are walked one by one ([`Walk`](crate::workload::schedule::Walk)). Even stages without communication give the bubble's share (p - 1) / (m + p - 1), and interleaved (p - 1) / (v m) of the rest.
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
    // What they hold is written over: it is room alone, too much to make anew for each point.
    let mut costs = std::mem::take(&mut memo.costs);
    costs.resize_with(2, ClassCost::default);
    let report = add_up(program, &mut Prices::new(placement, system, memo), &mut costs);
    memo.costs = costs;
    report
}

/// What rank classes cost, added up.
fn add_up(program: &Program, prices: &mut Prices<'_>, costs: &mut [ClassCost]) -> Result<Report, Infeasible> {
    let (schedule, shape) = (program.schedule.part(), program.shape());
    let mut formula = schedule.formula();
    let mut survey = Survey::of(program, prices, costs, formula);
    if formula.is_some_and(|formula| !formula.holds(&survey.pace, &shape, survey.left)) {
        formula = None;
        survey = Survey::of(program, prices, costs, formula);
    }
    let Survey { slowest, end, pace, is_beyond, .. } = survey;
    let too_long = Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds());
    let Some(Slowest { place, class, .. }) = slowest else { return Err(too_long) };
    let slowest = &costs[place];
    let mut sum = prices.tally();
    sum.add(&slowest.forward, program.microbatches);
    sum.add(&slowest.backward, program.microbatches);
    if schedule.splits() {
        sum.add(&slowest.weights, program.microbatches);
    }
    let passes = sum.total();
    sum.add(&slowest.step, 1);
    let total = if let Some(formula) = formula {
        passes + formula.bubble(&pace, &shape) + end
    } else {
        let ends = std::mem::take(&mut prices.memo.ends);
        let walked = prices.memo.walk(program, class);
        let data = &mut sum.exposed[Account::Data as usize];
        *data = data.saturating_sub(slowest.left) + walked.exposed;
        let total = walked.total(&ends);
        prices.memo.ends = ends;
        total
    };
    // Not before the slowest stage has done its own part, which it may begin late and end last.
    let total = total.max(sum.total());
    // Nor before all is sent: messages beside the computation take no time of their own but that.
    let wire: ArrayVec<Time, MAX_DIMS> = prices
        .system
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

/// What all rank classes of a program say together.
#[derive(Default)]
struct Survey {
    slowest: Option<Slowest>,
    /// How much later than the first stage's passes the last end of a step is over.
    end: Time,
    /// What a stage waits for of traffic that may hide beneath passes, at most.
    left: Time,
    pace: Pace,
    /// Whether a time does not fit.
    is_beyond: bool,
}

/// The slowest rank class.
struct Slowest {
    /// A microbatch through a stage of it.
    once: Time,
    /// Where its cost is.
    place: usize,
    /// Its place among all.
    class: usize,
}

impl Survey {
    /// Of all classes, the cost of the slowest in `costs`, where the other is not; and what their units take, if there is no
    /// formula.
    fn of(program: &Program, prices: &mut Prices<'_>, costs: &mut [ClassCost], formula: Option<&dyn Formula>) -> Self {
        let shape = program.shape();
        let mut survey = Self::default();
        for (number, class) in program.classes.iter().enumerate() {
            let place = survey.slowest.as_ref().map_or(0, |slowest| 1 - slowest.place);
            let cost = &mut costs[place];
            cost.fill(program, class, prices, formula);
            survey.is_beyond |= cost.is_beyond();
            if formula.is_none() {
                prices.memo.stages.push((class.stage + class.stages, cost.times));
                prices.memo.ends.push(cost.end());
            }
            survey.left = survey.left.max(cost.left);
            survey.end = survey.end.max(cost.step.total().saturating_sub(survey.pace.drain(&shape)));
            survey.pace.add(cost.passage, class.stage, class.stages);
            let once = cost.once();
            if survey.slowest.as_ref().is_none_or(|slowest| once > slowest.once) {
                survey.slowest = Some(Slowest { once, place, class: number });
            }
        }
        survey
    }
}
