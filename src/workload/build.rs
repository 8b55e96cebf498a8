//! `build`: a job as a folded program, one rank class for each kind of pipeline stage.

use super::plan::Recompute;
use super::program::{Account, Phase, Program, Work};
use super::share::{Share, Stage, stages_of};
use super::strategy::{Pass, Place, Strategy, pipeline};
use super::{Job, Training};
use crate::system::collective::Collective;
use crate::units::{Bytes, Flops, real};
use crate::workload::placement::Group;

/// Operations of a multiply-add.
const PER_WEIGHT: f64 = 2.0;
/// A backward pass multiplies twice what the forward pass did: for the input's gradient and the weights' [Narayanan21].
const BACKWARD: f64 = 2.0;
/// Flash attention computes the scores again: five products instead of two [Dao22].
const FLASH_BACKWARD: f64 = 2.5;
/// Unfused attention moves 11 bytes a score forward and 17 backward [StepFit].
const SCORE_TRAFFIC: [f64; 2] = [11.0, 17.0];
/// Reads and writes of a hidden vector by the fused operations of a layer, forward; half as much again backward [StepFit].
const VECTOR_ACCESSES: f64 = 6.0;
/// See [`VECTOR_ACCESSES`].
const BACKWARD_TRAFFIC: f64 = 1.5;

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
        Job::Training(training) => training_step(training, program),
    }
}

/// A training step: for each kind of stage the forward and backward pass of one microbatch, then the end of the step.
fn training_step(training: &Training, program: &mut Program) {
    let plan = &training.plan;
    let share = Share::of(training);
    program.microbatches = training.num_microbatches();
    program.stages = plan.pp;
    program.chunks = plan.vpp;
    program.overlap = plan.overlap_dp;
    for (number, stages) in stages_of(plan.pp) {
        let stage = share.stage(training, number);
        let mut writer = Writer { training, share: &share, program };
        writer.pass(Pass::Forward, &stage);
        writer.pass(Pass::Backward, &stage);
        writer.step(&stage);
        program.close_class(number, stages);
    }
}

/// Writes blocks of one stage.
struct Writer<'a> {
    training: &'a Training,
    share: &'a Share,
    program: &'a mut Program,
}

