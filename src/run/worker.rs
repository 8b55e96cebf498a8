//! A worker: evaluates one stretch at a time into a table of its own, in the order of the points' numbers.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use itertools::{Either, Itertools as _};
use polars::prelude::{AnyValue, DataFrame};

use super::anchor::{self, BOUNDLESS};
use super::evaluate::{Evaluation, Evaluator};
use super::known::{Known, Loaded};
use super::layout::{Layout, Origin, single_metrics};
use super::progress::Progress;
use super::recorded;
use crate::results::metric::{MetricPart, Outcome};
use crate::results::segment::EVENT_DRIVEN;
use crate::results::store::StoreError;
use crate::results::{Segment, Status, Table};
use crate::sweep::algorithm::Written;
use crate::sweep::bill::bill;
use crate::sweep::column::{From, shape_key};
use crate::sweep::key::{DIM_NAMES_FROM, Id};
use crate::sweep::point::Question;
use crate::sweep::scope::After;
use crate::sweep::{Anchor, Fidelity, Inputs, Moved, Sweep, point};
use crate::system::System;
use crate::units::{Bytes, from_signed, index, real, whole};
use crate::workload::{Footprint, Infeasible, Reason};

/// How many points of the closed form pass between two looks at whether to stop, and two reports of progress.
const BREATH: u64 = 1024;

/// A thread's tools.
#[derive(Debug)]
pub struct Worker<'a> {
    sweep: &'a Sweep,
    layout: &'a Layout,
    /// The columns that show a slot and vary, those of the fastest axes first.
    shown: Vec<Shown>,
    /// Other columns that vary; those that follow from the question alone first.
    worked_out: Vec<usize>,
    /// How many these are.
    of_question: usize,
    evaluator: Evaluator,
    /// What the row before was about, if that was evaluated here.
    asked: Option<Box<Asked>>,
    table: Table,
    /// The single metrics of the current point, NaN where there is none.
    metrics: Vec<f64>,
    parts: Vec<MetricPart>,
    /// The numbers of shapes' texts, by what they are made of.
    shapes: HashMap<Vec<(u64, u64)>, f64>,
    /// Room for the canonical form of a point.
    canonical: Vec<u8>,
    /// Whether derived values, or requirements, are to be worked out.
    judges: bool,
    /// How many rows a segment has at most.
    most_rows: u64,
    /// How many points pass between two looks at whether to stop.
    breath: u64,
    /// What need not be evaluated again.
    known: Option<&'a Known>,
    /// What of it was read last.
    loaded: Loaded,
}

/// A column that shows the number of a slot.
#[derive(Debug, Clone, Copy)]
struct Shown {
    column: usize,
    slot: usize,
    /// What is added to the number.
    more: f64,
    /// How many leading axes decide it.
    level: usize,
}

/// What a point asked, and what came of it, unless that was a mistake of ours.
#[derive(Debug)]
struct Asked {
    question: Question,
    result: Option<Result<Evaluation, Infeasible>>,
}

impl Asked {
    fn evaluation(&self) -> Option<&Evaluation> {
        self.result.as_ref()?.as_ref().ok()
    }

    fn footprint(&self) -> Option<&Footprint> {
        match self.result.as_ref()? {
            Ok(evaluation) => Some(&evaluation.footprint),
            Err(infeasible) => infeasible.footprint.as_ref(),
        }
    }

    /// Whether the point was refused before its memory was counted: it has no metric but those of the question.
    fn is_bare(&self) -> bool {
        self.footprint().is_none()
    }
}

/// What a row has of the one before.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// How many leading axes stand.
    axes: usize,
    /// Whether all does that follows from question and result.
    is_same: bool,
    /// Whether it has no metrics, either.
    was_bare: bool,
}

/// What a row says of a point besides its inputs.
struct Verdict {
    status: Status,
    reason: f64,
    demand: f64,
    bound: f64,
}

