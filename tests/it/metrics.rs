//! Do the metrics say what their conventions say? Worked numbers, and sums that must come out.

use std::collections::BTreeMap;
use std::path::Path;

use starsweep::results::metric::{MetricPart, Outcome};
use starsweep::run::evaluate::Evaluation;
use starsweep::sweep::bill::bill;
use starsweep::sweep::key::Id;
use starsweep::units::real;
use starsweep::workload::program::Account;
use starsweep::workload::{Job, Order, Program, build};

use crate::support::{code, evaluate, points, run, sweep, text};

/// A dense model and a mixture on 16 NPUs with a power and every kind of price.
const PRICED: &str = "
zip:
  job:
    dense: {model: {layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, mlp: gated, vocab: 32000}}
    moe: {model: {layers: 8, hidden: 2048, heads: 16, kv_heads: 8, ffn: 8192, mlp: gated, vocab: 32000, experts: 8, topk: 2, moe_ffn: 2048}}
seq_len: 4096
global_batch: 32 seq
cluster:
  npu: {preset: H100-SXM-80GB, power: 700 W, price: 30 k$, rent: 2.5 $/h}
  lifetime: 4 years
  energy_price: 100 $/MWh
  network:
    node: {block: switch, size: 8, bandwidth: 450 GB/s, price: 10 $/(GB/s)}
    fabric: {block: switch, size: 2, bandwidth: 50 GB/s, price: 60 $/(GB/s)}
plan: {tp: [1, 2, 4, 8], pp: [1, 2, 4], micro_batch_size: 1 seq, recompute: [none, full], flash_attention: [false, true], zero: 1}
";

/// The rows of a sweep that was run by the program, as texts by column.
pub fn rows(folder: &Path, yaml: &str) -> Vec<BTreeMap<String, String>> {
    let file = folder.join("s.yaml");
    std::fs::write(&file, yaml).expect("a file");
    let out = folder.join("out");
    let output = run(&["run", &file.display().to_string(), "--out", &out.display().to_string(), "--csv", "--quiet"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let mut reader = csv::Reader::from_path(out.join("points.csv")).expect("a table");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// A number of a row.
pub fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row.get(column).and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("no number in {column}: {row:?}"))
}

fn near(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() < 1e-9
}

#[test]
fn energy_and_cost_are_power_and_prices_for_as_long_as_a_step_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = rows(folder.path(), PRICED);
    let feasible: Vec<_> = rows.iter().filter(|row| row["status"] == "feasible").collect();
    assert!(feasible.len() > 20);
    // An NPU with its links: 30,000 + 450 x 10 + 50 x 60 = 37,500 $ in 4 years of 8,760 hours: 1.0702 $/h; 700 W at 100 $/MWh: 0.07 $/h.
    let an_hour = 2.5 + 37_500.0 / (4.0 * 8760.0) + 0.07;
    for row in feasible {
        let (seconds, tokens) = (number(row, "iteration_time_s"), 32.0 * 4096.0);
        assert!(near(number(row, "step_energy_joules"), 16.0 * 700.0 * seconds));
        assert!(near(number(row, "token_energy_joules_per_tok"), 16.0 * 700.0 * seconds / tokens));
        assert!(near(number(row, "step_cost_usd"), 16.0 * an_hour * seconds / 3600.0));
        assert!(near(number(row, "token_cost_usd_per_tok"), 16.0 * an_hour * seconds / 3600.0 / tokens));
    }
}

