//! Do we give published numbers, and those that follow from them by hand? One function per claim, a tolerance that fails.
//!
//! Claims CS0, C1a and C1c follow the case studies of [ASTRA2] and the tutorials of its authors: shapes, bandwidths and
//! results as in `tests/data/case_studies.md`, where each is derived.

use starsweep::system::collective::Collective;
use starsweep::system::software::Keeping;
use starsweep::units::{Bytes, Time, real};
use starsweep::workload::footprint::Footprint;
use starsweep::workload::share::Share;

use crate::support::{evaluate, evaluations, points, sweep, transformer};

/// One all-reduce on one network, in microseconds, and the bytes that an NPU sends in each dimension.
fn all_reduce(size: &str, network: &str, collectives: &str) -> (f64, Vec<u64>) {
    let found = evaluations(&format!(
        "workload: {{collective: all_reduce, size: {size}}}\nnetwork:\n{network}\ncollectives: {{{collectives}, local_reduction: false}}\n"
    ));
    let report = found[0].report;
    (report.total.as_seconds() * 1e6, report.sent.to_vec())
}

fn within(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found} is not within {tolerance} of {expected}");
}

const TUTORIAL: &str = "chunks: 4, endpoint_delay: 10 ns";
const RING: &str = "  d: {block: ring, size: 8, bandwidth: 100 GiB/s, hop_latency: 500 ns}";
const FULL: &str = "  d: {block: fully_connected, size: 8, bandwidth: 350 GiB/s, hop_latency: 500 ns}";

#[test]
fn cs0_1_a_ring_of_8_takes_45_681_us() {
    within(all_reduce("1 MiB", RING, TUTORIAL).0, 45.681, 0.005);
}

#[test]
fn cs0_2_fully_connected_8_take_9_001_us() {
    within(all_reduce("1 MiB", FULL, TUTORIAL).0, 9.001, 0.005);
}

#[test]
fn cs0_3_both_send_1_75_mib() {
    let expected = 1024 * 1024 * 7 / 4;
    assert_eq!(all_reduce("1 MiB", RING, TUTORIAL).1[0], expected);
    assert_eq!(all_reduce("1 MiB", FULL, TUTORIAL).1[0], expected);
}

#[test]
fn cs0_4_three_switches_of_8_take_35_008_us() {
    let line = |k: u8| format!("  d{k}: {{block: switch, size: 8, bandwidth: 50 GiB/s, hop_latency: 1 ns}}\n");
    let network: String = (1..=3).map(line).collect();
    within(all_reduce("1 GiB", &network, "chunks: 64, endpoint_delay: 10 ns").0, 35_008.0, 0.005);
}

#[test]
fn cs0_7_gib_instead_of_gb_is_a_factor_of_1_0737() {
    let ring = |unit: &str| format!("  d: {{block: ring, size: 8, bandwidth: 100 {unit}/s}}");
    let time = |unit: &str| all_reduce("1 GiB", &ring(unit), "chunks: 1, endpoint_delay: 0 ns").0;
    // 2 * 7/8 * 2^30 B at 100e9 B/s is 18.79 ms; picoseconds are counted, so twelve digits are exact.
    assert!((time("GB") / time("GiB") - 1.073_741_824).abs() < 1e-9);
}

#[test]
fn cs0_8_twice_the_bytes_take_twice_the_time_when_bandwidth_binds() {
    within(all_reduce("2 GiB", RING, TUTORIAL).0 / all_reduce("1 GiB", RING, TUTORIAL).0, 2.0, 0.01);
}

#[test]
fn cs0_9_nothing_takes_chunks_times_steps_times_latency() {
    // 4 chunks, 14 steps of 500 + 10 ns; direct has 2 steps. One byte adds 1.75 B at 107.37 B/ns: 16 ps.
    let expected = |steps: f64| 4.0 * steps * 510.0 / 1e3;
    let wire = 1.75 / 107.374_182_4 / 1e3;
    assert!((all_reduce("1 B", RING, TUTORIAL).0 - expected(14.0) - wire).abs() < 1e-6);
    let wire = wire * 100.0 / 350.0;
    assert!((all_reduce("1 B", FULL, TUTORIAL).0 - expected(2.0) - wire).abs() < 1e-6);
}