impl<'a> Worker<'a> {
    /// A worker for a sweep.
    #[must_use]
    pub fn new(sweep: &'a Sweep, layout: &'a Layout, known: Option<&'a Known>) -> Self {
        let parts: Vec<MetricPart> = single_metrics().collect();
        let most_rows = super::segment_rows(sweep);
        let varying = (0..layout.columns.len()).filter(|&column| !layout.columns[column].constant);
        let (mut shown, mut worked_out): (Vec<Shown>, Vec<usize>) =
            varying.partition_map(|column| match shown(sweep, layout, column) {
                Some(shown) => Either::Left(shown),
                None => Either::Right(column),
            });
        shown.sort_by_key(|shown| Reverse(shown.level));
        let is_of_question = |column: usize| match layout.origins[column] {
            Origin::Metric(metric, _) => metric.part().is_of_question(),
            _ => true,
        };
        worked_out.sort_by_key(|&column| !is_of_question(column));
        let of_question = worked_out.iter().filter(|&&column| is_of_question(column)).count();
        Self {
            sweep,
            layout,
            shown,
            worked_out,
            of_question,
            evaluator: Evaluator::default(),
            asked: None,
            table: Table::new(layout.columns.clone(), point::ID_LEN),
            metrics: vec![f64::NAN; parts.len()],
            parts,
            shapes: HashMap::new(),
            canonical: Vec::new(),
            judges: !sweep.require.is_empty() || !sweep.derived.is_empty(),
            most_rows,
            breath: if most_rows == EVENT_DRIVEN { 1 } else { BREATH },
            known: known.filter(|known| !known.is_empty()),
            loaded: None,
        }
    }

    /// Evaluates a stretch and hands on each segment of it that is full; false if it was told to stop before the end.
    ///
    /// # Errors
    /// If a segment could not be written.
    pub fn evaluate(
        &mut self,
        stretch: Segment,
        progress: &Progress,
        stop: &AtomicBool,
        write: &mut dyn FnMut(Segment, &Table) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        progress.open();
        self.clear();
        let sweep = self.sweep;
        let mut cursor = sweep.space.cursor(stretch.start);
        let mut segment = stretch;
        let (mut reported, mut feasible, mut rows) = (stretch.start, 0, 0);
        let mut best = f64::INFINITY;
        while let Some(number) = cursor.next_point(stretch.end) {
            if self.table.rows() as u64 == self.most_rows {
                write(Segment { end: number, ..segment }, &self.table)?;
                segment.start = number;
                self.clear();
            }
            let id = sweep.id(&cursor.inputs, &mut self.canonical);
            let seconds = match self.known_row(id, &cursor.inputs)? {
                Some(row) => {
                    progress.add_known();
                    self.copy(id, &row)?
                }
                None => self.row(id, (&cursor.inputs, cursor.standing()), None, progress),
            };
            if !seconds.is_nan() {
                feasible += 1;
                best = best.min(seconds);
            }
            rows += 1;
            if rows >= self.breath {
                progress.add(number - reported, feasible, rows - feasible);
                (reported, feasible, rows) = (number, 0, 0);
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
            }
            cursor.step();
        }
        progress.add(stretch.end - reported, feasible, rows - feasible);
        if best.is_finite() {
            progress.best(best);
        }
        write(segment, &self.table)?;
        Ok(true)
    }

    /// Makes room for the rows of a segment.
    fn clear(&mut self) {
        self.table.clear();
        self.shapes.clear();
    }

    /// The row of an event-driven point that was evaluated before.
    fn known_row(&mut self, id: u64, inputs: &Inputs) -> Result<Option<DataFrame>, StoreError> {
        match self.known.filter(|_| point::fidelity(inputs) == Fidelity::EventDriven) {
            Some(known) => known.row((self.sweep, self.layout), (id, inputs), &mut self.loaded),
            None => Ok(None),
        }
    }

    /// Adds a row as it was; its time in seconds if it is feasible, else NaN.
    fn copy(&mut self, id: u64, row: &DataFrame) -> Result<f64, StoreError> {
        self.asked = None;
        self.table.begin(&point::id_text(id));
        let (mut seconds, mut is_feasible) = (f64::NAN, false);
        for (column, (spec, origin)) in self.layout.columns.iter().zip(&self.layout.origins).enumerate() {
            let cell = row.column(&spec.column.name)?.get(0)?;
            let value = match (&cell, cell.get_str()) {
                (_, Some(text)) => self.table.word(column, text),
                (AnyValue::Float64(number), _) => *number,
                (AnyValue::Int64(number), _) => from_signed(*number),
                (AnyValue::Boolean(flag), _) => f64::from(u8::from(*flag)),
                _ => f64::NAN,
            };
            match origin {
                Origin::Status => is_feasible = value == real(Status::Feasible as u64),
                Origin::Metric(MetricPart::IterationTime | MetricPart::FinishTime, _) => seconds = value,
                _ => {}
            }
            self.table.set(column, value);
        }
        Ok(if is_feasible { seconds } else { f64::NAN })
    }

