//! Does each schedule of a pipeline take the time of its units one by one, hold what they hold, and refuse what it cannot run?

use starsweep::engine::Report;
use starsweep::run::evaluate::Evaluator;
use starsweep::run::vocabulary;
use starsweep::sweep::resolve;
use starsweep::workload::program::{Account, Phase, Work};
use starsweep::workload::{Footprint, Job, Program, Reason, Schedule, build, check};

use crate::support::{points, sweep};
use crate::validation::{COMBINATIONS, both, differences, spread};

/// One step of 32 layers, of a model with few words so that stages are nearly even, on as many NPUs as it needs.
fn question(plan: &str, batch: u64, bandwidth: &str) -> (Job, starsweep::system::System) {
    let written = |degree: &str| {
        let pairs = plan.split(", ").filter_map(|pair| pair.split_once(": "));
        pairs.filter(|pair| pair.0 == degree).map(|pair| pair.1.parse().expect("a degree")).next().unwrap_or(1)
    };
    let npus: u64 = ["tp", "pp", "dp"].iter().map(|degree| written(degree)).product();
    let yaml = format!(
        "model: {{preset: Llama-2-7B, vocab: 1000}}\nseq_len: 4096\nglobal_batch: {batch} seq\nprecision: bf16\n\
         cluster:\n  npus: {npus}\n  npu: {{preset: H100-SXM-80GB, hbm: 9000 GB}}\n  \
         network: {{a: {{block: switch, size: rest, bandwidth: {bandwidth}}}}}\nplan: {{{plan}}}\n"
    );
    Evaluator::question(&points(&sweep(&yaml)).remove(0))
}

/// Both evaluators.
fn reports(plan: &str, batch: u64, bandwidth: &str) -> [Report; 2] {
    let (job, system) = question(plan, batch, bandwidth);
    both(&job, &system).unwrap_or_else(|| panic!("{plan}: {:?}", check(&job, &system)))
}

/// The memory account of a plan, or why there is none.
fn footprint(plan: &str, batch: u64) -> Result<Footprint, Reason> {
    let (job, system) = question(plan, batch, "450 GB/s");
    check(&job, &system).map_err(|refused| refused.reason)
}

/// Each schedule that splits backward passes, with the chunks that it takes.
const PLANS: [&str; 5] = [
    "schedule: zb_h1",
    "schedule: zb_h2",
    "schedule: zb_v, vpp: 2",
    "schedule: zb_v, vpp: 2, overlap_pp: false",
    "schedule: dualpipe",
];

#[test]
fn every_schedule_of_split_passes_takes_the_time_of_its_units() {
    let mut seen = Vec::new();
    for plan in PLANS {
        for stages in [2, 4, 8] {
            for microbatches in [2 * stages, 3 * stages, 8 * stages] {
                for bandwidth in ["450 GB/s", "25 GB/s"] {
                    let plan = format!("pp: {stages}, {plan}");
                    let [closed, simulated] = reports(&plan, microbatches, bandwidth);
                    let ratio = closed.total.as_seconds() / simulated.total.as_seconds();
                    assert!((ratio - 1.0).abs() < 0.01, "{plan} {microbatches} {bandwidth}: {closed:?} {simulated:?}");
                }
            }
        }
        seen.push(Schedule::NAMES.iter().position(|name| plan.contains(name)));
    }
    let splits = (0..).zip(Schedule::ALL).filter(|(_, schedule)| schedule.part().splits());
    assert!(splits.into_iter().all(|(k, _)| seen.contains(&Some(k))), "a schedule is not here");
}

#[test]
fn zero_bubble_schedules_wait_the_less_the_more_they_hold() {
    let bubbles = ["1f1b", "zb_h1", "zb_h2"].map(|schedule| {
        let [closed, simulated] = reports(&format!("pp: 8, schedule: {schedule}"), 32, "450 GB/s");
        assert!(closed.bubble.as_seconds() - simulated.bubble.as_seconds() < 0.01 * closed.total.as_seconds());
        simulated.bubble
    });
    assert!(bubbles[1] < bubbles[0] && bubbles[2] < bubbles[1], "{bubbles:?}");
    let held = ["1f1b", "zb_h1", "zb_h2"].map(|schedule| {
        footprint(&format!("pp: 8, schedule: {schedule}"), 32).expect("a plan that fits").activations.as_real()
    });
    // 8, 8 and 15 microbatches of 4 layers.
    assert!((held[1] / held[0] - 1.0).abs() < 1e-6 && (held[2] / held[0] - 15.0 / 8.0).abs() < 1e-6, "{held:?}");
}

