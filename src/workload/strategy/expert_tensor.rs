//! Expert tensor parallelism: the matrices of routed experts split over ranks of their own, whatever `tp` does to all others [Shoeybi19].

use super::{ParallelStrategy, Pass, Place};
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::transformer::Training;
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Group;
use crate::workload::program::{Account, Program, Work};
use crate::workload::share::Share;

/// See the module.
pub struct ExpertTensor;

impl ParallelStrategy for ExpertTensor {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let Training { model, plan, .. } = training;
        if model.experts == 0 || model.moe_ffn.is_multiple_of(plan.etp) {
            Ok(())
        } else {
            Err(Infeasible::new(Reason::ExpertPerTensor, real(model.moe_ffn), real(plan.etp)))
        }
    }

    /// Matrices by t_e, and as many times the token-expert pairs: a rank has those of its whole group.
    ///
    /// Worked: n = 8,192 tokens, kappa = 2, t = 8: 2,048 pairs at t_e = 1, 16,384 at t_e = 8, whatever e is.
    fn divide(&self, training: &Training, share: &mut Share) {
        let degree = real(training.plan.etp);
        share.expert_tensor = degree;
        share.experts /= degree;
        share.routed *= degree;
    }

    /// An all-gather of w r h bytes before the experts and a reduce-scatter of as many behind them, r the token-expert pairs of the
    /// group; the backward pass does the same the other way round.
    fn emit(&self, place: Place, pass: Pass, training: &Training, share: &Share, program: &mut Program) {
        if training.plan.etp == 1 || !matches!(place, Place::ExpertMatrices | Place::ExpertMatricesEnd) {
            return;
        }
        let gathers = (place == Place::ExpertMatrices) == (pass == Pass::Forward);
        let collective = if gathers { Collective::AllGather } else { Collective::ReduceScatter };
        let size = Bytes::from_real(training.precision.activation * share.routed * real(training.model.hidden));
        program.push(Work::Collective { collective, group: Group::ExpertTensor, size }, Account::Tensor);
    }

    fn summary(&self) -> &'static str {
        "etp: matrices of routed experts split over ranks of their own, a gather and a scatter of tokens a layer and pass [Shoeybi19]"
    }

    fn example(&self) -> &'static str {
        "`etp: 8` in place of 1: eight times the pairs, 16,384, at an eighth of each expert; gathers and scatters of 134 MB"
    }
}
