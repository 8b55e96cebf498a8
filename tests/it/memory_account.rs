//! Does the memory account hold what its sources say, part by part, and is it that of the fullest stage at its peak?

use starsweep::system::software::Keeping;
use starsweep::units::{Bytes, real};
use starsweep::workload::{Footprint, Share};

use crate::strategies::{Step, step_with};

const GIB: f64 = 1_073_741_824.0;

/// Models of [Korthikanti22], tables 3 and 5: layers, hidden, heads, sequences of a microbatch, stages, chunks; and GiB of activations of
/// the first stage with tensor parallelism of 8 alone, and with sequence parallelism and selective recomputation.
const MODELS: [([u64; 6], [f64; 2]); 4] = [
    ([48, 6144, 64, 4, 1, 1], [59.25, 9.5625]),
    ([96, 12288, 96, 1, 8, 3], [66.84, 12.35]),
    ([105, 20480, 128, 1, 35, 3], [114.0, 23.1]),
    ([128, 25600, 160, 1, 64, 1], [131.25, 26.6]),
];

#[test]
fn four_models_keep_what_korthikanti22_says() {
    for ([layers, hidden, heads, batch, pp, vpp], expected) in MODELS {
        let ffn = 4 * hidden;
        let model = format!(
            "{{layers: {layers}, hidden: {hidden}, heads: {heads}, ffn: {ffn}, mlp: gelu, vocab: 51200, dropout: true}}"
        );
        for (said, gibibytes) in
            ["sequence_parallel: false, recompute: none", "recompute: selective"].iter().zip(expected)
        {
            let plan =
                format!("tp: 8, pp: {pp}, vpp: {vpp}, micro_batch_size: {batch} seq, flash_attention: false, {said}");
            let Step { training, checked, .. } = step_with(&model, 2048, 8 * batch * pp, &plan, "precision: fp16\n");
            // The paper counts the masks of the embedding's dropout apart.
            let in_flight = real(training.plan.schedule.part().in_flight(0, 0, &training.shape()));
            let masks = in_flight * Share::of(&training).outer_tokens * real(hidden);
            let footprint = checked.expect("a feasible step");
            assert_eq!(footprint.stage, 0);
            let kept = (footprint.activations.as_real() - masks) / GIB;
            assert!((kept / gibibytes - 1.0).abs() < 0.002, "{layers} layers, {said}: {kept} GiB, not {gibibytes}");
        }
    }
}

const DENSE: &str = "{layers: 8, hidden: 4096, heads: 32, ffn: 16384, mlp: gelu, vocab: 1000}";
const SHARED: &str = "software: deepspeed\nprecision: bf16\n";

/// The account of a step on eight NPUs.
fn account(model: &str, plan: &str, lines: &str) -> Footprint {
    step_with(model, 2048, 64, plan, lines).footprint()
}

#[test]
fn deepspeed_s_own_estimate_of_states_is_ours() {
    // Its estimators for stages 2 and 3: 4 P + 16 P / n and 18 P / n, beside 4 bytes a parameter of the largest layer.
    let of = |zero: u8| {
        let step = step_with(DENSE, 2048, 64, &format!("dp: 8, zero: {zero}, recompute: full"), SHARED);
        let footprint = step.footprint();
        let states = footprint.weights + footprint.gradients + footprint.optimizer;
        let share = Share::of(&step.training);
        let parameters = share.parameters(&step.training, &share.stage(&step.training, 0)).dense;
        (states.as_real() / parameters, footprint.buffers.as_real(), share.dense_layer())
    };
    let (bytes, ..) = of(2);
    assert!((bytes - (4.0 + 16.0 / 8.0)).abs() < 1e-6, "{bytes}");
    let (bytes, buffers, layer) = of(3);
    assert!((bytes - 18.0 / 8.0).abs() < 1e-6, "{bytes}");
    // Ours asks for the next layer too.
    assert!(buffers > 4.0 * layer, "{buffers}");
}

#[test]
fn buckets_bound_what_zero_gathers_and_reduces() {
    let layer = 4.0 * 4096.0 * 4096.0 + 2.0 * 4096.0 * 16384.0;
    let matrix = 4096.0 * 16384.0;
    let buffers = |zero: u8, bucket: &str| {
        let lines = format!("precision: {{preset: bf16, gradient: 2 B}}\nsoftware: {{{bucket}}}\n");
        account(DENSE, &format!("dp: 8, zero: {zero}, recompute: full"), &lines).buffers.as_real()
    };
    let is = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.001, "{found}, not {expected}");
    // Layer by layer: two of them gathered, the gradients of one, each in 2 bytes (norms and biases beside).
    is(buffers(3, ""), 6.0 * layer);
    is(buffers(3, "bucket: 10000000"), 2.0 * (20e6 + matrix) + 2.0 * (10e6 + matrix));
    is(buffers(1, "bucket: 10000000"), 20e6);
    assert!(buffers(1, "").abs() < 1e-9 && buffers(0, "bucket: 10000000").abs() < 1e-9);
}

#[test]
fn the_fullest_stage_decides() {
    // 8 layers on two stages: the first holds two microbatches, the last the logits of 200,000 words.
    let model = |vocab: u64| DENSE.replace("vocab: 1000", &format!("vocab: {vocab}"));
    let stage = |vocab, plan: &str| account(&model(vocab), plan, "precision: bf16\n").stage;
    assert_eq!(stage(1000, "pp: 2"), 0);
    assert_eq!(stage(200_000, "pp: 2"), 1);
    // Embedding and head are counted, each on its end: 200,000 * 4096 parameters of 2 + 4 + 12 bytes.
    let ends = account(&model(200_000), "pp: 2", "precision: bf16\n");
    let layers = 4.0 * (4.0 * 4096.0 * 4096.0 + 2.0 * 4096.0 * 16384.0);
    let states = (ends.weights + ends.gradients + ends.optimizer).as_real() / 18.0;
    assert!((states / (layers + 200_000.0 * 4096.0) - 1.0).abs() < 0.001, "{states}");
}

