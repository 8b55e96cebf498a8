//! The columns of a table of measurements: each with what it holds, and with the key of a sweep that it sets.

/// What a cell may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Any text.
    Text,
    /// A whole number from 0 on.
    Count,
    /// A number above 0.
    Number,
    /// A word: of the language, or one that `words.csv` translates.
    Word,
}

/// Which rows must say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// All.
    All,
    /// Those of transformers.
    Transformers,
    /// None.
    None,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// Whether a row must say it.
    pub need: Need,
    /// Of a column that transformers alone have: what rows of other models may say there, besides nothing.
    pub neutral: Option<&'static str>,
    /// The key of a sweep that it sets, with the unit that its numbers have there.
    pub key: Option<(&'static str, &'static str)>,
    /// What it is.
    pub doc: &'static str,
}

const fn needed(
    name: &'static str,
    holds: Holds,
    key: Option<(&'static str, &'static str)>,
    doc: &'static str,
) -> Column {
    Column { name, holds, need: Need::All, neutral: None, key, doc }
}

const fn optional(
    name: &'static str,
    holds: Holds,
    key: Option<(&'static str, &'static str)>,
    doc: &'static str,
) -> Column {
    Column { name, holds, need: Need::None, neutral: None, key, doc }
}

impl Column {
    /// Whether a row must say it: one of another model than a transformer, or one of these.
    #[must_use]
    pub const fn is_needed(&self, is_other: bool) -> bool {
        match self.need {
            Need::All => true,
            Need::Transformers => !is_other,
            Need::None => false,
        }
    }

    /// Only rows of transformers must say it.
    const fn of_some(self) -> Self {
        Self { need: Need::Transformers, ..self }
    }

    /// Transformers alone have it; of other models it may say this.
    const fn of_transformers(self, neutral: &'static str) -> Self {
        let need = if matches!(self.need, Need::All) { Need::Transformers } else { self.need };
        Self { need, neutral: Some(neutral), ..self }
    }
}

/// The columns that mean something; others are kept out of the way, but for those that are called as a key of a sweep.
pub const COLUMNS: &[Column] = &[
    needed("row_id", Holds::Text, None, "a name for the run, another one in each row"),
    optional("source", Holds::Text, None, "where the run was published"),
    optional("source_ref", Holds::Text, None, "where in it"),
    optional(
        "model",
        Holds::Text,
        None,
        "what the source calls the model; one of another family than transformers is a preset's name",
    ),
    needed("layers", Holds::Count, Some(("model.layers", "")), "layers").of_transformers(""),
    needed("hidden", Holds::Count, Some(("model.hidden", "")), "width of a token's vector").of_transformers(""),
    needed("heads", Holds::Count, Some(("model.heads", "")), "query heads").of_transformers(""),
    optional(
        "kv_heads",
        Holds::Count,
        Some(("model.kv_heads", "")),
        "key and value heads; empty: as many as query heads",
    )
    .of_transformers(""),
    optional("head_dim", Holds::Count, Some(("model.head_dim", "")), "width of a head; empty: `hidden / heads`")
        .of_transformers(""),
    needed("ffn", Holds::Count, Some(("model.ffn", "")), "width of the MLP").of_transformers(""),
    needed("gated_mlp", Holds::Word, Some(("model.mlp", "")), "1 for an MLP of three matrices, 0 for one of two")
        .of_transformers(""),
    optional("attn", Holds::Text, None, "kind of attention, where it is more than its heads say").of_transformers(""),
    needed("vocab", Holds::Count, Some(("model.vocab", "")), "words of the vocabulary").of_transformers(""),
    needed("seq", Holds::Count, Some(("seq_len", "")), "tokens of a sequence").of_transformers("1"),
    optional("experts", Holds::Count, Some(("model.experts", "")), "routed experts; empty: a dense model")
        .of_transformers("0"),
    optional("topk", Holds::Count, Some(("model.topk", "")), "experts that a token is sent to").of_transformers(""),
    optional("moe_ffn", Holds::Count, Some(("model.moe_ffn", "")), "width of an expert").of_transformers(""),
    needed("gpus", Holds::Count, Some(("cluster.npus", "")), "how many NPUs"),
    needed("gpu_type", Holds::Text, None, "the NPU: a preset's name"),
    optional("gpus_per_node", Holds::Count, None, "NPUs that the inner link joins; empty: 8"),
    optional(
        "interconnect",
        Holds::Text,
        None,
        "links, innermost first: `NVLink4 + IB-NDR400`; empty: those that the NPU mostly has",
    ),
    optional("precision", Holds::Word, Some(("precision", "")), "a preset's name; empty: bf16"),
    needed("tp", Holds::Count, Some(("plan.tp", "")), "tensor parallelism").of_transformers("1"),
    needed("pp", Holds::Count, Some(("plan.pp", "")), "pipeline parallelism").of_transformers("1"),
    optional("vpp", Holds::Count, Some(("plan.vpp", "")), "model chunks of a stage").of_transformers("1"),
    needed("dp", Holds::Count, Some(("plan.dp", "")), "data parallelism").of_some(),
    optional("cp", Holds::Count, Some(("plan.cp", "")), "context parallelism").of_transformers("1"),
    optional("ep", Holds::Count, Some(("plan.ep", "")), "expert parallelism").of_transformers("1"),
    optional("micro_batch", Holds::Count, Some(("plan.micro_batch_size", "seq")), "sequences of a microbatch")
        .of_transformers(""),
    needed("global_batch", Holds::Count, Some(("global_batch", "seq")), "sequences of a step, or samples"),
    optional("recompute", Holds::Word, Some(("plan.recompute", "")), "what the backward pass computes again")
        .of_transformers("none"),
    optional("seq_parallel", Holds::Word, Some(("plan.sequence_parallel", "")), "1 with sequence parallelism")
        .of_transformers("false"),
    optional("zero_stage", Holds::Word, Some(("plan.zero", "")), "ZeRO stage"),
    optional(
        "tp_overlap",
        Holds::Word,
        Some(("plan.overlap_tp", "")),
        "1 where tensor-parallel communication runs beside the computation",
    )
    .of_transformers("false"),
    optional(
        "dp_overlap",
        Holds::Word,
        Some(("plan.overlap_dp", "")),
        "1 where data-parallel communication runs beside the computation",
    ),
    optional("schedule", Holds::Word, None, "the pipeline's schedule, where it is not 1F1B").of_transformers(""),
    optional("software", Holds::Word, None, "the software stack: a preset's name"),
    optional("measured_step_s", Holds::Number, None, "seconds of a step"),
    optional(
        "tokens_per_s_per_gpu",
        Holds::Number,
        None,
        "tokens a second and NPU, where the step's time is not given; a sample without sequences is one",
    ),
    optional("measured_tflops_gpu", Holds::Number, None, "TFLOP/s of an NPU, where neither is given"),
    optional("measured_mfu_pct", Holds::Number, None, "MFU in per cent, where neither is given"),
    optional("memory_gib", Holds::Number, None, "GiB allocated on the fullest NPU"),
    optional(
        "device_memory_gib",
        Holds::Number,
        None,
        "GiB in use on the fullest NPU as its own tools show it, with context and cached blocks",
    ),
];
