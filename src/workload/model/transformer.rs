//! Transformers: their shape, and what follows from it: parameters and arithmetic. Strategies divide their layers.

use super::Family;
use crate::system::System;
use crate::units::real;
use crate::workload::build::training_step;
use crate::workload::check::fits;
use crate::workload::footprint::{Footprint, in_tiers};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::program::Program;
use crate::workload::share::Share;
use crate::workload::strategy::{Strategy, recompute};

/// A step of training a transformer.
pub type Training = crate::workload::Training<Transformer>;

/// The two linear layers of an MLP, or three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mlp {
    /// Up, GELU, down.
    Gelu,
    /// Gate and up, product, down.
    Gated,
    /// Up, squared ReLU, down.
    Relu2,
}

impl Mlp {
    /// Every kind, in the order of [`Mlp::NAMES`].
    pub const ALL: [Self; 3] = [Self::Gelu, Self::Gated, Self::Relu2];
    /// The names that people write.
    pub const NAMES: [&'static str; 3] = ["gelu", "gated", "relu2"];

    /// How many matrices it has.
    #[must_use]
    pub const fn matrices(self) -> u64 {
        match self {
            Self::Gated => 3,
            Self::Gelu | Self::Relu2 => 2,
        }
    }
}

/// Latent attention: queries, keys and values are made of vectors of low rank, and a part of each head carries the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latent {
    /// Rank of queries; 0 if they are made of the hidden vector.
    pub q_rank: u64,
    /// Rank of keys and values.
    pub kv_rank: u64,
    /// Elements of a query's and a key's head that carry the position, beside `head_dim`.
    pub rope_dim: u64,
}

/// A decoder-only transformer. Symbols as in the literature: L layers, h hidden, a heads, k kv heads, d head size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transformer {
    /// L.
    pub layers: u64,
    /// h.
    pub hidden: u64,
    /// a, query heads.
    pub heads: u64,
    /// k, key and value heads.
    pub kv_heads: u64,
    /// d; a * d need not be h.
    pub head_dim: u64,
    /// Size of a head of values: d, but where attention is latent.
    pub value_dim: u64,
    /// Latent attention, if it is.
    pub latent: Option<Latent>,
    /// Tokens that a token sees in layers with a window; none if all layers see all.
    pub window: Option<u64>,
    /// Every how many layers one sees all tokens, where there is a window; 0 if none does.
    pub full_attention_every: u64,
    /// Whether attention and MLP stand beside each other, behind one norm.
    pub parallel_block: bool,
    /// Width of the MLP.
    pub ffn: u64,
    /// Kind of the MLP.
    pub mlp: Mlp,
    /// Vocabulary.
    pub vocab: u64,
    /// Whether the output head is the embedding.
    pub tied_embeddings: bool,
    /// Whether positions are learned, one vector each.
    pub learned_positions: bool,
    /// Whether dropout masks are kept.
    pub dropout: bool,
    /// Routed experts of a mixture-of-experts layer; 0 for a dense model.
    pub experts: u64,
    /// Experts that a token is sent to.
    pub topk: u64,
    /// Experts that every token passes.
    pub shared_experts: u64,
    /// Width of an expert.
    pub moe_ffn: u64,
    /// Every how many layers one is a mixture of experts.
    pub moe_every: u64,
    /// Leading layers that are dense.
    pub dense_layers: u64,
    /// Room of an expert over the mean of its tokens; none if no token is dropped.
    pub capacity_factor: Option<f64>,
}

impl Family for Transformer {
    const LEVERS: &'static [&'static str] = Reason::Memory.levers();

    const HAS_SEQUENCES: bool = true;

    fn check(&self) -> Result<(), Infeasible> {
        self.check()
    }

    fn parameters(&self, seq_len: u64) -> f64 {
        self.parameters(seq_len)
    }

    fn flops_per_token(&self, seq_len: u64) -> f64 {
        self.flops_per_token(seq_len)
    }

    fn has_experts(&self) -> bool {
        self.experts > 0
    }

    /// Every strategy has its say; then the fullest stage must fit.
    fn fits(training: &Training, system: &System) -> Result<Footprint, Infeasible> {
        for strategy in Strategy::ALL {
            strategy.part().check(training)?;
        }
        let (share, keeping) = (Share::of(training), &system.software.keeping);
        fits(Footprint::of(training, &share, keeping), || in_tiers(training, &share, keeping), system)
    }

    fn flops_again(training: &Training) -> f64 {
        recompute::flops_again(training)
    }

    fn build(training: &Training, program: &mut Program) {
        training_step(training, program);
    }
}

