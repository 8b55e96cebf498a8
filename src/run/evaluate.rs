//! One point: check, place, build, evaluate. Neighbouring points that run the same job share its program, and prices.

use crate::engine::{self, Memo, Report, event_driven};
use crate::sweep::{Fidelity, Inputs, Moved, point};
use crate::system::System;
use crate::workload::{self, Footprint, Infeasible, Job, Placement, Program};

/// A feasible point's accounts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Memory.
    pub footprint: Footprint,
    /// Time.
    pub report: Report,
}

/// Evaluates points one after the other, and keeps what the next may use again.
#[derive(Debug, Default)]
pub struct Evaluator {
    /// What the check said of the last point, if anything.
    checked: Option<Result<Footprint, Infeasible>>,
    program: Program,
    built: Option<Job>,
    placement: Box<Placement>,
    /// Where the groups of the point before lay, if it was evaluated, and what came of it.
    before: Box<Placement>,
    report: Option<Result<Report, Infeasible>>,
    memo: Memo,
}

impl Evaluator {
    /// Evaluates a point.
    ///
    /// # Errors
    /// Why the point cannot exist.
    pub fn evaluate(&mut self, job: &Job, system: &System, fidelity: Fidelity) -> Result<Evaluation, Infeasible> {
        self.evaluate_next(job, system, fidelity, Moved::All)
    }

    /// Evaluates a point, of whose question no more than this moved since the point before: where only neighbours did, its memory
    /// account and its program stand, and its time too if all groups lie as they did.
    ///
    /// # Errors
    /// Why the point cannot exist.
    pub fn evaluate_next(
        &mut self,
        job: &Job,
        system: &System,
        fidelity: Fidelity,
        moved: Moved,
    ) -> Result<Evaluation, Infeasible> {
        // All is forgotten while it is made anew: a panic leaves no half of anything behind.
        let stands = moved == Moved::Order;
        let (checked, report) = (self.checked.take(), self.report.take());
        let checked = checked.filter(|_| stands).unwrap_or_else(|| workload::check(job, system));
        self.checked = Some(checked);
        let footprint = checked?;
        let with_account = |infeasible| Infeasible { footprint: Some(footprint), ..infeasible };
        std::mem::swap(&mut self.placement, &mut self.before);
        workload::place(job, &system.network, &mut self.placement).map_err(with_account)?;
        let known = report.filter(|_| stands && self.placement == self.before);
        let report = known.unwrap_or_else(|| {
            self.program_of(job);
            match fidelity {
                Fidelity::ClosedForm => engine::evaluate(&self.program, &self.placement, system, &mut self.memo),
                Fidelity::EventDriven => event_driven::evaluate(&self.program, &self.placement, system),
            }
        });
        self.report = Some(report);
        Ok(Evaluation { footprint, report: report.map_err(with_account)? })
    }

    /// Sees to it that the program is that of a job.
    fn program_of(&mut self, job: &Job) {
        let unplaced = job.unplaced();
        if self.built != Some(unplaced) {
            self.built = None;
            workload::build(job, &mut self.program);
            self.built = Some(unplaced);
        }
    }

    /// The job and the system of some inputs.
    #[must_use]
    pub fn question(inputs: &Inputs) -> (Job, System) {
        (point::job(inputs), point::system(inputs))
    }
}