/// A dimension: block, size, bandwidth in GB/s.
type Dim = (&'static str, u32, u32);

/// The systems of C1a.
const SYSTEMS: [(&str, &[Dim]); 6] = [
    ("W-1D-350", &[("switch", 512, 350)]),
    ("W-1D-500", &[("switch", 512, 500)]),
    ("W-1D-600", &[("switch", 512, 600)]),
    ("W-2D", &[("switch", 32, 250), ("switch", 16, 250)]),
    ("Conv-3D", &[("ring", 16, 200), ("fully_connected", 8, 100), ("switch", 4, 50)]),
    ("Conv-4D", &[("ring", 2, 250), ("fully_connected", 8, 200), ("ring", 8, 100), ("switch", 4, 50)]),
];

fn network(dims: &[Dim]) -> String {
    let line = |(k, (block, size, bandwidth)): (usize, &Dim)| {
        format!("  d{k}: {{block: {block}, size: {size}, bandwidth: {bandwidth} GB/s}}\n")
    };
    dims.iter().enumerate().map(line).collect()
}

const STUDY: &str = "chunks: 1024, endpoint_delay: 0 ns";

fn wafer(name: &str) -> f64 {
    let system = SYSTEMS.iter().find(|system| system.0 == name).expect("a system of the study");
    all_reduce("1 GB", &network(system.1), STUDY).0
}

#[test]
fn c1a_times_are_those_of_the_busiest_dimension() {
    let expected = [5703.0, 3992.0, 3327.0, 7750.0, 9375.0, 4375.0];
    for ((name, _), expected) in SYSTEMS.iter().zip(expected) {
        within(wafer(name), expected, 0.005);
    }
}

#[test]
fn c1a_1_conventional_networks_lose_to_a_wafer_of_equal_bandwidth() {
    within(wafer("Conv-3D") / wafer("W-1D-350"), 1.64, 0.05);
    within(wafer("Conv-4D") / wafer("W-1D-600"), 1.32, 0.05);
}

#[test]
fn c1a_4_the_order_of_systems_is_the_studys() {
    let order = ["W-1D-600", "W-1D-500", "Conv-4D", "W-1D-350", "W-2D", "Conv-3D"];
    assert!(order.windows(2).all(|pair| wafer(pair[0]) < wafer(pair[1])));
}

/// An all-reduce of 1 GiB on the shapes of C1c.
fn scale(sizes: [u32; 4]) -> (f64, Vec<u64>, Option<usize>) {
    let bandwidths = [1000, 200, 100, 50];
    let dims: Vec<_> = sizes.iter().zip(bandwidths).map(|(&size, bandwidth)| ("switch", size, bandwidth)).collect();
    let yaml = format!(
        "workload: {{collective: all_reduce, size: 1 GiB}}\nnetwork:\n{}collectives: {{{STUDY}, local_reduction: false}}\n",
        network(&dims)
    );
    let report = evaluations(&yaml)[0].report;
    (report.total.as_seconds() * 1e6, report.sent[..4].to_vec(), report.busiest())
}

#[test]
fn c1c_1_mib_on_each_dimension_are_the_studys() {
    // In eighths of a MiB, so that 1.5 is whole.
    let eighths = |sizes| scale(sizes).1.iter().map(|bytes| bytes >> 17).collect::<Vec<_>>();
    assert_eq!(eighths([2, 8, 8, 4]), [1024, 896, 112, 12].map(|mib| mib * 8));
    assert_eq!(eighths([4, 8, 8, 4]), [1536, 448, 56, 6].map(|mib| mib * 8));
    assert_eq!(eighths([8, 8, 8, 4]), [1792, 224, 28, 3].map(|mib| mib * 8));
    assert_eq!(eighths([16, 8, 8, 4]), [15360, 896, 112, 12]);
    let exact = |sizes| scale(sizes).1.iter().all(|bytes| bytes % (1 << 17) == 0);
    assert!(exact([16, 8, 8, 4]) && exact([2, 8, 8, 4]));
}

#[test]
fn c1c_2_scaling_out_leaves_time_as_it_is() {
    let base = scale([2, 8, 8, 4]).0;
    for outer in [8, 16, 32] {
        within(scale([2, 8, 8, outer]).0 / base, 1.0, 0.02);
    }
}

#[test]
fn c1c_3_and_4_scaling_up_gains_2_00_2_50_2_33() {
    let base = scale([2, 8, 8, 4]).0;
    let gains: Vec<f64> = [4, 8, 16].map(|inner| base / scale([inner, 8, 8, 4]).0).to_vec();
    for (gain, expected) in gains.iter().zip([2.0, 2.5, 2.33]) {
        within(*gain, expected, 0.02);
    }
    assert!(gains[1] > gains[0] && gains[1] > gains[2], "the best is 8_8_8_4");
}

#[test]
fn c1c_5_the_busiest_dimension_is_named() {
    let busiest = |inner| scale([inner, 8, 8, 4]).2.map(|dim| dim + 1);
    assert_eq!([2, 4, 8, 16].map(busiest), [Some(2), Some(2), Some(1), Some(1)]);
}

/// A model of just so many parameters: one layer of attention without the rest.
fn textbook(zero: u8) -> f64 {
    let yaml = format!(
        "model: {{layers: 1, hidden: 1000, heads: 1, kv_heads: 1, head_dim: 1, ffn: 1, mlp: relu2, vocab: 1, tied_embeddings: true}}\n\
         seq_len: 1\nglobal_batch: 64 seq\nprecision: fp16\n\
         cluster: {{npu: H100-SXM-80GB, npus: 64, network: {{d: {{block: switch, size: 64, bandwidth: 1 GB/s}}}}}}\n\
         plan: {{zero: {zero}}}\n"
    );
    let point = points(&sweep(&yaml))[0].clone();
    let training = transformer(&evaluate(&point).0);
    let share = Share::of(&training);
    // The textbook's account is of states alone: 7.5e9 parameters in place of the layer's.
    let share = Share { attention: 7.5e9, mlp: 0.0, norms: 0.0, embedding: 0.0, ..share };
    let stage = share.stage(&training, 0);
    let footprint = Footprint::of_stage(&training, &share, &stage, &Keeping::default());
    (footprint.weights + footprint.gradients + footprint.optimizer).as_real() / 1e9
}

#[test]
fn rajbhandari20_figure_1_zero_on_64_replicas() {
    // 2 + 2 + 12 bytes of 7.5e9 parameters.
    for (zero, gigabytes) in [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.88)] {
        within(textbook(zero), gigabytes, 0.005);
    }
}

