//! Are plans limited to what their framework can launch, and is it said which condition removes how many?

use starsweep::run::preview::preview;
use starsweep::run::vocabulary;
use starsweep::sweep::preset::kinds;
use starsweep::sweep::resolve;

use crate::support::{points, sweep};

/// A sweep over 64 NPUs.
fn yaml(define: &str, plan: &str) -> String {
    format!(
        "{define}model: {{preset: Mixtral-8x7B}}\nseq_len: 4096\nglobal_batch: 64 seq\nprecision: bf16\n\
         cluster: {{npu: H100-SXM-80GB}}\nmemory: {{host: {{capacity: 9 TB, bandwidth: 64 GB/s}}}}\n\
         network: {{a: {{block: switch, size: 64, bandwidth: 400 GB/s}}}}\nplan: {{{plan}}}\n"
    )
}

fn tried(plan: &str) -> usize {
    points(&sweep(&yaml("", plan))).len()
}

#[test]
fn a_plan_that_its_framework_cannot_launch_is_not_tried() {
    for (framework, launches, refuses) in [
        ("deepspeed", "tp: 1, pp: 1, zero: 2", "tp: 1, pp: 2, zero: 2"),
        ("deepspeed", "tp: 1, pp: 2, zero: 1", "tp: 1, pp: 2, vpp: 2, zero: 1"),
        ("deepspeed", "tp: 8, cp: 2, cp_kind: all_to_all", "tp: 8, cp: 2, cp_kind: ring"),
        ("deepspeed", "tp: 8, offload_activations: host, recompute: full", "tp: 8, offload_activations: host"),
        ("megatron-core", "tp: 8, pp: 2, recompute: moe_act", "tp: 8, pp: 2, schedule: gpipe"),
        (
            "megatron-core 0.14",
            "tp: 8, pp: 2, vpp: 2, ep: 4, overlap_ep: true",
            "tp: 8, pp: 2, ep: 4, overlap_ep: true",
        ),
        ("megatron-core", "tp: 8, order: tp-pp-dp, pp: 2", "tp: 8, order: pp-dp-tp, pp: 2"),
        ("torchtitan", "tp: 8, zero: 3, zero_shard: 4", "tp: 8, zero: 1"),
        ("torchtitan", "tp: 8, recompute: alternate", "tp: 8, recompute: selective"),
    ] {
        for (plan, count) in [(launches, 1), (refuses, 0)] {
            assert_eq!(tried(plan), 1, "{plan}");
            assert_eq!(tried(&format!("framework: {framework}, {plan}")), count, "{framework}: {plan}");
        }
    }
}

#[test]
fn each_framework_of_a_list_has_its_own_plans() {
    let zero = "tp: 8, pp: 2, zero: [0, 1, 2, 3]";
    let of = |framework: &str| tried(&format!("framework: {framework}, {zero}"));
    assert_eq!([of("deepspeed"), of("torchtitan"), of("[deepspeed, torchtitan]")], [2, 3, 5]);
}

#[test]
fn a_framework_of_ones_own_is_a_mapping_and_a_preset_takes_changes() {
    let define = "define:\n  mine: {few: tp <= 4, preset: deepspeed}\n";
    let few = |define: &str, framework: &str| {
        points(&sweep(&yaml(define, &format!("framework: {framework}, tp: [1, 2, 4, 8]")))).len()
    };
    assert_eq!(few("", "{few: tp <= 2}"), 2);
    assert_eq!(few(define, "mine"), 3);
    assert_eq!(few(define, "[mine, torchtitan]"), 7);
    let staged = |framework: &str| tried(&format!("framework: {framework}, tp: 8, pp: 2, zero: 3"));
    assert_eq!([staged("deepspeed"), staged("{preset: deepspeed, zero_and_pp: true, experts_and_zero: true}")], [0, 1]);
}

#[test]
fn a_change_of_no_condition_and_a_name_with_an_apostrophe_are_what_they_are() {
    let near = sweep(&yaml("", "framework: {preset: deepspeed, zero_and_p: true}, tp: 8"));
    let said: Vec<String> = near.cautions.iter().filter_map(|caution| caution.help.clone()).collect();
    assert!(said.contains(&"did you mean `zero_and_pp`?".to_owned()), "{said:?}");
    let own = sweep(&yaml("", "framework: {preset: deepspeed, few: tp <= 4}, tp: 8"));
    assert!(own.cautions.iter().all(|caution| !caution.message.contains("takes the place of none")));
    let define = "define:\n  \"Kim's\": {few: tp <= 4, preset: deepspeed}\n";
    let few = sweep(&yaml(define, "framework: \"Kim's\", tp: [4, 8]"));
    assert_eq!(points(&few).len(), 1);
}

#[test]
fn modules_of_a_set_are_conditions() {
    let overlapped = |recompute: &str| {
        tried(&format!(
            "framework: megatron-core, tp: 8, pp: 2, vpp: 2, ep: 4, overlap_ep: true, recompute: {recompute}"
        ))
    };
    assert_eq!(["none", "moe_act", "moe", "layernorm+moe", "full"].map(overlapped), [1, 1, 0, 0, 0]);
    let own = |condition: &str| tried(&format!("framework: {{a: {condition}}}, tp: 8, recompute: layernorm+moe"));
    let conditions = ["recompute.moe", "plan.recompute.layernorm and not recompute.full", "recompute.moe_act"];
    assert_eq!(conditions.map(own), [1, 1, 0]);
}

#[test]
fn a_preview_names_framework_and_condition() {
    let found = preview(&sweep(&yaml("", "framework: deepspeed, tp: 8, pp: 2, zero: [0, 1, 2, 3]")));
    assert_eq!(found.left, 2);
    let removed: Vec<&str> = found.removed.iter().map(|removed| removed.0.as_str()).collect();
    assert!(removed.iter().all(|name| name.starts_with("deepspeed: ")), "{removed:?}");
    assert!(found.removed.iter().map(|removed| removed.1).sum::<u64>() == 2);
}

#[test]
fn what_is_no_condition_of_a_plan_is_told_with_its_place() {
    let wrong = |framework: &str| {
        let found =
            resolve(&yaml("", &format!("framework: {framework}, tp: 8")), &[], &vocabulary()).expect_err("a mistake");
        found.iter().map(|diagnostic| diagnostic.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(wrong("torchtitain").contains("knows no `torchtitain`"), "{}", wrong("torchtitain"));
    assert!(wrong("{degree: tp + 1}").contains("`framework.degree` is no condition"));
    assert!(wrong("{degree: tq <= 1}").contains("tq"));
    assert!(wrong("{slow: iteration_time <= 1 s}").contains("iteration_time"));
}

#[test]
fn every_condition_of_every_preset_can_be_asked() {
    let kind = kinds().iter().find(|kind| kind.name == "framework").expect("frameworks");
    assert!(kind.presets.len() >= 4);
    let names: Vec<&str> = kind.presets.iter().map(|preset| preset.key.as_str()).collect();
    assert!(tried(&format!("framework: [{}], tp: 8, zero: 0", names.join(", "))) > 0);
}
