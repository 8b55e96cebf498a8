//! Context parallelism: each rank of the group has a part of every sequence, and attention needs the keys and values of the others [Liu23].

use super::{ParallelStrategy, Pass, Place};
use crate::system::collective::Collective;
use crate::units::{Bytes, real};
use crate::workload::transformer::Training;
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::Group;
use crate::workload::plan::ContextKind;
use crate::workload::program::{Account, Beside, Program, Work};
use crate::workload::share::Share;

/// Parts of a sequence that a rank has: an early and a late one, so that all ranks have as many pairs of tokens that causality
/// does not hide [Dubey24].
const BALANCED: u64 = 2;

/// See the module.
pub struct Context;

impl ParallelStrategy for Context {
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let Training { model, plan, seq_len, .. } = training;
        if plan.cp == 1 {
            return Ok(());
        }
        let divides = |reason, whole: u64, parts: u64| {
            if whole.is_multiple_of(parts) { Ok(()) } else { Err(Infeasible::new(reason, real(whole), real(parts))) }
        };
        match plan.cp_kind {
            ContextKind::Ring | ContextKind::AllGather => {
                divides(Reason::SequencePerContext, *seq_len, BALANCED * plan.cp)?;
            }
            ContextKind::AllToAll => {
                divides(Reason::SequencePerContext, *seq_len, plan.cp)?;
                divides(Reason::HeadsPerContext, model.heads, plan.tp * plan.cp)?;
            }
        }
        let parts = if plan.sequence_parallel { plan.tp * plan.cp } else { plan.cp };
        divides(Reason::SequencePerContext, *seq_len, parts)
    }

    /// Tokens, and what is done with pairs of them, by c.
    fn divide(&self, training: &Training, share: &mut Share) {
        let degree = real(training.plan.cp);
        share.context = degree;
        share.tokens /= degree;
        share.outer_tokens /= degree;
        share.routed /= degree;
    }

    /// What the core of attention needs of other ranks, and gives them back. With w bytes an element, n tokens of a microbatch, a
    /// and k heads of d on an NPU:
    ///
    /// ```text
    /// ring        2 w (n / c) k d to the next rank, c - 1 times; back keys, values and their gradients          [Liu23]
    /// all_gather  an all-gather of 2 w n k d; back another, and a reduce-scatter of the gradients               [Dubey24]
    /// all_to_all  w (n / c) d of a query heads, and of k key and of k value heads; w (n / c) a d of the output;
    ///             back the same of the gradients                                                                [Jacobs23]
    /// ```
    ///
    /// A ring sends what an all-gather does, so it is one here, and gradients go round as a reduce-scatter, beside the blocks of
    /// attention. Heads that are fewer than c are repeated.
    ///
    /// Worked: n = 8,192, c = 4, k = 8, a = 64, d = 128, w = 2. A rank sends 3 * 8.4 MB = 25.2 MB in a ring, forward, and twice
    /// that back; by all-to-alls 3/4 of 33.6 + 4.2 + 4.2 + 33.6 MB = 56.6 MB each way.
    fn emit(&self, place: Place, pass: Pass, training: &Training, share: &Share, program: &mut Program) {
        let Training { model, plan, precision, .. } = training;
        if plan.cp == 1 || pass == Pass::Weights || !matches!(place, Place::Core | Place::CoreEnd) {
            return;
        }
        let enters = place == Place::Core;
        let [query, value] = [model.query_dim(), model.value_dim].map(real);
        let mut push = |collective, tokens: f64, width: f64| {
            let size = Bytes::from_real(precision.activation * tokens * width);
            let work = Work::Collective { collective, group: Group::Context, size };
            if plan.cp_kind == ContextKind::Ring {
                program.push_beside(work, Account::Context, Beside::Next);
            } else {
                program.push(work, Account::Context);
            }
        };
        match plan.cp_kind {
            ContextKind::Ring | ContextKind::AllGather => {
                let width = share.kv_heads * (query + value);
                let whole = share.tokens * share.context;
                match (pass, enters) {
                    (Pass::Forward, true) | (Pass::Backward, false) => push(Collective::AllGather, whole, width),
                    (Pass::Backward, true) => push(Collective::ReduceScatter, whole, width),
                    (Pass::Forward, false) | (Pass::Weights, _) => {}
                }
            }
            ContextKind::AllToAll => {
                let heads = real(model.heads) / share.tensor;
                push(Collective::AllToAll, share.tokens, heads * if enters { query } else { value });
                for width in [query, value].into_iter().filter(|_| enters) {
                    push(Collective::AllToAll, share.tokens, share.kv_heads.max(share.context) * width);
                }
            }
        }
    }

    fn summary(&self) -> &'static str {
        "cp, cp_kind: every sequence split over the group; keys and values go round, are gathered, or heads are exchanged [Liu23]"
    }

    fn example(&self) -> &'static str {
        "8,192 tokens, `cp: 4`, 8 key and 8 value heads of 128: a rank sends 25 MB a layer forward and 50 MB back"
    }
}
