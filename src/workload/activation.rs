//! Activations: the bytes that one layer keeps of one microbatch until its backward pass.

use super::plan::ContextKind;
use super::recompute::{Part, Recompute};
use super::share::{Kept, Share};
use super::transformer::Training;
use crate::units::real;

/// A dropout mask has a byte an element.
pub const MASK: f64 = 1.0;
/// Flash attention keeps one fp32 statistic a row and head.
const ROW_STATISTIC: f64 = 4.0;
/// Router logits are kept in fp32.
const ROUTER_LOGIT: f64 = 4.0;

/// Bytes kept in a layer by a microbatch on one NPU.
///
/// With w bytes an element, n tokens inside and o between tensor-parallel operations (o = n / t with sequence
/// parallelism), heads and widths divided by t:
///
/// ```text
/// attention  w o h (norm) + w o h (input) + w n (a d_q + k (d_q + d_v)) / t + w n a d_v / t + 2 w o (r + c) (+ o h mask)
/// core       w n a s / t (scores; + (w + 1) n a s / t with dropout), or 4 n a / t with flash attention
/// MLP        w o h (norm) + w o h (input) + g' n f / t with g' = 2 w, gated 3 w (+ o h mask)
/// experts    w o h (norm) + w o h (input) + 2 w r h + g' r f_e / t_e + 4 o E, for r token-expert pairs
/// ```
///
/// which for multi-head attention, f = 4 h, dropout, w = 2 is s b h (34 + 5 a s / h) at t = 1 [Korthikanti22, table 2].
/// d_q and d_v are d, but where attention is latent: then d_q = d + d_r, and the latent vectors, of ranks r and c, are kept
/// before and behind their norms [DeepSeek24]. A window changes nothing of what is kept.
/// Context parallelism divides n and o by c; keys and values that come from other ranks, 2 w n k d / t where they are gathered and
/// 2 w (n / c) k d / t where they go round, live as long as one layer's core. Full recomputation keeps the input of each layer, w o h, and one layer's set while it is computed again.
#[must_use]
pub fn kept(training: &Training, share: &Share) -> Kept {
    let Training { model, plan, precision, seq_len, .. } = training;
    let element = precision.activation;
    let mask = if model.dropout { MASK } else { 0.0 };
    let hidden = real(model.hidden);
    let vector = element * share.outer_tokens * hidden;
    let masked = mask * share.outer_tokens * hidden;
    let heads = real(model.heads) / share.tensor;
    let [query_dim, value_dim] = [model.query_dim(), model.value_dim].map(real);

    let query_key_value = element * share.tokens * (heads * query_dim + share.kv_heads * (query_dim + value_dim));
    let projection_input = element * share.tokens * heads * value_dim;
    let latents = 2.0 * element * share.outer_tokens * real(model.latent_dim());

    let dropped = if model.dropout { element + MASK } else { 0.0 };
    let core = if plan.flash_attention {
        ROW_STATISTIC * share.tokens * heads
    } else {
        (element + dropped) * share.tokens * real(*seq_len) * heads
    };

    let before = real(model.mlp.matrices() - 1) * element;
    let ffn = share.tokens * real(model.ffn) / share.tensor;
    let expert = share.routed * real(model.moe_ffn) / share.expert_tensor;
    let shared = (before + element) * share.tokens * real(model.shared_experts * model.moe_ffn) / share.tensor;
    let sent = 2.0 * element * share.routed * hidden + ROUTER_LOGIT * share.outer_tokens * real(model.experts);

    let parts = plan.recompute;
    let again = |part| parts.has(part);
    // Behind one norm both halves of a layer have one input.
    let [norm, input] = if model.parallel_block { [0.0; 2] } else { [vector; 2] };
    let attention = Half::of(
        vector + latents + projection_input + masked,
        [
            (vector, again(Part::Norms)),
            (query_key_value, again(Part::LatentUp) && model.latent.is_some()),
            // Flash attention keeps no scores, and its statistics stay.
            (core, again(Part::CoreAttention) && !plan.flash_attention),
        ],
    );
    let mlp = Half::of(
        norm + masked,
        [
            (input, again(Part::Norms) && !again(Part::Mlp)),
            (before * ffn, again(Part::Mlp)),
            (element * ffn, again(Part::Mlp) || again(Part::MlpActivation)),
        ],
    );
    let moe = Half::of(
        norm + masked,
        [
            (input, again(Part::Norms) && !again(Part::Moe)),
            (sent + before * expert, again(Part::Moe)),
            (shared, again(Part::Moe) || again(Part::SharedExperts)),
            (element * expert, again(Part::Moe) || again(Part::MoeActivation)),
        ],
    );

    let key_value = element * share.tokens * share.kv_heads * (query_dim + value_dim);
    let received = match plan.cp_kind {
        ContextKind::Ring if plan.cp > 1 => key_value,
        ContextKind::AllGather if plan.cp > 1 => key_value * share.context,
        _ => 0.0,
    };

    // Backward, behind the product outwards: gradients of a layer's output and of what its MLP has on both sides of its activation.
    let larger = |dense: f64, moe: f64| if model.experts > 0 { dense.max(moe) } else { dense };
    let gradients = vector + larger(before * ffn, before * expert + element * share.routed * hidden);

    let [dense, with_experts] = [mlp, moe].map(|half| attention.kept + half.kept);
    let (dense, moe, working) = match parts {
        Recompute::ALTERNATE => {
            let [dense, moe] = [dense, with_experts].map(|whole| 0.5 * (whole - core));
            (dense + core, moe + core, larger(dense, moe))
        }
        Recompute::FULL => (vector, vector, larger(dense, with_experts)),
        _ => (dense, with_experts, attention.again.max(larger(mlp.again, moe.again))),
    };
    Kept { dense, moe, working, gradients, received }
}

/// What half of a layer, attention or what follows it, leaves behind.
#[derive(Clone, Copy)]
struct Half {
    /// Bytes kept.
    kept: f64,
    /// Bytes that are there again while its backward pass goes on.
    again: f64,
}

impl Half {
    /// Bytes that are kept always, and others with whether they are computed again.
    fn of<const PARTS: usize>(always: f64, parts: [(f64, bool); PARTS]) -> Self {
        let sum = |is_again: bool| parts.iter().filter(|part| part.1 == is_again).map(|part| part.0).sum::<f64>();
        Self { kept: always + sum(false), again: sum(true) }
    }
}