#[test]
fn logits_count_while_they_are_there() {
    let model = DENSE.replace("vocab: 1000", "vocab: 128000");
    let of = |logit: &str, plan: &str| account(&model, plan, &format!("precision: bf16\nsoftware: {{{logit}}}\n"));
    // 2,048 tokens of 128,000 words in 6 bytes, and in 2 where the loss is fused.
    assert_eq!(of("", "tp: 1").logits, Bytes::from_real(6.0 * 2048.0 * 128e3));
    assert_eq!(of("logit: 2 B", "tp: 1").logits, Bytes::from_real(2.0 * 2048.0 * 128e3));
    assert_eq!(of("", "tp: 4").logits, Bytes::from_real(6.0 * 2048.0 * 32e3));
    // A layer that is computed again needs more than few logits: the larger of the two moments counts.
    let few = account(DENSE, "recompute: full", "precision: bf16\n");
    assert!(few.logits == Bytes::ZERO && few.temporary > Bytes::ZERO);
}

#[test]
fn a_module_that_is_computed_again_is_not_kept() {
    let gated = DENSE.replace("gelu", "gated").replace("heads: 32", "heads: 32, kv_heads: 8, head_dim: 128");
    let kept = |plan: &str| account(&gated, plan, "precision: bf16\n").activations.as_real() / 8.0;
    let none = kept("recompute: none");
    let (vector, wide) = (2.0 * 2048.0 * 4096.0, 2.0 * 2048.0 * 16384.0);
    let dropped = |words: &str| none - kept(&format!("recompute: {words}"));
    // Inputs of linear layers behind two norms; gate, up and their product; the product alone.
    for (words, bytes) in [
        ("layernorm", 2.0 * vector),
        ("mlp", 3.0 * wide),
        ("mlp_act", wide),
        ("layernorm+mlp_act", 2.0 * vector + wide),
        // What an MLP is computed again from is kept.
        ("layernorm+mlp", vector + 3.0 * wide),
        ("moe_act", 0.0),
        ("full", none - vector),
    ] {
        assert!((dropped(words) - bytes).abs() < 1.0, "{words}: {} and not {bytes}", dropped(words));
    }
}

#[test]
fn modules_of_experts_and_of_latent_attention_are_computed_again() {
    let moe = "{layers: 2, hidden: 2048, heads: 16, head_dim: 128, q_rank: 768, kv_rank: 512, rope_dim: 64, ffn: 8192, mlp: gated, \
               vocab: 1000, experts: 8, topk: 2, moe_ffn: 1024, shared_experts: 1}";
    let step = |words: &str| step_with(moe, 2048, 8, &format!("recompute: {words}"), "precision: bf16\n");
    let none = step("none");
    let kept = |words: &str| step(words).footprint().activations.as_real() / 2.0;
    let flops = |words: &str| step(words).flops() - none.flops();
    let tokens = 2048.0;
    let whole = kept("none");
    let queries_keys_values = 2.0 * tokens * 16.0 * (192.0 + 192.0 + 128.0);
    let (routed, shared) = (2.0 * 2.0 * tokens * 1024.0, 3.0 * 2.0 * tokens * 1024.0);
    let sent = 2.0 * 2.0 * (2.0 * tokens) * 2048.0 + 4.0 * tokens * 8.0;
    for (words, bytes) in [
        ("mla_up_proj", queries_keys_values),
        ("moe_act", routed),
        ("shared_experts", shared),
        ("moe", sent + 3.0 * routed + shared),
        ("mlp", 0.0),
    ] {
        assert!((whole - kept(words) - bytes).abs() < 1.0, "{words}: {} and not {bytes}", whole - kept(words));
    }
    // The products of what is computed again: 2 n r a (d + d_r) + 2 n c a (d + d_v), and 2 n 3 h f_e of each expert that a token meets.
    let up = 2.0 * tokens * 16.0 * (768.0 * 192.0 + 512.0 * 256.0);
    let expert = 2.0 * tokens * 3.0 * 2048.0 * 1024.0;
    for (words, expected) in [("mla_up_proj", up), ("shared_experts", expert), ("moe", 3.0 * expert), ("moe_act", 0.0)]
    {
        assert!((flops(words) - expected).abs() <= 1e-6 * expected, "{words}: {} and not {expected}", flops(words));
    }
}

#[test]
fn tools_show_what_the_allocator_keeps_until_memory_is_full() {
    let lines = |cached: f64| format!("precision: bf16\nsoftware: {{cached: {cached}}}\n");
    let step = step_with(DENSE, 2048, 64, "dp: 8", &lines(0.5));
    let footprint = step.footprint();
    let mut system = step.system;
    let shown = footprint.on_device(&system);
    assert_eq!(shown, Bytes::from_real(1.5 * footprint.total().as_real()) + system.memory.reserve);
    system.memory.capacity = footprint.total() + system.memory.reserve;
    assert_eq!(footprint.on_device(&system), system.memory.capacity);
    assert!(Keeping::default().cached.abs() < 1e-12, "without a framework nothing is kept");
}