/// The bubble over the rest of the step of a pipeline without communication or ends, and over the whole.
fn bubble(stages: u64, chunks: u64, microbatches: u64) -> (f64, f64) {
    let yaml = format!(
        "model: {{layers: 64, hidden: 4096, heads: 32, ffn: 16384, mlp: gelu, vocab: 1, tied_embeddings: true}}\n\
         seq_len: 2048\nglobal_batch: {microbatches} seq\nprecision: {{preset: bf16, optimizer: 0 B}}\n\
         cluster:\n  npu: {{bf16: 1 TFLOP/s, hbm: 9000 GB, hbm_bandwidth: 900000 TB/s}}\n  npus: {stages}\n  \
         network: {{d: {{block: switch, size: {stages}, bandwidth: 900000 TB/s}}}}\n\
         collectives: {{endpoint_delay: 0 ns}}\nplan: {{pp: {stages}, vpp: {chunks}}}\n"
    );
    let report = evaluations(&yaml)[0].report;
    let ratio = |part: Time, whole: Time| part.as_seconds() / whole.as_seconds();
    let rest = Time::picoseconds(report.total.as_picoseconds() - report.bubble.as_picoseconds());
    (ratio(report.bubble, rest), ratio(report.bubble, report.total))
}

#[test]
fn narayanan21_bubble_is_p_minus_1_of_m_plus_p_minus_1() {
    // Head and embedding of one word and a network without end leave 1e-6 and less.
    for (stages, microbatches) in [(4, 8), (8, 8), (8, 64), (2, 1)] {
        let (_, share) = bubble(stages, 1, microbatches);
        within(share, real(stages - 1) / real(microbatches + stages - 1), 1e-4);
    }
}

