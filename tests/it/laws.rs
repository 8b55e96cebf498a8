//! Does the physics hold? More bandwidth is never slower; no time is under the bandwidth bound, and it is reached.

use proptest::prelude::*;
use starsweep::system::collective::{Algorithm, Choice, Collective};
use starsweep::system::hierarchy::Cost;
use starsweep::system::memory::Memory;
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::system::{Collectives, Dimension, Network, Npu, Software, Span, System};
use starsweep::units::{Bandwidth, Bytes, Delay, FlopRate, real};
use starsweep::workload::program::Account;

use crate::support::evaluations;

/// A system of some dimensions: block, size, bandwidth in GB/s, latency in ns.
fn system(dims: &[(usize, u32, f64, f64)], algorithm: usize, chunks: u64, local_reduction: bool) -> System {
    let dim = |&(block, size, bandwidth, latency): &(usize, u32, f64, f64)| Dimension {
        block: Topology::ALL[block],
        size,
        bandwidth: Bandwidth::bytes_per_second(bandwidth * 1e9),
        hop_latency: Delay::nanoseconds(latency),
        algorithm: None,
        window: None,
    };
    System {
        npu: Npu {
            peak: FlopRate::flops_per_second(1e15),
            half_peak: FlopRate::flops_per_second(1e15),
            gemm_efficiency: 0.7,
            attention_efficiency: 0.5,
            units: None,
            half_depth: 100.0,
            memory_bandwidth: Bandwidth::bytes_per_second(3e12),
            memory_efficiency: 0.8,
            kernel_latency: Delay::ZERO,
        },
        software: Software::default(),
        network: Network { dims: dims.iter().map(dim).collect(), ..Network::default() },
        memory: Memory {
            capacity: Bytes::new(80_000_000_000),
            reserve: Bytes::ZERO,
            tiers: arrayvec::ArrayVec::default(),
        },
        collectives: Collectives {
            algorithm: if algorithm == 0 { Choice::ByBlock } else { Choice::Always(Algorithm::ALL[algorithm - 1]) },
            chunks,
            endpoint_delay: Delay::nanoseconds(10.0),
            local_reduction,
            ..Collectives::default()
        },
        rules: Rules::OURS,
    }
}

fn dims() -> impl Strategy<Value = Vec<(usize, u32, f64, f64)>> {
    prop::collection::vec((0_usize..3, 2_u32..17, 1.0..1000.0_f64, 0.0..1000.0_f64), 1..5)
}

