//! Does a recommendation model look up, send and keep what follows by hand? Worked numbers, laws, both evaluators, measured runs.

use starsweep::run::evaluate::Evaluator;
use starsweep::sweep::Inputs;
use starsweep::sweep::family::why_unheeded;
use starsweep::sweep::key::{Default, Id, KEYS, Kind};
use starsweep::system::System;
use starsweep::system::collective::Collective;
use starsweep::system::kernel::Kernel;
use starsweep::units::{Bytes, real};
use starsweep::workload::program::{Account, Beside, Operation, Phase, Work};
use starsweep::workload::{Footprint, Group, Infeasible, Job, Program, Reason, build, check};

use crate::support::{code, evaluate, evaluations, points, run, sweep, text};
use crate::validation::{differences, spread};

/// Eight tables of a thousand rows, whose sums and MLPs are easy to multiply.
const SMALL: &str = "{family: dlrm, tables: 8, rows: 1000, embedding_dim: 64, pooling: 10, dense_features: 16, bottom_mlp: 128-64, top_mlp: 256-1}";

/// A step of a model on so many NPUs of one switch.
struct Step {
    checked: Result<Footprint, Infeasible>,
    program: Program,
    npus: f64,
}

fn step(model: &str, npus: u64, lines: &str) -> Step {
    let yaml = format!(
        "model: {model}\nglobal_batch: 4096 samples\nprecision: fp16\noptimizer: sgd\n\
         cluster: {{npu: A100-SXM-80GB, npus: {npus}, network: {{a: {{block: switch, size: rest, bandwidth: 300 GB/s}}}}}}\n{lines}"
    );
    let (job, system): (Job, System) = Evaluator::question(&points(&sweep(&yaml)).remove(0));
    let mut program = Program::default();
    build(&job, &mut program);
    Step { checked: check(&job, &system), program, npus: real(npus) }
}

impl Step {
    fn operations(&self, phase: Phase) -> Vec<Operation> {
        let blocks = self.program.blocks.iter().filter(|block| block.phase == phase);
        blocks.flat_map(|block| self.program.operations_of(block).to_vec()).collect()
    }

    /// Whole buffers of a kind of collective in a pass.
    fn buffers(&self, phase: Phase, wanted: Collective) -> Vec<f64> {
        let size = |operation: Operation| match operation.work {
            Work::Collective { collective, group: Group::Data, size } if collective == wanted => Some(size.as_real()),
            _ => None,
        };
        self.operations(phase).into_iter().filter_map(size).collect()
    }

    /// Bytes of the look-ups.
    fn looked_up(&self) -> f64 {
        match self.operations(Phase::Forward)[0].work {
            Work::Compute(Kernel::Stream { moved }) => moved.as_real(),
            work => panic!("{work:?}"),
        }
    }

    fn reason(&self) -> Option<Reason> {
        self.checked.err().map(|refused| refused.reason)
    }
}

#[test]
fn a_zip_has_rows_of_both_families_and_a_batch_in_tokens_is_one_of_samples() {
    let both = "zip: {job: {gpt: {model: GPT-3-13B, seq_len: 2048, global_batch: 256 seq}, rec: {model: DLRM-MLPerf, global_batch: 65536 samples}}}
precision: fp16
npu: A100-SXM-80GB
network: {nv: {block: switch, size: 8, bandwidth: 300 GB/s}}
";
    assert_eq!(points(&sweep(both)).len(), 2);
    let tokens = "model: DLRM-MLPerf
seq_len: 2048
global_batch: 65536 tok
precision: fp16
npu: A100-SXM-80GB
network: {nv: {block: switch, size: 8, bandwidth: 300 GB/s}}
";
    assert_eq!(points(&sweep(tokens))[0].key(Id::GlobalBatch), 65536.0);
    for framework in ["megatron-core", "megatron-core 0.14", "torchtitan", "deepspeed"] {
        let yaml = format!("{tokens}plan: {{framework: {framework}}}\n");
        assert_eq!(points(&sweep(&yaml)).len(), 0, "{framework}");
    }
}