#[test]
fn a_vee_holds_as_much_on_every_stage_as_1f1b_on_its_first() {
    let [vee, straight] = ["schedule: zb_v, vpp: 2", "schedule: 1f1b"]
        .map(|plan| footprint(&format!("pp: 8, {plan}"), 32).expect("a plan that fits").activations.as_real());
    assert!((vee / straight - 1.0).abs() < 1e-6, "{vee} {straight}");
}

#[test]
fn both_ways_need_two_copies_of_the_model_and_one_microbatch_more() {
    let [dual, straight] = ["dualpipe", "1f1b"]
        .map(|schedule| footprint(&format!("pp: 8, schedule: {schedule}"), 32).expect("a plan that fits"));
    assert!((dual.activations.as_real() / straight.activations.as_real() - 9.0 / 8.0).abs() < 1e-6);
    // An end of the pipeline holds embedding and head: the last stage of 1F1B one of them.
    for of in [|it: &Footprint| it.weights, |it: &Footprint| it.gradients, |it: &Footprint| it.optimizer] {
        let ratio = of(&dual).as_real() / of(&straight).as_real();
        assert!((ratio - 2.0).abs() < 1e-2, "{ratio}");
    }
}

#[test]
fn two_copies_of_the_model_sum_their_gradients_once_a_step() {
    let sent = |plan: &str| {
        let (job, _) = question(plan, 32, "450 GB/s");
        let mut program = Program::default();
        build(&job, &mut program);
        let blocks = program.blocks_of(&program.classes[1]).iter().filter(|block| block.phase == Phase::Step);
        let sends =
            blocks.flat_map(|block| program.operations_of(block)).filter_map(|operation| match operation.work {
                Work::Send { size } if operation.account == Account::Pipeline => Some(size.get()),
                _ => None,
            });
        sends.sum::<u64>()
    };
    assert_eq!(sent("pp: 4, dp: 2, schedule: zb_h1"), 0);
    let [whole, half] = ["zero: 0", "zero: 1"].map(|zero| sent(&format!("pp: 4, dp: 2, schedule: dualpipe, {zero}")));
    // Two of four parts of 8 layers of 4 * 4096^2 + 3 * 4096 * 11008 + 2 * 4096 parameters.
    let parameters = 2 * 8 * (4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096);
    assert!(whole % parameters == 0 && whole / parameters > 0 && whole == 2 * half, "{whole} {half} {parameters}");
}

#[test]
fn what_a_schedule_cannot_run_is_refused_with_its_reason() {
    let reason = |plan: &str, batch| footprint(plan, batch).err();
    for schedule in ["zb_h1", "zb_h2", "dualpipe"] {
        assert_eq!(reason(&format!("pp: 4, schedule: {schedule}"), 16), None);
        assert_eq!(reason(&format!("pp: 4, vpp: 2, schedule: {schedule}"), 16), Some(Reason::ScheduleChunks));
        for recompute in ["full", "alternate"] {
            let plan = format!("pp: 4, schedule: {schedule}, recompute: {recompute}");
            assert_eq!(reason(&plan, 16), Some(Reason::RecomputedInputs));
        }
        assert_eq!(reason(&format!("pp: 4, schedule: {schedule}, recompute: selective"), 16), None);
    }
    assert_eq!(reason("pp: 4, schedule: zb_v", 16), Some(Reason::ScheduleTwoChunks));
    assert_eq!(reason("pp: 4, schedule: zb_v, vpp: 2", 6), Some(Reason::MicrobatchesAhead));
    assert_eq!(reason("pp: 4, schedule: zb_v, vpp: 2", 7), None);
    assert_eq!(reason("pp: 4, schedule: dualpipe", 6), Some(Reason::MicrobatchesAhead));
    assert_eq!(reason("pp: 4, schedule: dualpipe", 9), Some(Reason::MicrobatchesInPairs));
    let odd = "pp: 3, schedule: dualpipe, layer_split: light_ends";
    assert_eq!(reason(odd, 16), Some(Reason::StagesInPairs));
}

#[test]
fn random_combinations_of_split_passes_take_the_time_of_their_whole_graph() {
    let yaml = COMBINATIONS.replace("schedule: all", "schedule: [zb_h1, zb_h2, zb_v, dualpipe]");
    let yaml = yaml.replace("pp: [1, 2, 4, 8]", "pp: [2, 4, 8]").replace("vpp: [1, 2, 3, 5]", "vpp: [1, 2]");
    let sweep = resolve(&yaml, &[], &vocabulary()).expect("a sweep");
    let mut found = differences(&sweep, 400);
    let [median, most, worst] = spread(&mut found);
    let farthest = &found.last().expect("a point").1;
    assert!(median <= 0.001 && most <= 0.03 && worst <= 0.1, "{median} {most} {worst}: {farthest}");
}