/// Operations of a matrix product for each weight and token.
pub const FLOPS_PER_WEIGHT: f64 = 2.0;

impl Transformer {
    /// Whether there can be such a model.
    ///
    /// # Errors
    /// The first rule of its shape that does not hold.
    pub fn check(&self) -> Result<(), Infeasible> {
        let rule = |holds, reason, demand, bound| {
            if holds { Ok(()) } else { Err(Infeasible::new(reason, real(demand), real(bound))) }
        };
        rule(self.head_dim > 0, Reason::WidthPerHead, self.hidden, self.heads)?;
        rule(self.heads.is_multiple_of(self.kv_heads), Reason::HeadsPerKvHead, self.heads, self.kv_heads)?;
        if self.experts == 0 {
            return Ok(());
        }
        rule(self.topk <= self.experts, Reason::ExpertsPerToken, self.topk, self.experts)?;
        let first = (self.dense_layers / self.moe_every + 1) * self.moe_every;
        rule(first <= self.layers, Reason::LayersWithExperts, first, self.layers)
    }

    /// Weights of attention, one layer.
    #[must_use]
    pub fn attention_parameters(&self) -> f64 {
        self.attention_parameters_of(real(self.heads), real(self.kv_heads))
    }

    /// Weights of so many heads of attention, one layer: what makes latent vectors serves all heads and is not split.
    ///
    /// ```text
    /// h a d + h k (d + d_v) + a d_v h                                           [Korthikanti22]
    /// h r + r a (d + d_r) + h (c + d_r) + c a (d + d_v) + a d_v h     latent    [DeepSeek24]
    /// ```
    ///
    /// r and c the ranks of queries and of keys and values, d_r the elements that carry the position, d_v those of a value.
    /// Where queries have no rank, h a (d + d_r) in place of the first two. DeepSeek-V3, h = 7168, r = 1536, c = 512, a = 128:
    /// 11.0e6 + 37.7e6 + 4.1e6 + 16.8e6 + 117.4e6 = 187.1e6.
    #[must_use]
    pub fn attention_parameters_of(&self, heads: f64, kv_heads: f64) -> f64 {
        let hidden = real(self.hidden);
        let queries = heads * real(self.query_dim());
        let keys_values = real(self.head_dim + self.value_dim);
        let projection = heads * real(self.value_dim) * hidden;
        let Some(Latent { q_rank, kv_rank, rope_dim }) = self.latent else {
            return hidden * queries + hidden * kv_heads * keys_values + projection;
        };
        let query = if q_rank > 0 { real(q_rank) * (hidden + queries) } else { hidden * queries };
        let key_value = hidden * real(kv_rank + rope_dim) + real(kv_rank) * heads * keys_values;
        query + key_value + projection
    }

    /// Weights that make queries, keys and values of latent vectors, one layer: r a (d + d_r) + c a (d + d_v), and nothing without them.
    #[must_use]
    pub fn latent_up_parameters(&self) -> f64 {
        let Some(Latent { q_rank, kv_rank, .. }) = self.latent else { return 0.0 };
        let (queries, keys_values) =
            (real(q_rank * self.query_dim()), real(kv_rank * (self.head_dim + self.value_dim)));
        real(self.heads) * (queries + keys_values)
    }

    /// Size of a head of queries and keys.
    #[must_use]
    pub const fn query_dim(&self) -> u64 {
        match self.latent {
            Some(latent) => self.head_dim + latent.rope_dim,
            None => self.head_dim,
        }
    }

    /// Weights of a dense MLP: g h f with g matrices.
    #[must_use]
    pub fn mlp_parameters(&self) -> f64 {
        real(self.mlp.matrices()) * real(self.hidden) * real(self.ffn)
    }

    /// Weights of one expert.
    #[must_use]
    pub fn expert_parameters(&self) -> f64 {
        real(self.mlp.matrices()) * real(self.hidden) * real(self.moe_ffn)
    }

