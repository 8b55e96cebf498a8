//! What does each mistake look like? One broken sweep each, a snapshot of what is said; and no text makes us panic.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use starsweep::run::vocabulary;
use starsweep::sweep::resolve;

use crate::support::{code, evaluate, program, root, text};

/// Runs a broken file: exit code 2, nothing on standard output, nothing written, and what is said.
fn said(bytes: &[u8], more: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("broken.yaml"), folder.path().join("out"));
    fs::write(&file, bytes).expect("a file");
    said_of(&file, &out, more)
}

fn said_of(file: &Path, out: &Path, more: &[&str]) -> String {
    let mut command = program(&["run"]);
    let output = command.arg(file).arg("--out").arg(out).args(more).output().expect("the program starts");
    assert_eq!(code(&output), 2, "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    assert!(!out.exists(), "something was written");
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    text(&output.stderr)
        .replace(&file.display().to_string(), "broken.yaml")
        .replace(&format!("{}/", folder.display()), "")
}

/// A whole sweep, of which each mistake changes one line.
const WHOLE: &str = "\
model: GPT-3-175B
seq_len: 2048
global_batch: 1536 seq
precision: bf16
cluster:
  npu: H100-SXM-80GB
  npus: 64
  network:
    nvlink: {block: switch, size: 8, bandwidth: 450 GB/s, hop_latency: 500 ns}
    leaf: {block: switch, size: rest, bandwidth: 50 GB/s, hop_latency: 500 ns}
plan: {tp: 8, pp: 8}
";

/// The whole sweep with one thing written otherwise.
fn instead(of: &str, written: &str) -> String {
    assert!(WHOLE.contains(of));
    WHOLE.replacen(of, written, 1)
}

/// The whole sweep with lines behind it.
fn with(lines: &str) -> String {
    format!("{WHOLE}{lines}\n")
}

macro_rules! mistakes {
    ($($name:ident: $yaml:expr;)+) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(stringify!($name), said($yaml.as_bytes(), &[]));
            }
        )+
    };
}

