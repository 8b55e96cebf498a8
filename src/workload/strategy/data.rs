//! Data parallelism and ZeRO: replicas of the model, whose states stages 1 to 3 cut into shards, among all or some [Rajbhandari20].

use super::{ParallelStrategy, Pass, Place};
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Group;
use crate::workload::plan::Plan;
use crate::workload::program::{Account, Phase, Program, Work};
use crate::workload::share::{Share, Split, Stage};
use crate::workload::transformer::Training;

/// See the module.
pub struct Data;

impl ParallelStrategy for Data {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let plan = &training.plan;
        match (plan.shard_ranks(), plan.zero_shard) {
            (None, Some(shard)) => Err(Infeasible::new(Reason::ShardGroup, real(plan.replicas()), real(shard))),
            _ => Ok(()),
        }
    }

    /// Stage 1 cuts optimizer states, 2 gradients too, 3 weights too, over the data and context ranks, or so many of them; experts
    /// over the ranks that hold the same ones.
    fn divide(&self, training: &Training, share: &mut Share) {
        let plan = &training.plan;
        let replicas = plan.zero_shard.unwrap_or(plan.replicas());
        let shards = Split { dense: real(replicas), expert: real(plan.tp * replicas) / real(plan.ep * plan.etp) };
        if plan.zero >= 1 {
            share.optimizer_shards = shards;
        }
        if plan.zero >= 2 {
            share.gradient_shards = shards;
        }
        if plan.zero >= 3 {
            share.weight_shards = shards;
        }
    }

    /// Stage 3 gathers a layer's weights before each pass; stages 2 and 3 scatter its gradients behind each backward pass.
    /// At one microbatch stage 3 moves 1.5 times the bytes of plain data parallelism [Rajbhandari20, section 7.2], and twice as many
    /// where it does not scatter gradients but sums all of them up everywhere.
    fn emit(&self, place: Place, pass: Pass, training: &Training, share: &Share, program: &mut Program) {
        let Training { plan, precision, .. } = training;
        let (held, starts) = match place {
            Place::Layer { moe } => (layer(share, moe), pass == Pass::Forward),
            Place::LayerEnd { moe } => (layer(share, moe), pass == Pass::Backward),
            Place::Embedding | Place::Head => {
                (Split { dense: share.embedding, expert: 0.0 }, pass != Pass::Weights)
            }
            _ => return,
        };
        let alone = matches!(place, Place::Embedding | Place::Head);
        if place == Place::Head && training.model.tied_embeddings && plan.pp == 1 {
            // It is the embedding, which is there.
            return;
        }
        if plan.zero >= 3 && starts {
            let account = if plan.prefetch { Account::Data } else { Account::Gather };
            move_states(Collective::AllGather, precision.weight, held, account, program);
        }
        let gradients = if plan.schedule.part().splits() { Pass::Weights } else { Pass::Backward };
        let ends = pass == gradients && (alone || matches!(place, Place::Layer { .. }));
        if plan.zero >= 2 && ends {
            move_states(reduction(plan), precision.gradient, held, Account::Data, program);
        }
    }

    /// Stages 0 and 1 reduce gradients once a step, beneath the last backward pass; 1 and 2 gather the new weights
    /// beneath the next forward pass. Of several copies each reduces what is left of its gradients with the others, once a step:
    ///
    /// ```text
    /// an all-reduce of g P / N bytes over cp dp / N ranks                           [Zhao23]
    /// ```
    ///
    /// Worked: P = 8e9, g = 4, N = 8, dp = 32: 4 GB over 4 ranks.
    fn emit_step(&self, stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
        let Training { plan, precision, .. } = training;
        let held = share.parameters(training, stage);
        if plan.zero < 2 {
            move_states(reduction(plan), precision.gradient, held, Account::Data, program);
        }
        if plan.zero_shard.is_some_and(|shard| shard < plan.replicas()) {
            let shards = share.optimizer_shards;
            let shard = held.dense / shards.dense + held.expert / shards.expert;
            let size = Bytes::from_real(precision.gradient * shard);
            program.push(Work::Collective { collective: Collective::AllReduce, group: Group::Replica, size }, Account::Data);
        }
        program.close_block(Phase::Step, 1, Some(program.gradients()));
        if plan.zero == 1 || plan.zero == 2 {
            move_states(Collective::AllGather, precision.weight, held, Account::Data, program);
            program.close_block(Phase::Step, 1, Some(Phase::Forward));
        }
    }

    fn summary(&self) -> &'static str {
        "dp, zero, zero_shard, prefetch, reduce_scatter: replicas whose optimizer states, gradients and weights stages 1 to 3 shard [Rajbhandari20]"
    }

    fn example(&self) -> &'static str {
        "7.5 billion parameters of 2 + 2 + 12 B, 64 ranks: 120 GB, by stages 31.4, 16.6 and 1.88 GB; stage 3 among 8 of them, `zero_shard: 8`: 15 GB"
    }
}

/// Parameters of a layer.
fn layer(share: &Share, moe: bool) -> Split {
    if moe {
        Split { dense: share.moe_layer(), expert: share.experts }
    } else {
        Split { dense: share.dense_layer(), expert: 0.0 }
    }
}

/// How gradients are summed up.
const fn reduction(plan: &Plan) -> Collective {
    if plan.zero > 0 && plan.reduce_scatter { Collective::ReduceScatter } else { Collective::AllReduce }
}

/// A collective over the dense parameters, and one over the experts.
fn move_states(collective: Collective, bytes: f64, held: Split, account: Account, program: &mut Program) {
    for (group, parameters) in [(Group::Data, held.dense), (Group::ExpertData, held.expert)] {
        if parameters > 0.0 {
            let size = Bytes::from_real(bytes * parameters);
            program.push(Work::Collective { collective, group, size }, account);
        }
    }
}
