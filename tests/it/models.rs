//! Are models what their authors say they are? Parameters of the presets, and each family's `config.json`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use starsweep::input::Diagnostic;
use starsweep::run::{Files, vocabulary};
use starsweep::sweep::preset::kinds;
use starsweep::sweep::{Sweep, Vocabulary, resolve};
use starsweep::workload::{Job, Mlp, Model, Transformer};

use crate::support::{code, evaluate, points, read, root, run, text, transformer};

/// A sweep of a model on one NPU.
fn one_npu(model: &str) -> String {
    format!(
        "model: {model}\nseq_len: 2048\nglobal_batch: 8 seq\nprecision: bf16\n\
         cluster: {{npu: H100-SXM-80GB, network: {{a: {{block: switch, size: 1, bandwidth: 1 GB/s}}}}}}\n"
    )
}

/// The models of a sweep's points.
fn models(sweep: &Sweep) -> Vec<Transformer> {
    let model = |inputs| transformer(&evaluate(inputs).0).model;
    points(sweep).iter().map(model).collect()
}

/// The model of a preset, of whichever family.
fn of_any_family(name: &str) -> Model {
    let sweep = resolve(&one_npu(name), &[], &vocabulary()).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
    match evaluate(&points(&sweep)[0]).0 {
        Job::Training(training) => training.model,
        job => panic!("{job:?}"),
    }
}

/// The transformer of a preset.
fn preset(name: &str) -> Transformer {
    let sweep = resolve(&one_npu(name), &[], &vocabulary()).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
    models(&sweep)[0]
}

/// What the comment of a preset says was counted: parameters, and per cent off the published total.
fn counted(file: &str, name: &str) -> Option<(f64, f64)> {
    let from = file.find(&format!("\n{name}:\n"))?;
    let comment = file[from..].split("\n  layers:").next()?.split_once("# Counted ")?.1;
    let (parameters, rest) = comment.split_once(", ")?;
    let (per_cent, rest) = rest.split_once(" % ")?;
    let sign = if rest.starts_with("below") { -1.0 } else { 1.0 };
    Some((parameters.parse().ok()?, sign * per_cent.parse::<f64>().ok()?))
}

#[test]
fn every_model_has_its_published_parameters_or_says_how_far_it_is_off() {
    const NEAR: f64 = 0.5;
    let file = read("src/sweep/presets/model.yaml");
    let models = &kinds().iter().find(|kind| kind.name == "model").expect("models").presets;
    assert!(models.len() >= 50, "{}", models.len());
    for entry in models {
        let name = &entry.key;
        let published = entry.node.get("parameters").and_then(|line| line.node.scalar()).expect("a published total");
        let published: f64 = published.parse().expect("a number");
        // The sequences of training, for learned positions: 1024 tokens, else 2048.
        let parameters = of_any_family(name).parameters(if name.starts_with("GPT-2") { 1024 } else { 2048 });
        let off = 100.0 * (parameters / published - 1.0);
        match counted(&file, name) {
            Some((said, per_cent)) => {
                assert!(
                    (parameters / said - 1.0).abs() < 1e-3,
                    "{name}: {parameters:e}, and its comment says {said:e}"
                );
                assert!((off - per_cent).abs() < 0.051, "{name}: {off} %, and its comment says {per_cent} %");
                assert!(off.abs() > NEAR, "{name}: its comment is not needed: {off} %");
            }
            None => assert!(off.abs() <= NEAR, "{name}: {parameters:e}, {off} % off {published:e}"),
        }
    }
}

/// A sweep of a model on one NPU, in a folder of files.
fn resolved(folder: &Path, model: &str) -> Result<Sweep, Vec<Diagnostic>> {
    let files = Arc::new(Files::beside(&folder.join("sweep.yaml")));
    resolve(&one_npu(model), &[], &Vocabulary { loader: Some(files), ..vocabulary() })
}

fn sweep(folder: &Path, model: &str) -> Sweep {
    resolved(folder, model).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A folder with the configuration of a model.
fn with(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("config.json"), config).expect("a file");
    folder
}