#[test]
fn narayanan21_interleaving_divides_the_bubble_by_the_chunks() {
    for (stages, chunks, microbatches) in [(4, 2, 8), (8, 4, 16)] {
        let (over_rest, _) = bubble(stages, chunks, microbatches);
        within(over_rest, real(stages - 1) / real(chunks * microbatches), 1e-4);
    }
}

#[test]
fn rajbhandari20_section_7_zero_3_moves_1_5_times_the_bytes_of_plain_data_parallelism() {
    let sent = |zero: u8| {
        let yaml = format!(
            "model: {{layers: 8, hidden: 1024, heads: 16, ffn: 4096, mlp: gelu, vocab: 1000, tied_embeddings: false}}\n\
             seq_len: 128\nglobal_batch: 8 seq\nprecision: fp16\n\
             cluster: {{npu: H100-SXM-80GB, npus: 8, network: {{d: {{block: switch, size: 8, bandwidth: 1 GB/s}}}}}}\n\
             plan: {{zero: {zero}}}\n"
        );
        real(evaluations(&yaml)[0].report.sent[0])
    };
    within(sent(3) / sent(0), 1.5, 1e-3);
    within(sent(1) / sent(0), 1.0, 1e-3);
}

#[test]
fn korthikanti22_table_2_activations_of_a_layer() {
    // s b h (34 + 5 a s / h) with t = 1; s b h / t (34 + 5 a s / h) with sequence parallelism; 34 s b h / t selective.
    let kept = |tp: u32, sequence_parallel: bool, recompute: &str| {
        let yaml = format!(
            "model: {{layers: 48, hidden: 6144, heads: 64, head_dim: 96, ffn: 24576, mlp: gelu, vocab: 51200, dropout: true, tied_embeddings: true}}\n\
             seq_len: 2048\nglobal_batch: 4 seq\nprecision: fp16\n\
             cluster: {{npu: {{preset: H100-SXM-80GB, hbm: 9000 GB}}, npus: {tp}, network: {{d: {{block: switch, size: {tp}, bandwidth: 1 GB/s}}}}}}\n\
             plan: {{tp: {tp}, micro_batch_size: 4 seq, flash_attention: false, sequence_parallel: {sequence_parallel}, recompute: {recompute}}}\n"
        );
        // Beside the layers the mask of the embedding's dropout: a byte an element.
        let mask = 2048.0 * 4.0 * 6144.0 / if sequence_parallel { f64::from(tp) } else { 1.0 };
        (evaluations(&yaml)[0].footprint.activations.as_real() - mask) / 48.0
    };
    let (sbh, scores) = (2048.0 * 4.0 * 6144.0, 5.0 * 64.0 * 2048.0 / 6144.0);
    within(kept(1, false, "none"), sbh * (34.0 + scores), 1e-6);
    within(kept(8, false, "none"), sbh * (10.0 + 24.0 / 8.0 + scores / 8.0), 1e-6);
    within(kept(8, true, "none"), sbh / 8.0 * (34.0 + scores), 1e-6);
    within(kept(8, true, "selective"), sbh / 8.0 * 34.0, 1e-6);
    within(kept(8, true, "full"), 2.0 * sbh / 8.0, 1e-6);
}

#[test]
fn collectives_of_the_whole_buffer_are_what_callers_give() {
    use starsweep::workload::build::whole_buffer;
    assert_eq!(whole_buffer(Collective::AllGather, Bytes::new(3), 8), Bytes::new(24));
    assert_eq!(whole_buffer(Collective::AllReduce, Bytes::new(3), 8), Bytes::new(3));
}
