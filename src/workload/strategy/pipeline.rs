//! Pipeline parallelism: the layers in stages, each of one model chunk or of several [Narayanan21].

use super::ParallelStrategy;
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Group;
use crate::workload::plan::LayerSplit;
use crate::workload::program::{Account, Phase, Program, Work};
use crate::workload::share::{Share, Stage};
use crate::workload::transformer::Training;

/// See the module. In which order a stage runs its passes, and how long it waits, is the schedule's.
pub struct Pipeline;

impl ParallelStrategy for Pipeline {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let Training { model, plan, global_batch, .. } = training;
        let chunks = plan.pp * plan.vpp;
        if plan.layer_split == LayerSplit::Even && model.layers % chunks != 0 {
            return Err(Infeasible::new(Reason::LayersPerStage, real(model.layers), real(chunks)));
        }
        let (room, [_, missing_last]) = rooms(training);
        if missing_last > room {
            return Err(Infeasible::new(Reason::LayersAtEnds, real(missing_last), real(room)));
        }
        let replica = plan.dp * plan.micro_batch_size;
        if global_batch % replica != 0 {
            return Err(Infeasible::new(Reason::BatchPerReplica, real(*global_batch), real(replica)));
        }
        plan.schedule.part().check(training)
    }

    fn divide(&self, training: &Training, share: &mut Share) {
        (share.layers_per_chunk, [share.missing_first, _]) = rooms(training);
    }

    /// A tied embedding lives on the first and the last stage: their gradients are summed once a step. So are those of two copies
    /// of the model, of which each stage has a part of both: what data parallelism leaves it of them goes to the stage that
    /// holds the same parts, and as much comes back.
    fn emit_step(&self, stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
        if training.plan.schedule.part().route().is_mirrored() {
            let (held, shards) = (share.parameters(training, stage), share.optimizer_shards);
            let summed = held.dense / shards.dense + held.expert / shards.expert;
            let size = Bytes::from_real(training.precision.gradient * summed);
            program.push(Work::Send { size }, Account::Pipeline);
            program.close_block(Phase::Step, 1, None);
        }
        if training.model.tied_embeddings && stage.first != stage.last {
            let size = Bytes::from_real(training.precision.gradient * share.embedding);
            program.push(Work::Send { size }, Account::Pipeline);
            program.close_block(Phase::Step, 1, None);
        }
    }

    fn summary(&self) -> &'static str {
        "pp, vpp, layer_split, schedule: stages of layers, a message a microbatch, chunk and way [Narayanan21]"
    }

    fn example(&self) -> &'static str {
        "126 layers, `pp: 16`, `vpp: 8`, `light_ends`: 128 places of one layer, of which embedding and head take the first and the last"
    }
}

/// Layers that each chunk has room for, and how many are missing in the first and in the last chunk of the model.
///
/// ```text
/// n = ceil(L / (p v)),  missing = n p v - L: floor(missing / 2) in the first, ceil(missing / 2) in the last [Dubey24]
/// ```
///
/// as if embedding and head took the places of layers. Worked: L = 126, p = 16, v = 8: 128 rooms of 1, the ends are empty; L = 61,
/// p = 4, v = 4: 64 in 16 rooms of 4, 1 and 2 are missing.
fn rooms(training: &Training) -> (u64, [u64; 2]) {
    let Training { model, plan, .. } = training;
    let chunks = plan.pp * plan.vpp;
    let room = model.layers.div_ceil(chunks);
    let missing = room * chunks - model.layers;
    (room, [missing / 2, missing.div_ceil(2)])
}

/// Adds the messages of one microbatch in one pass: a stage sends once a chunk, but for the end of the model.
pub fn emit_sends(phase: Phase, stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
    let Training { plan, model, precision, .. } = training;
    if plan.pp == 1 {
        return;
    }
    let times = plan.schedule.part().route().messages(stage.number, phase, &training.shape());
    let held = precision.activation * share.outer_tokens * real(model.hidden);
    let is_parted = plan.scatter_gather && plan.tp > 1 && !plan.sequence_parallel;
    let sent = if is_parted { held / real(plan.tp) } else { held };
    program.push(Work::Send { size: Bytes::from_real(sent) }, Account::Pipeline);
    program.close_block(phase, times, None);
    if is_parted {
        let gathered =
            Work::Collective { collective: Collective::AllGather, group: Group::Tensor, size: Bytes::from_real(held) };
        program.push(gathered, Account::Pipeline);
        program.close_block(phase, times, None);
    }
}