#[test]
fn tables_go_to_and_fro_once_each_way_beside_the_bottom_mlp() {
    let step = step(SMALL, 4, "");
    // 4,096 samples, 2 of 8 tables, sums of 64 elements in 2 B.
    let whole = 4096.0 * 2.0 * 64.0 * 2.0;
    assert_eq!(step.buffers(Phase::Forward, Collective::AllToAll), [whole]);
    assert_eq!(step.buffers(Phase::Backward, Collective::AllToAll), [whole]);
    // 10 rows of 64 elements in 4 B, their numbers of 8 B, and the sum in 2 B.
    assert_eq!(step.looked_up(), 4096.0 * 2.0 * (10.0 * (256.0 + 8.0) + 128.0));
    let beside = |step: &Step| {
        let operations = step.operations(Phase::Forward).into_iter();
        operations.filter(|it| it.account == Account::Tables).map(|it| it.beside).collect::<Vec<_>>()
    };
    assert_eq!(beside(&step), [Beside::Block]);
    assert_eq!(beside(&self::step(SMALL, 4, "plan: {overlap_embeddings: false}\n")), [Beside::Nothing]);
}

#[test]
fn sums_that_hide_over_fast_links_take_what_their_bytes_take_of_the_memory() {
    // 32 tables of 128 columns on 8 NPUs, and a bottom MLP of milliseconds.
    let model = "{family: dlrm, tables: 32, rows: 1000, embedding_dim: 128, dense_features: 512, bottom_mlp: 8192-8192-128, top_mlp: 256-1}";
    let yaml = format!(
        "model: {model}\nglobal_batch: 65536 samples\nprecision: fp16\nplan: {{overlap_dp: false, overlap_embeddings: [false, true]}}\n\
         software: {{collective_latency: 0 s}}\nfidelity: [closed_form, event_driven]\n\
         cluster: {{npu: A100-SXM-80GB, network: {{a: {{block: switch, size: 8, bandwidth: 300 GB/s}}}}}}\n"
    );
    let found = points(&sweep(&yaml));
    let exposed = |overlaps: f64, fidelity: f64| {
        let is =
            |inputs: &&Inputs| inputs.key(Id::OverlapEmbeddings) == overlaps && inputs.key(Id::Fidelity) == fidelity;
        let inputs = found.iter().find(is).expect("a point");
        let (_, system, result) = evaluate(inputs);
        (result.expect("a feasible point").report.exposed[Account::Tables as usize].as_seconds(), system)
    };
    // 65,536 samples of 4 tables in 2 B: 67.1 MB, 7 of 8 of them sent, each way.
    let sent = 65536.0 * 4.0 * 128.0 * 2.0 * 7.0 / 8.0;
    for fidelity in [0.0, 1.0] {
        let ((alone, system), (hidden, _)) = (exposed(0.0, fidelity), exposed(1.0, fidelity));
        assert!((alone / (2.0 * sent / 300e9) - 1.0).abs() < 0.01, "{alone}");
        // 5.3 B of a byte that is summed, two thirds of one that is moved: 3.5 B at 2,039 GB/s and what of it is reached.
        let memory = system.npu.memory_bandwidth.get() * system.npu.memory_efficiency;
        let paid = 2.0 * sent * 5.3 * 2.0 / 3.0 / memory;
        assert!((hidden / paid - 1.0).abs() < 0.01, "{hidden} {paid}");
        assert!(hidden < 0.7 * alone, "{hidden} {alone}");
    }
}

#[test]
fn mlps_multiply_what_their_layers_say() {
    let flops = |phase| -> f64 {
        let operations = step(SMALL, 4, "").operations(phase).into_iter();
        operations.map(|it| if let Work::Compute(kernel) = it.work { kernel.flops() } else { 0.0 }).sum()
    };
    // 1,024 samples a NPU; 16-128-64, 9 vectors of 64, 36 + 64 = 100 elements, 100-256-1.
    let (bottom, top, dot) = (16.0 * 128.0 + 128.0 * 64.0, 100.0 * 256.0 + 256.0, 9.0 * 9.0 * 64.0);
    assert_eq!(flops(Phase::Forward), 1024.0 * 2.0 * (bottom + top + dot));
    // Dense features have no gradient.
    assert_eq!(flops(Phase::Backward), 1024.0 * 2.0 * (2.0 * (bottom + top + dot) - 16.0 * 128.0));
}