/// The configuration of Llama-3-70B with one thing written otherwise.
fn instead(of: &str, written: &str) -> String {
    let config = read("tests/data/models/Llama-3-70B/config.json");
    assert!(config.contains(of));
    config.replacen(of, written, 1)
}

#[test]
fn a_configuration_of_each_family_is_our_preset() {
    let folders = fs::read_dir(root().join("tests/data/models")).expect("configurations");
    let mut names: Vec<String> =
        folders.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let sweep = sweep(root(), "{hf: \"tests/data/models/*/config.json\"}");
    assert!(names.len() >= 20 && sweep.space.axes[0].alternatives.len() == names.len());
    for (name, model) in names.iter().zip(models(&sweep)) {
        // The released configuration of BLOOM has no dropout, and its training had.
        let dropout = model.dropout || name == "BLOOM-176B";
        assert_eq!(Transformer { dropout, ..model }, preset(name), "{name}");
    }
    let labels = sweep.space.axes[0].alternatives.iter().map(|alternative| alternative.label.clone());
    assert_eq!(labels.collect::<Vec<_>>(), names);
}

#[test]
fn families_without_a_preset_are_read_too() {
    let dense = preset("Llama-3-70B");
    for (config, expected) in [
        (
            r#"{"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_inner": null, "vocab_size": 50400}"#,
            Transformer {
                layers: 28,
                hidden: 4096,
                heads: 16,
                kv_heads: 16,
                head_dim: 256,
                parallel_block: true,
                ffn: 16384,
                mlp: Mlp::Gelu,
                vocab: 50400,
                ..dense
            },
        ),
        (
            r#"{"model_type": "starcoder2", "num_hidden_layers": 32, "hidden_size": 4608, "num_attention_heads": 36,
                "num_key_value_heads": 4, "intermediate_size": 18432, "vocab_size": 49152, "residual_dropout": 0.1}"#,
            Transformer {
                layers: 32,
                hidden: 4608,
                heads: 36,
                kv_heads: 4,
                head_dim: 128,
                ffn: 18432,
                mlp: Mlp::Gelu,
                vocab: 49152,
                tied_embeddings: true,
                dropout: true,
                ..dense
            },
        ),
        (
            r#"{"model_type": "glm4_moe", "num_hidden_layers": 46, "hidden_size": 4096, "num_attention_heads": 96,
                "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 10944, "vocab_size": 151552,
                "n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
                "n_shared_experts": 1, "first_k_dense_replace": 1}"#,
            Transformer {
                layers: 46,
                hidden: 4096,
                heads: 96,
                kv_heads: 8,
                head_dim: 128,
                ffn: 10944,
                vocab: 151_552,
                experts: 128,
                topk: 8,
                shared_experts: 1,
                moe_ffn: 1408,
                moe_every: 1,
                dense_layers: 1,
                ..dense
            },
        ),
        (
            r#"{"model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
                "multi_query": true, "vocab_size": 65024}"#,
            Transformer {
                layers: 32,
                hidden: 4544,
                heads: 71,
                kv_heads: 1,
                head_dim: 64,
                parallel_block: true,
                ffn: 18176,
                mlp: Mlp::Gelu,
                vocab: 65024,
                tied_embeddings: true,
                ..dense
            },
        ),
    ] {
        let found = models(&sweep(with(config).path(), "{hf: config.json}"))[0];
        let moe_ffn = if found.experts == 0 { found.ffn } else { expected.moe_ffn };
        let expected = Transformer { moe_ffn, value_dim: expected.head_dim, ..expected };
        assert_eq!(found, expected, "{config}");
    }
}