impl Writer<'_> {
    /// One microbatch through one stage.
    fn pass(&mut self, pass: Pass, stage: &Stage) {
        let phase = phase_of(pass);
        if stage.first {
            self.embedding(pass);
            self.program.close_block(phase, 1, None);
        }
        for (moe, layers) in [(false, stage.dense), (true, stage.moe)] {
            if layers > 0 {
                if pass == Pass::Backward {
                    self.recompute(moe);
                }
                self.layer(pass, moe, Account::Compute);
                self.program.close_block(phase, layers, None);
            }
        }
        if stage.last {
            self.head(pass);
            self.program.close_block(phase, 1, None);
        }
        pipeline::emit_sends(phase, stage, self.training, self.share, self.program);
    }

    /// What the backward pass of a layer computes again.
    fn recompute(&mut self, moe: bool) {
        match self.training.plan.recompute {
            Recompute::None => {}
            Recompute::Selective => self.core(Pass::Forward, Account::Recompute),
            Recompute::Full => self.inside(Pass::Forward, moe, Account::Recompute),
        }
    }

    /// One layer, with what data parallelism does around it.
    fn layer(&mut self, pass: Pass, moe: bool, account: Account) {
        self.emit(Place::Layer { moe }, pass);
        self.inside(pass, moe, account);
        self.emit(Place::LayerEnd { moe }, pass);
    }

    /// The operations of one layer.
    fn inside(&mut self, pass: Pass, moe: bool, account: Account) {
        self.emit(Place::Attention, pass);
        self.projections(pass, account);
        self.core(pass, account);
        self.emit(Place::AttentionEnd, pass);
        if moe {
            self.experts(pass, account);
        } else {
            self.emit(Place::Mlp, pass);
            let width = real(self.training.model.ffn) / self.share.tensor;
            self.matrices(pass, account, self.share.mlp, self.share.tokens, width);
            self.emit(Place::MlpEnd, pass);
        }
        self.element_wise(pass, moe, account);
    }

    /// Query, key, value and output projections.
    fn projections(&mut self, pass: Pass, account: Account) {
        let model = &self.training.model;
        let heads = 2.0 * real(model.heads) / self.share.tensor + 2.0 * self.share.kv_heads;
        self.matrices(pass, account, self.share.attention, self.share.tokens, heads * real(model.head_dim));
    }

    /// Matrices of `parameters` weights on `tokens` vectors: 2 n P operations; weights, inputs and outputs moved.
    fn matrices(&mut self, pass: Pass, account: Account, parameters: f64, tokens: f64, width: f64) {
        let Training { model, precision, .. } = self.training;
        let vectors = precision.activation * tokens * (2.0 * real(model.hidden) + width);
        let moved = precision.weight * parameters + vectors;
        self.compute(pass, account, PER_WEIGHT * tokens * parameters, moved, [BACKWARD, BACKWARD]);
    }

    /// Scores, softmax and weighted sum.
    fn core(&mut self, pass: Pass, account: Account) {
        let Training { model, plan, precision, seq_len, .. } = self.training;
        let flops = model.core_flops(plan.micro_batch_size, *seq_len, plan.flash_attention) / self.share.tensor;
        let heads = real(model.heads) / self.share.tensor;
        if plan.flash_attention {
            let vectors = self.share.tokens * (2.0 * heads + 2.0 * self.share.kv_heads) * real(model.head_dim);
            self.compute(pass, account, flops, precision.activation * vectors, [FLASH_BACKWARD, BACKWARD]);
        } else {
            let scores = self.share.tokens * real(*seq_len) * heads;
            let [forward, backward] = SCORE_TRAFFIC;
            self.compute(pass, account, flops, forward * scores, [BACKWARD, backward / forward]);
        }
    }

    /// Shared experts and router beside routed experts between two all-to-alls.
    fn experts(&mut self, pass: Pass, account: Account) {
        let model = &self.training.model;
        if model.shared_experts > 0 {
            self.emit(Place::Mlp, pass);
        }
        let width = real(model.shared_experts * model.moe_ffn) / self.share.tensor + real(model.experts);
        self.matrices(pass, account, self.share.shared, self.share.tokens, width);
        if model.shared_experts > 0 {
            self.emit(Place::MlpEnd, pass);
        }
        self.emit(Place::Experts, pass);
        // A token-expert pair meets the weights of one expert.
        let Training { precision, .. } = self.training;
        let vectors = precision.activation * self.share.routed * (2.0 * real(model.hidden) + real(model.moe_ffn));
        let flops = PER_WEIGHT * self.share.routed * model.expert_parameters();
        let moved = precision.weight * self.share.experts + vectors;
        self.compute(pass, account, flops, moved, [BACKWARD, BACKWARD]);
        self.emit(Place::ExpertsEnd, pass);
    }

    /// Norms, residuals, rotary embedding, activation function: bound by the local memory.
    fn element_wise(&mut self, pass: Pass, moe: bool, account: Account) {
        let Training { model, precision, .. } = self.training;
        let share = self.share;
        let heads = real(model.heads) / share.tensor + 2.0 * share.kv_heads;
        let rotated = 2.0 * share.tokens * heads * real(model.head_dim);
        let matrices = real(model.mlp.matrices());
        let activated = if moe {
            let shared = share.tokens * real(model.shared_experts * model.moe_ffn) / share.tensor;
            matrices * (share.routed * real(model.moe_ffn) + shared)
        } else {
            matrices * share.tokens * real(model.ffn) / share.tensor
        };
        let vectors = VECTOR_ACCESSES * share.outer_tokens * real(model.hidden);
        let moved = precision.activation * (vectors + rotated + activated);
        self.compute(pass, account, 0.0, moved, [BACKWARD, BACKWARD_TRAFFIC]);
    }

    /// The embedding: a look-up.
    fn embedding(&mut self, pass: Pass) {
        let Training { model, precision, .. } = self.training;
        let moved = 2.0 * precision.activation * self.share.tokens * real(model.hidden);
        self.compute(pass, Account::Compute, 0.0, moved, [1.0, 1.0]);
        self.emit(Place::Embedding, pass);
    }

    /// The output head and the loss: logits are written and read in fp32.
    fn head(&mut self, pass: Pass) {
        const LOGIT_TRAFFIC: f64 = 8.0;
        let Training { model, precision, .. } = self.training;
        let share = self.share;
        self.emit(Place::Head, pass);
        let logits = LOGIT_TRAFFIC * share.tokens * real(model.vocab) / share.tensor;
        let vectors = precision.activation * share.tokens * real(model.hidden);
        let moved = precision.weight * share.embedding + vectors + logits;
        self.compute(pass, Account::Compute, PER_WEIGHT * share.tokens * share.embedding, moved, [BACKWARD, BACKWARD]);
    }

    /// Once a step: what strategies do, then the optimizer.
    fn step(&mut self, stage: &Stage) {
        for strategy in Strategy::ALL {
            strategy.part().emit_step(stage, self.training, self.share, self.program);
        }
        let held = self.share.parameters(self.training, stage);
        let shards = self.share.optimizer_shards;
        let updated = held.dense / shards.dense + held.expert / shards.expert;
        let moved = Bytes::from_real(self.training.precision.update_traffic() * updated);
        self.program.push(Work::Compute { flops: Flops::ZERO, moved }, Account::Optimizer);
        self.program.close_block(Phase::Step, 1, None);
    }

    /// An operation given by its forward pass and how much more the backward pass is.
    fn compute(&mut self, pass: Pass, account: Account, flops: f64, moved: f64, [more_flops, more_moved]: [f64; 2]) {
        let (flops, moved) = match pass {
            Pass::Forward => (flops, moved),
            Pass::Backward => (flops * more_flops, moved * more_moved),
        };
        let work = Work::Compute { flops: Flops::new(flops), moved: Bytes::from_real(moved) };
        self.program.push(work, account);
    }

    /// What strategies do at a place.
    fn emit(&mut self, place: Place, pass: Pass) {
        for strategy in Strategy::ALL {
            strategy.part().emit(place, pass, self.training, self.share, self.program);
        }
    }
}

/// The phase of a pass.
const fn phase_of(pass: Pass) -> Phase {
    match pass {
        Pass::Forward => Phase::Forward,
        Pass::Backward => Phase::Backward,
    }
}

/// The bytes that a collective's caller gives, as the whole buffer: an all-gather is given its input shard, as the
/// reference counts it; all others the whole buffer [ASTRA2].
#[must_use]
pub fn whole_buffer(collective: Collective, given: Bytes, npus: u64) -> Bytes {
    if collective == Collective::AllGather { given * npus } else { given }
}