#[test]
fn gradients_of_mlps_are_reduced_and_those_of_tables_are_not() {
    let (bottom, top) = (16.0 * 128.0 + 128.0 + 128.0 * 64.0 + 64.0, 100.0 * 256.0 + 256.0 + 256.0 + 1.0);
    let plain = step(SMALL, 4, "");
    // 2 B a gradient.
    assert_eq!(plain.buffers(Phase::Backward, Collective::AllReduce), [2.0 * top, 2.0 * bottom]);
    assert_eq!(plain.buffers(Phase::Step, Collective::AllGather), [0.0; 0]);
    let sharded = step(SMALL, 4, "plan: {zero: 1}\n");
    assert_eq!(sharded.buffers(Phase::Backward, Collective::ReduceScatter), [2.0 * top, 2.0 * bottom]);
    assert_eq!(sharded.buffers(Phase::Step, Collective::AllGather), [2.0 * (top + bottom)]);
    let alone = step(SMALL, 1, "");
    assert!(alone.program.operations.iter().all(|operation| matches!(operation.work, Work::Compute(_))));
}

#[test]
fn twice_the_npus_look_up_half_as_much_and_send_what_all_sums_are() {
    for npus in [2, 4] {
        let [some, twice] = [npus, 2 * npus].map(|npus| step(SMALL, npus, ""));
        assert_eq!(some.looked_up(), 2.0 * twice.looked_up());
        for step in [some, twice] {
            // Over all NPUs samples x tables x dim x bytes x (n - 1) / n.
            let whole = step.buffers(Phase::Forward, Collective::AllToAll)[0];
            let sent = step.npus * whole * (step.npus - 1.0) / step.npus;
            assert_eq!(sent, 4096.0 * 8.0 * 64.0 * 2.0 * (step.npus - 1.0) / step.npus);
        }
    }
}

#[test]
fn the_fullest_npu_decides() {
    let uneven = SMALL.replace("tables: 8, rows: 1000", "tables: 3, rows: 100-5000-200");
    let step = step(&uneven, 2, "");
    // Two of three tables: half as much again as the mean.
    assert_eq!(step.buffers(Phase::Forward, Collective::AllToAll), [4096.0 * 2.0 * 64.0 * 2.0]);
    let footprint = step.checked.expect("a feasible step");
    // 5,000 rows alone on one NPU, 200 + 100 on the other; 4 B an element; MLPs of 2 B.
    let mlps = 16.0 * 128.0 + 128.0 + 128.0 * 64.0 + 64.0 + 70.0 * 256.0 + 256.0 + 256.0 + 1.0;
    assert_eq!(footprint.weights, Bytes::from_real(2.0 * mlps + 5000.0 * 64.0 * 4.0));
    // Master copies of MLPs alone: tables are their own.
    assert_eq!(footprint.optimizer, Bytes::from_real(4.0 * mlps));
}

#[test]
fn row_wise_adagrad_keeps_a_number_a_row_and_adam_two_an_element() {
    let optimizer = |name: &str| {
        let yaml = format!(
            "model: {SMALL}\nglobal_batch: 4096 samples\nprecision: fp16\noptimizer: {name}\n\
             cluster: {{npu: A100-SXM-80GB, network: {{a: {{block: switch, size: 8, bandwidth: 300 GB/s}}}}}}\n"
        );
        evaluations(&yaml)[0].footprint.optimizer.as_real()
    };
    let mlps = 16.0 * 128.0 + 128.0 + 128.0 * 64.0 + 64.0 + 100.0 * 256.0 + 256.0 + 256.0 + 1.0;
    assert_eq!(optimizer("sgd"), 4.0 * mlps);
    assert_eq!(optimizer("rowwise_adagrad"), 8.0 * mlps + 4.0 * 1000.0);
    assert_eq!(optimizer("adam"), 12.0 * mlps + 8.0 * 1000.0 * 64.0);
}

#[test]
fn more_npus_than_tables_need_parts_of_tables() {
    let refused = step(SMALL, 16, "");
    assert_eq!(refused.reason(), Some(Reason::TablesPerRank));
    let cut = step(SMALL, 16, "plan: {table_shards: 2}\n");
    // One part of 32 columns each.
    assert_eq!(cut.buffers(Phase::Forward, Collective::AllToAll), [4096.0 * 32.0 * 2.0]);
    assert_eq!(cut.reason(), None);
    assert_eq!(step(SMALL, 2, "plan: {table_shards: 3}\n").reason(), Some(Reason::ColumnsPerShard));
}

