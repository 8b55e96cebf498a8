//! One layer of the model: its operations with their shapes, forward and backward.

use super::program::{Account, Program, Work};
use super::recompute::{Part, Recompute};
use super::share::Share;
use super::strategy::{Pass, Place, Strategy};
use super::transformer::{Latent, Training};
use crate::system::kernel::{Attention, Kernel, Product, Scores};
use crate::units::{Bytes, real};

/// Flash attention computes the scores again: five products instead of two [Dao22].
const FLASH_BACKWARD: f64 = 2.5;
/// A backward pass multiplies twice what the forward pass did: for the gradients of both factors [Narayanan21].
const BACKWARD: f64 = 2.0;
/// Bytes a score that unfused attention moves, forward and backward [StepFit].
const SCORE_TRAFFIC: [f64; 2] = [8.0, 12.5];
/// Bytes an element of a hidden vector that norms, residuals and dropout of a layer move, forward, with and without flash
/// attention, with which frameworks began to fuse them [StepFit].
const VECTOR_TRAFFIC: [f64; 2] = [9.0, 21.0];
/// How much more of it there is in the backward pass [StepFit].
const BACKWARD_TRAFFIC: f64 = 1.6;
/// Bytes an element of heads that rotary embeddings and transposes move, and of the MLP's width that its activation does.
const ROTATED: f64 = 3.0;
/// See [`ROTATED`]; backward half as much again.
const ACTIVATED: f64 = 1.5;
/// Bytes an element that casts to 8 bits and fewer move: of a linear layer's input forward, of its output's gradient backward.
const CAST: [f64; 2] = [2.6, 3.3];
/// Bytes an element of a token sent to an expert that sorting tokens by expert, and back, moves [StepFit].
const PERMUTED: f64 = 12.0;
/// Bytes a logit that the loss moves, in each pass [StepFit].
const LOGIT_TRAFFIC: f64 = 9.0;
/// Of a block whose attention and MLP have one norm and one residual together, the share of element-wise traffic [Narayanan21].
const PARALLEL_BLOCK: f64 = 0.7;
/// Kernels of the element-wise operations of a layer, forward and backward [StepFit].
const LAUNCHES: [f64; 2] = [9.0, 13.0];
/// Bytes an element of a hidden vector that a norm moves: read and written in 2 bytes.
const NORM_TRAFFIC: f64 = 4.0;
/// Kernels of the norms of a layer.
const NORM_LAUNCHES: f64 = 2.0;
/// Kernels of unfused attention, forward and backward [StepFit].
const SCORE_LAUNCHES: [f64; 2] = [5.0, 8.0];
/// Operations that the host sends for a layer, forward and backward [StepFit].
const DISPATCHES: [f64; 2] = [25.0, 45.0];
/// Of those of a backward pass the gradients of weights are a third: of each linear layer one of two products, and nothing of the rest.
const OF_WEIGHTS: f64 = 1.0 / 3.0;
/// Tokens of a product are padded to a multiple of so many.
const ALIGNED: f64 = 64.0;
/// And for every doubling of a tensor group, a collective.
const COLLECTIVE_DISPATCHES: f64 = 1.5;

/// Places before and behind the matrices of an MLP that every token meets.
const DENSE: [&[Place]; 2] = [&[Place::Mlp], &[Place::MlpEnd]];
/// None: for matrices that are computed again from what is kept.
const NOWHERE: [&[Place]; 2] = [&[], &[]];
/// The same of routed experts.
const ROUTED: [&[Place]; 2] =
    [&[Place::Experts, Place::ExpertMatrices], &[Place::ExpertMatricesEnd, Place::ExpertsEnd]];

/// Writes the operations of a layer, or of the ends of the model, in one pass.
pub struct Writer<'a> {
    /// The job.
    pub training: &'a Training,
    /// What one NPU has of it.
    pub share: &'a Share,
    /// Where operations go.
    pub program: &'a mut Program,
    /// Which pass.
    pub pass: Pass,
    /// On whose account computations are.
    pub account: Account,
    /// The part of each linear layer that is computed.
    pub part: f64,
    /// Whether a backward pass leaves the gradients of weights to a pass of their own.
    pub splits: bool,
}

