//! Does the closed form take the time of the whole graph, event by event? `tests/VALIDATION.md` says where they differ, and why.

use itertools::Itertools as _;
use starsweep::engine::{self, Report, event_driven};
use starsweep::run::evaluate::Evaluator;
use starsweep::run::vocabulary;
use starsweep::sweep::{Sweep, resolve};
use starsweep::system::collective::{Choice, Collective};
use starsweep::system::hierarchy::MultiDim;
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::system::{Dimension, Network, System};
use starsweep::units::{Bandwidth, Bytes, Time};
use starsweep::workload::program::Account;
use starsweep::workload::{self, Job, Placement, Program, Reason};

use crate::support::points;

/// Both evaluators on one point; none if it cannot exist.
pub fn both(job: &Job, system: &System) -> Option<[Report; 2]> {
    workload::check(job, system).ok()?;
    let (mut program, mut placement) = (Program::default(), Placement::default());
    workload::place(job, &system.network, &mut placement).ok()?;
    workload::build(job, &mut program);
    let closed = engine::evaluate(&program, &placement, system, &mut engine::Memo::default()).expect("a report");
    let simulated = event_driven::evaluate(&program, &placement, system);
    Some([closed, simulated.unwrap_or_else(|why| panic!("{why:?} {job:?}"))])
}

/// Points of a sweep that can exist, drawn by a fixed rule: so many, each with its relative difference.
pub fn differences(sweep: &Sweep, count: usize) -> Vec<(f64, String)> {
    differences_in(sweep, count, |report| report.total)
}

/// The same of a time of the reports, where there is any.
fn differences_in(sweep: &Sweep, count: usize, time: impl Fn(&Report) -> Time) -> Vec<(f64, String)> {
    let mut state = 1_u64;
    let mut found = Vec::new();
    while found.len() < count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 16) % sweep.space.len();
        let mut cursor = sweep.space.cursor(number);
        if cursor.next_point(sweep.space.len()).is_none() {
            continue;
        }
        let (job, system) = Evaluator::question(&cursor.inputs);
        if let Some([closed, simulated]) = both(&job, &system) {
            let [own, theirs] = [closed, simulated].map(|report| time(&report).as_seconds());
            let difference = if own == theirs { 0.0 } else { own / theirs - 1.0 };
            found.push((difference, format!("{job:?} {:?}\n {closed:?}\n {simulated:?}", system.network.shape())));
        }
    }
    found
}

/// The median, the 99th percentile and the worst of absolute differences.
pub fn spread(differences: &mut [(f64, String)]) -> [f64; 3] {
    differences.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let last = differences.len() - 1;
    let spread = [last / 2, last * 99 / 100, last].map(|k| differences[k].0.abs());
    println!("of {}: median, 99th percentile, worst {spread:?}", differences.len());
    spread
}

fn quickstart() -> Sweep {
    let text = std::fs::read_to_string(crate::support::root().join("sweeps/quickstart.yaml")).expect("the quickstart");
    resolve(&text, &[], &vocabulary()).expect("a sweep")
}

#[test]
fn plans_of_random_points_take_the_time_of_their_whole_graph() {
    let mut found = differences(&quickstart(), 1000);
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && most <= 0.02 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}

/// Every strategy beside every other, with a dense model and with one of experts behind two dense layers.
pub const COMBINATIONS: &str = "
define:
  dense: {preset: Llama-2-7B, layers: 30}
  mixture: {preset: Mixtral-8x7B, layers: 30, dense_layers: 2}
model: [dense, mixture]
seq_len: 4096
global_batch: 128 seq
precision: bf16
cluster:
  npu: {preset: H100-SXM-80GB, hbm: 9000 GB}
  network:
    inner: {block: switch, size: 8, bandwidth: 450 GB/s, hop_latency: 300 ns}
    outer: {block: switch, size: 8, bandwidth: 50 GB/s, hop_latency: 600 ns}
plan:
  tp: [1, 2, 4]
  cp: [1, 2, 4]
  cp_kind: all
  pp: [1, 2, 4, 8]
  vpp: [1, 2, 3, 5]
  ep: [1, 2, 8]
  etp: [1, 2]
  schedule: all
  layer_split: all
  zero: [0, 1, 2, 3]
  recompute: all
  overlap_dp: all
";

#[test]
fn random_combinations_of_strategies_take_the_time_of_their_whole_graph() {
    let sweep = resolve(COMBINATIONS, &[], &vocabulary()).expect("a sweep");
    let mut found = differences(&sweep, 600);
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && most <= 0.02 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}