mistakes! {
    an_unknown_key_gets_the_nearest: with("plam: {tp: 1}");
    an_unknown_key_of_the_plan_gets_the_nearest: instead("tp: 8", "tp: 8, micro_batch_sise: 1 seq");
    an_unknown_key_of_a_dimension_gets_the_nearest: instead("bandwidth: 450", "bandwith: 450");
    an_unknown_key_of_an_npu_gets_the_nearest: instead("npu: H100-SXM-80GB", "npu: {preset: H100-SXM-80GB, hbm_bandwith: 3 TB/s}");
    gpus_are_npus_here: instead("npus: 64", "gpus: 64");
    tensor_is_tp_here: instead("tp: 8", "tensor: 8");
    a_text_is_no_count: instead("tp: 8", "tp: eight");
    a_mapping_is_no_number: instead("450 GB/s", "{GB: 450}");
    a_list_in_a_list_is_no_axis: instead("tp: 8", "tp: [[1, 2], 4]");
    a_fraction_is_no_count: instead("tp: 8", "tp: 2.5");
    a_bare_number_is_shown_with_its_unit: instead("450 GB/s", "450");
    a_wrong_unit_names_the_nearest: instead("450 GB/s", "450 GBps");
    a_unit_of_something_else_is_refused: instead("450 GB/s", "450 ns");
    a_microbatch_needs_its_word: instead("tp: 8", "tp: 8, micro_batch_size: 1");
    on_is_no_flag: instead("tp: 8", "tp: 8, sequence_parallel: on");
    an_empty_axis_has_no_value: instead("tp: 8", "tp: []");
    a_value_stands_once_in_an_axis: instead("tp: 8", "tp: [1, 2, 1]");
    a_key_stands_once: with("seq_len: 4096");
    an_unknown_preset_gets_the_nearest: instead("GPT-3-175B", "GPT-3-176B");
    an_unknown_alternative_gets_the_nearest: with("define: {hbm_only: {host: none}}\nmemory: [hbm_onli]");
    an_unknown_tier_is_to_be_described: instead("tp: 8", "tp: 8, offload_optimizer: host");
    nan_is_no_number: instead("450 GB/s", ".nan");
    infinity_is_no_bandwidth: instead("450 GB/s", "1e999 GB/s");
    zero_bandwidth_is_refused: instead("450 GB/s", "0 GB/s");
    negative_bandwidth_is_refused: instead("450 GB/s", "-450 GB/s");
    a_range_hits_its_end: instead("450 GB/s", "{from: 100 GB/s, to: 450 GB/s, step: 100 GB/s}");
    a_range_has_a_step: instead("450 GB/s", "{from: 100 GB/s, to: 450 GB/s}");
    a_range_does_not_run_backwards: instead("450 GB/s", "{from: 450 GB/s, to: 100 GB/s, step: 50 GB/s}");
    a_name_is_not_defined_by_itself: with("define: {a: {preset: b}, b: {preset: a}}\nmemory: a");
    a_bomb_does_not_grow: format!(
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{}",
        (1..9).map(|k| format!("a{k}: &a{k} [{}]", vec![format!("*a{}", k - 1); 10].join(", "))).collect::<Vec<_>>().join("\n")
    );
    braces_that_do_not_close_are_no_yaml: "model: {[";
    an_empty_file_is_no_sweep: "";
    a_list_is_no_sweep: "- model: GPT-3-175B\n";
    a_model_has_heads_for_its_kv_heads: instead("GPT-3-175B", "{preset: Llama-3-8B, kv_heads: 7}");
    a_model_has_the_experts_that_a_token_is_sent_to: instead("GPT-3-175B", "{preset: Mixtral-8x7B, topk: 9}");
    a_model_has_a_width_for_its_heads: instead("GPT-3-175B", "{layers: 4, hidden: 1024, heads: 15, ffn: 4096, mlp: gelu, vocab: 32000}");
    a_model_with_experts_has_layers_for_them: instead("GPT-3-175B", "{preset: Mixtral-8x7B, dense_layers: 32}");
    sizes_are_whole_numbers: instead("GPT-3-175B", "{preset: DLRM-MLPerf, bottom_mlp: 512-wide-128}");
    a_size_stands_behind_each_hyphen: instead("GPT-3-175B", "{preset: DLRM-MLPerf, top_mlp: [512-1, 512-256-]}");
    sizes_are_no_mapping: instead("GPT-3-175B", "{preset: DLRM-MLPerf, rows: {from: 1, to: 8, times: 2}}");
    many_tables_have_one_size: instead("GPT-3-175B", &format!("{{preset: DLRM-MLPerf, rows: {}}}", ["7"; 33].join("-")));
    a_size_has_a_limit: instead("GPT-3-175B", "{preset: DLRM-MLPerf, rows: 5000000000, top_mlp: 0-1}");
    an_mlp_has_so_many_layers: instead("GPT-3-175B", "{preset: DLRM-MLPerf, bottom_mlp: 13-12-11-10-9-8-7-6-5-4-3-2-128}");
    a_comma_in_braces_ends_a_list_of_sizes: instead("GPT-3-175B", "{preset: DLRM-MLPerf, bottom_mlp: 512,256,128, top_mlp: \"1024, 1\"}");
    every_table_has_its_rows: instead("GPT-3-175B", "{preset: DLRM-MLPerf, tables: 25}");
    a_dense_vector_is_as_wide_as_an_embedding: instead("GPT-3-175B", "{preset: DLRM-MLPerf, embedding_dim: 64}");
    a_recommendation_model_has_its_keys: instead("GPT-3-175B", "{family: dlrm, tables: 8, rows: 1000, embedding_dim: 64, top_mlp: 512-1}");
    a_recommendation_model_has_no_layers: instead("GPT-3-175B", "{preset: DLRM-MLPerf, layers: [3, 4]}");
    a_family_with_tables_is_said: instead("GPT-3-175B", "{tables: 8, rows: 1000, embedding_dim: 64}");
    an_unknown_family_gets_the_nearest: instead("GPT-3-175B", "{family: dlmr, tables: 8}");
    a_family_of_an_alternative_is_one_mistake: instead("GPT-3-175B", "[{family: dlmr, tables: 8}, DLRM-MLPerf]").replace("seq_len: 2048\n", "");
    a_missing_model_is_named: instead("model: GPT-3-175B\n", "");
    a_missing_sequence_is_named: instead("seq_len: 2048\n", "");
    a_missing_batch_is_named: instead("global_batch: 1536 seq\n", "");
    a_missing_bandwidth_is_named: instead("bandwidth: 450 GB/s, ", "");
    a_missing_bandwidth_of_an_alternative_is_named: with("define:\n  one: {a: {block: ring, size: 8, bandwidth: 1 GB/s}}\n  two: {a: {block: ring, size: 8}}\ncluster.network: [one, two]").replace(&WHOLE[WHOLE.find("  network:").expect("a network")..WHOLE.find("plan:").expect("a plan")], "");
    a_missing_network_is_named: WHOLE.split("  network:").next().expect("a head").to_owned();
    a_list_for_each_dimension_is_written_as_lines: instead(
        &WHOLE[WHOLE.find("    nvlink").expect("a network")..WHOLE.find("plan:").expect("a plan")],
        "    topology: [Ring, Switch]\n    npus_count: [8, 4]\n    bandwidth: [50, 25]\n    latency: [500, 500]\n",
    );
    a_framework_is_a_preset_or_a_name: instead("tp: 8", "tp: 8, framework: torchtitain");
    the_references_rules_need_the_event_driven_engine: with("rules: astra_sim");
    queues_need_the_event_driven_engine: with("collectives:\n  active_chunks: 4\n  dimension_order: themis\n  chunk_order: [fifo, rg]");
    single_messages_need_the_event_driven_engine: "workload: {collective: all_reduce, size: 1 GB}\ncluster: {congestion: aware, network: {a: {block: ring, size: 8, bandwidth: 1 GB/s}}}\ncollectives: {local_reduction: false, multi_dim: all, queues: [1, 2], rendezvous: true}\n";
    single_messages_are_not_those_of_a_training_job: with("collectives: {rendezvous: [false, true]}\nfidelity: event_driven").replace("  npus: 64", "  npus: 64\n  congestion: aware");
    words_of_the_reference_are_answered_with_ours: with("collectives: {algorithm: halvingDoubling, collective-optimization: baseline, multi_dim: localBWAware, window: 0}");
    algorithms_by_dimension_are_as_many_as_dimensions: with("collectives: {algorithm: [by_block, {by_dimension: [ring, ring, ring]}]}");
    algorithms_by_dimension_stand_once: with("collectives: {algorithm: {by_dimension: [ring, ring]}}\neach_dimension: {algorithm: ring}");
    an_algorithm_of_a_dimension_is_set_once: with("collectives: {algorithm: {by_dimension: [ring, direct(4)]}}").replace("{block: switch, size: 8,", "{block: switch, size: 8, algorithm: ring,");
    a_window_is_set_once: with("collectives: {algorithm: [ring, direct(4)], window: 8}");
    a_window_is_a_count_of_a_direct_exchange: with("collectives:\n  algorithm: [direct4, ring(2), direct(0), {by_dimension: ring}, {by_dims: [ring]}, {by_dimension: [[ring], ring]}]\n  all_gather_algorithm: [direct(2), {by_dimension: [ring, ring]}]");
    queues_of_an_alternative_need_the_event_driven_engine: with("define: {plain: {chunks: 4}, busy: {chunks: 16, dimension_order: themis}}\ncollectives: [plain, busy]\nfidelity: closed_form");
    an_unknown_evaluator_is_one_mistake: with("fidelity: event_drivn\nrules: astra_sim");
    what_is_event_driven_is_not_refined: with("fidelity: [closed_form, event_driven]\nrefine: {top: 10}");
    refine_knows_its_keys: with("refine: {topp: 10, top: few, by: tp}");
    refine_goes_by_one_column: with("refine: {by: {iteration_time: min, npus: min}}");
    refine_goes_by_a_number: with("refine: {by: recompute}");
    assumptions_and_claims_come_later: with("assume: {gemm_efficiency: {low: -10 %, high: 5 %}}\nexpect: {a: 1}");
    a_models_file_stands_in_model: with("hf: ./config.json");
    in_network_and_oversubscription_come_later: instead("bandwidth: 450 GB/s", "bandwidth: 450 GB/s, in_network: true, oversubscription: 2");
    where_knows_its_names: with("where: {few: tpp <= 8}");
    where_decides_before_evaluation: with("where: {fast: iteration_time < 3 s}");
    units_of_an_expression_must_agree: with("where: {odd: tp <= 8 GB}");
    derived_values_do_not_go_in_circles: with("derive: {a: b + 1, b: a + 1}");
    only_axes_are_compared: with("decide: {compare: cluster}");
    a_baseline_is_among_what_is_compared: instead("tp: 8", "tp: [4, 8]").replace("plan:", "decide: {compare: tp, baseline: 16}\nplan:");
    an_objective_is_a_number_of_the_table: with("decide: {objectives: {iteration_tme: min}}");
    a_network_has_one_rest: instead("size: 8,", "size: rest,");
    an_alternative_network_has_one_rest: with("define:\n  two: {a: {block: ring, size: rest, bandwidth: 1 GB/s}, b: {block: ring, size: rest, bandwidth: 1 GB/s}}\n  one: {a: {block: ring, size: rest, bandwidth: 1 GB/s}}").replace("  network:\n    nvlink: {block: switch, size: 8, bandwidth: 450 GB/s, hop_latency: 500 ns}\n    leaf: {block: switch, size: rest, bandwidth: 50 GB/s, hop_latency: 500 ns}\n", "  network: [one, two]\n");
    a_dimension_that_no_network_has_is_unknown: with("where: {inner: tp <= dim7.size}");
    rest_needs_the_number_of_npus: instead("  npus: 64\n", "");
    rest_needs_the_number_of_npus_in_its_alternative: with("define:\n  many: {npus: 64, network: {a: {block: ring, size: rest, bandwidth: 1 GB/s}}}\n  some: {network: {a: {block: ring, size: rest, bandwidth: 1 GB/s}}}\ncluster: [many, some]\ncluster.npu: H100-SXM-80GB").replace(&WHOLE[WHOLE.find("cluster:").expect("a cluster")..WHOLE.find("plan:").expect("a plan")], "");
    a_key_is_set_once: with("zip: {job: {one: {seq_len: 4096}}}");
    a_product_is_numbered_below_2_to_the_53: instead(
        "bandwidth: 450 GB/s",
        "bandwidth: {from: 1 MB/s, to: 1000 GB/s, step: 1 MB/s}",
    ).replace("bandwidth: 50 GB/s", "bandwidth: {from: 1 MB/s, to: 1000 GB/s, step: 1 MB/s}")
     .replace("plan:", "collectives: {chunks: {from: 1, to: 1000000, step: 1}}\nplan:");
    batch_size_is_global_batch_here: instead("global_batch: 1536 seq", "batch_size: 1536");
    infinity_of_yaml_is_no_number: instead("450 GB/s", ".inf");
    a_bare_range_needs_its_unit: instead("450 GB/s", "{from: 100, to: 400, times: 2}");
    a_value_stands_once_in_an_axis_of_a_dimension: instead("450 GB/s", "[450 GB/s, 450 GB/s]");
    names_in_no_use_do_not_go_in_circles_either: with("define: {a: b, b: {preset: a}}");
    a_derived_value_takes_no_name_that_is_there: with("derive: {tp: pp + 1, iteration_time: 1 s, dim0_name: 2}");
    a_zip_is_not_called_as_a_column: instead("seq_len: 2048\n", "zip: {tp: {a: {seq_len: 2048}, b: {seq_len: 4096}}, mfu: {a: {cluster.npu.price: 1 $}}}\n");
    a_key_and_its_short_form_are_one: with("npus: 128");
    tokens_are_whole_sequences: instead("1536 seq", "3145729 tok");
    a_row_lacks_what_its_zip_sets: instead("seq_len: 2048\n", "zip: {job: {a: {seq_len: 2048}, b: {precision: fp8}}}\n").replace("precision: bf16\n", "");
    rows_stand_below_the_name_of_their_zip: instead("seq_len: 2048\n", "zip: {one: {seq_len: 2048}, two: {seq_len: 4096}}\n");
    a_zip_is_no_list: instead("seq_len: 2048\n", "zip:\n- {seq_len: 2048}\n- {seq_len: 4096}\n");
    a_row_does_not_lack_what_could_not_be_read: instead("seq_len: 2048\n", "zip: {job: {one: {seq_len: 2048}, two: {seq_len: 4k}}}\n");
    an_anchor_has_a_name: with("anchor: {tp: 8, pp: 8, iteration_time: 3 s}");
    the_time_of_an_anchor_has_its_name: with("anchor: {today: {tp: 8, pp: 8, step_time: 3 s}}");
    the_time_of_an_anchor_is_in_seconds: with("anchor: {today: {tp: 8, pp: 8, iteration_time: 3.31}}");
    the_memory_of_an_anchor_has_its_name: with("anchor: {today: {tp: 8, pp: 8, iteration_time: 3 s, memory: 61 GB, tensor: 8}}");
    an_anchor_has_no_other_measurement: with("anchor: {today: {tp: 8, pp: 8, iteration_time: 3 s, mfu: 40 %}}");
    a_memory_without_a_tier_says_so: with("memory: [none, {host: 512 GB}]");
    an_offload_names_its_tier: with("memory: {host: {capacity: 1 TB, bandwidth: 64 GB/s}}").replace("tp: 8", "tp: 8, offload_optimizer: true");
    adagrad_is_row_wise: with("optimizer: adagrad");
    parts_of_a_layer_have_a_plus_between_them: instead("tp: 8", "tp: 8, recompute: \"layernorm, mlp_act\"");
    a_line_of_the_network_is_a_mapping: instead("{block: switch, size: rest, bandwidth: 50 GB/s, hop_latency: 500 ns}", "5");
    a_link_is_a_preset: instead("bandwidth: 450 GB/s", "link: NVLink4");
    a_mistyped_collective_is_one_mistake: "workload: {colective: all_reduce, size: 1 GB}\ncluster: {npu: H100-SXM-80GB, npus: 8, network: {a: {block: ring, size: rest, bandwidth: 1 GB/s}}}\n";
    a_traced_algorithm_is_not_that_of_a_training_job: with("collectives: {algorithm: [ring, {chakra: mine/w}]}\nfidelity: event_driven");
    a_speedup_comes_later: with("decide: {objectives: {speedup: max}}");
    a_name_of_two_axes_is_asked_back: instead("bandwidth: 450 GB/s", "bandwidth: [450 GB/s, 900 GB/s]").replace("50 GB/s, hop", "[50 GB/s, 100 GB/s], hop") + "decide: {compare: bandwidth}\n";
    a_comma_in_braces_ends_an_expression: with("derive: {k: max(tp, pp) % 3}");
    a_thousand_has_no_letter: instead("2048", "2k");
    names_do_not_go_in_circles: with("define: {a: b, b: a}\nmemory: a");
    an_alias_needs_its_anchor: instead("tp: 8", "tp: *x");
    a_line_without_a_colon_is_no_yaml: instead("seq_len: 2048", "seq_len 2048");
    a_tab_does_not_indent: instead("  npus: 64", "\tnpus: 64");
    zero_bytes_are_no_yaml: "\0\u{1}\u{2}\u{3}";
    two_documents_are_no_sweep: format!("{WHOLE}---\n{WHOLE}");
    a_list_for_each_dimension_is_refused_in_braces_too: instead(
        &WHOLE[WHOLE.find("  network:").expect("a network")..WHOLE.find("plan:").expect("a plan")],
        "  network: {topology: [Ring, Switch], npus_count: [8, 4], bandwidth: [50, 25], latency: [500, 500]}\n",
    );
    a_tier_has_a_capacity: with("memory: {host: {size: 1 TB, bandwidth: 64 GB/s}}");
    a_missing_bandwidth_of_a_tier_is_named: with("memory: {host: {capacity: 1 TB}}");
    an_unknown_link_gets_the_nearest: instead("{block: switch, size: 8, bandwidth: 450 GB/s, hop_latency: 500 ns}", "NVLink9");
    an_unknown_collective_gets_the_nearest: "workload: {collective: all_redce, size: 1 GB}\nnetwork: {d1: {block: ring, size: 8, bandwidth: 1 GB/s}}\n";
    where_sees_no_result_through_a_derived_value: with("derive: {twice: iteration_time * 2}\nwhere: {fast: twice < 3 s}");
    what_is_compared_gets_the_nearest: instead("tp: 8", "tp: [4, 8]").replace("plan:", "decide: {compare: tpp}\nplan:");
    a_baseline_needs_a_comparison: instead("tp: 8", "tp: [4, 8]").replace("plan:", "decide: {baseline: 4}\nplan:");
    several_mistakes_are_shown_at_once: instead("tp: 8", "tpp: 8, zero: 4, pp2: 1")
        .replace("450 GB/s", "450").replace("model: GPT-3-175B", "model: GPT-3-176B");
}

