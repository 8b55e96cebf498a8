//! Does each strategy divide, move and keep what its source says? Worked examples and laws, one strategy after the other.

use starsweep::system::System;
use starsweep::system::collective::Collective;
use starsweep::units::{Bytes, real};
use starsweep::workload::program::{Account, Operation, Phase, Work};
use starsweep::workload::transformer::Training;
use starsweep::workload::{Footprint, Group, Infeasible, Program, Reason, build, check};

use crate::support::{points, sweep, transformer};

/// Llama 3 70B's attention in a model of two layers.
const DENSE: &str =
    "{layers: 2, hidden: 8192, heads: 64, kv_heads: 8, head_dim: 128, ffn: 28672, mlp: gated, vocab: 128256}";

/// One step of a model by a plan on as many NPUs as it needs.
fn step(model: &str, seq_len: u64, batch: u64, plan: &str) -> Step {
    step_with(model, seq_len, batch, plan, "precision: bf16\n")
}

/// The same with more of a sweep's lines.
pub fn step_with(model: &str, seq_len: u64, batch: u64, plan: &str, lines: &str) -> Step {
    let npus = ["tp", "cp", "pp", "dp"].iter().map(|degree| written(plan, degree)).product::<u64>();
    let yaml = format!(
        "model: {model}\nseq_len: {seq_len}\nglobal_batch: {batch} seq\n{lines}\
         cluster:\n  npus: {npus}\n  npu: {{preset: H100-SXM-80GB, hbm: 90000 GB}}\n  \
         network: {{a: {{block: switch, size: rest, bandwidth: 450 GB/s}}}}\nplan: {{{plan}}}\n"
    );
    let inputs = points(&sweep(&yaml)).remove(0);
    let (job, system) = starsweep::run::evaluate::Evaluator::question(&inputs);
    let checked = check(&job, &system);
    let training = transformer(&job);
    let mut program = Program::default();
    build(&job, &mut program);
    Step { training, checked, program, system }
}

/// A degree as a plan has it.
fn written(plan: &str, degree: &str) -> u64 {
    let pairs = plan.split(", ").filter_map(|pair| pair.split_once(": "));
    pairs.filter(|pair| pair.0 == degree).map(|pair| pair.1.parse().expect("a degree")).next().unwrap_or(1)
}

/// A step, whether it can be, and what it does.
pub struct Step {
    pub training: Training,
    pub checked: Result<Footprint, Infeasible>,
    pub program: Program,
    pub system: System,
}

impl Step {
    pub fn footprint(&self) -> Footprint {
        self.checked.expect("a feasible step")
    }

    pub fn reason(&self) -> Option<Reason> {
        self.checked.err().map(|refused| refused.reason)
    }

    /// The operations of the first stage's blocks of a phase, one repeat of each.
    pub fn operations(&self, phase: Phase) -> impl Iterator<Item = &Operation> {
        let blocks = self.program.blocks_of(&self.program.classes[0]).iter();
        blocks.filter(move |block| block.phase == phase).flat_map(|block| self.program.operations_of(block))
    }

    /// The collectives of a group on an account, in their order.
    fn collectives(&self, phase: Phase, among: Group, by: Account) -> Vec<(Collective, u64)> {
        let found = self.operations(phase).filter_map(|operation| match operation.work {
            Work::Collective { collective, group, size } if group == among && operation.account == by => {
                Some((collective, size.get()))
            }
            _ => None,
        });
        found.collect()
    }

    /// Arithmetic of the layers of the first stage, there and back.
    pub fn flops(&self) -> f64 {
        let work = [Phase::Forward, Phase::Backward].into_iter().flat_map(|phase| self.operations(phase));
        work.map(|operation| if let Work::Compute(kernel) = operation.work { kernel.flops() } else { 0.0 }).sum()
    }
}

fn halves(whole: Bytes, half: Bytes) {
    assert!((whole.as_real() / half.as_real() - 2.0).abs() < 1e-6, "{whole:?} {half:?}");
}