#[test]
fn layers_with_a_window_are_counted_wherever_the_first_that_sees_all_stands() {
    let read = |config: &str| {
        let model = models(&sweep(with(config).path(), "{hf: config.json}"))[0];
        (model.window, model.full_attention_every)
    };
    let listed = |words: &[&str]| {
        let types: Vec<String> = words.iter().map(|word| format!("\"{word}_attention\"")).collect();
        let types = types.join(", ");
        read(&instead(
            "\"hidden_size\"",
            &format!("\"sliding_window\": 512, \"layer_types\": [{types}],\n  \"hidden_size\""),
        ))
    };
    assert_eq!(listed(&["sliding", "sliding", "full", "sliding", "sliding", "full", "sliding"]), (Some(512), 3));
    assert_eq!(listed(&["full", "sliding", "full", "sliding"]), (Some(512), 2));
    assert_eq!(listed(&["sliding", "sliding", "full", "sliding"]), (Some(512), 4));
    assert_eq!(listed(&["sliding", "sliding"]), (Some(512), 0));
    assert_eq!(listed(&["full", "full"]), (None, 0));
    let pattern = "\"sliding_window\": 512, \"sliding_window_pattern\": 6,\n  \"hidden_size\"";
    assert_eq!(read(&instead("\"hidden_size\"", pattern)), (Some(512), 6));
    let qwen = fs::read_to_string(root().join("tests/data/models/Qwen2.5-7B/config.json")).expect("a file");
    assert_eq!(read(&qwen), (None, 0));
}

#[test]
fn leading_layers_that_are_listed_as_dense_are_dense() {
    let config = read("tests/data/models/Qwen3-30B-A3B/config.json");
    let of = |list: &str| config.replace("\"mlp_only_layers\": []", &format!("\"mlp_only_layers\": {list}"));
    let model = models(&sweep(with(&of("[1, 0, 2]")).path(), "{hf: config.json}"))[0];
    assert_eq!(model, Transformer { dense_layers: 3, ..preset("Qwen3-30B-A3B") });
}

#[test]
fn what_is_written_beside_a_configuration_goes_over_it() {
    let folder = with(&instead("\"num_hidden_layers\": 80,", ""));
    let llama = preset("Llama-3-70B");
    let found = models(&sweep(folder.path(), "{hf: config.json, layers: [40, 80], dropout: true}"));
    assert_eq!(found, [40, 80].map(|layers| Transformer { layers, dropout: true, ..llama }));
    let list = "[{hf: config.json, layers: 80}, {hf: ./config.json, layers: 20}, Llama-3-70B]";
    let found = models(&sweep(folder.path(), list));
    assert_eq!(found, [80, 20, 80].map(|layers| Transformer { layers, ..llama }));
}

#[test]
fn the_frozen_sweep_of_a_configuration_needs_no_file_and_is_the_same() {
    let llama = read("tests/data/models/Llama-3-70B/config.json");
    let folder = with(&llama);
    for model in ["{hf: config.json}", "{hf: ./config.json, layers: 7}", "[{hf: config.json}, GPT-3-175B]"] {
        let sweep = sweep(folder.path(), model);
        let again =
            resolve(&sweep.frozen, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{errors:#?}\n{}", sweep.frozen));
        assert_eq!(again.identity, sweep.identity, "{}", sweep.frozen);
    }
    let before = sweep(folder.path(), "{hf: config.json}").identity;
    fs::write(folder.path().join("config.json"), llama.replace("28672", "28673")).expect("a file");
    assert_ne!(sweep(folder.path(), "{hf: config.json}").identity, before);
}

#[test]
fn what_of_a_configuration_counts_for_nothing_is_told() {
    let said = |name: &str| {
        let sweep = sweep(root(), &format!("{{hf: tests/data/models/{name}/config.json}}"));
        sweep.cautions.iter().map(|caution| caution.message.clone()).collect::<Vec<_>>()
    };
    for name in ["Llama-3-70B", "Mistral-7B", "GPT-OSS-20B", "Falcon-180B", "GPT-NeoX-20B", "Moonlight-16B-A3B"] {
        assert!(said(name).is_empty(), "{name}: {:?}", said(name));
    }
    let further = "`num_nextn_predict_layers` counts for nothing: layers that predict further tokens are left out";
    assert_eq!(said("DeepSeek-V3-671B"), [further]);
    let scout = said("Llama-4-Maverick-400B");
    assert!(scout[0].starts_with("`text_config` alone") && scout[1].starts_with("`attention_chunk_size`"), "{scout:?}");
}

/// What is said of a configuration, with exit code 2.
fn said(config: &str, model: &str) -> String {
    let folder = with(config);
    let file = folder.path().join("sweep.yaml");
    fs::write(&file, one_npu(model)).expect("a file");
    let output = run(&["preview", &file.display().to_string()]);
    assert_eq!(code(&output), 2, "{}", text(&output.stderr));
    text(&output.stderr).replace(&format!("{}/", folder.path().display()), "")
}

macro_rules! mistakes {
    ($($name:ident: $config:expr, $model:expr;)+) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(stringify!($name), said(&$config, $model));
            }
        )+
    };
}