#[test]
fn what_binds_is_the_longest_part_of_the_time_and_free_it_would_be_gone() {
    let parts = [
        ("recompute", "recompute_time_s"),
        ("tp", "exposed_tp_s"),
        ("cp", "exposed_cp_s"),
        ("ep", "exposed_ep_s"),
        ("pp", "exposed_pp_s"),
        ("dp", "exposed_dp_s"),
        ("optimizer", "optimizer_time_s"),
        ("offload", "offload_time_s"),
        ("host", "host_wait_s"),
        ("bubble", "bubble_s"),
        ("memory", "memory_time_s"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    // Links so slow that other parts bind than computing.
    let slow =
        PRICED.replace("bandwidth: 450 GB/s", "bandwidth: 9 GB/s").replace("bandwidth: 50 GB/s", "bandwidth: 2 GB/s");
    let mut binding = BTreeMap::new();
    for yaml in [PRICED.to_owned(), slow] {
        for row in rows(folder.path(), &yaml).iter().filter(|row| row["status"] == "feasible") {
            let arithmetic = number(row, "compute_time_s") - number(row, "memory_time_s");
            let times = parts.iter().map(|part| (part.0, number(row, part.1))).chain([("compute", arithmetic)]);
            let longest = times.clone().map(|part| part.1).fold(0.0, f64::max);
            let said = times.clone().find(|part| part.0 == row["bound_by"]).expect("a part of the time");
            assert_eq!(said.1, longest);
            // All parts make the step.
            assert!(near(times.map(|part| part.1).sum(), number(row, "iteration_time_s")));
            let total = number(row, "iteration_time_s");
            assert!(near(number(row, "gain_if_free"), total / (total - longest)));
            *binding.entry(row["bound_by"].clone()).or_insert(0) += 1;
        }
    }
    assert!(binding.len() >= 3, "{binding:?}");
}

#[test]
fn hfu_counts_the_layers_once_more_where_all_are_computed_again() {
    let folder = tempfile::tempdir().expect("a folder");
    for row in rows(folder.path(), PRICED).iter().filter(|row| row["status"] == "feasible") {
        let share = number(row, "hfu") / number(row, "mfu");
        match row["recompute"].as_str() {
            // A third more, but for the head: 32,000 x 4,096 of 2 x 10^9 weights.
            "full" => assert!((1.28..4.0 / 3.0).contains(&share), "{share}"),
            _ => assert_eq!(share, 1.0),
        }
    }
}

/// Operations that a step's program does again, on one NPU.
fn again(yaml: &str) -> (f64, f64) {
    let inputs = points(&sweep(yaml)).remove(0);
    let (job, ..) = evaluate(&inputs);
    let Job::Training(training) = job else { panic!("{job:?} is no training") };
    let mut program = Program::default();
    build(&job, &mut program);
    let of_block = |block: &starsweep::workload::program::Block| {
        let again = program.operations_of(block).iter().filter(|operation| operation.account == Account::Recompute);
        let flops = again.map(|operation| match operation.work {
            starsweep::workload::program::Work::Compute(kernel) => kernel.flops(),
            _ => 0.0,
        });
        real(block.repeat) * flops.sum::<f64>()
    };
    let once: f64 = program.blocks_of(&program.classes[0]).iter().map(of_block).sum();
    (training.flops_again(), once * real(program.microbatches))
}

#[test]
fn what_is_counted_again_is_what_the_program_does_again() {
    let models = [
        "{layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, mlp: gated, vocab: 32000}",
        "{layers: 8, hidden: 2048, heads: 16, ffn: 8192, mlp: gated, vocab: 32000, experts: 8, topk: 2, moe_ffn: 2048, moe_every: 2, shared_experts: 1}",
        "{layers: 4, hidden: 2048, heads: 16, head_dim: 128, value_dim: 128, kv_rank: 512, q_rank: 768, rope_dim: 64, ffn: 8192, mlp: gated, vocab: 32000}",
    ];
    for model in models {
        let of = |plan: &str| {
            again(&format!(
                "model: {model}\nseq_len: 4096\nglobal_batch: 4 seq\nnpu: {{preset: H100-SXM-80GB, hbm: 90000 GB}}\n\
                 network: {{a: {{block: switch, size: 1, bandwidth: 450 GB/s}}}}\nplan: {{{plan}}}\n"
            ))
        };
        let equal = |(counted, done): (f64, f64)| assert!((counted / done - 1.0).abs() < 2e-3, "{counted} {done}");
        equal(of("recompute: full"));
        equal(of("recompute: alternate"));
        for parts in ["mlp + mla_up_proj + layernorm", "moe + shared_experts + mlp_act", "shared_experts + mlp"] {
            let (counted, done) = of(&format!("recompute: {parts}"));
            assert!((counted - done).abs() <= 2e-3 * counted, "{parts}: {counted} {done}");
        }
        assert_eq!(of("recompute: none"), (0.0, 0.0));
        assert_eq!(of("recompute: selective"), (0.0, 0.0));
        // Unfused attention computes all pairs; the convention counts those that causality shows.
        let (counted, done) = of("recompute: selective, flash_attention: false");
        equal((2.0 * counted, done));
    }
}

#[test]
fn what_the_local_memory_bounds_is_the_same_in_both_evaluators_and_grows_as_its_bandwidth_falls() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |bandwidth: &str| {
        let npu = format!("H100-SXM-80GB, hbm_bandwidth: {bandwidth},");
        let yaml = PRICED.replace("H100-SXM-80GB,", &npu).replace("tp: [1, 2, 4, 8]", "tp: [4, 8]");
        rows(folder.path(), &format!("{yaml}fidelity: [closed_form, event_driven]\n"))
    };
    let is =
        |row: &BTreeMap<String, String>, evaluator: &str| row["status"] == "feasible" && row["fidelity"] == evaluator;
    let (fast, slow) = (of("3.35 TB/s"), of("0.2 TB/s"));
    for rows in [&fast, &slow] {
        let [closed, driven] =
            ["closed_form", "event_driven"].map(|evaluator| rows.iter().filter(move |row| is(row, evaluator)));
        let mut looked_at = 0;
        for (closed, driven) in closed.zip(driven) {
            assert_eq!(closed["memory_time_s"], driven["memory_time_s"]);
            looked_at += 1;
        }
        assert!(looked_at > 10);
    }
    let bound = |rows: &[BTreeMap<String, String>]| rows.iter().filter(|row| row["bound_by"] == "memory").count();
    assert!(bound(&slow) > bound(&fast));
    for (fast, slow) in fast.iter().zip(&slow).filter(|pair| is(pair.0, "closed_form")) {
        assert!(number(slow, "memory_time_s") > 10.0 * number(fast, "memory_time_s"));
    }
}

#[test]
fn no_metric_reads_which_npus_are_neighbours() {
    // A row that has the report of the row before, at another order, keeps its metrics.
    for inputs in points(&sweep(PRICED)) {
        let (job, system, result) = evaluate(&inputs);
        let Ok(Evaluation { footprint, report }) = result else { continue };
        let values = |job: &Job| {
            let outcome = Outcome {
                job,
                system: &system,
                npus: inputs.key(Id::Npus),
                bill: bill(&inputs),
                unseen: 0.0,
                footprint: Some(&footprint),
                report: Some(&report),
            };
            let dims = 0..inputs.dim_count();
            let of =
                |metric: &MetricPart| dims.clone().map(|dim| metric.part().value(&outcome, dim)).collect::<Vec<_>>();
            MetricPart::ALL.iter().map(of).collect::<Vec<_>>()
        };
        let Job::Training(mut training) = job else { panic!("{job:?} is no training") };
        let before = values(&job);
        for order in Order::ALL {
            training.plan.order = order;
            assert_eq!(values(&Job::Training(training)), before, "{order:?}");
        }
    }
}