#[test]
fn a_ring_of_four_hands_on_34_mb_of_keys_and_values_and_again_their_gradients() {
    for kind in ["ring", "all_gather"] {
        let step = step(DENSE, 8192, 1, &format!("cp: 4, cp_kind: {kind}"));
        let of = |phase| step.collectives(phase, Group::Context, Account::Context);
        // 2 w n k d = 2 * 2 * 8192 * 8 * 128 B, of which a rank sends 3/4.
        let whole = 33_554_432;
        assert_eq!(of(Phase::Forward), [(Collective::AllGather, whole)]);
        let mut back = of(Phase::Backward);
        back.sort_by_key(|(collective, _)| *collective == Collective::AllGather);
        assert_eq!(back, [(Collective::ReduceScatter, whole), (Collective::AllGather, whole)]);
    }
}

#[test]
fn heads_are_exchanged_for_tokens_in_four_all_to_alls_a_pass() {
    let step = step(DENSE, 8192, 1, "cp: 4, cp_kind: all_to_all");
    // w (n / c) d of 64 query heads, 8 key heads, 8 value heads and 64 heads of the output.
    let [heads, kv_heads] = [64, 8].map(|heads| (Collective::AllToAll, 2 * 2048 * 128 * heads));
    for phase in [Phase::Forward, Phase::Backward] {
        assert_eq!(step.collectives(phase, Group::Context, Account::Context), [heads, kv_heads, kv_heads, heads]);
    }
}

#[test]
fn context_parallelism_halves_activations_and_arithmetic() {
    let of = |plan: &str| step(DENSE, 8192, 1, plan);
    for kind in ["ring", "all_gather", "all_to_all"] {
        let (one, two) = (of("tp: 2, cp: 2"), of(&format!("tp: 2, cp: 4, cp_kind: {kind}")));
        halves(one.footprint().activations, two.footprint().activations);
        assert!((one.flops() / two.flops() - 2.0).abs() < 1e-9, "{} {}", one.flops(), two.flops());
    }
}

#[test]
fn shards_are_gathered_where_they_are_needed_and_gradients_summed_everywhere_if_so_written() {
    let of = |more: &str| step(DENSE, 8192, 4, &format!("dp: 4, zero: 3{more}"));
    let [ahead, late] = [of(""), of(", prefetch: false")];
    let gathers = |step: &Step, by| step.collectives(Phase::Forward, Group::Data, by);
    assert!(!gathers(&ahead, Account::Data).is_empty() && gathers(&ahead, Account::Gather).is_empty());
    assert_eq!(gathers(&late, Account::Gather), gathers(&ahead, Account::Data));
    assert!(gathers(&late, Account::Data).is_empty());
    // One layer at a time is there in place of two.
    assert!(late.footprint().buffers < ahead.footprint().buffers);
    // As many bytes of gradients, of which a sum on all ranks sends each twice: in all 4/3 of what ZeRO-3 moves, twice plain data parallelism.
    let sums = |step: &Step| step.collectives(Phase::Backward, Group::Data, Account::Data);
    let [scattered, summed] = [sums(&ahead), sums(&of(", reduce_scatter: false"))];
    assert_eq!(scattered.len(), summed.len());
    for (one, other) in scattered.iter().zip(&summed) {
        let expected = if one.0 == Collective::ReduceScatter { Collective::AllReduce } else { one.0 };
        assert_eq!((expected, one.1), *other);
    }
    assert!(summed.iter().any(|sum| sum.0 == Collective::AllReduce));
}

#[test]
fn states_are_cut_over_data_and_context_ranks_alike() {
    let of = |plan: &str| step(DENSE, 8192, 4, &format!("{plan}, zero: 3"));
    let data = of("dp: 4").footprint();
    for plan in ["dp: 2, cp: 2", "dp: 1, cp: 4"] {
        let both = of(plan).footprint();
        assert_eq!([both.weights, both.gradients, both.optimizer], [data.weights, data.gradients, data.optimizer]);
    }
    // Gradients of a context group are of different tokens, so they are summed.
    let reduced = step(DENSE, 8192, 4, "cp: 4").collectives(Phase::Step, Group::Data, Account::Data);
    assert!(matches!(reduced[..], [(Collective::AllReduce, _)]), "{reduced:?}");
}

