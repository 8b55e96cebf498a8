//! What does offload keep, move and cost? Worked examples, laws, and one time by both evaluators.

use proptest::prelude::*;
use starsweep::engine::Report;
use starsweep::run::evaluate::Evaluator;
use starsweep::run::vocabulary;
use starsweep::sweep::resolve;
use starsweep::system::System;
use starsweep::units::{Bandwidth, Bytes, Delay, Time, real};
use starsweep::workload::program::{Account, Beside, Phase, Work};
use starsweep::workload::{Footprint, Infeasible, Job, Reason, check};

use crate::support::{evaluations, points, sweep};
use crate::validation::{COMBINATIONS, both, differences, spread};

/// A point of a model of 8 layers of 12 h^2 weights, h = 4096, and few words, with two tiers.
fn point(plan: &str, tiers: &str) -> (Job, System) {
    let yaml = format!(
        "model: {{layers: 8, hidden: 4096, heads: 32, head_dim: 128, ffn: 16384, mlp: relu2, vocab: 1000}}\n\
         seq_len: 4096\nglobal_batch: 64 seq\nprecision: bf16\n\
         cluster:\n  npu: {{preset: H100-SXM-80GB, hbm: 900 GB}}\n  \
         network: {{a: {{block: switch, size: 16, bandwidth: 450 GB/s}}}}\nmemory: {{{tiers}}}\nplan: {{{plan}}}\n"
    );
    Evaluator::question(&points(&sweep(&yaml)).remove(0))
}

const HOST: &str = "host: {capacity: 4000 GB, bandwidth: 64 GB/s, latency: 1 us}";
const BOTH: &str = "host: {capacity: 4000 GB, bandwidth: 64 GB/s}, pool: {capacity: 9 TB, bandwidth: 20 GB/s}";

fn footprint(plan: &str) -> Footprint {
    let (job, system) = point(plan, BOTH);
    check(&job, &system).expect("a feasible point")
}

/// The transfers of the first stage in a phase: tier, bytes in, bytes out.
fn transfers(plan: &str, phase: Phase) -> Vec<(u8, u64, u64)> {
    let (job, _) = point(plan, BOTH);
    let mut program = starsweep::workload::Program::default();
    starsweep::workload::build(&job, &mut program);
    let blocks = program.blocks_of(&program.classes[0]).iter().filter(|block| block.phase == phase);
    let operations = blocks.flat_map(|block| program.operations_of(block));
    let moved = operations.filter_map(|operation| match operation.work {
        Work::Transfer { tier, read, written } => {
            assert_eq!(operation.beside == Beside::Block, phase != Phase::Step);
            Some((tier, read.get(), written.get()))
        }
        _ => None,
    });
    moved.collect()
}

const H: u64 = 4096;
/// Weights of a layer and its two norms, 2 B each.
const LAYER: u64 = 2 * (12 * H * H + 2 * H);

#[test]
fn weights_come_in_beside_each_layer_and_go_out_once_a_step() {
    let plan = "tp: 1, pp: 1, dp: 16, offload_weights: host";
    assert_eq!(transfers(plan, Phase::Forward), [(0, LAYER, 0)]);
    assert_eq!(transfers(plan, Phase::Backward), [(0, LAYER, 0)]);
    assert_eq!(transfers(plan, Phase::Step), [(0, 0, 8 * LAYER)]);
    // Shards of them, where weights are sharded.
    assert_eq!(transfers(&format!("{plan}, zero: 3"), Phase::Forward), [(0, LAYER / 16, 0)]);
}

#[test]
fn activations_go_out_forward_and_come_in_back() {
    let plan = "tp: 1, pp: 1, dp: 16, recompute: full, offload_activations: host";
    // The input of a layer: 4,096 tokens of 4,096 elements of 2 B.
    let kept = 2 * 4096 * H;
    assert_eq!(transfers(plan, Phase::Forward), [(0, 0, kept)]);
    assert_eq!(transfers(plan, Phase::Backward), [(0, kept, 0)]);
    assert_eq!(transfers(plan, Phase::Step), []);
}

#[test]
fn what_goes_to_one_tier_shares_it_and_to_two_goes_one_after_the_other() {
    let plan = |weights, activations| {
        format!(
            "tp: 1, pp: 1, dp: 16, recompute: full, offload_weights: {weights}, offload_activations: {activations}, \
             offload_optimizer: host"
        )
    };
    let (kept, states) = (2 * 4096 * H, 6 * (8 * LAYER + 4 * 1000 * H));
    assert_eq!(transfers(&plan("host", "host"), Phase::Forward), [(0, LAYER, kept)]);
    assert_eq!(transfers(&plan("host", "host"), Phase::Backward), [(0, LAYER + kept, 0)]);
    assert_eq!(transfers(&plan("host", "host"), Phase::Step), [(0, states, states + 8 * LAYER)]);
    assert_eq!(transfers(&plan("host", "pool"), Phase::Backward), [(0, LAYER, 0), (1, kept, 0)]);
}

