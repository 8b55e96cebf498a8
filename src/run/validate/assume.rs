//! Assumptions: what holds of inputs that a source does not publish. One table for all rows, never one row's own.

use super::measurement::Measurement;

/// What holds where a column is empty.
#[derive(Clone, Copy)]
pub struct Assumption {
    /// The key of a sweep.
    pub key: &'static str,
    /// When it is assumed, and what.
    pub doc: &'static str,
    /// The value, where it is assumed.
    pub value: fn(&Measurement) -> Option<String>,
}

impl Assumption {
    /// Whether it is assumed of models of all families: plans are what transformers' sources leave out.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        self.key == "precision" || self.key.starts_with("collectives.")
    }
}

/// The most model chunks of a stage that are assumed.
const CHUNKS: u64 = 4;
/// The microbatch that is assumed where neither a pipeline nor sharded weights limit it.
const ALONE: u64 = 4;

/// Every assumption [StepFit].
pub const ASSUMPTIONS: &[Assumption] = &[
    Assumption { key: "precision", doc: "not written: bf16", value: |run| unwritten(run, "precision", "bf16") },
    Assumption { key: "plan.recompute", doc: "not published: none", value: |run| unwritten(run, "recompute", "none") },
    Assumption {
        key: "plan.sequence_parallel",
        doc: "not published: without",
        value: |run| unwritten(run, "seq_parallel", "false"),
    },
    Assumption { key: "plan.zero", doc: "not published: 0", value: |run| unwritten(run, "zero_stage", "0") },
    Assumption {
        key: "plan.zero",
        doc: "stages 2 and 3 beside a pipeline: 1, as gradients are added up whole and scattered once a step, and weights stay \
              gathered",
        value: |run| {
            (matches!(run.text("zero_stage"), Some("2" | "3")) && run.count("pp")? > 1).then(|| "1".to_owned())
        },
    },
    Assumption {
        key: "collectives.chunks",
        doc: "never published: 8, as libraries cut collectives finer than the default",
        value: |_| Some("8".to_owned()),
    },
    Assumption {
        key: "collectives.local_reduction",
        doc: "never published: without, as libraries add what they receive while they receive it",
        value: |_| Some("false".to_owned()),
    },
    Assumption {
        key: "plan.overlap_dp",
        doc: "not published: with where weights are sharded, which are asked for ahead, else without",
        value: |run| unwritten(run, "dp_overlap", if run.text("zero_stage") == Some("3") { "true" } else { "false" }),
    },
    Assumption {
        key: "plan.micro_batch_size",
        doc: "not published: 1 in a pipeline; without one all that a replica has if weights are sharded, else 4",
        value: |run| run.text("micro_batch").is_none().then(|| format!("{} seq", micro_batch(run))),
    },
    Assumption {
        key: "plan.vpp",
        doc: "an interleaved schedule whose chunks are not published: as many as divide a stage's layers, up to 4; 4 where \
              the layers do not divide into stages",
        value: |run| {
            let is_open = run.text("vpp").is_none() && run.text("schedule") == Some("interleaved");
            is_open.then(|| chunks(run).to_string())
        },
    },
    Assumption {
        key: "plan.layer_split",
        doc: "layers that do not divide into stages and chunks: the first and the last have less",
        value: |run| {
            let parts = run.count("pp")? * chunks(run);
            (run.count("layers")? % parts != 0).then(|| "light_ends".to_owned())
        },
    },
    Assumption {
        key: "global_batch",
        doc: "a batch that is no whole number of microbatches: the nearest that is",
        value: |run| {
            let (batch, step) = (run.count("global_batch")?, run.count("dp")? * micro_batch(run));
            let near = ((batch + step / 2) / step).max(1) * step;
            (near != batch).then(|| format!("{near} seq"))
        },
    },
];

fn unwritten(run: &Measurement, column: &str, value: &str) -> Option<String> {
    run.text(column).is_none().then(|| value.to_owned())
}

/// Sequences of a microbatch, as published or as assumed.
fn micro_batch(run: &Measurement) -> u64 {
    let count = |column: &str| run.count(column).unwrap_or(1).max(1);
    let assumed = || match (count("pp"), run.text("zero_stage")) {
        (2.., _) => 1,
        (_, Some("3")) => (count("global_batch") / count("dp")).max(1),
        _ => ALONE,
    };
    run.count("micro_batch").unwrap_or_else(assumed).max(1)
}

/// Model chunks of a stage, as published or as assumed.
fn chunks(run: &Measurement) -> u64 {
    let count = |column: &str| run.count(column).unwrap_or(1).max(1);
    let (layers, stages) = (count("layers"), count("pp"));
    if let Some(chunks) = run.count("vpp") {
        return chunks.max(1);
    }
    if run.text("schedule") != Some("interleaved") || stages == 1 {
        return 1;
    }
    let each = layers / stages;
    let divides = |chunks: &u64| !layers.is_multiple_of(stages) || each.is_multiple_of(*chunks);
    (1..=CHUNKS.min(each.max(1))).rev().find(divides).unwrap_or(1)
}