#[test]
fn context_parallelism_divides_the_sequence_and_by_all_to_all_the_heads() {
    let reason = |seq_len, plan: &str| step(DENSE, seq_len, 1, plan).reason();
    assert_eq!(reason(24, "cp: 8"), Some(Reason::SequencePerContext));
    assert_eq!(reason(24, "cp: 4"), None);
    assert_eq!(reason(24, "cp: 8, cp_kind: all_to_all"), None);
    assert_eq!(reason(24, "cp: 4, tp: 4"), Some(Reason::SequencePerContext));
    assert_eq!(reason(24, "cp: 4, tp: 4, sequence_parallel: false"), None);
    assert_eq!(reason(4096, "cp: 32, tp: 4, cp_kind: all_to_all"), Some(Reason::HeadsPerContext));
    assert_eq!(reason(4096, "cp: 32, tp: 4"), None);
}

#[test]
fn doubling_a_degree_of_context_at_a_fixed_batch_leaves_the_microbatches() {
    let of = |plan: &str| step(DENSE, 8192, 16, plan).training.num_microbatches();
    assert_eq!([of("dp: 4"), of("dp: 4, cp: 2"), of("dp: 8")], [4, 4, 2]);
    assert_eq!(real(of("dp: 16, cp: 4")), 1.0);
}

/// Mixtral 8x7B in two layers.
const MIXTURE: &str = "{layers: 2, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, ffn: 14336, mlp: gated, \
                       vocab: 32000, experts: 8, topk: 2, moe_ffn: 14336}";

#[test]
fn expert_groups_take_tensor_then_context_then_data_ranks() {
    let step = step(MIXTURE, 8192, 8, "tp: 2, cp: 2, dp: 8, etp: 2, ep: 8");
    let ranks = step.training.plan.expert_ranks().expect("groups");
    assert_eq!([ranks.tensor, ranks.expert, ranks.data], [[2, 1, 1], [1, 2, 4], [1, 1, 2]]);
    assert_eq!(step.reason(), None);
}

#[test]
fn an_experts_tensor_group_gathers_the_pairs_of_its_ranks() {
    // 8,192 tokens, 2 experts each, over 8 ranks: 2,048 pairs of 4,096 elements of 2 B.
    let pairs = 2048 * 4096 * 2;
    let of = |plan: &str, among, by| step(MIXTURE, 8192, 8, plan).collectives(Phase::Forward, among, by);
    let whole = of("tp: 8, etp: 8, dp: 8, ep: 8", Group::ExpertTensor, Account::Tensor);
    assert_eq!(whole, [(Collective::AllGather, 8 * pairs), (Collective::ReduceScatter, 8 * pairs)]);
    for plan in ["tp: 8, etp: 8, dp: 8, ep: 8", "tp: 8, etp: 2, ep: 4", "tp: 8, ep: 8"] {
        assert_eq!(of(plan, Group::Expert, Account::Expert), [(Collective::AllToAll, pairs); 2], "{plan}");
    }
    assert_eq!(of("tp: 8, ep: 8", Group::ExpertTensor, Account::Tensor), []);
}

#[test]
fn expert_parallelism_divides_weights_of_experts_and_no_activations() {
    let of = |plan: &str| step(MIXTURE, 8192, 8, plan).footprint();
    let (one, eight) = (of("tp: 2, dp: 8"), of("tp: 2, dp: 8, ep: 8"));
    assert_eq!(one.activations, eight.activations);
    // Two layers of 8 experts of 3 * 4096 * 14336 parameters of 2 B, of which 7 go elsewhere.
    assert_eq!(one.weights.get() - eight.weights.get(), 2 * 7 * 3 * 4096 * 14336 * 2);
    assert_eq!(of("tp: 8, etp: 8").weights, of("tp: 8, ep: 8").weights);
}

#[test]
fn tensor_parallelism_divides_activations_of_experts_where_etp_is_less() {
    let of = |plan: &str| step(MIXTURE, 8192, 8, plan).footprint().activations;
    halves(of("tp: 4"), of("tp: 8"));
    halves(of("tp: 4, etp: 2"), of("tp: 8, etp: 2"));
    // Where both are equal, every rank has all pairs at its experts' doors.
    let pairs = 2.0 * 2.0 * 2.0 * 8192.0 * 4096.0 * 2.0;
    let whole = [of("tp: 4, etp: 4"), of("tp: 8, etp: 8")].map(Bytes::as_real);
    assert!((2.0 * (whole[1] - pairs) / (whole[0] - pairs) - 1.0).abs() < 1e-6, "{whole:?}");
}