#[test]
fn five_mistakes_are_five_errors() {
    let yaml =
        instead("tp: 8", "tpp: 8, zero: 4, pp2: 1").replace("450 GB/s", "450").replace("GPT-3-175B", "GPT-3-176B");
    assert_eq!(said(yaml.as_bytes(), &[]).matches("error: ").count(), 5);
}

#[test]
fn a_wrong_override_shows_the_argument() {
    let argument = said(WHOLE.as_bytes(), &["-s", "plan.tpp=3", "-s", "plan.pp", "-s", "seq_len=[a, 2]"]);
    insta::assert_snapshot!(argument);
}

#[test]
fn a_bare_number_of_an_override_is_shown_with_its_unit() {
    let arguments = ["-s", "cluster.network.nvlink.bandwidth=400", "-s", "plan.micro_batch_size=2"];
    insta::assert_snapshot!(said(WHOLE.as_bytes(), &arguments));
}

#[test]
fn an_override_of_a_later_version_is_refused_by_name() {
    insta::assert_snapshot!(said(WHOLE.as_bytes(), &["-s", "cluster.oversubscription=2"]));
}

#[test]
fn an_override_that_is_no_yaml_shows_the_argument() {
    insta::assert_snapshot!(said(WHOLE.as_bytes(), &["-s", "plan.tp=[1, 2"]));
}

