//! Families of models in the words of the Transformers library: how a `config.json` of each writes its shape [Wolf20].

use crate::workload::Mlp;

/// Words for one thing: a family writes one of them.
pub type Words = &'static [&'static str];

/// How a family writes its shape.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Its names in `model_type`.
    pub types: Words,
    /// Layers.
    pub layers: Words,
    /// Width of a token's vector.
    pub hidden: Words,
    /// Query heads.
    pub heads: Words,
    /// Key and value heads.
    pub kv_heads: KvHeads,
    /// Width of a head; of latent attention without what carries the position.
    pub width: Words,
    /// Whether it always says how wide a head is: it need not be `hidden / heads`.
    pub has_width: bool,
    /// Whether its attention is latent.
    pub is_latent: bool,
    /// Width of the MLP.
    pub ffn: Words,
    /// Whether an MLP of which nothing is said is four times as wide as the model.
    pub is_four_wide: bool,
    /// Kind of the MLP.
    pub mlp: Mlp,
    /// Whether the head is the embedding where nothing is said.
    pub is_tied: bool,
    /// Whether positions are learned.
    pub has_positions: bool,
    /// Keys of dropout, with what they are where nothing is said.
    pub dropout: &'static [(&'static str, f64)],
    /// Whether a window is in force where no switch says so.
    pub is_windowed: bool,
    /// Every how many layers one sees all tokens, where others have a window and nothing is said; 0 if none does.
    pub full_every: f64,
    /// Its experts.
    pub experts: Option<Experts>,
    /// Whether attention and MLP stand side by side.
    pub side_by_side: SideBySide,
}

/// Key and value heads.
#[derive(Debug, Clone, Copy)]
pub enum KvHeads {
    /// As many as there are heads.
    All,
    /// As a key says; all where it is not written.
    Maybe,
    /// As a key says, which is always written.
    Said,
    /// One, all, or as a key says, by two switches.
    Falcon,
}