#[test]
fn an_experts_tensor_group_divides_the_width_of_an_expert_and_the_ranks() {
    let reason = |plan: &str| step(MIXTURE, 8192, 24, plan).reason();
    assert_eq!(reason("tp: 2, etp: 2, dp: 12, ep: 4"), None);
    assert_eq!(reason("tp: 2, etp: 3, dp: 12"), Some(Reason::ExpertGroup));
    assert_eq!(reason("dp: 24, etp: 3"), Some(Reason::ExpertPerTensor));
    assert_eq!(reason("tp: 2, etp: 4, dp: 2, ep: 2"), Some(Reason::ExpertGroup));
}

#[test]
fn gpipe_holds_the_activations_of_all_microbatches() {
    // Few words, so that logits do not make the last stage the fullest.
    let model = DENSE.replace("128256", "1000");
    let of = |plan: &str| step(&model, 4096, 16, &format!("pp: 2, dp: 2, {plan}")).footprint().activations;
    // Of 8 microbatches the first stage holds 2 by turns; a pipeline of one stage has no schedule.
    assert!((of("schedule: gpipe").as_real() / of("schedule: 1f1b").as_real() - 4.0).abs() < 1e-6);
    let alone = |schedule: &str| step(DENSE, 4096, 16, &format!("dp: 2, schedule: {schedule}")).footprint();
    assert_eq!(alone("gpipe"), alone("1f1b"));
}

#[test]
fn gpipe_runs_one_chunk_a_stage() {
    let reason = |plan: &str| step(DENSE, 4096, 16, &format!("pp: 2, {plan}")).reason();
    assert_eq!(reason("schedule: gpipe"), None);
    assert_eq!(step("Llama-3-8B", 4096, 16, "pp: 2, vpp: 2, schedule: gpipe").reason(), Some(Reason::ScheduleChunks));
    assert_eq!(step("Llama-3-8B", 4096, 16, "pp: 2, vpp: 2, schedule: 1f1b").reason(), None);
}

/// The layers of each kind in the chunks of all stages: dense, then with experts.
fn layers(model: &str, plan: &str) -> Vec<Vec<[u64; 2]>> {
    use starsweep::workload::share::Share;
    let training = step(model, 4096, 64, plan).training;
    let (share, chunks) = (Share::of(&training), training.plan.vpp);
    let stage = |number| {
        let stage = share.stage(&training, number);
        (0..chunks).map(|chunk| [stage.dense.of_chunk(chunk, chunks), stage.moe.of_chunk(chunk, chunks)]).collect()
    };
    (0..training.plan.pp).map(stage).collect()
}

#[test]
fn embedding_and_head_take_the_places_of_layers_at_light_ends() {
    let counts = |model: &str, plan: &str| {
        let found = layers(model, &format!("{plan}, layer_split: light_ends"));
        let of = |chunks: &Vec<[u64; 2]>| chunks.iter().map(|[dense, moe]| dense + moe).collect();
        found.iter().map(of).collect::<Vec<Vec<u64>>>()
    };
    let dense = |layers: u64| format!("{{preset: Llama-3-8B, layers: {layers}}}");
    // 126 in 128 rooms of 1, 61 in 64 of 4, 94 in 96 of 4.
    let found = counts(&dense(126), "pp: 16, vpp: 8");
    assert_eq!([&found[0], &found[1], &found[15]], [&[0, 1, 1, 1, 1, 1, 1, 1], &[1; 8], &[1, 1, 1, 1, 1, 1, 1, 0]]);
    let found = counts(&dense(61), "pp: 4, vpp: 4");
    assert_eq!([&found[0], &found[2], &found[3]], [&[3, 4, 4, 4], &[4; 4], &[4, 4, 4, 2]]);
    let found = counts(&dense(94), "pp: 8, vpp: 3");
    assert_eq!([&found[0], &found[7]], [&[3, 4, 4], &[4, 4, 3]]);
    assert_eq!(counts(&dense(2), "pp: 4"), [[0], [1], [1], [0]]);
    // Nothing is missing where all is even.
    assert_eq!(counts(&dense(32), "pp: 4, vpp: 2"), vec![vec![4; 2]; 4]);
}