/// The group that takes of every dimension a part: the whole, the inner half, or every second one.
fn group(system: &System, parts: &[u8]) -> Vec<Span> {
    let span = |(dim, dimension): (usize, &Dimension)| {
        let size = dimension.size;
        match parts[dim % parts.len()] {
            1 if size % 2 == 0 => Span { dim, size, members: size / 2, stride: 1 },
            2 if size % 2 == 0 => Span { dim, size, members: size / 2, stride: 2 },
            _ => Span::whole(dim, size),
        }
    };
    system.network.dims.iter().enumerate().map(span).filter(|span| span.members > 1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn more_bandwidth_is_never_slower(
        dims in dims(), which in 0_usize..4, factor in 1.0..20.0_f64, algorithm in 0_usize..4, collective in 0_usize..4,
        chunks in 1_u64..70, size in 1_u64..(1 << 34), parts in prop::collection::vec(0_u8..3, 4), reduce in any::<bool>(),
    ) {
        let slow = system(&dims, algorithm, chunks, reduce);
        let mut faster = dims.clone();
        let k = which % dims.len();
        faster[k].2 *= factor;
        let fast = system(&faster, algorithm, chunks, reduce);
        let collective = Collective::ALL[collective];
        let time = |system: &System| Cost::of(collective, Bytes::new(size), &group(system, &parts), system).delay.as_nanoseconds();
        prop_assert!(time(&fast) <= time(&slow) * (1.0 + 1e-12), "{} > {}", time(&fast), time(&slow));
    }

    #[test]
    fn no_time_is_under_the_bandwidth_bound(
        dims in dims(), algorithm in 0_usize..4, collective in 0_usize..4, chunks in 1_u64..200, size in 1_u64..(1 << 36),
        parts in prop::collection::vec(0_u8..3, 4),
    ) {
        let system = system(&dims, algorithm, chunks, false);
        let spans = group(&system, &parts);
        let cost = Cost::of(Collective::ALL[collective], Bytes::new(size), &spans, &system);
        for (span, sent) in spans.iter().zip(&cost.sent) {
            let wire = sent / system.network.dims[span.dim].bandwidth.get() * 1e9;
            prop_assert!(cost.delay.as_nanoseconds() >= wire * (1.0 - 1e-12));
        }
        // All that must leave an NPU, over all bandwidth that it has.
        let members: f64 = spans.iter().map(|span| f64::from(span.members)).product();
        let share = (members - 1.0) / members * real(size);
        let least = if Collective::ALL[collective] == Collective::AllReduce { 2.0 * share } else { share };
        let all: f64 = system.network.dims.iter().map(|dim| dim.bandwidth.get()).sum();
        prop_assert!(spans.is_empty() || cost.delay.as_nanoseconds() >= least / all * 1e9 * (1.0 - 1e-12));
    }

    #[test]
    fn the_bound_is_reached_by_one_dimension_without_latency(block in 0_usize..3, log in 1_u32..8, chunks in 1_u64..50) {
        let mut system = system(&[(block, 1 << log, 100.0, 0.0)], 0, chunks, false);
        system.collectives.endpoint_delay = Delay::ZERO;
        let spans = group(&system, &[0]);
        let cost = Cost::of(Collective::AllReduce, Bytes::new(1 << 30), &spans, &system);
        let wire = cost.sent[0] / 100e9 * 1e9;
        prop_assert!((cost.delay.as_nanoseconds() / wire - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_training_step_is_never_slower_with_more_bandwidth(
        factor in 1.0..16.0_f64, tp in 0_u32..4, pp in 0_u32..3, zero in 0_u8..4, which in any::<bool>(), overlap in any::<bool>(),
    ) {
        let (tp, pp) = (1 << tp, 1 << pp);
        let time = |inner: f64, outer: f64| {
            let yaml = format!(
                "model: Llama-2-7B\nseq_len: 4096\nglobal_batch: 256 seq\nprecision: bf16\n\
                 cluster:\n  npu: {{preset: H100-SXM-80GB, hbm: 9000 GB}}\n  network:\n    \
                 a: {{block: switch, size: 8, bandwidth: {inner} GB/s, hop_latency: 500 ns}}\n    \
                 b: {{block: switch, size: 8, bandwidth: {outer} GB/s, hop_latency: 500 ns}}\n\
                 plan: {{tp: {tp}, pp: {pp}, zero: {zero}, overlap_dp: {overlap}}}\n"
            );
            evaluations(&yaml)[0].report.total
        };
        let faster = if which { time(450.0 * factor, 50.0) } else { time(450.0, 50.0 * factor) };
        prop_assert!(faster <= time(450.0, 50.0));
    }
}

#[test]
fn twice_the_bytes_at_zero_latency_take_twice_the_time() {
    let mut system = system(&[(0, 8, 100.0, 0.0), (2, 4, 50.0, 0.0)], 0, 16, true);
    system.collectives.endpoint_delay = Delay::ZERO;
    let time = |bytes| {
        Cost::of(Collective::AllReduce, Bytes::new(bytes), &group(&system, &[0]), &system).delay.as_nanoseconds()
    };
    assert!((time(2 << 30) / time(1 << 30) - 2.0).abs() < 1e-12);
}

#[test]
fn the_busiest_of_seven_on_a_switch_sends_two_and_a_half_times_the_size() {
    // Halving and doubling in a core of four, 2 (1/2 + 1/4), and the whole result to a surplus rank.
    let system = system(&[(2, 7, 100.0, 0.0)], 0, 4, false);
    let cost = Cost::of(Collective::AllReduce, Bytes::new(1_000_000_000), &group(&system, &[0]), &system);
    assert_eq!(cost.sent.as_slice(), [2.5e9]);
}

#[test]
fn sequence_parallelism_moves_the_bytes_of_tensor_parallelism() {
    let sent = |sequence_parallel: bool| {
        let yaml = format!(
            "model: GPT-3-13B\nseq_len: 2048\nglobal_batch: 8 seq\nprecision: bf16\n\
             cluster: {{npu: H100-SXM-80GB, network: {{d: {{block: switch, size: 8, bandwidth: 450 GB/s}}}}}}\n\
             plan: {{tp: 8, sequence_parallel: {sequence_parallel}, zero: 0, recompute: full}}\n"
        );
        real(evaluations(&yaml)[0].report.sent[0])
    };
    // Without it, the head's input needs no gather; a layer's bytes are the same.
    assert!((sent(true) / sent(false) - 1.0).abs() < 0.02, "{} {}", sent(true), sent(false));
}

#[test]
fn doubling_dp_at_a_fixed_batch_halves_the_microbatches() {
    use crate::support::{evaluate, points, sweep};
    use starsweep::workload::Job;
    let microbatches = |npus: u64| {
        let yaml = format!(
            "model: GPT-3-13B\nseq_len: 2048\nglobal_batch: 256 seq\nprecision: bf16\n\
             cluster: {{npu: H100-SXM-80GB, npus: {npus}, network: {{d: {{block: switch, size: rest, bandwidth: 450 GB/s}}}}}}\nplan: {{tp: 8}}\n"
        );
        match evaluate(&points(&sweep(&yaml))[0]).0 {
            Job::Training(training) => training.num_microbatches(),
            Job::Recorded | Job::Collective { .. } => 0,
        }
    };
    assert_eq!(microbatches(64), 2 * microbatches(128));
}

#[test]
fn what_a_pass_cannot_hide_of_data_parallel_traffic_is_exposed() {
    let of = |bandwidth: &str, overlap: bool| {
        let yaml = format!(
            "model: {{layers: 8, hidden: 4096, heads: 32, ffn: 16384, mlp: gelu, vocab: 32000}}\nseq_len: 2048\n\
             global_batch: 32 seq\nprecision: bf16\n\
             cluster: {{npu: H100-SXM-80GB, npus: 8, network: {{a: {{block: switch, size: 8, bandwidth: {bandwidth}}}}}}}\n\
             software: {{overlap_traffic: 0, collective_latency: 0 s}}\n\
             plan: {{tp: 1, pp: 1, zero: 0, overlap_dp: {overlap}}}\n"
        );
        let report = evaluations(&yaml).remove(0).report;
        (report.data_busy.as_seconds(), report.exposed[Account::Data as usize].as_seconds())
    };
    // However slow, a pass hides what it lasts but for a layer; however fast, a layer's traffic is exposed.
    let hidden = ["3 GB/s", "6 GB/s", "12 GB/s"].map(|bandwidth| {
        let ((busy, exposed), (all_busy, all_exposed)) = (of(bandwidth, true), of(bandwidth, false));
        assert_eq!((all_busy, all_exposed), (busy, busy), "{bandwidth}");
        busy - exposed
    });
    assert!(hidden[0] > 0.0, "{hidden:?}");
    assert!(hidden.iter().all(|other| (other - hidden[0]).abs() < 1e-9), "{hidden:?}");
    let (busy, exposed) = of("2000 GB/s", true);
    assert!((exposed - busy / 8.0).abs() < 1e-9, "{exposed} of {busy}");
}

#[test]
fn all_wait_for_the_busiest_expert() {
    use crate::support::{evaluate, points, sweep};
    use starsweep::system::Kernel;
    use starsweep::workload::program::Work;
    use starsweep::workload::{Job, Program, build};
    const LOCAL_EXPERTS: f64 = 8.0;
    // Arithmetic of products of experts, bytes of all-to-alls, bytes of activations.
    let of = |imbalance: f64, ep: u64, capacity: &str| {
        let yaml = format!(
            "model: {{layers: 4, hidden: 1024, heads: 16, ffn: 4096, mlp: gated, vocab: 32000, experts: {}, topk: 2, moe_ffn: 512{capacity}}}\n\
             seq_len: 2048\nglobal_batch: 64 seq\nprecision: bf16\n\
             cluster: {{npu: H100-SXM-80GB, npus: 8, network: {{a: {{block: switch, size: 8, bandwidth: 450 GB/s}}}}}}\n\
             plan: {{tp: 1, pp: 1, ep: {ep}, expert_imbalance: {imbalance}}}\n",
            LOCAL_EXPERTS * real(ep)
        );
        let (job, system): (Job, System) = {
            let evaluated = evaluate(&points(&sweep(&yaml))[0]);
            (evaluated.0, evaluated.1)
        };
        let footprint = starsweep::workload::check(&job, &system).expect("a feasible point");
        let mut program = Program::default();
        build(&job, &mut program);
        let (mut products, mut sent) = (0.0, 0.0);
        for operation in &program.operations {
            match operation.work {
                Work::Compute(Kernel::Product(product)) if product.count == LOCAL_EXPERTS => {
                    products += Kernel::Product(product).flops();
                }
                Work::Collective { collective: Collective::AllToAll, size, .. } => sent += size.as_real(),
                _ => {}
            }
        }
        [products, sent, footprint.activations.as_real()]
    };
    let [products, sent, kept] = of(1.0, 8, "");
    assert!(products > 0.0 && sent > 0.0);
    let double = of(2.0, 8, "");
    assert_eq!([double[0], double[1]], [2.0 * products, 2.0 * sent]);
    // Of kept bytes the part of experts doubles, so twice the imbalance adds twice that part.
    assert_eq!(of(3.0, 8, "")[2] - kept, 2.0 * (double[2] - kept));
    // None of two has more than all pairs; one has all, however uneven its experts.
    assert_eq!(of(64.0, 2, ""), of(2.0, 2, ""));
    assert_eq!(of(64.0, 1, ""), of(1.0, 1, ""));
    // A capacity is computed whole, and nothing is beyond it.
    assert_eq!(of(4.0, 8, ", capacity_factor: 2"), double);
    assert_eq!(of(1.0, 8, ", capacity_factor: 2"), double);
}
