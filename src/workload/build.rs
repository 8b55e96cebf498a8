//! `build`: a job as a folded program, one rank class for each kind of pipeline stage.

use super::layers::Layers;
use super::program::{Account, Block, Phase, Program, Work};
use super::recompute::Recompute;
use super::share::{Share, Stage, stages_of};
use super::strategy::{Pass, Place, Strategy, pipeline};
use super::transformer::Training;
use super::{Job, layer, optimizer};
use crate::system::Kernel;
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::placement::Group;

/// Writes the program of a job into `program`, which is cleared first.
pub fn build(job: &Job, program: &mut Program) {
    program.clear();
    match job {
        Job::Collective { collective, size } => {
            let work = Work::Collective { collective: *collective, group: Group::Everyone, size: *size };
            program.push(work, Account::Data);
            program.close_block(Phase::Step, 1, None);
            program.close_class(0, 1);
        }
        Job::Recorded => {}
        Job::Training(training) => training.build(program),
    }
}

/// A training step of a transformer: for each kind of stage the forward and backward pass of one microbatch, then the end of the step.
pub(super) fn training_step(training: &Training, program: &mut Program) {
    let plan = &training.plan;
    let share = Share::of(training);
    let shape = training.shape();
    program.microbatches = shape.microbatches;
    program.stages = shape.stages;
    program.chunks = shape.chunks;
    program.overlap = plan.overlap_dp;
    program.overlap_sends = plan.overlap_pp && shape.chunks > 1;
    program.schedule = plan.schedule;
    let splits = plan.schedule.part().splits();
    let mut layers = Written::default();
    for (number, stages) in stages_of(training, &share) {
        let stage = share.stage(training, number);
        let mut writer = Writer { training, share: &share, program, splits };
        writer.pass(Pass::Forward, &stage, &mut layers);
        writer.pass(Pass::Backward, &stage, &mut layers);
        if splits {
            writer.pass(Pass::Weights, &stage, &mut layers);
        }
        writer.step(&stage);
        program.close_class(number, stages);
    }
}

/// The blocks of layers that are written already, by pass and kind: stages of all kinds have the same layers.
type Written = [[Option<Block>; 2]; 3];

/// Writes blocks of one stage.
struct Writer<'a> {
    training: &'a Training,
    share: &'a Share,
    program: &'a mut Program,
    splits: bool,
}

impl Writer<'_> {
    /// One microbatch through one stage.
    fn pass(&mut self, pass: Pass, stage: &Stage, layers: &mut Written) {
        let phase = phase_of(pass);
        if stage.first {
            self.operations(pass, Account::Compute).embedding();
            self.program.close_block(phase, 1, None);
        }
        for (moe, held) in [(false, stage.dense), (true, stage.moe)] {
            if held.all == 0 {
                continue;
            }
            let known = &mut layers[pass as usize][usize::from(moe)];
            if let Some(block) = known {
                self.program.repeat_block(Block { repeat: held.all, layers: Some(held), ..*block });
            } else {
                *known = Some(self.layer(pass, moe, held));
            }
        }
        if stage.last {
            self.operations(pass, Account::Compute).head();
            self.program.close_block(phase, 1, None);
        }
        if pass != Pass::Weights {
            pipeline::emit_sends(phase, stage, self.training, self.share, self.program);
        }
    }

    /// One layer, with what is computed again before its backward pass, and what data parallelism does around it.
    fn layer(&mut self, pass: Pass, moe: bool, held: Layers) -> Block {
        let Training { plan, .. } = self.training;
        let mut dispatches = layer::dispatches(self.training, pass);
        if pass == Pass::Backward {
            let mut again = self.operations(Pass::Forward, Account::Recompute);
            match plan.recompute {
                Recompute::ALTERNATE => again.alternate(moe),
                Recompute::FULL => {
                    again.layer_again(moe);
                    dispatches += layer::dispatches(self.training, Pass::Forward);
                }
                parts => again.parts(parts, moe),
            }
        }
        let mut operations = self.operations(pass, Account::Compute);
        operations.emit(Place::Layer { moe });
        operations.layer(moe);
        operations.emit(Place::LayerEnd { moe });
        let makes_gradients = pass == if self.splits { Pass::Weights } else { Pass::Backward };
        if makes_gradients && plan.zero < 2 && self.program.microbatches > 1 {
            let share = self.share;
            let parameters = if moe { share.moe_layer() + share.experts } else { share.dense_layer() };
            // The first has none before it.
            let microbatches = real(self.program.microbatches);
            let parameters = parameters * (microbatches - 1.0) / microbatches;
            self.operations(pass, Account::Compute).kernel(Kernel::Accumulation { parameters });
        }
        self.program.close_layers(phase_of(pass), held, dispatches)
    }

    /// Once a step: what strategies do, then the optimizer.
    fn step(&mut self, stage: &Stage) {
        for strategy in Strategy::ALL {
            strategy.part().emit_step(stage, self.training, self.share, self.program);
        }
        optimizer::emit(stage, self.training, self.share, self.program);
    }

    /// Operations of a pass.
    fn operations(&mut self, pass: Pass, account: Account) -> layer::Writer<'_> {
        layer::Writer {
            training: self.training,
            share: self.share,
            program: self.program,
            pass,
            account,
            part: 1.0,
            splits: self.splits,
        }
    }
}

/// The phase of a pass.
const fn phase_of(pass: Pass) -> Phase {
    match pass {
        Pass::Forward => Phase::Forward,
        Pass::Backward => Phase::Backward,
        Pass::Weights => Phase::Weights,
    }
}

/// The bytes that a collective's caller gives, as the whole buffer: an all-gather is given its input shard, as the
/// reference counts it; all others the whole buffer [ASTRA2].
#[must_use]
pub fn whole_buffer(collective: Collective, given: Bytes, npus: u64) -> Bytes {
    if collective == Collective::AllGather { given * npus } else { given }
}