/// The sweep that reads the configuration.
const HF: &str = "{hf: ./config.json}";

mistakes! {
    an_unknown_family_gets_the_nearest: instead("\"llama\"", "\"lama\""), HF;
    a_family_that_is_like_none_gets_some: instead("\"llama\"", "\"zzz\""), HF;
    a_family_is_named: instead("\"model_type\": \"llama\",", ""), HF;
    a_family_is_a_text: instead("\"llama\"", "7"), HF;
    keys_of_latent_attention_are_told_together: instead("\"llama\"", "\"deepseek_v3\""), HF;
    attention_to_chosen_tokens_is_refused: instead("\"llama\"", "\"deepseek_v32\""), HF;
    windows_stand_in_every_so_many_layers: read("tests/data/models/GPT-OSS-20B/config.json").replacen("\"sliding_attention\", \"full", "\"full_attention\", \"full", 1), HF;
    windows_stand_in_all_layers_or_none: instead("\"hidden_size\"", "\"sliding_window\": 512, \"max_window_layers\": 40,\n  \"hidden_size\""), HF;
    experts_of_latent_models_stand_in_every_layer: read("tests/data/models/Moonlight-16B-A3B/config.json").replace("\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2"), HF;
    latent_attention_is_refused_by_its_key: instead("\"hidden_size\"", "\"kv_lora_rank\": 512,\n  \"hidden_size\""), HF;
    state_spaces_are_refused: instead("\"llama\"", "\"mamba2\""), HF;
    linear_attention_is_refused: instead("\"hidden_size\"", "\"layer_types\": [\"full_attention\", \"linear_attention\"],\n  \"hidden_size\""), HF;
    an_encoder_is_refused: instead("\"hidden_size\"", "\"is_encoder_decoder\": true,\n  \"hidden_size\""), HF;
    missing_keys_are_told_together: instead("\"num_hidden_layers\": 80,", "").replace("\"vocab_size\"", "\"vocabulary\""), HF;
    kinds_of_values_are_told_together: instead("8192", "\"8192\"").replace("28672", "28672.5").replace("\"num_attention_heads\": 64", "\"num_attention_heads\": -64").replace("false", "0"), HF;
    a_shape_that_contradicts_itself_is_told: instead("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7"), HF;
    shared_experts_are_whole: read("tests/data/models/Qwen2-57B-A14B/config.json").replace("20480", "20481"), HF;
    dense_layers_are_in_front: read("tests/data/models/Qwen3-30B-A3B/config.json").replace("[]", "[0, 2]"), HF;
    experts_stand_in_every_so_many_layers: read("tests/data/models/Llama-4-Maverick-400B/config.json").replace("[1, 3,", "[0, 3,"), HF;
    an_embedding_is_as_wide_as_its_model: read("tests/data/models/OPT-66B/config.json").replace("\"word_embed_proj_dim\": 9216", "\"word_embed_proj_dim\": 512"), HF;
    a_configuration_is_json: instead("\"llama\",", "\"llama\", # ours"), HF;
    a_configuration_is_no_list: "[1, 2]\n", HF;
    a_configuration_is_there: "{}", "{hf: models/config.json}";
    a_pattern_is_like_some_configuration: "{}", "{hf: \"models/*/config.json\"}";
    the_path_of_a_configuration_is_a_text: "{}", "{hf: {a: 1}}";
    a_model_has_one_base: instead("x", "x"), "{preset: GPT-3-175B, hf: config.json}";
    a_key_beside_a_configuration_is_known: instead("x", "x"), "{hf: config.json, num_layers: 7}";
}