    /// Adds the row of a point, at which so many leading axes stand as at the row before, in as much local memory as is told, else in
    /// what it has; its time in seconds if it is feasible, else NaN.
    fn row(&mut self, id: u64, (inputs, axes): (&Inputs, usize), room: Option<Bytes>, progress: &Progress) -> f64 {
        let (mut asked, moved) = match self.asked.take() {
            Some(mut asked) => {
                let moved = self.sweep.space.moved(axes);
                asked.question.follow(inputs, moved);
                (asked, moved)
            }
            None => (Box::new(Asked { question: Question::of(inputs), result: None }), Moved::All),
        };
        let Question { job, system } = &mut asked.question;
        let fidelity = point::fidelity(inputs);
        let evaluator = &mut self.evaluator;
        let anchor = self.sweep.anchor.as_ref();
        let whole = system.memory.capacity;
        system.memory.capacity = room.unwrap_or_else(|| anchor::capacity(anchor, whole));
        let result = catch_unwind(AssertUnwindSafe(|| {
            point::fits(inputs)?;
            let result = recorded::evaluate(self.sweep, inputs, job, system)
                .unwrap_or_else(|| evaluator.evaluate_next(job, system, fidelity, moved));
            anchor::carried(result, anchor, fidelity)
        }));
        system.memory.capacity = whole;
        let verdict = match &result {
            Ok(Ok(_)) => feasible(),
            Ok(Err(infeasible)) => refused(infeasible),
            Err(panic) => {
                progress.error();
                self.broken(panic.as_ref())
            }
        };
        let result = result.ok();
        let is_same = moved == Moved::Order && result.is_some() && asked.result == result;
        let standing = Standing { axes, is_same, was_bare: asked.result.is_some() && asked.is_bare() };
        asked.result = result;
        self.table.begin(&point::id_text(id));
        let seconds = self.write((inputs, standing), &asked, verdict);
        self.asked = asked.result.is_some().then_some(asked);
        seconds
    }

    /// Evaluates a point of the closed form again, event-driven, into a table of one row: of the same id.
    ///
    /// # Errors
    /// Never with a row that is complete; polars says otherwise.
    pub fn refine(&mut self, inputs: &Inputs, progress: &Progress) -> Result<DataFrame, StoreError> {
        progress.open();
        self.clear();
        let id = self.sweep.id(inputs, &mut self.canonical);
        let mut inputs = inputs.clone();
        point::refine(&mut inputs);
        let seconds = self.row(id, (&inputs, 0), None, progress);
        progress.add(1, u64::from(!seconds.is_nan()), u64::from(seconds.is_nan()));
        if !seconds.is_nan() {
            progress.best(seconds);
        }
        progress.stretch_done();
        Ok(self.table.frame()?)
    }

    /// The row of a measured run, as a table: it ran, so it fits.
    ///
    /// # Errors
    /// Never with a row that is complete; polars says otherwise.
    pub fn measured(&mut self, run: &Anchor) -> Result<DataFrame, StoreError> {
        self.clear();
        // What is the same at all points of the sweep need not be what the run has.
        let id = point::id(&run.inputs, &mut self.canonical);
        self.row(id, (&run.inputs, 0), Some(BOUNDLESS), &Progress::default());
        Ok(self.table.frame()?)
    }