    /// Weights of the router of one layer.
    #[must_use]
    pub fn router_parameters(&self) -> f64 {
        real(self.hidden * self.experts)
    }

    /// Elements of the latent vectors of a token: ranks of queries, and of keys and values.
    #[must_use]
    pub const fn latent_dim(&self) -> u64 {
        match self.latent {
            Some(latent) => latent.q_rank + latent.kv_rank,
            None => 0,
        }
    }

    /// Weights of the norms of one layer, and biases where the MLP is GELU: small, never split.
    ///
    /// Two norms, one where attention and MLP stand beside each other [Chowdhery22], and one of each latent vector [DeepSeek24].
    /// Families that norm the input of a parallel block twice are counted with one.
    #[must_use]
    pub fn norm_parameters(&self) -> f64 {
        let norms = if self.parallel_block { self.hidden } else { 2 * self.hidden } + self.latent_dim();
        let biases = match self.mlp {
            // LayerNorm has a bias; so have the linear layers: query, key and value, projection, up, down.
            Mlp::Gelu => norms + (self.heads + 2 * self.kv_heads) * self.head_dim + 2 * self.hidden + self.ffn,
            Mlp::Gated | Mlp::Relu2 => 0,
        };
        real(norms + biases)
    }

    /// Weights of the embedding: one vector a word.
    #[must_use]
    pub fn embedding_parameters(&self) -> f64 {
        real(self.vocab * self.hidden)
    }

    /// Layers of the first `count` that are mixtures of experts.
    #[must_use]
    pub const fn moe_layers_before(&self, count: u64) -> u64 {
        if self.experts == 0 || count <= self.dense_layers {
            return 0;
        }
        count / self.moe_every - self.dense_layers / self.moe_every
    }

    /// All weights.
    #[must_use]
    pub fn parameters(&self, seq_len: u64) -> f64 {
        let moe = self.moe_layers_before(self.layers);
        let dense = self.layers - moe;
        let experts = real(self.experts + self.shared_experts) * self.expert_parameters() + self.router_parameters();
        let positions = if self.learned_positions { real(seq_len * self.hidden) } else { 0.0 };
        let head = if self.tied_embeddings { 0.0 } else { self.embedding_parameters() };
        real(self.layers) * (self.attention_parameters() + self.norm_parameters())
            + real(dense) * self.mlp_parameters()
            + real(moe) * experts
            + self.embedding_parameters()
            + head
            + positions
            + real(self.hidden)
    }

    /// Arithmetic of one training step a token, without recomputation: the model FLOPs of MFU.
    ///
    /// ```text
    /// 6 (attention + MLP or active experts + head) + 3 * 4 a d s / 2 a layer     [Korthikanti22, Narayanan21]
    /// ```
    ///
    /// The core of attention is counted causal: half of all pairs, and of a window what is in it: see [`Self::core_flops`],
    /// also for heads of latent attention. (Tables that count all pairs read up to 8 % higher.) Each token counts with all
    /// its experts, whatever capacity they have.
    #[must_use]
    pub fn flops_per_token(&self, seq_len: u64) -> f64 {
        const PASSES: f64 = 3.0;
        let weights = self.active_parameters() + self.embedding_parameters();
        PASSES * (FLOPS_PER_WEIGHT * weights + self.core_flops_per_token(seq_len))
    }

    /// Weights of the layers' matrices that a token meets.
    fn active_parameters(&self) -> f64 {
        let moe = self.moe_layers_before(self.layers);
        let dense = self.layers - moe;
        let active = real(self.topk + self.shared_experts) * self.expert_parameters() + self.router_parameters();
        real(self.layers) * self.attention_parameters() + real(dense) * self.mlp_parameters() + real(moe) * active
    }

    /// Arithmetic of the layers' matrices forward, a token.
    #[must_use]
    pub fn matrix_flops_per_token(&self) -> f64 {
        FLOPS_PER_WEIGHT * self.active_parameters()
    }

    /// Arithmetic of the layers' cores of attention forward, a token, causal.
    #[must_use]
    pub fn core_flops_per_token(&self, seq_len: u64) -> f64 {
        real(self.layers) * self.core_flops(1, seq_len, true) / real(seq_len)
    }