#[test]
fn random_combinations_with_copies_of_shards_take_the_time_of_their_whole_graph() {
    let yaml = COMBINATIONS.replace("zero: [0, 1, 2, 3]", "zero: [1, 2, 3]\n  zero_shard: [2, 4, 8]");
    let sweep = resolve(&yaml, &[], &vocabulary()).expect("a sweep");
    let mut found = differences(&sweep, 200);
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && most <= 0.03 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}

/// Pipelines of a small model whose data-parallel traffic takes about as long as all passes, over a slow fabric.
const LATE_TRAFFIC: &str = "
model: {layers: 32, hidden: 2048, heads: 16, ffn: 8192, mlp: gelu, vocab: 32000}
seq_len: 2048
global_batch: [64 seq, 128 seq]
cluster:
  npu: H100-SXM-80GB
  network:
    node: {block: switch, size: 8, bandwidth: 450 GB/s}
    leaf: {block: switch, size: 4, bandwidth: 10 GB/s}
plan: {pp: [2, 4], dp: rest, tp: [1, 4], vpp: [1, 2], zero: [0, 1, 2], order: tp-pp-dp, schedule: all, overlap_dp: true, micro_batch_size: 1 seq}
";

#[test]
fn traffic_beneath_the_end_of_a_step_hides_where_the_schedule_lets_it() {
    for schedules in ["[1f1b, gpipe]", "[zb_h1, zb_h2]", "dualpipe", "zb_v"] {
        let yaml = LATE_TRAFFIC.replace("schedule: all", &format!("schedule: {schedules}"));
        let sweep = resolve(&yaml, &[], &vocabulary()).expect("a sweep");
        let mut found = differences(&sweep, 60);
        let [median, _, worst] = spread(&mut found);
        let farthest = &found.last().expect("a point").1;
        assert!(median <= 0.002 && worst <= 0.02, "{schedules}: {median} {worst}: {farthest}");
    }
}

/// Pipelines whose tensor, pipeline and data-parallel groups have a dimension each: nothing waits for the traffic of another kind.
const NOTHING_CONTENDS: &str = "
model: [{layers: 32, hidden: 2048, heads: 16, ffn: 8192, mlp: gelu, vocab: 4096},
  {layers: 30, hidden: 2048, heads: 16, ffn: 8192, mlp: gelu, vocab: 128000}]
seq_len: 2048
global_batch: [32 seq, 64 seq, 512 seq]
cluster:
  npu: {preset: A100-SXM-80GB, hbm: 9000 GB}
  network:
    a: {block: switch, size: 2, bandwidth: 200 GB/s}
    b: {block: switch, size: STAGES, bandwidth: [5 GB/s, 25 GB/s, 200 GB/s]}
    c: {block: switch, size: 4, bandwidth: [5 GB/s, 50 GB/s]}
plan:
  {tp: 2, pp: STAGES, dp: 4, order: tp-pp-dp, vpp: [1, 2, 3, 4], schedule: all, layer_split: all, zero: [0, 1, 2, 3], micro_batch_size: [1 seq, 2 seq],
  recompute: [none, selective, full], overlap_pp: [false, true], overlap_dp: [false, true]}
";

#[test]
fn where_nothing_contends_every_schedule_takes_the_time_of_its_graph() {
    for stages in ["2", "4", "8"] {
        let sweep = resolve(&NOTHING_CONTENDS.replace("STAGES", stages), &[], &vocabulary()).expect("a sweep");
        let mut found = differences(&sweep, 400);
        let [median, most, worst] = spread(&mut found);
        let farthest = &found.last().expect("a point").1;
        assert!(median <= 0.001 && most <= 0.01 && worst <= 0.01, "{stages}: {median} {most} {worst}: {farthest}");
    }
}

/// Replicas whose traffic has all dimensions to itself, and takes far longer than a latency.
const ALONE: &str = "
model: {layers: 32, hidden: 2048, heads: 16, ffn: 8192, mlp: gelu, vocab: 32000}
seq_len: 2048
global_batch: [64 seq, 128 seq]
cluster:
  npu: H100-SXM-80GB
  network:
    node: {block: switch, size: [2, 4, 8], bandwidth: 450 GB/s}
    leaf: {block: switch, size: [1, 4], bandwidth: [10 GB/s, 50 GB/s]}
plan: {dp: rest, zero: [0, 1, 2, 3], overlap_dp: [false, true], prefetch: [false, true], micro_batch_size: 1 seq}
";