/// Whether attention and MLP stand side by side.
#[derive(Debug, Clone, Copy)]
pub enum SideBySide {
    /// They follow each other.
    Never,
    /// If a key says so, or says nothing.
    UnlessFalse(&'static str),
    /// They do.
    Always,
}

/// How a family writes its experts.
#[derive(Debug, Clone, Copy)]
pub struct Experts {
    /// How many there are in a layer.
    pub count: Words,
    /// Experts that a token is sent to.
    pub topk: Words,
    /// The width of an expert; that of the MLP if there is no word.
    pub width: Option<&'static str>,
    /// Experts that every token passes.
    pub shared: Shared,
    /// Every how many layers one has experts.
    pub every: Option<&'static str>,
    /// How many leading layers have none.
    pub leading: Option<&'static str>,
}

/// Experts that every token passes.
#[derive(Debug, Clone, Copy)]
pub enum Shared {
    /// So many, whatever the file says.
    Number(f64),
    /// As a key says.
    Count(&'static str),
    /// As many as make this width.
    Width(&'static str),
}

const LLAMA: Family = Family {
    types: &["llama"],
    layers: &["num_hidden_layers"],
    hidden: &["hidden_size"],
    heads: &["num_attention_heads"],
    kv_heads: KvHeads::Maybe,
    width: &["head_dim"],
    has_width: false,
    is_latent: false,
    ffn: &["intermediate_size"],
    is_four_wide: false,
    mlp: Mlp::Gated,
    is_tied: false,
    has_positions: false,
    dropout: &[("attention_dropout", 0.0)],
    is_windowed: true,
    full_every: 0.0,
    experts: None,
    side_by_side: SideBySide::Never,
};
const MISTRAL: Family = Family { types: &["mistral", "ministral"], kv_heads: KvHeads::Said, ..LLAMA };
const QWEN2: Family = Family { types: &["qwen2"], is_windowed: false, ..MISTRAL };
const QWEN3: Family = Family { types: &["qwen3"], has_width: true, ..QWEN2 };
const GPT2: Family = Family {
    types: &["gpt2"],
    layers: &["n_layer", "num_hidden_layers"],
    hidden: &["n_embd", "hidden_size"],
    heads: &["n_head", "num_attention_heads"],
    kv_heads: KvHeads::All,
    ffn: &["n_inner"],
    is_four_wide: true,
    mlp: Mlp::Gelu,
    is_tied: true,
    has_positions: true,
    dropout: &[("resid_pdrop", 0.1), ("attn_pdrop", 0.1)],
    ..LLAMA
};
const MIXTRAL: Family = Family {
    types: &["mixtral"],
    experts: Some(Experts {
        count: &["num_local_experts", "num_experts"],
        topk: &["num_experts_per_tok", "experts_per_token"],
        width: None,
        shared: Shared::Number(0.0),
        every: None,
        leading: None,
    }),
    ..MISTRAL
};
const QWEN3_MOE: Family = Family {
    types: &["qwen3_moe"],
    experts: Some(Experts {
        count: &["num_experts", "num_local_experts"],
        topk: &["num_experts_per_tok"],
        width: Some("moe_intermediate_size"),
        shared: Shared::Number(0.0),
        every: Some("decoder_sparse_step"),
        leading: None,
    }),
    ..QWEN3
};

const GLM4_MOE: Family = Family {
    types: &["glm4_moe"],
    has_width: true,
    experts: Some(Experts {
        count: &["n_routed_experts"],
        topk: &["num_experts_per_tok"],
        width: Some("moe_intermediate_size"),
        shared: Shared::Count("n_shared_experts"),
        every: None,
        leading: Some("first_k_dense_replace"),
    }),
    ..MISTRAL
};
const DEEPSEEK: Family = Family {
    types: &["deepseek_v2", "deepseek_v3", "kimi_k2"],
    kv_heads: KvHeads::All,
    width: &["qk_nope_head_dim"],
    is_latent: true,
    ..GLM4_MOE
};
const GEMMA: Family =
    Family { types: &["gemma", "gemma2"], has_width: true, is_tied: true, full_every: 2.0, ..MISTRAL };

/// Every family. Words and what holds where nothing is said are those of the library's classes [Wolf20].
pub const FAMILIES: &[Family] = &[
    LLAMA,
    MISTRAL,
    MIXTRAL,
    QWEN2,
    QWEN3,
    QWEN3_MOE,
    Family {
        types: &["qwen2_moe"],
        has_width: false,
        experts: match QWEN3_MOE.experts {
            Some(experts) => Some(Experts { shared: Shared::Width("shared_expert_intermediate_size"), ..experts }),
            None => None,
        },
        ..QWEN3_MOE
    },
    GLM4_MOE,
    DEEPSEEK,
    Family { types: &["minicpm3"], is_tied: true, experts: None, ..DEEPSEEK },
    Family {
        types: &["llama4_text", "llama4"],
        has_width: true,
        ffn: &["intermediate_size_mlp"],
        experts: Some(Experts {
            count: &["num_local_experts"],
            topk: &["num_experts_per_tok"],
            width: Some("intermediate_size"),
            shared: Shared::Number(1.0),
            every: Some("interleave_moe_layer_step"),
            leading: None,
        }),
        ..MISTRAL
    },
    Family { types: &["gpt_oss"], has_width: true, full_every: 2.0, ..MIXTRAL },
    GEMMA,
    Family { types: &["gemma3_text"], full_every: 6.0, ..GEMMA },
    Family { types: &["phi3"], dropout: &[("resid_pdrop", 0.0), ("attention_dropout", 0.0)], ..LLAMA },
    Family { types: &["nemotron"], mlp: Mlp::Relu2, ..LLAMA },
    Family {
        types: &["starcoder2"],
        mlp: Mlp::Gelu,
        is_tied: true,
        dropout: &[("residual_dropout", 0.0), ("attention_dropout", 0.0)],
        ..MISTRAL
    },
    GPT2,
    Family {
        types: &["gptj"],
        is_tied: false,
        has_positions: false,
        dropout: &[("resid_pdrop", 0.0), ("attn_pdrop", 0.0)],
        side_by_side: SideBySide::Always,
        ..GPT2
    },
    Family {
        types: &["gpt_neox"],
        kv_heads: KvHeads::All,
        mlp: Mlp::Gelu,
        dropout: &[("hidden_dropout", 0.0), ("attention_dropout", 0.0)],
        side_by_side: SideBySide::UnlessFalse("use_parallel_residual"),
        ..LLAMA
    },
    Family {
        types: &["falcon", "RefinedWeb", "RefinedWebModel"],
        layers: &["num_hidden_layers", "n_layer"],
        hidden: &["hidden_size", "n_embed"],
        heads: &["num_attention_heads", "n_head"],
        kv_heads: KvHeads::Falcon,
        ffn: &["ffn_hidden_size"],
        is_four_wide: true,
        mlp: Mlp::Gelu,
        is_tied: true,
        dropout: &[("hidden_dropout", 0.0), ("attention_dropout", 0.0)],
        side_by_side: SideBySide::UnlessFalse("parallel_attn"),
        ..LLAMA
    },
    Family {
        types: &["bloom"],
        layers: &["n_layer", "num_hidden_layers"],
        hidden: &["hidden_size", "n_embed"],
        heads: &["n_head", "num_attention_heads"],
        has_positions: false,
        dropout: &[("hidden_dropout", 0.0), ("attention_dropout", 0.0)],
        ..GPT2
    },
    Family {
        types: &["opt"],
        hidden: &["hidden_size", "d_model"],
        kv_heads: KvHeads::All,
        ffn: &["ffn_dim"],
        mlp: Mlp::Gelu,
        is_tied: true,
        has_positions: true,
        dropout: &[("dropout", 0.1), ("attention_dropout", 0.0)],
        ..LLAMA
    },
];

/// Why a sweep cannot say a model: an index chooses the tokens that a token sees.
pub const CHOSEN: &str = "attention to chosen tokens";
/// Layers of two attentions, and experts without weights.
pub const SHORTCUT: &str = "experts beside two attentions, some of which do nothing";
/// State spaces, convolutions, linear attention.
pub const NO_ATTENTION: &str = "layers that are no attention";
/// A decoder attends to another model, or there is none.
pub const ENCODER: &str = "an encoder";

/// Families that a sweep cannot say.
pub const REFUSED: &[(Words, &str)] = &[
    (&["deepseek_v32", "glm_moe_dsa"], CHOSEN),
    (&["longcat_flash"], SHORTCUT),
    (&["mamba", "mamba2", "falcon_mamba", "rwkv", "recurrent_gemma"], NO_ATTENTION),
    (&["jamba", "bamba", "zamba", "zamba2", "nemotron_h", "falcon_h1", "qwen3_next"], NO_ATTENTION),
    (&["t5", "mt5", "umt5", "bart", "mbart", "pegasus", "whisper", "bert", "roberta", "deberta-v2", "vit"], ENCODER),
];