#[test]
fn layers_with_experts_stay_what_they_are_at_light_ends() {
    let model = "{preset: Mixtral-8x7B, layers: 61, dense_layers: 3}";
    let found = layers(model, "pp: 4, vpp: 4, layer_split: light_ends");
    assert_eq!(found[0], [[3, 0], [0, 4], [0, 4], [0, 4]]);
    assert_eq!([&found[1], &found[3]], [&[[0, 4]; 4], &[[0, 4], [0, 4], [0, 4], [0, 2]]]);
    let all: u64 = found.iter().flatten().map(|[dense, moe]| dense + moe).sum();
    assert_eq!(all, 61);
    // 32 rooms of 2: layers 1 and 2 are in the second stage, which stands for no other.
    let step = step(model, 4096, 64, "pp: 16, vpp: 2, layer_split: light_ends");
    let classes: Vec<[u64; 2]> = step.program.classes.iter().map(|class| [class.stage, class.stages]).collect();
    assert_eq!(classes, [[0, 1], [1, 1], [2, 13], [15, 1]]);
}

#[test]
fn a_split_leaves_out_no_more_than_an_end_has() {
    let reason = |layers: u64, split: &str| {
        let model = format!("{{preset: Llama-3-8B, layers: {layers}}}");
        step(&model, 4096, 64, &format!("pp: 8, layer_split: {split}")).reason()
    };
    assert_eq!(reason(30, "even"), Some(Reason::LayersPerStage));
    assert_eq!(reason(30, "light_ends"), None);
    assert_eq!(reason(6, "light_ends"), None);
    assert_eq!(reason(5, "light_ends"), Some(Reason::LayersAtEnds));
}

#[test]
fn shards_among_four_of_eight_ranks_leave_two_copies() {
    let of = |plan: &str| step(DENSE, 4096, 8, plan);
    let gradients = of("dp: 8").footprint().gradients;
    for zero in 1..4 {
        let (four, hybrid) = (of(&format!("dp: 4, zero: {zero}")), of(&format!("dp: 8, zero: {zero}, zero_shard: 4")));
        assert_eq!(hybrid.footprint().total(), four.footprint().total());
        assert_eq!(four.collectives(Phase::Step, Group::Replica, Account::Data), []);
        // A rank sums what it has of the gradients with its likes: g P / 4.
        let [(Collective::AllReduce, size)] = hybrid.collectives(Phase::Step, Group::Replica, Account::Data)[..] else {
            panic!("copies do not meet")
        };
        assert!((real(size) * 4.0 / gradients.as_real() - 1.0).abs() < 1e-6, "{size} {gradients:?}");
        assert_eq!(
            of(&format!("dp: 8, zero: {zero}, zero_shard: 8")).program,
            of(&format!("dp: 8, zero: {zero}")).program
        );
    }
}

#[test]
fn shards_divide_data_and_context_and_hold_whole_expert_groups() {
    let reason = |plan: &str| step(MIXTURE, 4096, 48, plan).reason();
    assert_eq!(reason("dp: 8, zero: 1, zero_shard: 3"), Some(Reason::ShardGroup));
    assert_eq!(reason("dp: 4, cp: 4, zero: 1, zero_shard: 8"), None);
    assert_eq!(reason("dp: 2, cp: 4, zero: 1, zero_shard: 2"), None);
    assert_eq!(reason("dp: 8, ep: 8, zero: 1, zero_shard: 4"), Some(Reason::ExpertGroup));
    assert_eq!(reason("tp: 2, dp: 8, ep: 8, zero: 1, zero_shard: 4"), None);
}

#[test]
fn one_is_a_degree_of_every_kind() {
    let ones = "tp: 1, cp: 1, pp: 1, dp: 1, ep: 1, etp: 1, vpp: 1, micro_batch_size: 1 seq";
    for model in [DENSE, MIXTURE] {
        let (plain, written) = (step(model, 4096, 2, "recompute: none"), step(model, 4096, 2, ones));
        assert_eq!((written.reason(), written.program), (None, plain.program));
        let zero = step(model, 4096, 2, &format!("{ones}, zero: 3, zero_shard: 1"));
        assert_eq!(zero.footprint(), plain.checked.expect("a feasible step"));
    }
}
