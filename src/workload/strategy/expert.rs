//! Expert parallelism: the experts of a layer spread over NPUs of the tensor, context and data groups [Shazeer17].

use super::{ParallelStrategy, Pass, Place};
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Group;
use crate::workload::program::{Account, Beside, Program, Work};
use crate::workload::share::Share;
use crate::workload::transformer::Training;

/// See the module.
pub struct Expert;

impl ParallelStrategy for Expert {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let Training { model, plan, .. } = training;
        if model.experts == 0 {
            return Ok(());
        }
        if plan.tp > 1 && !plan.sequence_parallel {
            return Err(Infeasible::new(Reason::ExpertsNeedSequenceParallel, real(plan.tp), 1.0));
        }
        if model.experts % plan.ep != 0 {
            return Err(Infeasible::new(Reason::ExpertsPerGroup, real(model.experts), real(plan.ep)));
        }
        // Shards that do not fit are told as such.
        if plan.shard_ranks().is_some() && plan.expert_ranks().is_none() {
            let (ranks, wanted) = (plan.tp * plan.replicas(), plan.ep * plan.etp);
            return Err(Infeasible::new(Reason::ExpertGroup, real(ranks), real(wanted)));
        }
        Ok(())
    }

    /// e ranks share the experts of a layer, and all wait for the busiest; what each expert is to one of them is `etp`'s.
    fn divide(&self, training: &Training, share: &mut Share) {
        share.experts /= real(training.plan.ep);
        share.routed *= load(training);
    }

    /// Dispatch and combine: an all-to-all of w r h bytes each way, r the token-expert pairs of the busiest NPU, before `etp` gathers
    /// them and after it has summed them up.
    fn emit(&self, place: Place, pass: Pass, training: &Training, share: &Share, program: &mut Program) {
        let plan = &training.plan;
        if plan.ep > 1 && pass != Pass::Weights && matches!(place, Place::Experts | Place::ExpertsEnd) {
            let sent = plan.dispatcher.sent(plan.ep, training.model.topk);
            let pairs = sent * share.routed / share.expert_tensor;
            let size = Bytes::from_real(training.precision.activation * pairs * real(training.model.hidden));
            let work = Work::Collective { collective: Collective::AllToAll, group: Group::Expert, size };
            if plan.overlap_ep {
                program.push_beside(work, Account::Expert, Beside::Block);
            } else {
                program.push(work, Account::Expert);
            }
        }
    }

    fn summary(&self) -> &'static str {
        "ep, expert_imbalance: experts spread over tp x cp x dp, two all-to-alls a layer and pass [Shazeer17]"
    }

    fn example(&self) -> &'static str {
        "8,192 tokens to 2 of 8 experts, `tp: 8`: 2,048 pairs a rank; at a width of 4,096 an all-to-all of 17 MB there and one back"
    }
}

/// Token-expert pairs of the busiest NPU of an expert group over the mean.
///
/// ```text
/// min(imbalance, e, E / k), or the capacity factor                              [Fedus22]
/// ```
///
/// The experts of the busiest NPU are taken to be all as busy as the busiest one; of e NPUs none has more than all pairs, and of E
/// experts none more than every token, which goes to k of them. With a
/// capacity each expert has room for so many times the mean: tokens beyond it are dropped and empty room is computed, so that all
/// NPUs do the same whatever the imbalance.
fn load(training: &Training) -> f64 {
    let Training { plan, model, .. } = training;
    let most = real(model.experts) / real(model.topk.max(1));
    model.capacity_factor.unwrap_or_else(|| plan.expert_imbalance.min(real(plan.ep)).min(most))
}
