//! Tensor parallelism: every matrix is split over the group, with or without the sequence between them [Korthikanti22].

use super::{ParallelStrategy, Pass, Place};
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Group;
use crate::workload::program::{Account, Beside, Program, Work};
use crate::workload::share::Share;
use crate::workload::transformer::Training;

/// See the module.
pub struct Tensor;

impl ParallelStrategy for Tensor {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let Training { model, plan, seq_len, .. } = training;
        let divides = |reason, whole: u64| {
            if whole.is_multiple_of(plan.tp) { Ok(()) } else { Err(Infeasible::new(reason, real(whole), real(plan.tp))) }
        };
        divides(Reason::HeadsPerTensor, model.heads)?;
        divides(Reason::MlpPerTensor, model.ffn)?;
        if plan.sequence_parallel {
            divides(Reason::SequencePerTensor, *seq_len)?;
        }
        Ok(())
    }

    /// Every matrix by t, but for norms and what makes latent vectors; key and value heads are repeated where there are fewer than t.
    fn divide(&self, training: &Training, share: &mut Share) {
        let Training { model, plan, .. } = training;
        let degree = real(plan.tp);
        share.tensor = degree;
        share.kv_heads = real(model.kv_heads.max(plan.tp)) / degree;
        share.attention = model.attention_parameters_of(real(model.heads) / degree, share.kv_heads);
        share.mlp /= degree;
        share.shared = (share.shared - model.router_parameters()) / degree + model.router_parameters();
        share.embedding /= degree;
        if plan.sequence_parallel {
            share.outer_tokens = share.tokens / degree;
        }
        // Each rank of the group routes its part of the sequence to whole experts.
        share.routed /= degree;
    }

    /// Two all-reduces of w n h bytes a layer and pass; with sequence parallelism each is a reduce-scatter and an
    /// all-gather, which moves the same bytes [Korthikanti22]. The extra all-gather that re-reads inputs for weight
    /// gradients is hidden beneath the activation gradients and not modelled here.
    fn emit(&self, place: Place, pass: Pass, training: &Training, share: &Share, program: &mut Program) {
        let Training { model, plan, precision, .. } = training;
        if plan.tp == 1 || pass == Pass::Weights {
            return;
        }
        let enters = match place {
            Place::Attention | Place::Mlp | Place::Head => true,
            Place::AttentionEnd | Place::MlpEnd | Place::Embedding => false,
            _ => return,
        };
        // One norm and one sum for both halves of the layer.
        if model.parallel_block && matches!(place, Place::AttentionEnd | Place::Mlp) {
            return;
        }
        // A pass gathers where it enters split matrices and sums where it leaves them.
        let gathers = enters == (pass == Pass::Forward);
        let collective = match (plan.sequence_parallel, gathers) {
            (true, true) => Collective::AllGather,
            (true, false) => Collective::ReduceScatter,
            (false, true) => return,
            (false, false) => Collective::AllReduce,
        };
        let element = if collective == Collective::AllGather { precision.gathered() } else { precision.activation };
        let size = Bytes::from_real(element * share.tokens * real(model.hidden));
        let work = Work::Collective { collective, group: Group::Tensor, size };
        // Back, a sum over the group runs beside the products for the gradients of weights, unless these are made apart; what is
        // gathered is needed at once.
        let has_products = pass == Pass::Backward && !gathers && !plan.schedule.part().splits();
        if plan.overlap_tp || plan.overlap_tp_backward && has_products {
            program.push_beside(work, Account::Tensor, Beside::Next);
        } else {
            program.push(work, Account::Tensor);
        }
    }

    fn summary(&self) -> &'static str {
        "tp: every matrix split over the group, two all-reduces a layer and pass [Korthikanti22]"
    }

    fn example(&self) -> &'static str {
        "8,192 tokens of 8,192 elements of 2 B: all-reduces of 134 MB, two a layer and pass; with sequence parallelism as much in gathers and scatters"
    }
}
