//! A point's step, built: its program, placed on its system.

use crate::engine::{self, Memo, event_driven};
use crate::sweep::Fidelity;
use crate::system::System;
use crate::system::machine::Machine;
use crate::units::Time;
use crate::workload::unfold::Stage;
use crate::workload::{self, Infeasible, Job, Placement, Program, Reason};

/// A step on a system.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is done.
    pub program: Program,
    /// Where its groups are.
    pub placement: Placement,
    /// On what.
    pub system: System,
}

impl Step {
    /// The step of a job on a system.
    ///
    /// # Errors
    /// Why it cannot exist.
    pub fn of(job: &Job, system: &System) -> Result<Self, Infeasible> {
        if matches!(job, Job::Recorded) {
            return Err(Infeasible::new(Reason::Trace, f64::NAN, f64::NAN));
        }
        workload::check(job, system)?;
        let (mut program, mut placement) = (Program::default(), Placement::default());
        workload::place(job, &system.network, &mut placement)?;
        workload::build(job, &mut program);
        Ok(Self { program, placement, system: system.clone() })
    }

    /// How long it takes.
    ///
    /// # Errors
    /// As the evaluator has it.
    pub fn time(&self, fidelity: Fidelity) -> Result<Time, Infeasible> {
        let report = match fidelity {
            Fidelity::ClosedForm => {
                engine::evaluate(&self.program, &self.placement, &self.system, &mut Memo::default())
            }
            Fidelity::EventDriven => event_driven::evaluate(&self.program, &self.placement, &self.system),
        };
        Ok(report?.total)
    }

    /// The machine that it runs on.
    #[must_use]
    pub fn machine(&self) -> Machine {
        event_driven::machine(&self.program, &self.system)
    }

    /// Every operation of every stage.
    ///
    /// # Errors
    /// Never for a program that was built.
    pub fn stages(&self) -> Result<Vec<Stage>, Infeasible> {
        event_driven::whole(&self.program, &self.placement, &self.system)
    }
}