impl Writer<'_> {
    /// A whole layer.
    pub fn layer(&mut self, moe: bool) {
        self.attention();
        if moe {
            self.experts();
        } else {
            self.dense_mlp();
        }
        self.element_wise(moe);
    }

    /// A whole layer once more. Where that ends early, a dense layer's last product and what its group does with it are left out: nothing
    /// that the backward pass needs comes of them. What experts give is needed, for the gradients of their weights in the sum.
    pub fn layer_again(&mut self, moe: bool) {
        if moe || !self.training.plan.early_stop {
            return self.layer(moe);
        }
        let Training { model, .. } = self.training;
        self.attention();
        for place in DENSE[0] {
            self.emit(*place);
        }
        let width = real(model.mlp.matrices() - 1) * real(model.ffn) / self.share.tensor;
        self.linear(self.share.tokens, width, real(model.hidden), 1.0);
        self.element_wise(moe);
    }

    /// Attention: projections inwards, its core, the projection outwards. What strategies say stands before the computation that
    /// may hide it.
    fn attention(&mut self) {
        self.emit(Place::Attention);
        self.projections();
        self.core();
        self.emit(Place::AttentionEnd);
        self.outward();
    }

    /// The projection of attention back to the hidden vector.
    fn outward(&mut self) {
        let model = &self.training.model;
        let heads = real(model.heads * model.value_dim) / self.share.tensor;
        self.linear(self.share.tokens, real(model.hidden), heads, 1.0);
    }

    /// Projections of attention to queries, keys and values.
    fn projections(&mut self) {
        let Training { model, .. } = self.training;
        let share = self.share;
        let (tokens, hidden) = (share.tokens, real(model.hidden));
        let heads = real(model.heads) / share.tensor;
        if let Some(latent) = model.latent {
            if latent.q_rank > 0 {
                self.linear(tokens, real(latent.q_rank), hidden, 1.0);
            } else {
                self.linear(tokens, heads * real(model.query_dim()), hidden, 1.0);
            }
            self.linear(tokens, real(latent.kv_rank + latent.rope_dim), hidden, 1.0);
            self.latent_up(latent);
        } else {
            let keys_values = share.kv_heads * real(model.head_dim + model.value_dim);
            self.linear(tokens, heads * real(model.head_dim) + keys_values, hidden, 1.0);
        }
    }

    /// From latent vectors to queries, keys and values.
    fn latent_up(&mut self, latent: Latent) {
        let Training { model, .. } = self.training;
        let (tokens, heads) = (self.share.tokens, real(model.heads) / self.share.tensor);
        if latent.q_rank > 0 {
            self.linear(tokens, heads * real(model.query_dim()), real(latent.q_rank), 1.0);
        }
        self.linear(tokens, heads * real(model.head_dim + model.value_dim), real(latent.kv_rank), 1.0);
    }

    /// Scores, softmax and weighted sum.
    pub fn core(&mut self) {
        self.emit(Place::Core);
        self.emit(Place::CoreEnd);
        if self.pass == Pass::Weights {
            return;
        }
        let Training { model, plan, seq_len, .. } = self.training;
        let flops = model.core_flops(plan.micro_batch_size, *seq_len, plan.flash_attention)
            / (self.share.tensor * self.share.context);
        let head = f64::midpoint(real(model.query_dim()), real(model.value_dim));
        let at = usize::from(self.pass == Pass::Backward);
        let kernel = if plan.flash_attention {
            let [flops, launches] = [[flops, 1.0], [flops * FLASH_BACKWARD, 2.0]][at];
            Kernel::Attention(Attention { flops, head, launches })
        } else {
            let scores = self.share.tokens * real(*seq_len) * real(model.heads) / self.share.tensor;
            let flops = [flops, flops * BACKWARD][at];
            let moved = SCORE_TRAFFIC[at] * scores;
            Kernel::Scores(Scores { flops, moved, head, launches: SCORE_LAUNCHES[at] })
        };
        self.kernel(kernel);
    }

    /// Some parts of a layer.
    ///
    /// Flash attention keeps no scores, and its core is not computed again.
    pub fn parts(&mut self, parts: Recompute, moe: bool) {
        let Training { model, plan, .. } = self.training;
        if parts.has(Part::Norms) {
            self.again(2.0 * NORM_TRAFFIC * self.share.outer_tokens * real(model.hidden), NORM_LAUNCHES);
        }
        if let Some(latent) = model.latent.filter(|_| parts.has(Part::LatentUp)) {
            self.latent_up(latent);
        }
        if parts.has(Part::CoreAttention) && !plan.flash_attention {
            self.core();
        }
        let activated = self.activations()[usize::from(moe)];
        let [whole, activation] = if moe { [Part::Moe, Part::MoeActivation] } else { [Part::Mlp, Part::MlpActivation] };
        if parts.has(whole) {
            if moe { self.experts() } else { self.dense_mlp() }
        } else if moe && parts.has(Part::SharedExperts) {
            self.shared_experts(DENSE);
        }
        if parts.has(whole) || parts.has(activation) {
            self.again(activated, 1.0);
        }
    }

    /// What is element-wise, and moves so many bytes.
    fn again(&mut self, moved: f64, launches: f64) {
        self.kernel(Kernel::ElementWise { moved: Bytes::from_real(moved), launches });
    }

    /// Every second linear layer, as half of each, and what is element-wise: attention and the rest is kept.
    pub fn alternate(&mut self, moe: bool) {
        let Training { model, plan, .. } = self.training;
        let share = self.share;
        self.part = 0.5;
        self.projections();
        self.outward();
        if moe {
            self.shared_experts(NOWHERE);
            let experts = (real(model.experts) / real(plan.ep)).max(1.0);
            self.mlp(share.routed / experts, real(model.moe_ffn) / share.expert_tensor, experts, NOWHERE);
        } else {
            self.mlp(share.tokens, real(model.ffn) / share.tensor, 1.0, NOWHERE);
        }
        self.part = 1.0;
        self.element_wise(moe);
    }

    /// The MLP of a dense layer.
    fn dense_mlp(&mut self) {
        let width = real(self.training.model.ffn) / self.share.tensor;
        self.mlp(self.share.tokens, width, 1.0, DENSE);
    }

    /// Shared experts, if there are any.
    fn shared_experts(&mut self, places: [&[Place]; 2]) {
        let model = &self.training.model;
        if model.shared_experts > 0 {
            let width = real(model.shared_experts * model.moe_ffn) / self.share.tensor;
            self.mlp(self.share.tokens, width, 1.0, places);
        }
    }

    /// Shared experts and router beside routed experts between two all-to-alls.
    fn experts(&mut self) {
        let Training { model, plan, .. } = self.training;
        let share = self.share;
        self.shared_experts(DENSE);
        let experts = (real(model.experts) / real(plan.ep)).max(1.0);
        let width = real(model.moe_ffn) / share.expert_tensor;
        self.mlp(share.routed / experts, width, experts, ROUTED);
        if self.pass == Pass::Weights {
            return;
        }
        let moved = Bytes::from_real(PERMUTED * share.routed * real(model.hidden));
        self.kernel(Kernel::ElementWise { moved, launches: LAUNCHES[0] });
    }

    /// The linear layers of `count` MLPs of a width, each on so many tokens.
    fn mlp(&mut self, tokens: f64, width: f64, count: f64, [begin, end]: [&[Place]; 2]) {
        let Training { model, .. } = self.training;
        let hidden = real(model.hidden);
        let inward = real(model.mlp.matrices() - 1);
        for &place in begin {
            self.emit(place);
        }
        self.linear(tokens, inward * width, hidden, count);
        for &place in end {
            self.emit(place);
        }
        self.linear(tokens, hidden, width, count);
    }

    /// Norms, residuals, rotary embedding, activation function.
    fn element_wise(&mut self, moe: bool) {
        let Training { model, plan, .. } = self.training;
        let share = self.share;
        let heads = real(model.heads) / share.tensor + 2.0 * share.kv_heads;
        let rotated = ROTATED * share.tokens * heads * real(model.query_dim());
        let activated = self.activations()[usize::from(moe)];
        let vectors = VECTOR_TRAFFIC[usize::from(!plan.flash_attention)] * share.outer_tokens * real(model.hidden);
        let (moved, launches) = match self.pass {
            Pass::Forward => (vectors + rotated + activated, LAUNCHES[0]),
            Pass::Backward => (BACKWARD_TRAFFIC * vectors + rotated + 1.5 * activated, LAUNCHES[1]),
            Pass::Weights => return,
        };
        let moved = if model.parallel_block { moved * PARALLEL_BLOCK } else { moved };
        self.kernel(Kernel::ElementWise { moved: Bytes::from_real(moved), launches });
    }

    /// Bytes that activation functions move forward, of a dense layer and of one with experts.
    fn activations(&self) -> [f64; 2] {
        let model = &self.training.model;
        let share = self.share;
        let shared = share.tokens * real(model.shared_experts * model.moe_ffn) / share.tensor;
        let routed = share.routed * real(model.moe_ffn) / share.expert_tensor + shared;
        [share.tokens * real(model.ffn) / share.tensor, routed]
            .map(|width| ACTIVATED * real(model.mlp.matrices()) * width)
    }

    /// The embedding: a look-up.
    pub fn embedding(&mut self) {
        let Training { model, precision, .. } = self.training;
        let moved = Bytes::from_real(2.0 * precision.activation * self.share.tokens * real(model.hidden));
        if self.pass != Pass::Weights {
            self.kernel(Kernel::Stream { moved });
        }
        self.emit(Place::Embedding);
    }

    /// The output head and the loss.
    pub fn head(&mut self) {
        let Training { model, .. } = self.training;
        let share = self.share;
        self.emit(Place::Head);
        let words = real(model.vocab) / share.tensor;
        self.products(share.tokens, words, real(model.hidden), 1.0, false);
        let moved = Bytes::from_real(LOGIT_TRAFFIC * share.tokens * words);
        if self.pass != Pass::Weights {
            self.kernel(Kernel::Stream { moved });
        }
    }

    /// A linear layer in the format of the job: n inputs of depth K to n outputs of C columns, `count` times in one kernel.
    fn linear(&mut self, tokens: f64, columns: f64, depth: f64, count: f64) {
        let is_cast = self.training.precision.compute.is_cast();
        let columns = columns * self.part;
        self.products(tokens, columns, depth, count, is_cast);
        if is_cast {
            let moved = match self.pass {
                Pass::Forward => CAST[0] * tokens * depth * count,
                Pass::Backward => CAST[1] * tokens * columns * count,
                Pass::Weights => return,
            };
            self.kernel(Kernel::Stream { moved: Bytes::from_real(moved) });
        }
    }

    /// The products of a linear layer: n x K by K x C forward; n x C by C x K and K x n by n x C backward.
    fn products(&mut self, tokens: f64, columns: f64, depth: f64, count: f64, is_cast: bool) {
        let efficiency = if is_cast { self.training.precision.product_efficiency } else { 1.0 };
        let product =
            |rows, columns, depth| Kernel::Product(Product { rows, columns, depth, count, is_cast, efficiency });
        if self.pass == Pass::Forward {
            self.kernel(product(tokens, columns, depth));
        }
        if self.pass == Pass::Backward {
            self.kernel(product(tokens, depth, columns));
        }
        if self.pass == Pass::Weights || self.pass == Pass::Backward && !self.splits {
            // What is summed over tokens is padded with zeros.
            self.kernel(product(depth, columns, (tokens / ALIGNED).ceil() * ALIGNED));
        }
    }

    /// A computation.
    pub fn kernel(&mut self, kernel: Kernel) {
        self.program.push(Work::Compute(kernel), self.account);
    }

    /// What strategies do at a place.
    pub fn emit(&mut self, place: Place) {
        for strategy in Strategy::ALL {
            strategy.part().emit(place, self.pass, self.training, self.share, self.program);
        }
    }
}

/// Operations that the host sends in one pass of a layer.
#[must_use]
pub fn dispatches(training: &Training, pass: Pass) -> f64 {
    let [forward, backward] = DISPATCHES;
    let own = match pass {
        Pass::Forward => forward,
        Pass::Backward if training.plan.schedule.part().splits() => backward * (1.0 - OF_WEIGHTS),
        Pass::Backward => backward,
        Pass::Weights => return backward * OF_WEIGHTS,
    };
    let collectives = 2.0 * COLLECTIVE_DISPATCHES * real(u64::from(training.plan.tp.max(1).ilog2()));
    own + collectives
}