#[test]
fn data_parallel_traffic_goes_on_as_long_by_both_evaluators() {
    let busy = |report: &Report| report.data_busy;
    let mut alone = differences_in(&resolve(ALONE, &[], &vocabulary()).expect("a sweep"), 100, busy);
    let [median, _, worst] = spread(&mut alone);
    let farthest = &alone.last().expect("a point").1;
    assert!(median <= 0.002 && worst <= 0.01, "{median} {worst}: {farthest}");
    // Beside other traffic it stops and goes on, and the time in which it waits is not its own.
    let mut beside = differences_in(&resolve(LATE_TRAFFIC, &[], &vocabulary()).expect("a sweep"), 100, busy);
    let [median, _, worst] = spread(&mut beside);
    let farthest = &beside.last().expect("a point").1;
    assert!(median <= 0.002 && worst <= 0.01, "{median} {worst}: {farthest}");
}

#[test]
fn what_data_parallel_traffic_exposes_is_a_part_of_the_time_in_which_it_goes_on() {
    for inputs in points(&resolve(ALONE, &[], &vocabulary()).expect("a sweep")) {
        let (job, system) = Evaluator::question(&inputs);
        for report in both(&job, &system).into_iter().flatten() {
            let exposed = report.exposed(Account::Data) + report.exposed(Account::Gather);
            assert!(exposed <= report.data_busy + Time::picoseconds(1000), "{report:?}");
        }
    }
}

/// Interleaved pipelines alone, whose messages are not short beside a pass of a chunk.
const ROUNDS: &str = "
model: {layers: 32, hidden: 2048, heads: 16, ffn: 8192, mlp: gelu, vocab: 4096}
seq_len: 2048
global_batch: [16 seq, 32 seq]
cluster:
  npu: A100-SXM-80GB
  network: {a: {block: switch, size: [2, 4, 8], bandwidth: [12.5 GB/s, 25 GB/s, 50 GB/s]}}
plan: {pp: all, dp: 1, vpp: [2, 4], micro_batch_size: [1 seq, 2 seq], overlap_pp: [false, true]}
";

#[test]
fn messages_of_interleaved_stages_go_round_once_for_each_chunk() {
    let mut found = differences(&resolve(ROUNDS, &[], &vocabulary()).expect("a sweep"), 200);
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && most <= 0.005 && worst <= 0.01, "{median} {most} {worst}: {farthest}");
}

#[test]
fn shards_that_are_gathered_late_take_the_time_of_their_graph() {
    let yaml =
        LATE_TRAFFIC.replace("zero: [0, 1, 2]", "zero: 3, prefetch: [false, true], reduce_scatter: [false, true]");
    let yaml = yaml.replace("pp: [2, 4]", "pp: 1").replace("vpp: [1, 2]", "vpp: 1").replace("tp: [1, 4]", "tp: 1");
    let mut found = differences(&resolve(&yaml, &[], &vocabulary()).expect("a sweep"), 40);
    let [median, _, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.005 && worst <= 0.01, "{median} {worst}: {farthest}");
}

#[test]
fn the_ends_of_a_tied_embedding_meet_once_a_step() {
    let yaml = LATE_TRAFFIC.replace("vocab: 32000", "vocab: 32000, tied_embeddings: true");
    let yaml = yaml
        .replace("schedule: all", "schedule: [1f1b, zb_h1, zb_h2]")
        .replace("overlap_dp: true", "overlap_dp: false")
        .replace("zero: [0, 1, 2]", "zero: [0, 1]");
    let mut found = differences(&resolve(&yaml, &[], &vocabulary()).expect("a sweep"), 60);
    let [median, _, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && worst <= 0.01, "{median} {worst}: {farthest}");
}