    /// Writes what follows the id of a row, as far as it is not as in the row before.
    fn write(&mut self, (inputs, standing): (&Inputs, Standing), asked: &Asked, mut verdict: Verdict) -> f64 {
        let Question { job, system } = &asked.question;
        let (footprint, report) = (asked.footprint(), asked.evaluation().map(|evaluation| &evaluation.report));
        let unseen = self.sweep.anchor.as_ref().map_or(0.0, Anchor::offset);
        let outcome =
            Outcome { job, system, npus: inputs.key(Id::Npus), bill: bill(inputs), unseen, footprint, report };
        if self.judges {
            for (value, part) in self.metrics.iter_mut().zip(&self.parts) {
                *value = part.part().value(&outcome, 0).unwrap_or(f64::NAN);
            }
        }
        let after = After { inputs, derived: &self.sweep.space.derived, metrics: &self.metrics };
        if verdict.status == Status::Feasible
            && let Some(k) = self.sweep.require.iter().position(|rule| !rule.expression.is_true(&after))
        {
            verdict = Verdict { status: Status::Unmet, reason: real((Reason::ALL.len() + k) as u64), ..verdict };
        }
        let (is_first, is_bare) = (self.table.rows() == 1, asked.is_bare());
        let columns = if is_first {
            self.layout.columns.len()
        } else {
            for shown in self.shown.iter().take_while(|shown| shown.level > standing.axes) {
                self.table.set(shown.column, inputs.get(shown.slot) + shown.more);
            }
            if is_bare && !standing.was_bare {
                for &column in &self.worked_out[self.of_question..] {
                    self.table.set(column, f64::NAN);
                }
            }
            match (standing.is_same && !self.judges, is_bare) {
                (true, _) => 0,
                (false, true) => self.of_question,
                (false, false) => self.worked_out.len(),
            }
        };
        for k in 0..columns {
            let column = if is_first { k } else { self.worked_out[k] };
            let value = match self.layout.origins[column] {
                Origin::Status => real(verdict.status as u64),
                Origin::Reason => verdict.reason,
                Origin::Demand => verdict.demand,
                Origin::Bound => verdict.bound,
                Origin::Input(k) => {
                    let input = &self.sweep.columns[k];
                    match input.from {
                        From::Shape => shape(&mut self.shapes, &mut self.table, column, inputs, system),
                        From::Tier(_) => input.number(inputs) + PLACE_OF_TIERS,
                        From::Algorithm(_) => {
                            Written::of(input.number(inputs)).map_or(f64::NAN, |it| real(it.place() as u64))
                        }
                        _ => input.number(inputs),
                    }
                }
                Origin::Metric(metric, dim) if dim == 0 || dim < inputs.dim_count() => {
                    let value = metric.part().value(&outcome, dim).unwrap_or(f64::NAN);
                    if metric == MetricPart::BusiestDim && !value.is_nan() {
                        inputs.get(DIM_NAMES_FROM + index(whole(value)))
                    } else {
                        value
                    }
                }
                Origin::Metric(..) => f64::NAN,
                Origin::Derived(k) => finite(self.sweep.space.derived[k].expression.evaluate(&after)),
            };
            self.table.set(column, value);
        }
        match report {
            Some(report) if verdict.status == Status::Feasible => report.total.as_seconds(),
            _ => f64::NAN,
        }
    }

    /// The verdict on a point that hit a mistake of ours.
    fn broken(&mut self, panic: &(dyn std::any::Any + Send)) -> Verdict {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a mistake without a message");
        let column = self.layout.origins.iter().position(|&origin| origin == Origin::Reason).unwrap_or(0);
        let reason = self.table.word(column, text);
        Verdict { status: Status::Error, reason, demand: f64::NAN, bound: f64::NAN }
    }
}

/// Of the words of a tier's column the first is `none`.
const PLACE_OF_TIERS: f64 = 1.0;

/// How a column shows the number of a slot; none if it is worked out.
fn shown(sweep: &Sweep, layout: &Layout, column: usize) -> Option<Shown> {
    let Origin::Input(k) = layout.origins[column] else { return None };
    let input = &sweep.columns[k];
    let (slot, more) = match input.from {
        From::Shape | From::Algorithm(_) => return None,
        From::Tier(slot) => (slot, PLACE_OF_TIERS),
        _ => (input.slot()?, 0.0),
    };
    Some(Shown { column, slot, more, level: sweep.space.level(&[slot]) })
}

/// What is no number becomes nothing: readers do not agree on it.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::NAN }
}

fn feasible() -> Verdict {
    Verdict { status: Status::Feasible, reason: f64::NAN, demand: f64::NAN, bound: f64::NAN }
}

fn refused(infeasible: &Infeasible) -> Verdict {
    let place = Reason::ALL.iter().position(|&reason| reason == infeasible.reason).unwrap_or(0);
    let status = if infeasible.reason == Reason::Limit { Status::Limit } else { Status::Infeasible };
    Verdict { status, reason: real(place as u64), demand: finite(infeasible.demand), bound: finite(infeasible.bound) }
}

/// The number of the text of a network's shape.
fn shape(
    shapes: &mut HashMap<Vec<(u64, u64)>, f64>,
    table: &mut Table,
    column: usize,
    inputs: &Inputs,
    system: &System,
) -> f64 {
    let key: Vec<(u64, u64)> = shape_key(inputs).map(|(block, size)| (block.to_bits(), size.to_bits())).collect();
    *shapes.entry(key).or_insert_with(|| table.word(column, &system.network.shape()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_of_too_many_events_has_a_status_of_its_own() {
        let status = |reason| refused(&Infeasible::new(reason, 2e9, 1e9)).status;
        assert_eq!(status(Reason::Limit), Status::Limit);
        assert!(Reason::ALL.iter().all(|&reason| reason == Reason::Limit || status(reason) == Status::Infeasible));
    }
}