#[test]
fn what_a_plan_of_transformers_has_is_refused_with_its_reason() {
    for (plan, reason) in [
        ("tp: 2", Reason::DegreesOfTables),
        ("pp: 2", Reason::DegreesOfTables),
        ("cp: 2", Reason::DegreesOfTables),
        ("zero: 3", Reason::ZeroOfTables),
        ("zero: 1, zero_shard: 2", Reason::ZeroOfTables),
        ("recompute: full", Reason::LayersOfTables),
    ] {
        assert_eq!(step(SMALL, 4, &format!("plan: {{{plan}}}\n")).reason(), Some(reason), "{plan}");
    }
    let host = "plan: {offload_weights: host}\nmemory: {host: {capacity: 1 TB, bandwidth: 64 GB/s}}\n";
    assert_eq!(step(SMALL, 4, host).reason(), Some(Reason::LayersOfTables));
    for plan in ["tp: 1, cp: 1, pp: 1, ep: 1, etp: 1, dp: 4", "zero: 2", "order: pp-dp-tp"] {
        assert_eq!(step(SMALL, 4, &format!("plan: {{{plan}}}\n")).reason(), None, "{plan}");
    }
    assert_eq!(step(SMALL, 3, "").reason(), Some(Reason::BatchPerReplica));
}

#[test]
fn a_plan_changes_a_step_with_the_keys_that_it_heeds_and_with_no_other() {
    // Six tables: 2 of them, or 3 halves, are the most of 4 NPUs.
    let model = SMALL.replace("tables: 8", "tables: 6");
    let with = |plan: &str| {
        let yaml = format!(
            "model: {model}\nglobal_batch: 4096 samples\nprecision: fp16\nmemory: {{host: {{capacity: 1 TB, bandwidth: 64 GB/s}}}}\n\
             cluster: {{npu: A100-SXM-80GB, npus: 4, network: {{a: {{block: switch, size: rest, bandwidth: 300 GB/s}}}}}}\nplan: {{zero: 1{plan}}}\n"
        );
        evaluate(&points(&sweep(&yaml)).remove(0))
            .2
            .map(|it| (it.report.total, it.footprint))
            .map_err(|refused| refused.reason)
    };
    let usual = with("");
    for (slot, key) in KEYS.iter().enumerate().filter(|(_, key)| key.path.starts_with("plan.")) {
        let other = match (key.name(), key.kind) {
            // What is left for it, and what is written.
            ("dp" | "zero", _) => continue,
            ("micro_batch_size", _) => "2 seq",
            (_, Kind::Count { .. }) => "2",
            (_, Kind::Choice(words)) => words[words.len() - 1],
            (_, Kind::Flag) if key.default == Default::Is(1.0) => "false",
            (_, Kind::Flag) => "true",
            (_, Kind::Recompute) => "full",
            (_, Kind::Tier) => "host",
            (_, Kind::Ratio) => "1.5",
            (name, _) => panic!("{name} is of no kind that is tried here"),
        };
        let changes = with(&format!(", {}: {other}", key.name())) != usual;
        assert_eq!(changes, why_unheeded(1, slot).is_none(), "{}: {other}", key.name());
    }
}

/// Recommendation models on networks of one and of two dimensions.
const RANDOM: &str = "
global_batch: [1024 samples, 16384 samples, 262144 samples]
optimizer: [sgd, rowwise_adagrad, adam]
precision: [fp16, fp32]
define:
  small: {family: dlrm, tables: 8, rows: 1000, embedding_dim: 64, pooling: 10, dense_features: 16, bottom_mlp: 128-64, top_mlp: 256-1}
  wide: {family: dlrm, tables: 100, rows: 5000, embedding_dim: 128, pooling: 20, dense_features: 256, bottom_mlp: 1024-512-128, top_mlp: 2048-2048-1024-1, interaction: cat}
  one: {a: {block: switch, size: 8, bandwidth: 300 GB/s, hop_latency: 500 ns}}
  two: {a: {block: switch, size: 4, bandwidth: 300 GB/s}, b: {block: ring, size: 2, bandwidth: 25 GB/s, hop_latency: 1 us}}
model: [small, wide, DLRM-Criteo-Kaggle]
cluster: {npu: A100-SXM-80GB, network: [one, two]}
plan: {table_shards: [1, 2], zero: [0, 1, 2], overlap_dp: [false, true], overlap_embeddings: [false, true]}
";

#[test]
fn both_evaluators_take_as_long() {
    let mut alone = differences(&sweep(&RANDOM.replace("overlap_dp: [false, true]", "overlap_dp: false")), 200);
    let [_, _, worst] = spread(&mut alone);
    assert!(worst <= 0.01, "{worst} {:?}", alone.last());
    // Beside each other gradients and sums of rows wait for each other.
    let mut beside = differences(&sweep(RANDOM), 200);
    let [median, most, worst] = spread(&mut beside);
    assert!(median <= 0.001 && most <= 0.02 && worst <= 0.04, "{median} {most} {worst} {:?}", beside.last());
}