    /// Arithmetic of the core of attention, forward, one layer, `batch` sequences; the mean of layers with a window and without.
    ///
    /// ```text
    /// 2 b a P (d_q + d_v), P = s^2, s^2 / 2 if the kernel skips what causality hides, s w - w^2 / 2 in a window of w  [Korthikanti22]
    /// ```
    ///
    /// d_q is d, or d + d_r where attention is latent. s = 8192 and w = 4096: 25.2e6 pairs for 33.6e6, three quarters. A kernel
    /// that skips nothing skips no window either. Windows move; blocks beyond which nobody sees are not modelled here.
    #[must_use]
    pub fn core_flops(&self, batch: u64, seq_len: u64, skips: bool) -> f64 {
        const PER_PAIR: f64 = 2.0;
        let length = real(seq_len);
        let all = length * length * if skips { 0.5 } else { 1.0 };
        let pairs = match self.window {
            Some(window) if skips && window < seq_len => {
                let window = real(window);
                let full = if self.full_attention_every > 0 { 1.0 / real(self.full_attention_every) } else { 0.0 };
                full * all + (1.0 - full) * (length * window - 0.5 * window * window)
            }
            _ => all,
        };
        PER_PAIR * real(batch * self.heads * (self.query_dim() + self.value_dim)) * pairs
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// GPT-3 175B [Brown20].
    pub(crate) const GPT3: Transformer = Transformer {
        layers: 96,
        hidden: 12288,
        heads: 96,
        kv_heads: 96,
        head_dim: 128,
        value_dim: 128,
        latent: None,
        window: None,
        full_attention_every: 0,
        parallel_block: false,
        ffn: 49152,
        mlp: Mlp::Gelu,
        vocab: 50257,
        tied_embeddings: true,
        learned_positions: true,
        dropout: true,
        experts: 0,
        topk: 0,
        shared_experts: 0,
        moe_ffn: 0,
        moe_every: 1,
        dense_layers: 0,
        capacity_factor: None,
    };

    /// DeepSeek-V3, without the layer that predicts a further token [DeepSeek24].
    const DEEPSEEK_V3: Transformer = Transformer {
        layers: 61,
        hidden: 7168,
        heads: 128,
        kv_heads: 128,
        latent: Some(Latent { q_rank: 1536, kv_rank: 512, rope_dim: 64 }),
        ffn: 18432,
        mlp: Mlp::Gated,
        vocab: 129_280,
        tied_embeddings: false,
        learned_positions: false,
        dropout: false,
        experts: 256,
        topk: 8,
        shared_experts: 1,
        moe_ffn: 2048,
        dense_layers: 3,
        ..GPT3
    };

    #[test]
    fn gpt3_has_175_billion_parameters() {
        // 12 L h^2 = 173.9e9, embedding 0.618e9, the rest below 0.1e9.
        assert!((GPT3.parameters(2048) / 174.6e9 - 1.0).abs() < 1e-3, "{}", GPT3.parameters(2048));
    }

    #[test]
    fn gpt3_needs_72_b_s_l_h2_flops() {
        // Narayanan21, model FLOPs: 72 B s L h^2 (1 + s / 6h + V / (16 L h) * 4/3...) with all pairs of attention.
        let (s, h, l, v) = (2048.0, 12288.0, 96.0, 50257.0);
        let all_pairs = 72.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
        let causal = all_pairs - 72.0 * l * h * h * s / (12.0 * h);
        assert!((GPT3.flops_per_token(2048) / causal - 1.0).abs() < 1e-6);
    }

    #[test]
    fn deepseek_v3_has_671_billion_parameters_and_a_token_passes_37() {
        // Attention 61 * 187.1e6, dense 3 * 396.4e6, experts 58 * (257 * 44.04e6 + 1.8e6), embedding and head 1.853e9.
        assert!((DEEPSEEK_V3.attention_parameters() / 187.1e6 - 1.0).abs() < 1e-3);
        assert!((DEEPSEEK_V3.parameters(4096) / 671.0e9 - 1.0).abs() < 1e-3, "{}", DEEPSEEK_V3.parameters(4096));
        // Of 257 experts nine: 11.41e9 + 1.19e9 + 58 * 398.2e6 + head 0.93e9 = 36.6e9, as published with the embedding: 37e9.
        let (s, core) = (4096.0, DEEPSEEK_V3.core_flops(1, 4096, true));
        let weights = DEEPSEEK_V3.flops_per_token(4096) / 6.0 - 61.0 * core / s / 2.0;
        assert!((weights / 36.6e9 - 1.0).abs() < 2e-3, "{weights}");
        // 2 * 128 (192 + 128) s^2 / 2 for a sequence of 4096: 0.687e12.
        assert!((core / 0.687e12 - 1.0).abs() < 1e-3, "{core}");
    }

    #[test]
    fn a_head_of_latent_attention_is_split_and_what_makes_latents_is_not() {
        // Down: 7168 (1536 + 576) = 15.1e6 on each NPU; of the other 172.0e6 an eighth, 21.5e6.
        let eighth = DEEPSEEK_V3.attention_parameters_of(16.0, 16.0);
        assert!((eighth / 36.6e6 - 1.0).abs() < 1e-3, "{eighth}");
        // Norms of 7168 twice, 1536 and 512.
        assert!((DEEPSEEK_V3.norm_parameters() - 16384.0).abs() < 0.5);
    }

    #[test]
    fn a_window_as_long_as_the_sequence_hides_nothing() {
        let windowed =
            |window, full_attention_every| Transformer { window: Some(window), full_attention_every, ..GPT3 };
        let full = GPT3.core_flops(1, 8192, true);
        let share = |model: Transformer| model.core_flops(1, 8192, true) / full;
        assert_eq!([8192, 16384].map(|window| share(windowed(window, 0))), [1.0, 1.0]);
        // s w - w^2 / 2 = 25.2e6 of 33.6e6; 1.04e6 of them in a window of 128; half of the layers see all.
        assert_eq!([share(windowed(4096, 0)), share(windowed(4096, 2))], [0.75, 0.875]);
        assert!((share(windowed(128, 0)) - 0.031_006).abs() < 1e-6);
        // What skips nothing skips no window.
        assert_eq!(windowed(128, 0).core_flops(1, 8192, false), 2.0 * full);
    }

    #[test]
    fn a_parallel_block_has_one_norm() {
        let parallel = Transformer { parallel_block: true, mlp: Mlp::Gated, ..GPT3 };
        let usual = Transformer { parallel_block: false, ..parallel };
        assert_eq!([parallel.norm_parameters(), usual.norm_parameters()], [12288.0, 24576.0]);
    }

    #[test]
    fn shapes_that_contradict_themselves_are_refused() {
        let refused =
            |model: Transformer| model.check().err().map(|refused| (refused.reason, refused.demand, refused.bound));
        let moe = Transformer { experts: 8, topk: 2, ..GPT3 };
        assert_eq!(refused(GPT3), None);
        assert_eq!(refused(moe), None);
        assert_eq!(refused(Transformer { kv_heads: 7, ..GPT3 }), Some((Reason::HeadsPerKvHead, 96.0, 7.0)));
        assert_eq!(refused(Transformer { head_dim: 0, ..GPT3 }), Some((Reason::WidthPerHead, 12288.0, 96.0)));
        assert_eq!(refused(Transformer { topk: 9, ..moe }), Some((Reason::ExpertsPerToken, 9.0, 8.0)));
        assert_eq!(refused(Transformer { dense_layers: 95, ..moe }), None);
        assert_eq!(refused(Transformer { dense_layers: 96, ..moe }), Some((Reason::LayersWithExperts, 97.0, 96.0)));
        assert_eq!(refused(Transformer { moe_every: 97, ..moe }), Some((Reason::LayersWithExperts, 97.0, 96.0)));
    }

    #[test]
    fn every_second_layer_of_48_is_a_mixture() {
        let model = Transformer { layers: 48, experts: 128, moe_every: 2, ..GPT3 };
        assert_eq!(model.moe_layers_before(48), 24);
        assert_eq!(model.moe_layers_before(1), 0);
        let leading = Transformer { layers: 61, experts: 256, moe_every: 1, dense_layers: 3, ..GPT3 };
        assert_eq!(leading.moe_layers_before(61), 58);
    }
}
