//! Offload: optimizer states live in a tier beyond the local memory and stream through it once a step [Ren21].

use super::ParallelStrategy;
use crate::units::Bytes;
use crate::workload::program::{Account, Phase, Program, Work};
use crate::workload::share::{Share, Stage};
use crate::workload::Training;

/// See the module.
pub struct Offload;

impl ParallelStrategy for Offload {
    /// All states in and out, both ways at once; the NPU updates them, after the gradients are known and before the next
    /// step, so nothing hides it. An update by the host's processor is not modelled here.
    fn emit_step(&self, stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
        if let Some(tier) = training.plan.offload_optimizer {
            let size = Bytes::from_real(training.optimizer.state(training, share, stage));
            program.push(Work::Transfer { tier, size }, Account::Offload);
            program.close_block(Phase::Step, 1, None);
        }
    }

    fn summary(&self) -> &'static str {
        "offload_optimizer: states in a tier, streamed in and out once a step [Ren21]"
    }

    fn example(&self) -> &'static str {
        "12 B for each of a billion parameters at 64 GB/s each way: 0.19 s a step"
    }
}