#[test]
fn a_model_of_either_family_is_tried_with_the_keys_that_it_has() {
    let yaml = "
model: [Llama-3-8B, DLRM-MLPerf]
seq_len: [2048, 4096]
global_batch: 64 seq
npu: H100-SXM-80GB
network: {a: {block: switch, size: 8, bandwidth: 450 GB/s}}
plan: {table_shards: [1, 2], micro_batch_size: [1 seq, 2 seq]}
";
    let found = points(&sweep(yaml));
    let is_dlrm = |inputs: &&starsweep::sweep::Inputs| inputs.family() == 1;
    // Sequences of two lengths in microbatches of two sizes; and tables in one and in two parts.
    assert_eq!(found.iter().filter(is_dlrm).count(), 2);
    assert_eq!(found.len(), 2 + 4);
    let mut canonical = Vec::new();
    let sweep = sweep(yaml);
    let ids: std::collections::BTreeSet<u64> = found.iter().map(|inputs| sweep.id(inputs, &mut canonical)).collect();
    assert_eq!(ids.len(), found.len());
}

#[test]
fn what_sizes_are_enters_ids_and_how_they_are_written_does_not() {
    let id = |model: &str| {
        let yaml = format!(
            "model: {model}\nglobal_batch: 64 samples\nnpu: H100-SXM-80GB\nnetwork: {{a: {{block: switch, size: 8, bandwidth: 450 GB/s}}}}\n"
        );
        let sweep = sweep(&yaml);
        (sweep.id(&points(&sweep)[0], &mut Vec::new()), sweep.identity)
    };
    let other = SMALL.replace("128-64", "256-64");
    assert_eq!(id(SMALL), id(&SMALL.replace("128-64", "\"128 - 64\"")));
    assert_ne!(id(SMALL).0, id(&other).0);
    assert_ne!(id(SMALL).1, id(&other).1);
    let listed = SMALL.replace("rows: 1000", "rows: 1000-1000-1000-1000-1000-1000-1000-1000");
    assert_ne!(id(SMALL).0, id(&listed).0);
}

/// NVIDIA's DLRM for TensorFlow 2 on a DGX A100: millions of samples a second, 65,536 samples a step, MLPs in 16 bits and tables in
/// 32 (tests/data/dlrm.md).
const MEASURED: [(&str, u64, f64); 3] =
    [("DLRM-Criteo-T15", 1, 4.55), ("DLRM-Criteo-T3", 8, 13.8), ("DLRM-Criteo-T0", 8, 11.5)];

#[test]
fn one_npu_is_near_what_was_measured_and_eight_are_as_far_off_as_the_page_says() {
    for (model, npus, measured) in MEASURED {
        let yaml = format!(
            "model: {model}\nglobal_batch: 65536 samples\nprecision: fp16\noptimizer: sgd\n\
             cluster: {{npu: A100-SXM-80GB, network: {{nvlink: {{block: switch, size: {npus}, bandwidth: 300 GB/s, efficiency: 0.8}}}}}}\n"
        );
        let predicted = 65.536e-3 / evaluations(&yaml)[0].report.total.as_seconds();
        let off = predicted / measured - 1.0;
        println!("{model} on {npus}: {predicted:.2} predicted, {measured} measured, {:.0} %", 100.0 * off);
        let range = if npus == 1 { -0.15..0.15 } else { 0.5..1.2 };
        assert!(range.contains(&off), "{model} on {npus}: {off}");
    }
}

#[test]
fn a_sweep_of_recommendation_models_runs_and_its_points_are_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("results");
    let out = out.to_str().expect("a path");
    let ran = run(&["run", "sweeps/dlrm.yaml", "--out", out]);
    assert_eq!(code(&ran), 0, "{}", text(&ran.stderr));
    let answer = run(&[
        "query",
        out,
        "SELECT id, sample_rate_seq_per_s, exposed_tables_s, bound_by FROM points WHERE status = 'feasible' ORDER BY sample_rate_seq_per_s DESC LIMIT 1",
        "--csv",
    ]);
    let answer = text(&answer.stdout);
    let id = answer.lines().nth(1).and_then(|line| line.split(',').next()).expect("a row").to_owned();
    let files = folder.path().join("files");
    let exported = run(&["export", out, &id, "--to", "chakra", "--out", files.to_str().expect("a path")]);
    assert_eq!(code(&exported), 0, "{}", text(&exported.stderr));
}
