//! Metrics: what the table says of an evaluated point. A metric is a file and a line; its column, unit, direction and
//! page section follow.

use std::cmp::Reverse;

use crate::column::{Direction, Dtype};
use crate::engine::Report;
use crate::registry::registry;
use crate::system::System;
use crate::system::bill::Bill;
use crate::units::{Time, Unit, real};
use crate::workload::program::Account;
use crate::workload::{Footprint, Job, Training};

/// What became of a point.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// What it ran.
    pub job: &'a Job,
    /// On what.
    pub system: &'a System,
    /// On how many NPUs.
    pub npus: f64,
    /// What each of them draws and costs.
    pub bill: Bill,
    /// Bytes on its fullest NPU that its memory account does not see, by what was measured of another point.
    pub unseen: f64,
    /// Its memory account, if it came as far as that.
    pub footprint: Option<&'a Footprint>,
    /// Its time, if it is feasible.
    pub report: Option<&'a Report>,
}

impl Outcome<'_> {
    /// The training step, if it is one.
    #[must_use]
    pub const fn training(&self) -> Option<&Training> {
        match self.job {
            Job::Training(training) => Some(training),
            Job::Recorded | Job::Collective { .. } => None,
        }
    }

    /// Exposed time of an account in seconds.
    #[must_use]
    pub fn exposed(&self, account: Account) -> Option<f64> {
        Some(self.report?.exposed(account).as_seconds())
    }

    /// Seconds from the start of the step to its end.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        Some(self.report?.total.as_seconds())
    }

    /// Bytes on its fullest NPU: its memory account, and what that does not see.
    #[must_use]
    pub fn memory(&self) -> Option<f64> {
        Some((self.footprint?.total().as_real() + self.unseen).max(0.0))
    }

    /// Model FLOPs of an NPU a second.
    #[must_use]
    pub fn model_rate(&self) -> Option<f64> {
        let (training, seconds) = (self.training()?, self.seconds()?);
        let flops = training.model.flops_per_token(training.seq_len) * real(training.tokens());
        Some(flops / seconds / self.npus)
    }

    /// What binds: the longest part of the time, and how long it is; the first of equals. The parts are the accounts' exposed times,
    /// the bubble behind the last of them, and behind that what the local memory bounds of the model's own arithmetic.
    #[must_use]
    pub fn bound(&self) -> Option<(usize, Time)> {
        self.training()?;
        let report = self.report?;
        let mut exposed = report.exposed;
        let computing = &mut exposed[Account::Compute as usize];
        *computing = computing.saturating_sub(report.memory_bound);
        let parts = exposed.into_iter().chain([report.bubble, report.memory_bound]).enumerate();
        parts.max_by_key(|&(part, time)| (time, Reverse(part)))
    }

    /// A value of a step for one of its tokens.
    #[must_use]
    pub fn per_token(&self, value: f64) -> Option<f64> {
        Some(value / real(self.training()?.tokens()))
    }
}

/// Of which points a metric speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of training steps.
    Training,
    /// Of training steps, and of recorded traces.
    Step,
    /// Of single collectives, and of recorded traces.
    Collective,
    /// Of recorded traces.
    Recorded,
    /// Of training steps of models of one family, by its name.
    Family(&'static str),
    /// Of both.
    Both,
    /// Of each dimension of both, as `dimK_<name>`.
    Dimension(&'static str),
}

/// One column of results, or one for each dimension.
///
/// A value follows from the outcome, but not from which NPUs are neighbours (`plan.order` of its job): where nothing else moved and a
/// row has the report of the row before, it has its values too, and no metric is asked again.
pub trait Metric {
    /// Its unit.
    fn unit(&self) -> Unit;
    /// What it holds: a real number, unless it says otherwise.
    fn dtype(&self) -> Dtype {
        Dtype::Real
    }
    /// Which way is better, if one is.
    fn better(&self) -> Option<Direction> {
        None
    }
    /// Of which points it speaks.
    fn scope(&self) -> Scope;
    /// What it means, with its source.
    fn meaning(&self) -> &'static str;
    /// The words of a text; of one that has none of its own the value is the number of a dimension.
    fn words(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether it follows from the question alone, so that a point that was refused has it too.
    fn is_of_question(&self) -> bool {
        false
    }
    /// Its value in base units; of a text the place of its word, or the number of the dimension that it names. None where there is none.
    fn value(&self, outcome: &Outcome<'_>, dim: usize) -> Option<f64>;
}

registry! {
    /// What the table says of an evaluated point.
    pub enum MetricPart: Metric {
        iteration_time::IterationTime,
        finish_time::FinishTime,
        astra_exposed::AstraExposed,
        throughput::Throughput,
        npu_throughput::NpuThroughput,
        mfu::Mfu,
        npu_rate::NpuRate,
        compute_time::ComputeTime,
        recompute_time::RecomputeTime,
        exposed_tp::ExposedTp,
        exposed_cp::ExposedCp,
        exposed_ep::ExposedEp,
        exposed_pp::ExposedPp,
        exposed_dp::ExposedDp,
        exposed_comm::ExposedComm,
        dp_busy::DpBusy,
        bubble::Bubble,
        host_wait::HostWait,
        optimizer_time::OptimizerTime,
        offload_time::OffloadTime,
        num_microbatches::NumMicrobatches,
        parameters::Parameters,
        peak_memory::PeakMemory,
        memory_margin::MemoryMargin,
        weights::Weights,
        gradients::Gradients,
        optimizer::Optimizer,
        activations::Activations,
        temporary::Temporary,
        logits::Logits,
        buffers::Buffers,
        device_memory::DeviceMemory,
        offloaded::Offloaded,
        fullest_stage::FullestStage,
        busiest_dim::BusiestDim,
        dim_sent::DimSent,
        dim_wire::DimWire,
        hfu::Hfu,
        memory_time::MemoryTime,
        bound_by::BoundBy,
        gain_if_free::GainIfFree,
        step_energy::StepEnergy,
        token_energy::TokenEnergy,
        step_cost::StepCost,
        token_cost::TokenCost,
        exposed_tables::ExposedTables,
        sample_rate::SampleRate,
    }
}