#[test]
fn two_layers_stay_and_the_ends_of_the_model() {
    let plan = "tp: 1, pp: 1, dp: 16, recompute: full";
    let of = |more: &str| footprint(&format!("{plan}{more}"));
    let (none, weights) = (of(""), of(", offload_weights: host"));
    assert_eq!(none.weights.get() - weights.weights.get(), 6 * LAYER);
    assert_eq!(weights.offloaded.get(), 6 * LAYER);
    let activations = of(", offload_activations: pool");
    assert_eq!(none.activations.get(), 4 * activations.activations.get());
    assert_eq!(activations.offloaded.get(), 3 * activations.activations.get());
    let all = of(", offload_weights: host, offload_activations: host, offload_optimizer: host");
    assert_eq!(all.optimizer, Bytes::ZERO);
    assert_eq!(all.offloaded.get(), 6 * LAYER + 3 * all.activations.get() + none.optimizer.get());
    assert_eq!(all.offloaded + all.total(), none.total());
}

#[test]
fn a_tier_holds_the_share_of_each_of_its_npus() {
    let refused = |capacity: u64, plan: &str| -> Option<Infeasible> {
        let tiers = format!("host: {{capacity: {capacity} B, bandwidth: 64 GB/s, shared_by: 4}}");
        let (job, system) = point(plan, &tiers);
        check(&job, &system).err()
    };
    let plan = "tp: 1, pp: 1, dp: 16, offload_weights: host";
    assert_eq!(refused(4 * 6 * LAYER, plan), None);
    let why = refused(4 * 6 * LAYER - 4, plan).expect("a byte is missing");
    assert_eq!((why.reason, why.demand - why.bound), (Reason::TierMemory, 1.0));
    // Of stages with two layers nothing is left to stream.
    assert_eq!(refused(1 << 40, "pp: 4, offload_weights: host").map(|why| why.reason), Some(Reason::LayersToOffload));
    assert_eq!(refused(1 << 40, "pp: 4, offload_activations: host"), None);
}

fn closed(job: &Job, system: &System) -> Report {
    both(job, system).expect("a feasible point")[0]
}

#[test]
fn what_a_layer_does_not_hide_is_exposed() {
    let plan = "tp: 1, pp: 1, dp: 16";
    let (plain, _) = point(plan, HOST);
    let (job, mut system) = point(&format!("{plan}, offload_weights: host"), HOST);
    system.software.dispatch = Delay::ZERO;
    // 403 MB at 1 GB/s take far longer than a layer: 4 microbatches of 8 layers there and back; what goes out at the end is alone.
    system.memory.tiers[0].bandwidth = Bandwidth::bytes_per_second(1e9);
    let once = real(LAYER) / 1e9 + 1e-6;
    let beside = 4.0 * 2.0 * 8.0 * once;
    let (with, without) = (closed(&job, &system), closed(&plain, &system));
    let [with, without, exposed] =
        [with.total, without.total, with.exposed[Account::Offload as usize]].map(Time::as_seconds);
    // Layers hide what they can: all but embedding, head and the update, which take a hundredth.
    assert!((exposed / (beside + 8.0 * real(LAYER) / 1e9 - without) - 1.0).abs() < 0.01, "{exposed} {without}");
    assert!((with / (without + exposed) - 1.0).abs() < 1e-3, "{with} {without} {exposed}");
}

#[test]
fn both_evaluators_tell_one_time() {
    let tiers = "memory:\n  host: {capacity: 90 TB, bandwidth: 30 GB/s, latency: 1 us, shared_by: 2}\n  \
                 pool: {capacity: 90 TB, bandwidth: 100 GB/s}\n";
    let offloads = "  offload_weights: [none, host, pool]\n  offload_activations: [none, host, pool]\n  \
                    offload_optimizer: [none, host]\n";
    let mut found = differences(
        &resolve(&format!("{tiers}{}{offloads}", COMBINATIONS.trim_start()), &[], &vocabulary()).expect("a sweep"),
        300,
    );
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && most <= 0.02 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}