#[test]
fn a_picture_is_no_sweep() {
    insta::assert_snapshot!(said(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", &[]));
}

#[test]
fn a_file_of_100_mb_is_no_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broken.yaml");
    let mut start = fs::File::create(&file).expect("a file");
    std::io::Write::write_all(&mut start, b"model: GPT-3-175B\n").expect("a line");
    start.set_len(100_000_000).expect("a hole");
    insta::assert_snapshot!(said_of(&file, &folder.path().join("out"), &[]));
}

#[test]
fn a_missing_file_gets_the_nearest() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("broken.yml"), "").expect("a file");
    insta::assert_snapshot!(said_of(&folder.path().join("broken.yaml"), &folder.path().join("out"), &[]));
}

/// The files that the language aims at: what is not understood yet is refused by name.
#[test]
fn the_target_files_are_refused_by_name_alone() {
    for name in ["target_architect", "target_engineer", "target_researcher"] {
        let yaml = fs::read_to_string(root().join("tests/data").join(format!("{name}.yaml"))).expect("a target");
        insta::assert_snapshot!(name, said(yaml.as_bytes(), &[]));
    }
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (bound.max(1) as u64)).expect("small")
    }
}

fn mutate(text: &str, random: &mut Random) -> String {
    const SNIPPETS: [&str; 24] = [
        "[]",
        "{}",
        "all",
        "rest",
        "*a",
        "&a ",
        "1e308",
        "-1",
        "none",
        "[1, 2]",
        "{from: 1, to: 9, step: 2}",
        ": ",
        "\n  ",
        "9999999999",
        "0",
        "true",
        "1e-308 GB/s",
        "18446744073709551616",
        "{from: 1e-300, to: 1e300, times: 2}",
        "[{}, {}]",
        "dim99.size",
        "sum(dim.size)",
        "1 / 0",
        "\u{e9}",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let k = random.below(lines.len());
        let line = lines[k].clone();
        let at = line.char_indices().map(|found| found.0).nth(random.below(line.chars().count())).unwrap_or(0);
        let mut letters: Vec<char> = line.chars().collect();
        let mut words: Vec<&str> = line.split(' ').collect();
        let (letter, other_letter) = (random.below(letters.len()), random.below(letters.len()));
        let (word, other_word) = (random.below(words.len()), random.below(words.len()));
        let snippet = SNIPPETS[random.below(SNIPPETS.len())];
        match random.below(11) {
            0 => drop(lines.remove(k)),
            1 => lines.insert(k, line),
            2 => lines[k].insert_str(at, snippet),
            3 => lines[k].truncate(at),
            4 => {
                let other = random.below(lines.len());
                lines.swap(k, other);
            }
            kind @ 5..=7 if !letters.is_empty() => {
                match kind {
                    5 => drop(letters.remove(letter)),
                    6 => letters.insert(letter, letters[letter]),
                    _ => letters.swap(letter, other_letter),
                }
                lines[k] = letters.into_iter().collect();
            }
            kind => {
                match kind {
                    8 => drop(words.remove(word)),
                    9 => words.swap(word, other_word),
                    _ => words[word] = snippet,
                }
                lines[k] = words.join(" ");
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

/// What is said of a sweep before it runs, without what to do.
fn cautions(yaml: &str) -> Vec<String> {
    let sweep = resolve(yaml, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{errors:#?}"));
    sweep.cautions.into_iter().map(|caution| caution.message).collect()
}

#[test]
fn a_price_that_nobody_gives_is_worth_a_caution() {
    let capex = "derive: {capex: npus * (npu.price + pool.price + sum(dim.price * dim.bandwidth))}";
    let said = cautions(&with(&format!("memory: {{pool: {{capacity: 1 TB, bandwidth: 64 GB/s}}}}\n{capex}")));
    assert_eq!(
        said,
        [
            "no `cluster.npu.price` for H100-SXM-80GB: it counts as 0 in `derive.capex`",
            "no `price` for pool: it counts as 0 in `derive.capex`",
            "no `price` for leaf, nvlink: it counts as 0 in `derive.capex`",
        ]
    );
    let price = "cluster.npu.price: 30 k$\neach_dimension: {price: 60 $/(GB/s)}\n";
    let pool = "memory: {pool: {capacity: 1 TB, bandwidth: 64 GB/s, price: 2 k$}}\n";
    assert_eq!(cautions(&with(&format!("{price}{pool}{capex}"))), [""; 0]);
}

#[test]
fn a_price_that_only_some_alternatives_have_is_worth_a_caution() {
    let one = "{preset: H100-SXM-80GB, price: 30 k$}";
    let npus = instead("H100-SXM-80GB", &format!("[{one}, A100-SXM-80GB]"));
    let said = cautions(&format!("{npus}require: {{cheap: npus * npu.price <= 3 M$}}\n"));
    assert_eq!(said, ["no `cluster.npu.price` for A100-SXM-80GB: it counts as 0 in `require.cheap`"]);
    // A memory without the tier has nothing to pay for.
    let tier = "define: {bare: {pool: none}, rich: {pool: {capacity: 1 TB, bandwidth: 64 GB/s, price: 2 k$}}}\nmemory: [bare, rich]";
    assert_eq!(cautions(&with(&format!("{tier}\nderive: {{pools: npus * pool.price}}"))), [""; 0]);
}

#[test]
fn a_value_that_changes_nothing_is_worth_a_caution() {
    let plan = |plan: &str| cautions(&instead("tp: 8, pp: 8", plan));
    assert_eq!(
        plan(
            "tp: 8, pp: 1, ep: 8, etp: 2, vpp: 4, schedule: gpipe, cp_kind: all_gather, table_shards: [2], zero_shard: 2"
        ),
        [
            "`ep` changes nothing: no model has experts",
            "`etp` changes nothing: no model has experts",
            "`vpp` changes nothing: `pp` is 1 at every point",
            "`schedule` changes nothing: `pp` is 1 at every point",
            "`cp_kind` changes nothing: `cp` is 1 at every point",
            "`zero_shard` changes nothing: `zero` is 0 at every point",
            "`table_shards` changes nothing: every model is a `transformer`, which has no use for it",
        ]
    );
    assert_eq!(plan("tp: 8, pp: 8, dp: 1, zero: 1"), ["`zero` changes nothing: `dp` and `cp` are 1 at every point"]);
    // Defaults, what is switched off, and what matters at some point.
    assert_eq!(plan("tp: 8, pp: 1, ep: 1, vpp: 1, schedule: 1f1b, table_shards: 1, overlap_dp: false"), [""; 0]);
    assert_eq!(plan("tp: 1, pp: 1, sequence_parallel: false, overlap_pp: false, overlap_embeddings: false"), [""; 0]);
    assert_eq!(plan("tp: 8, pp: [1, 2], vpp: 2, zero: 1, order: dp-tp-pp"), [""; 0]);
    let experts = |models: &str| cautions(&instead("GPT-3-175B", models).replace("tp: 8, pp: 8", "ep: 8"));
    assert_eq!(experts("[Llama-3-8B, Mixtral-8x7B]"), [""; 0]);
    assert_eq!(experts("[Llama-3-8B, DLRM-MLPerf]"), ["`ep` changes nothing: no model has experts"]);
}

#[test]
fn parts_that_no_model_has_are_worth_a_caution() {
    let said = |model: &str, recompute: &str| {
        cautions(&instead("GPT-3-175B", model).replace("tp: 8, pp: 8", &format!("recompute: {recompute}")))
    };
    let moe = "`moe_act` of `recompute` changes nothing: no model has `experts`";
    assert_eq!(said("GPT-3-175B", "[none, layernorm+moe_act]"), [moe]);
    assert_eq!(
        said("Mixtral-8x7B", "mla_up_proj+shared_experts+moe_act"),
        [
            "`mla_up_proj` of `recompute` changes nothing: no model has `kv_rank`",
            "`shared_experts` of `recompute` changes nothing: no model has `shared_experts`",
        ]
    );
    assert_eq!(said("[GPT-3-175B, Mixtral-8x7B]", "[moe, selective, full]"), [""; 0]);
}

#[test]
fn a_tier_that_nothing_lives_in_is_worth_a_caution() {
    let memory = "memory: {pool: {capacity: 1 TB, bandwidth: [64 GB/s, 32 GB/s]}}\n";
    assert_eq!(cautions(&with(memory)), ["nothing lives in the tier `pool`: it changes nothing"]);
    let offload = |tier: &str| cautions(&with(memory).replace("tp: 8", &format!("tp: 8, offload_optimizer: {tier}")));
    for tier in ["pool", "all", "[none, pool]"] {
        assert_eq!(offload(tier), [""; 0], "{tier}");
    }
    // What it costs counts, and what is read.
    assert_eq!(cautions(&with(&memory.replace("{capacity", "{price: 1 k$, capacity"))), [""; 0]);
    assert_eq!(cautions(&with(&format!("{memory}derive: {{fast: pool.bandwidth}}"))), [""; 0]);
}

#[test]
fn a_value_that_no_recommendation_model_heeds_is_worth_a_caution() {
    let models = instead("GPT-3-175B", "[DLRM-MLPerf, DLRM-Criteo-Kaggle]");
    let plan =
        "ep: 8, vpp: 4, schedule: gpipe, micro_batch_size: 4 seq, reduce_scatter: false, zero: 1, table_shards: 4";
    let said = cautions(&models.replace("tp: 8, pp: 8", plan));
    let whys = [
        ("seq_len", "has no use for it"),
        ("ep", "has no experts"),
        ("vpp", "has no pipeline"),
        ("schedule", "has no pipeline"),
        ("micro_batch_size", "takes all samples of a replica at once"),
        ("reduce_scatter", "has no weights of layers that are sharded"),
    ];
    assert_eq!(said, whys.map(|(key, why)| format!("`{key}` changes nothing: every model is a `dlrm`, which {why}")));
}

#[test]
fn a_list_of_widths_that_looks_like_one_mlp_is_worth_a_caution() {
    let model = "{family: dlrm, tables: 3, rows: ROWS, embedding_dim: 64, dense_features: 16, bottom_mlp: BOTTOM, top_mlp: TOP}";
    let said = |rows: &str, bottom: &str, top: &str| {
        let model = model.replace("ROWS", rows).replace("BOTTOM", bottom).replace("TOP", top);
        cautions(
            &instead("GPT-3-175B", &model).replace("seq_len: 2048\n", "").replace("tp: 8, pp: 8", "table_shards: 2"),
        )
    };
    assert_eq!(
        said("[10, 20, 30]", "128-64", "[1024, 512, 1]"),
        [
            "the list of `rows` is an axis of 3 models with a `rows` of equal tables each",
            "the list of `top_mlp` is an axis of 3 models with a `top_mlp` of one layer each",
        ]
    );
    assert_eq!(said("[10, 20]", "[128-64, 64]", "[1]"), [""; 0]);
}

#[test]
fn the_rest_of_an_alternative_is_left_of_its_own_npus() {
    let yaml = instead("  npus: 64\n", "").replace(
        &WHOLE[WHOLE.find("cluster:").expect("a cluster")..WHOLE.find("plan:").expect("a plan")]
            .replace("  npus: 64\n", ""),
        "",
    ) + "define:\n  many: {npus: [32, 64], network: {a: {block: ring, size: rest, bandwidth: 1 GB/s}}}\n  \
           few: {network: {a: {block: ring, size: 16, bandwidth: 1 GB/s}}}\ncluster: [many, few]\ncluster.npu: H100-SXM-80GB\n";
    let sweep = resolve(&yaml.replace("tp: 8, pp: 8", "tp: 8"), &[], &vocabulary())
        .unwrap_or_else(|errors| panic!("{errors:#?}"));
    let npus: Vec<f64> =
        crate::support::points(&sweep).iter().map(|inputs| inputs.key(starsweep::sweep::key::Id::Npus)).collect();
    assert_eq!(npus, [32.0, 64.0, 16.0]);
}

#[test]
fn mutated_sweeps_never_panic() {
    let seconds = std::env::var("STARSWEEP_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut texts = vec![WHOLE.to_owned()];
    for folder in ["sweeps", "tests/data", "benches"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|end| end == "yaml") {
                texts.push(fs::read_to_string(path).expect("a sweep"));
            }
        }
    }
    // Another seed at each run: what breaks is shown with its text.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let mut random = Random(since.as_secs().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let started = Instant::now();
    let (mut tried, mut resolved) = (0_u64, 0_u64);
    while started.elapsed() < Duration::from_secs(seconds) {
        let text = mutate(&texts[random.below(texts.len())], &mut random);
        let outcome = std::panic::catch_unwind(|| {
            let Ok(sweep) = resolve(&text, &[], &vocabulary()) else { return false };
            for part in 0..21 {
                let mut cursor = sweep.space.cursor(sweep.space.len() / 21 * part);
                if cursor.next_point(sweep.space.len().min(cursor.index() + 1_000)).is_some() {
                    let _ = evaluate(&cursor.inputs);
                }
            }
            true
        });
        resolved += u64::from(outcome.unwrap_or_else(|_| panic!("this text makes us panic:\n{text}")));
        tried += 1;
    }
    assert!(tried > 20 && resolved > 0, "{tried} tried, {resolved} resolved");
}