#[test]
fn collectives_take_the_time_of_their_chunks_one_by_one() {
    let sweep = quickstart();
    let mut systems: Vec<System> = Vec::new();
    let mut cursor = sweep.space.cursor(0);
    while cursor.next_point(sweep.space.len()).is_some() {
        let (_, system) = Evaluator::question(&cursor.inputs);
        if !systems.iter().any(|other| other.network == system.network) {
            systems.push(system);
        }
        cursor.step();
    }
    assert_eq!(systems.len(), 12, "three networks of four sizes");
    let mut found = Vec::new();
    for mut system in systems {
        for collective in Collective::ALL {
            for size in [1 << 12, 1 << 16, 1 << 20, 1 << 26, 1 << 32] {
                for chunks in [1, 4, 16, 64] {
                    system.collectives.chunks = chunks;
                    let job = Job::Collective { collective, size: Bytes::new(size) };
                    let [closed, simulated] = both(&job, &system).expect("a collective can always be");
                    let difference = closed.total.as_seconds() / simulated.total.as_seconds() - 1.0;
                    let shape = system.network.shape();
                    found
                        .push((difference, format!("{collective:?} {size} {chunks} {shape} {closed:?} {simulated:?}")));
                }
            }
        }
    }
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a collective").1;
    assert!(median <= 0.001 && most <= 0.02 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}

#[test]
fn a_point_with_too_many_events_says_so() {
    let sweep = quickstart();
    let mut cursor = sweep.space.cursor(0);
    cursor.next_point(sweep.space.len()).expect("a point");
    let (_, mut system) = Evaluator::question(&cursor.inputs);
    let job = Job::Collective { collective: Collective::AllReduce, size: Bytes::new(1 << 40) };
    system.collectives.chunks = 100_000_000;
    let (mut program, mut placement) = (Program::default(), Placement::default());
    workload::place(&job, &system.network, &mut placement).expect("a place");
    workload::build(&job, &mut program);
    let refused = event_driven::evaluate(&program, &placement, &system).expect_err("too many");
    assert_eq!(refused.reason, Reason::Limit);
}

#[test]
fn a_time_that_does_not_fit_is_told_by_both() {
    let sweep = quickstart();
    let mut cursor = sweep.space.cursor(0);
    cursor.next_point(sweep.space.len()).expect("a point");
    let (_, mut system) = Evaluator::question(&cursor.inputs);
    for bandwidth in [1.0, 100.0, 1e5] {
        for dim in &mut system.network.dims {
            dim.bandwidth = Bandwidth::bytes_per_second(bandwidth);
        }
        for collective in Collective::ALL {
            for rules in [Rules::OURS, Rules::ASTRA_SIM] {
                system.rules = rules;
                if collective == Collective::Broadcast && rules == Rules::ASTRA_SIM {
                    continue;
                }
                let job = Job::Collective { collective, size: Bytes::new(1 << 50) };
                let (mut program, mut placement) = (Program::default(), Placement::default());
                workload::place(&job, &system.network, &mut placement).expect("a place");
                workload::build(&job, &mut program);
                let closed = engine::evaluate(&program, &placement, &system, &mut engine::Memo::default())
                    .expect_err("too long");
                let simulated = event_driven::evaluate(&program, &placement, &system).expect_err("too long");
                assert_eq!([closed.reason, simulated.reason], [Reason::TimeRange; 2], "{collective:?} {rules:?}");
            }
        }
    }
}

#[test]
fn collectives_take_their_time_by_every_algorithm_on_networks_that_are_no_powers_of_two() {
    let sweep = quickstart();
    let mut cursor = sweep.space.cursor(0);
    cursor.next_point(sweep.space.len()).expect("a point");
    let (_, system) = Evaluator::question(&cursor.inputs);
    let blocks = [Topology::Ring, Topology::Switch, Topology::FullyConnected];
    let mut found = Vec::new();
    for sizes in [&[3][..], &[2, 3], &[3, 2, 5], &[2, 5, 2], &[6, 7]] {
        for turn in 0..3 {
            let dim =
                |(k, &size): (usize, &u32)| Dimension { block: blocks[(k + turn) % 3], size, ..system.network.dims[0] };
            let network = Network { dims: sizes.iter().enumerate().map(dim).collect(), ..Network::default() };
            let ways = Choice::words().into_iter().cartesian_product([MultiDim::Hierarchical, MultiDim::PerDimension]);
            for (collective, (word, multi_dim)) in Collective::ALL.into_iter().cartesian_product(ways) {
                for (chunks, window) in [(1, None), (4, Some(2)), (5, Some(1))] {
                    let mut system = System { network: network.clone(), ..system.clone() };
                    system.collectives.chunks = chunks;
                    system.collectives.window = window;
                    system.collectives.multi_dim = multi_dim;
                    system.collectives.algorithm = Choice::of_word(word).expect("a word");
                    let job = Job::Collective { collective, size: Bytes::new(1 << 20) };
                    let [closed, simulated] = both(&job, &system).expect("a collective can always be");
                    assert!(simulated.total > Time::ZERO && closed.total > Time::ZERO, "{sizes:?} {collective:?}");
                    let difference = closed.total.as_seconds() / simulated.total.as_seconds() - 1.0;
                    found.push((difference, format!("{collective:?} by {word} {multi_dim:?} over {sizes:?}")));
                }
            }
        }
    }
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a collective").1;
    assert!(median <= 0.001 && most <= 0.02 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}
