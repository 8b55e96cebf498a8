//! Recomputation: keep less of the forward pass and compute it again in the backward pass [Korthikanti22].

use super::ParallelStrategy;
use crate::workload::activation;
use crate::workload::share::Share;
use crate::units::real;
use crate::workload::transformer::Training;
use crate::workload::recompute::Part;
use crate::workload::transformer::FLOPS_PER_WEIGHT;

/// See the module. What is computed again is added by `build`, which writes each layer's passes.
pub struct Recomputation;

/// Arithmetic of a step that the backward pass does again, by the convention of model FLOPs: causal, all experts of a token.
///
/// ```text
/// full        matrices + core of all layers        selective   core      alternate   matrices / 2        [Korthikanti22]
/// ```
///
/// each forward; of other parts their matrices. What a fused kernel of attention computes twice by itself is no recomputation of the
/// plan, so with it selective does nothing again. Worked: GPT-3 at 2,048 tokens, full: a third of 72 (1 + s / 12 h) of
/// 72 (1 + s / 12 h + V / 12 L h), 33.2 % more.
#[must_use]
pub fn flops_again(training: &Training) -> f64 {
    let Training { model, plan, seq_len, .. } = training;
    let again = plan.recompute;
    let core = || model.core_flops_per_token(*seq_len);
    let moe = model.moe_layers_before(model.layers);
    let matrices = |layers: u64, weights: f64| FLOPS_PER_WEIGHT * real(layers) * weights;
    let of_part = |part: Part| match part {
        Part::Layer => model.matrix_flops_per_token() + core(),
        Part::Alternate => 0.5 * model.matrix_flops_per_token(),
        Part::CoreAttention if !plan.flash_attention => core(),
        Part::LatentUp => matrices(model.layers, model.latent_up_parameters()),
        Part::Mlp => matrices(model.layers - moe, model.mlp_parameters()),
        Part::Moe => matrices(moe, real(model.topk + model.shared_experts) * model.expert_parameters()),
        Part::SharedExperts if !again.has(Part::Moe) => {
            matrices(moe, real(model.shared_experts) * model.expert_parameters())
        }
        // Memory traffic alone, or done with another part.
        Part::CoreAttention | Part::SharedExperts | Part::Norms | Part::MlpActivation | Part::MoeActivation => 0.0,
    };
    again.parts().map(of_part).sum::<f64>() * real(training.tokens())
}

impl ParallelStrategy for Recomputation {
    fn divide(&self, training: &Training, share: &mut Share) {
        share.kept = activation::kept(training, share);
    }

    fn summary(&self) -> &'static str {
        "recompute: none, selective (the core of attention), full (every layer from its input), alternate, or Megatron's modules, as `layernorm+moe_act` [Korthikanti22]"
    }

    fn example(&self) -> &'static str {
        "4 sequences of 2,048 at a width of 6,144, 64 heads, dropout, `tp: 8`: a layer keeps 885 MB; 214 MB without the core, 13 MB from its input"
    }
}
