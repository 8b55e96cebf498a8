//! One point: check, place, build, evaluate. Neighbouring points that run the same job share its program, and prices.

use crate::engine::{self, Memo, Report, event_driven};
use crate::sweep::{Fidelity, Inputs, point};
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
    program: Program,
    placement: Placement,
    built: Option<Job>,
    memo: Memo,
}

impl Evaluator {
    /// Evaluates the point of some inputs.
    ///
    /// # Errors
    /// Why the point cannot exist.
    pub fn evaluate(&mut self, job: &Job, system: &System, fidelity: Fidelity) -> Result<Evaluation, Infeasible> {
        let footprint = workload::check(job, system)?;
        let with_account = |infeasible| Infeasible { footprint: Some(footprint), ..infeasible };
        workload::place(job, &system.network, &mut self.placement).map_err(with_account)?;
        let unplaced = job.unplaced();
        if self.built != Some(unplaced) {
            // Forgotten while it is written: a panic leaves no half of a program behind.
            self.built = None;
            workload::build(job, &mut self.program);
            self.built = Some(unplaced);
        }
        let report = match fidelity {
            Fidelity::ClosedForm => engine::evaluate(&self.program, &self.placement, system, &mut self.memo),
            Fidelity::EventDriven => event_driven::evaluate(&self.program, &self.placement, system),
        };
        Ok(Evaluation { footprint, report: report.map_err(with_account)? })
    }

    /// The job and the system of some inputs.
    #[must_use]
    pub fn question(inputs: &Inputs) -> (Job, System) {
        (point::job(inputs), point::system(inputs))
    }
}
