//! The anchor at work: what is predicted of the measured run, and every other point carried through it.

use polars::prelude::DataFrame;

use super::evaluate::{Evaluation, Evaluator};
use super::layout::Layout;
use super::worker::Worker;
use crate::engine::Report;
use crate::results::store::StoreError;
use crate::sweep::anchor::{Anchor, Predicted};
use crate::sweep::{Fidelity, Inputs, Sweep, point};
use crate::units::{Bytes, Time};
use crate::workload::{Infeasible, Reason};

/// A capacity that nothing fills: what ran fitted, whatever our account says.
pub const BOUNDLESS: Bytes = Bytes::new(u64::MAX);

/// What an evaluator predicts of a point, however much memory there is.
///
/// # Errors
/// Why the point cannot be.
pub fn predict(inputs: &Inputs, fidelity: Fidelity) -> Result<Predicted, Infeasible> {
    point::fits(inputs)?;
    let (job, mut system) = Evaluator::question(inputs);
    let room = system.memory.usable();
    system.memory.capacity = BOUNDLESS;
    let Evaluation { footprint, report } = Evaluator::default().evaluate(&job, &system, fidelity)?;
    Ok(Predicted { seconds: report.total.as_seconds(), memory: footprint.total(), room })
}

/// The capacity that what our account does not see leaves to it.
#[must_use]
pub fn capacity(anchor: Option<&Anchor>, capacity: Bytes) -> Bytes {
    anchor.map_or(capacity, |anchor| Bytes::from_real(capacity.as_real() - anchor.offset()))
}

/// What becomes of a point that was evaluated with that capacity: every time is multiplied, and what its memory lacks is as it is.
///
/// # Errors
/// Why the point cannot exist; [`Reason::TimeRange`] if its time does not fit any more.
pub fn carried(
    result: Result<Evaluation, Infeasible>,
    anchor: Option<&Anchor>,
    fidelity: Fidelity,
) -> Result<Evaluation, Infeasible> {
    let Some(anchor) = anchor else { return result };
    match result {
        Ok(Evaluation { footprint, report }) => {
            let report = stretched(&report, anchor.factor(fidelity));
            if report.total == Time::MAX {
                let too_long = Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds());
                return Err(Infeasible { footprint: Some(footprint), ..too_long });
            }
            Ok(Evaluation { footprint, report })
        }
        Err(infeasible) if infeasible.reason == Reason::Memory => {
            let [demand, bound] = [infeasible.demand, infeasible.bound].map(|bytes| bytes + anchor.offset());
            Err(Infeasible { demand, bound, ..infeasible })
        }
        Err(infeasible) => Err(infeasible),
    }
}

/// A report with every time so many times as long: bytes are what they are.
fn stretched(report: &Report, factor: f64) -> Report {
    if factor == 1.0 {
        return *report;
    }
    let long = |time: Time| (time.as_delay() * factor).round();
    Report {
        total: long(report.total),
        exposed: report.exposed.map(long),
        bubble: long(report.bubble),
        memory_bound: long(report.memory_bound),
        data_busy: long(report.data_busy),
        sent: report.sent,
        wire: report.wire.map(long),
    }
}

/// The measured run as a row of the table of its sweep.
///
/// # Errors
/// Never with a row that is complete; polars says otherwise.
pub fn row(sweep: &Sweep) -> Result<Option<DataFrame>, StoreError> {
    let Some(anchor) = &sweep.anchor else { return Ok(None) };
    Worker::new(sweep, &Layout::of(sweep), None).measured(anchor).map(Some)
}
