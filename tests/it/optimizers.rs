//! What does each optimizer keep, move and multiply? Worked examples and laws.

use starsweep::system::Kernel;
use starsweep::units::real;
use starsweep::workload::matrix;
use starsweep::workload::optimizer::Optimizer;
use starsweep::workload::program::{Account, Phase, Work};
use starsweep::workload::share::Share;

use crate::strategies::{Step, step_with};
use crate::support::{points, sweep};

/// One layer of 12 h^2 parameters: 4 matrices of h x h, two of h x 4 h, h = 4096; 1,000 words of which there are two tables.
const MODEL: &str = "{layers: 1, hidden: 4096, heads: 32, head_dim: 128, ffn: 16384, mlp: relu2, vocab: 1000}";

fn of(optimizer: &str, precision: &str, plan: &str) -> Step {
    let lines = format!("precision: {{preset: bf16{precision}}}\noptimizer: {optimizer}\n");
    step_with(MODEL, 4096, 8, plan, &lines)
}

fn state(optimizer: &str, precision: &str) -> f64 {
    of(optimizer, precision, "dp: 1").footprint().optimizer.as_real()
}

const H: f64 = 4096.0;
const MATRICES: f64 = 12.0 * H * H;
const TABLES: f64 = 2.0 * 1000.0 * H;
/// Two norms.
const VECTORS: f64 = 2.0 * H;
const ALL: f64 = MATRICES + TABLES + VECTORS;

fn about(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn each_keeps_a_master_copy_and_its_moments() {
    about(state("adam", ""), 12.0 * ALL);
    about(state("sgd_momentum", ""), 8.0 * ALL);
    about(state("lion", ", moment: 2 B"), 6.0 * ALL);
    about(state("muon", ""), 8.0 * MATRICES + 12.0 * (TABLES + VECTORS));
    let scaled = 1.0 + 4.0 / 2048.0;
    about(state("adam_8bit", ""), (4.0 + 2.0 * scaled) * MATRICES + 12.0 * (TABLES + VECTORS));
    // Rows and columns: 4 (h + h) + 2 (h + 4 h) of the layer, h + 2,000 of the words.
    about(state("adafactor", ""), 4.0 * ALL + 4.0 * (18.0 * H + H + 2000.0) + 4.0 * VECTORS);
}

#[test]
fn what_is_said_of_states_holds_for_every_optimizer() {
    for &optimizer in Optimizer::NAMES {
        about(state(optimizer, ", optimizer: 10 B"), 10.0 * ALL);
    }
    about(state("adam", ", master: 0 B"), 8.0 * ALL);
    about(state("adam", ", master: 2 B, moment: 2 B"), 6.0 * ALL);
}

#[test]
fn an_update_moves_states_both_ways_gradients_and_weights() {
    let moved = |optimizer: &str| {
        let step = of(optimizer, "", "dp: 1");
        let moved = step.operations(Phase::Step).filter_map(|operation| match operation.work {
            Work::Compute(Kernel::Stream { moved }) if operation.account == Account::Optimizer => Some(moved.as_real()),
            _ => None,
        });
        moved.sum::<f64>()
    };
    about(moved("adam"), 30.0 * ALL);
    about(moved("lion"), 22.0 * ALL);
    // Three times the gradient of 4 B, once the weight of 2 B.
    about(moved("adafactor"), 2.0 * state("adafactor", "") + 14.0 * ALL);
}

#[test]
fn muon_multiplies_whole_matrices_that_ranks_share() {
    let flops = |plan: &str| {
        let step = of("muon", "", plan);
        let of_update = step.operations(Phase::Step).filter(|operation| operation.account == Account::Optimizer);
        of_update.map(|it| if let Work::Compute(kernel) = it.work { kernel.flops() } else { 0.0 }).sum::<f64>()
    };
    // 5 (4 m^2 n + 2 m^3): 30 h^3 for h x h, 90 h^3 for h x 4 h.
    about(flops("dp: 1"), (4.0 * 30.0 + 2.0 * 90.0) * H * H * H);
    about(flops("dp: 8"), flops("dp: 1"));
    about(flops("dp: 2, zero: 1"), flops("dp: 1") / 2.0);
    // Of four and of two matrices the busiest of 8 ranks has one.
    about(flops("dp: 8, zero: 1"), (30.0 + 90.0) * H * H * H);
    let adam = of("adam", "", "dp: 1");
    assert_eq!(adam.operations(Phase::Step).filter(|operation| operation.account == Account::Optimizer).count(), 1);
}

#[test]
fn shards_cut_every_optimizers_states() {
    for &optimizer in Optimizer::NAMES {
        let whole = of(optimizer, "", "dp: 8").footprint().optimizer.as_real();
        about(
            8.0 * of(optimizer, "", "dp: 8, zero: 1").footprint().optimizer.as_real().round(),
            8.0 * (whole / 8.0).round(),
        );
    }
}

#[test]
fn matrices_hold_all_parameters_that_are_in_no_table_and_no_vector() {
    for model in
        ["Llama-3-8B", "GPT-3-175B", "DeepSeek-V3-671B", "Mixtral-8x7B", "Qwen3-30B-A3B", "Llama-4-Maverick-400B"]
    {
        for plan in ["tp: 1, dp: 8", "tp: 4, dp: 2", "tp: 4, dp: 2, ep: 8", "tp: 2, dp: 4, etp: 2, ep: 2"] {
            let training = step_with(model, 4096, 8, plan, "precision: bf16\n").training;
            let share = Share::of(&training);
            let sum = |moe: bool, experts: usize| {
                let matrices = &matrix::of_layer(&training, &share, moe)[experts];
                matrices.iter().map(matrix::Matrix::parameters).sum::<f64>()
            };
            about(sum(false, 0), share.attention + share.mlp);
            if training.model.experts > 0 {
                about(sum(true, 0), share.attention + share.shared);
                about(sum(true, 1), share.experts);
            }
        }
    }
}

#[test]
fn points_of_adam_keep_their_ids_and_others_have_their_own() {
    let id = |lines: &str| {
        let yaml = format!(
            "model: Llama-3-8B\nseq_len: 4096\nglobal_batch: 8 seq\n{lines}\ncluster: {{npu: A100-SXM-80GB}}\n\
             network: {{a: {{block: switch, size: 8, bandwidth: 300 GB/s}}}}\nplan: {{tp: 8}}\n"
        );
        let inputs = points(&sweep(&yaml)).remove(0);
        starsweep::sweep::point::id(&inputs, &mut Vec::new())
    };
    let usual = id("precision: bf16");
    assert_eq!(usual, id("precision: bf16\noptimizer: adam"));
    assert_eq!(usual, id("precision: {preset: bf16, optimizer: 12 B}"));
    assert_eq!(usual, id("precision: {preset: bf16, master: 6 B, moment: 3 B}"));
    let mut others = vec![usual, id("precision: {preset: bf16, optimizer: 10 B}")];
    for optimizer in Optimizer::NAMES.iter().filter(|name| **name != "adam") {
        for states in ["", ", optimizer: 12 B", ", optimizer: 8 B", ", moment: 2 B"] {
            others.push(id(&format!("precision: {{preset: bf16{states}}}\noptimizer: {optimizer}")));
        }
    }
    let count = others.len();
    others.sort_unstable();
    others.dedup();
    assert_eq!(real(others.len() as u64), real(count as u64));
}