#[test]
fn both_evaluators_agree_where_nothing_contends() {
    for bandwidth in [5, 64, 400] {
        for offloads in
            ["offload_weights: host", "offload_activations: host", "offload_weights: host, offload_activations: pool"]
        {
            for plan in ["tp: 1, pp: 1, dp: 16", "tp: 4, pp: 2, dp: 2", "tp: 2, pp: 2, vpp: 2, dp: 4, recompute: full"]
            {
                let tiers = format!(
                    "host: {{capacity: 90 TB, bandwidth: {bandwidth} GB/s}}, pool: {{capacity: 90 TB, bandwidth: 64 GB/s}}"
                );
                let (job, system) = point(&format!("{plan}, {offloads}"), &tiers);
                let [closed, simulated] =
                    both(&job, &system).expect("a feasible point").map(|report| report.total.as_seconds());
                assert!((closed / simulated - 1.0).abs() < 0.01, "{plan} {offloads} {bandwidth}: {closed} {simulated}");
            }
        }
    }
}

fn plans() -> impl Strategy<Value = String> {
    let degrees = prop::sample::select(vec!["tp: 1, pp: 1", "tp: 2, pp: 2", "tp: 4, pp: 1", "tp: 1, pp: 2, vpp: 2"]);
    let recompute = prop::sample::select(vec!["none", "selective", "full"]);
    (degrees, 0_u8..4, recompute)
        .prop_map(|(degrees, zero, recompute)| format!("{degrees}, zero: {zero}, recompute: {recompute}"))
}

fn tier() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["none", "host", "pool"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_tier_that_takes_no_time_costs_none_and_none_is_ever_free(
        plan in plans(), weights in tier(), activations in tier(), optimizer in tier(), bandwidth in 1.0..2000.0_f64,
    ) {
        let offloads = format!("offload_weights: {weights}, offload_activations: {activations}, offload_optimizer: {optimizer}");
        let (plain, _) = point(&plan, BOTH);
        let (job, mut system) = point(&format!("{plan}, {offloads}"), BOTH);
        let mut total = |bandwidth: f64| {
            for tier in &mut system.memory.tiers {
                (tier.bandwidth, tier.latency) = (Bandwidth::bytes_per_second(bandwidth), Delay::ZERO);
            }
            [&job, &plain].map(|job| closed(job, &system).total)
        };
        let [with, without] = total(f64::INFINITY);
        prop_assert_eq!(with, without);
        let [slow, without] = total(bandwidth * 1e9);
        let [slower, _] = total(bandwidth * 0.5e9);
        prop_assert!(without <= slow && slow <= slower, "{:?} {:?} {:?}", without, slow, slower);
        prop_assert!(slow < Time::MAX);
        let held = |job: &Job| check(job, &system).expect("a feasible point");
        let (with, without) = (held(&job), held(&plain));
        prop_assert!(with.total() <= without.total(), "{:?} {:?}", with, without);
    }
}

#[test]
fn where_the_master_copy_is_the_weights_there_are_none_to_offload() {
    let yaml = |plan: &str| {
        format!(
            "model: {{layers: 8, hidden: 4096, heads: 32, ffn: 16384, mlp: relu2, vocab: 1000}}\nseq_len: 4096\nglobal_batch: 64 seq\n\
             precision: bf16\nsoftware: {{master_only: true}}\ncluster: {{npu: {{preset: H100-SXM-80GB, hbm: 900 GB}}, \
             network: {{a: {{block: switch, size: 16, bandwidth: 450 GB/s}}}}}}\nmemory: {{{HOST}}}\nplan: {{{plan}}}\n"
        )
    };
    let of = |plan: &str| evaluations(&yaml(plan));
    let [plain] = of("zero: 3")[..] else { panic!("one point") };
    assert_eq!((plain.footprint.weights, plain.footprint.offloaded), (Bytes::ZERO, Bytes::ZERO));
    for weights in ["host", "[none, host]", "[host, none]"] {
        assert_eq!(of(&format!("zero: 3, offload_weights: {weights}")), [plain], "{weights}");
    }
    assert_eq!(of("zero: [2, 3], offload_weights: [none, host]").len(), 3);
    // Where that lives in a tier, passes read another copy, which may live there too: 2 B a weight beside 12 B of states, in 16 shards.
    let [states, both] = of("zero: 3, offload_optimizer: host, offload_weights: [none, host]")[..] else {
        panic!("two points")
    };
    let weights = states.footprint.weights.as_real();
    assert!((states.footprint.offloaded.as_real() / weights - 6.0).abs() < 1e-6, "{states:?}");
    assert!(both.footprint.weights.as_real() < weights && both.footprint.offloaded > states.footprint.offloaded);
    assert_eq!(
        both.footprint.total() + both.footprint.offloaded,
        states.footprint.total() + states.footprint.offloaded
    );
}
