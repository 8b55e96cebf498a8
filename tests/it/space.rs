//! Is the product right? Numbers and values are inverse of each other; the order of writing changes nothing; ids are unique.

use std::collections::HashSet;

use proptest::prelude::*;
use starsweep::run::evaluate::Evaluator;
use starsweep::run::{self, vocabulary};
use starsweep::sweep::key::{DIMS_FROM, DimId, Id, NAMES_FROM, SLOTS, TIERS_FROM, dim_slot};
use starsweep::sweep::point::{Question, id, id_text};
use starsweep::sweep::{Remover, Sweep, recompute, resolve};

use starsweep::units::{real, whole};

use crate::support::{evaluate, evaluations, points, read, sweep};

const RICH: &str = "
define:
  small: {npus: [8, 16], network: {a: {block: ring, size: [2, 4], bandwidth: 100 GB/s}, b: {block: switch, size: rest, bandwidth: 50 GB/s}}}
  large: {npus: {from: 32, to: 128, times: 2}, network: {a: {block: switch, size: rest, bandwidth: {from: 100 GB/s, to: 300 GB/s, step: 100 GB/s}}}}
zip:
  job:
    one: {model: GPT-3-13B, seq_len: 2048, global_batch: 64 seq}
    two: {model: Llama-3-8B, seq_len: 8192, global_batch: [32 seq, 64 seq]}
precision: bf16
cluster: [small, large]
cluster.npu: [H100-SXM-80GB, A100-SXM-80GB]
plan: {tp: all, pp: [1, 2, 4], vpp: [1, 2], zero: all, recompute: [none, full]}
where: {narrow: tp <= 8}
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_points_number_and_its_digits_are_inverse_of_each_other(part in 0.0..1.0_f64) {
        let sweep = sweep(RICH);
        let number = whole(part * real(sweep.space.len()));
        let digits = sweep.space.digits(number);
        prop_assert_eq!(sweep.space.index(&digits), number);
        prop_assert!(digits.iter().zip(&sweep.space.axes).all(|(digit, axis)| *digit < axis.len));
    }

    #[test]
    fn a_cursor_that_walks_sees_what_one_that_jumps_sees(start in 0_u64..60_000) {
        let sweep = sweep(RICH);
        let start = start % sweep.space.len();
        let mut walker = sweep.space.cursor(start);
        for _ in 0..40 {
            let Some(number) = walker.next_point(sweep.space.len()) else { break };
            let jumper = sweep.space.cursor(number);
            let mut room = Vec::new();
            let expected = id(&jumper.inputs, &mut room);
            prop_assert_eq!(id(&walker.inputs, &mut room), expected);
            // What no axis changes is written once for all ids.
            prop_assert_eq!(sweep.id(&walker.inputs, &mut room), expected);
            let slots = (0..SLOTS).map(|slot| (slot, walker.inputs.get(slot), jumper.inputs.get(slot)));
            // Of a dimension that is not there nothing counts.
            let behind = dim_slot(walker.inputs.dim_count(), DimId::Block)..TIERS_FROM;
            let differ = slots.filter(|(slot, a, b)| !behind.contains(slot) && a.to_bits() != b.to_bits());
            let differ = differ.collect::<Vec<_>>();
            prop_assert!(differ.is_empty(), "{:?}", differ);
            prop_assert_eq!(sweep.space.remover(&jumper.inputs), None);
            walker.step();
        }
    }
}

#[test]
fn a_value_that_is_the_same_at_all_points_never_changes() {
    let knobs =
        "overlap_tp: true, overlap_tp_backward: false, scatter_gather: false, overlap_dp: false, order: dp-tp-pp";
    for text in [RICH.replace("zero: all", &format!("zero: all, {knobs}")), read("sweeps/quickstart.yaml")] {
        let sweep = sweep(&text);
        let slots: Vec<usize> = (0..NAMES_FROM).filter(|&slot| sweep.space.level(&[slot]) == 0).collect();
        let first = sweep.space.cursor(0).inputs;
        let part = (sweep.space.len() / 997).max(1);
        for number in (0..sweep.space.len()).step_by(usize::try_from(part).expect("a step")) {
            let inputs = sweep.space.cursor(number).inputs;
            // Of a dimension that is not there nothing counts.
            let counts = |slot: usize| !(DIMS_FROM..TIERS_FROM).contains(&slot);
            for &slot in slots.iter().filter(|&&slot| counts(slot)) {
                assert_eq!(first.get(slot).to_bits(), inputs.get(slot).to_bits(), "slot {slot} at {number}");
            }
        }
    }
}

#[test]
fn what_neighbours_left_behind_changes_no_number() {
    let text = read("sweeps/calculon_gpt3_175b.yaml").replace("  tp: all", "  tp: 8").replace("  pp: all", "  pp: 4");
    let search = text.replace("vpp: all", "vpp: [1, 24]").replace("zero: [0, 1]", "zero: 1");
    let orders = RICH.replace("zero: all", "zero: all, order: all");
    for (text, points, least) in [(search, 4000, 500), (orders, 4000, 100)] {
        let sweep = sweep(&text);
        let mut cursor = sweep.space.cursor(0);
        let (mut evaluator, mut follower, mut feasible) = (Evaluator::default(), Evaluator::default(), 0);
        let mut question: Option<Question> = None;
        let mut moves = HashSet::new();
        for _ in 0..points {
            cursor.next_point(sweep.space.len()).expect("a point");
            let (job, system, alone) = evaluate(&cursor.inputs);
            let fidelity = starsweep::sweep::point::fidelity(&cursor.inputs);
            assert_eq!(evaluator.evaluate(&job, &system, fidelity), alone);
            // What moved is enough to know of the point before.
            let moved = sweep.space.moved(cursor.standing());
            moves.insert(moved);
            let question = question.get_or_insert_with(|| Question::of(&cursor.inputs));
            question.follow(&cursor.inputs, moved);
            assert_eq!((&question.job, &question.system), (&job, &system));
            assert_eq!(follower.evaluate_next(&job, &system, fidelity, moved), alone);
            feasible += u64::from(alone.is_ok());
            cursor.step();
        }
        assert!(feasible > least, "{feasible}");
        assert_eq!(moves.len(), 3, "{moves:?}");
    }
}

#[test]
fn skipping_finds_what_looking_at_every_number_finds() {
    let sweep = sweep(RICH);
    let mut looked_at = Vec::new();
    let mut cursor = sweep.space.cursor(0);
    for number in 0..sweep.space.len() {
        assert_eq!(cursor.index(), number);
        if sweep.space.remover(&cursor.inputs).is_none() {
            looked_at.push(number);
        }
        cursor.step();
    }
    let mut skipped = Vec::new();
    let mut cursor = sweep.space.cursor(0);
    while let Some(number) = cursor.next_point(sweep.space.len()) {
        skipped.push(number);
        cursor.step();
    }
    assert!(!skipped.is_empty());
    assert_eq!(skipped, looked_at);
}

/// The ids of all points, in order.
fn ids(sweep: &Sweep) -> Vec<u64> {
    let mut room = Vec::new();
    points(sweep).iter().map(|inputs| id(inputs, &mut room)).collect()
}

#[test]
fn the_order_of_writing_changes_nothing() {
    let reordered = "
where: {narrow: tp<=8}
plan: {recompute: [none, full], zero: all, vpp: [1, 2], pp: [1, 2, 4], tp: all}
cluster: [small, large]
precision: bf16
zip:
  job:
    one: {global_batch: 64 seq, seq_len: 2048, model: GPT-3-13B}
    two: {seq_len: 8192, global_batch: [32 seq, 64 seq], model: Llama-3-8B}
cluster.npu: [H100-SXM-80GB, A100-SXM-80GB]   # a comment
define:
  large: {network: {a: {bandwidth: {from: 0.1 TB/s, to: 300 GB/s, step: 100 GB/s}, size: rest, block: switch}}, npus: {times: 2, to: 128, from: 32}}
  small: {network: {a: {size: [2, 4], block: ring, bandwidth: 800 Gb/s}, b: {block: switch, bandwidth: 50 GB/s, size: rest}}, npus: [8, 16]}
";
    let (one, other) = (sweep(RICH), sweep(reordered));
    assert_eq!(ids(&one), ids(&other));
    assert_eq!(one.identity, other.identity);
}

const PLAIN: &str = "
model: GPT-3-13B
seq_len: 2048
global_batch: 64 seq
precision: bf16
cluster:
  npu: H100-SXM-80GB
  npus: 64
  network:
    nvlink: {block: switch, size: 8, bandwidth: 450 GB/s, hop_latency: 500 ns}
    leaf: {block: switch, size: rest, bandwidth: [50 GB/s, 100 GB/s], hop_latency: 500 ns}
memory:
  host: {capacity: 512 GB, bandwidth: 64 GB/s, shared_by: 8}
  pool: {capacity: 4 TB, bandwidth: 100 GB/s, shared_by: 8}
plan: {tp: 8, pp: [1, 2], offload_optimizer: [none, host, pool]}
where: {slow: leaf.bandwidth <= 1 TB/s and (tp <= 8 or offload_optimizer == host)}
derive: {cost: npus * 1000 GB, more: cost * 2}
require: {soon: iteration_time < 1000 s}
";

#[test]
fn notation_changes_neither_identity_nor_ids() {
    let one = sweep(PLAIN);
    for (written, otherwise) in [
        ("leaf.bandwidth <= 1 TB/s", "leaf.bandwidth<=1000 GB/s"),
        ("leaf.bandwidth <= 1 TB/s", "(leaf.bandwidth <= 8 Tb/s)"),
        ("(tp <= 8 or offload_optimizer == host)", "(plan.tp <= 8 or (offload_optimizer == 'host'))"),
        ("1000 GB, more: cost * 2", "1 TB, more: cost_bytes * 2"),
        ("iteration_time < 1000 s", "iteration_time_s < 1000 s"),
        ("{cost: npus * 1000 GB, more: cost * 2}", "{more: cost * 2, cost: npus * 1000 GB}"),
        ("tp: 8", "tp: [8]"),
        ("tp: 8", "tp: {from: 8, to: 8, times: 2}"),
        ("64 seq", "131072 tok"),
        ("450 GB/s", "3600 Gb/s"),
        (
            "  host: {capacity: 512 GB, bandwidth: 64 GB/s, shared_by: 8}\n  pool: {capacity: 4 TB, bandwidth: 100 GB/s, shared_by: 8}\n",
            "  pool: {shared_by: 8, capacity: 4000 GB, bandwidth: 100 GB/s}\n  host: {capacity: 512 GB, bandwidth: 64 GB/s, shared_by: 8}\n",
        ),
    ] {
        assert!(PLAIN.contains(written), "{written}");
        let other = sweep(&PLAIN.replace(written, otherwise));
        assert_eq!(one.identity, other.identity, "{otherwise}");
        assert_eq!(ids(&one), ids(&other), "{otherwise}");
        assert_eq!(run::identity(&one), run::identity(&other), "{otherwise}");
    }
}

#[test]
fn what_is_asked_otherwise_is_another_question() {
    let one = sweep(PLAIN).identity;
    for (written, otherwise) in [
        ("<= 1 TB/s", "< 1 TB/s"),
        ("offload_optimizer == host)", "offload_optimizer == pool)"),
        ("iteration_time", "exposed_comm"),
        ("require: {soon", "require: {fast"),
        ("tp: 8", "tp: [4, 8]"),
        ("64 seq", "131072 seq"),
        ("pool: {capacity: 4 TB", "pool: {capacity: 4 TiB"),
    ] {
        assert!(PLAIN.contains(written), "{written}");
        assert_ne!(one, sweep(&PLAIN.replace(written, otherwise)).identity, "{otherwise}");
    }
}

#[test]
fn a_value_that_counts_changes_the_identity_and_the_ids() {
    let changed = RICH.replace("bandwidth: 50 GB/s", "bandwidth: 51 GB/s");
    assert_ne!(sweep(RICH).identity, sweep(&changed).identity);
    assert_ne!(sweep(RICH).identity, sweep(&RICH.replace("tp <= 8", "tp <= 4")).identity);
}

#[test]
fn ids_are_unique_over_ten_million_points() {
    let yaml = "
workload: {collective: all_reduce, size: {from: 1 MB, to: 1000 MB, step: 1 MB}}
network: {a: {block: ring, size: 8, bandwidth: {from: 1 GB/s, to: 100 GB/s, step: 1 GB/s}}}
collectives: {local_reduction: false, chunks: {from: 1, to: 100, step: 1}}
";
    let sweep = sweep(yaml);
    assert_eq!(sweep.space.len(), 10_000_000);
    let mut ids = Vec::with_capacity(10_000_000);
    let mut room = Vec::new();
    let mut cursor = sweep.space.cursor(0);
    while cursor.next_point(sweep.space.len()).is_some() {
        ids.push(id(&cursor.inputs, &mut room));
        cursor.step();
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_000_000);
    let texts: HashSet<_> = ids.iter().take(1000).map(|&id| id_text(id)).collect();
    assert_eq!(texts.len(), 1000);
}

#[test]
fn ids_survive_an_added_axis_value_and_a_renaming() {
    let ids = |yaml: &str| {
        let mut room = Vec::new();
        points(&sweep(yaml)).iter().map(|inputs| id(inputs, &mut room)).collect::<HashSet<_>>()
    };
    let before = ids(RICH);
    let after = ids(&RICH.replace("pp: [1, 2, 4]", "pp: [1, 2, 4, 8]"));
    assert!(before.is_subset(&after) && before.len() < after.len());
    assert_eq!(before, ids(&RICH.replace("small", "tiny")));
}

#[test]
fn a_knob_that_cannot_matter_is_not_multiplied() {
    let yaml = "
model: GPT-3-13B
seq_len: 2048
global_batch: 64 seq
cluster: {npu: H100-SXM-80GB, npus: 8, network: {a: {block: switch, size: 8, bandwidth: 450 GB/s}}}
plan: {pp: [1, 2], vpp: [1, 2, 4], tp: [1, 8], sequence_parallel: [false, true], dp: rest}
";
    let sweep = sweep(yaml);
    let found = points(&sweep);
    // tp 1: pp 1 | pp 2 x vpp 3, sequence parallelism once: 4. tp 8: pp 1, both: 2; pp 2 makes 16 of 8.
    assert_eq!(found.len(), 6);
}

/// A dense model of 8 NPUs, with lines behind it.
fn of_eight(lines: &str) -> String {
    format!(
        "model: GPT-3-13B\nseq_len: 2048\nglobal_batch: 64 seq\n\
         cluster: {{npu: H100-SXM-80GB, npus: 8, network: {{a: {{block: switch, size: 8, bandwidth: 450 GB/s}}}}}}\n{lines}\n"
    )
}

#[test]
fn the_order_of_one_degree_is_not_multiplied() {
    let found = points(&sweep(&of_eight("plan: {tp: [1, 4, 8], dp: rest, order: all}")));
    // tp 1 and tp 8 leave one degree above 1; tp 4 has dp 2 beside it, and six orders.
    assert_eq!(found.len(), 1 + 6 + 1);
    let fixed = points(&sweep(&of_eight("plan: {tp: 8, order: pp-dp-tp}")));
    assert_eq!(fixed[0].key(Id::Order), 0.0, "an order that does not matter is the default");
}

#[test]
fn a_tier_that_holds_nothing_is_not_multiplied_but_for_its_price() {
    let count = |pool: &str, rest: &str| {
        let memory = format!("memory: {{pool: {{bandwidth: 64 GB/s, {pool}}}}}\n");
        points(&sweep(&of_eight(&format!("{memory}plan: {{zero: 1, offload_optimizer: [none, pool]}}\n{rest}")))).len()
    };
    assert_eq!(count("capacity: [1 TB, 2 TB, 4 TB], shared_by: [1, 8]", ""), 1 + 6);
    assert_eq!(count("capacity: 1 TB, latency: [1 us, 2 us]", ""), 1 + 2);
    assert_eq!(count("capacity: 1 TB, price: [1 k$, 2 k$]", ""), 2 + 2);
    // A rule that reads a key makes it matter.
    assert_eq!(count("capacity: [1 TB, 2 TB]", "where: {large: pool.capacity >= 2 TB}"), 2);
}

#[test]
fn offload_without_any_tier_is_tried_once_whatever_is_written_first() {
    for order in ["[none, pool]", "[pool, none]"] {
        let memory =
            "define: {bare: {pool: none}, rich: {pool: {capacity: 1 TB, bandwidth: 64 GB/s}}}\nmemory: [bare, rich]";
        let found = points(&sweep(&of_eight(&format!("{memory}\nplan: {{zero: 1, offload_optimizer: {order}}}"))));
        assert_eq!(found.len(), 1 + 2, "{order}");
    }
}

/// A mixture of 8 NPUs, one of whose layers in so many is one of experts.
fn mixture(every: u32, plan: &str) -> String {
    of_eight(&format!(
        "model.experts: 8\nmodel.topk: 2\nmodel.moe_ffn: 2048\nmodel.moe_every: {every}\nplan: {{{plan}}}"
    ))
}

#[test]
fn modules_that_a_model_lacks_are_not_multiplied() {
    let sets = |yaml: &str| {
        let found = points(&sweep(yaml));
        found.iter().map(|inputs| recompute::text(inputs.key(Id::Recompute)).expect("a set")).collect::<Vec<_>>()
    };
    let dense = |words: &str| sets(&of_eight(&format!("plan: {{recompute: {words}}}")));
    assert_eq!(dense("[none, moe, layernorm, layernorm+moe_act, mla_up_proj+shared_experts]"), ["none", "layernorm"]);
    // Nothing stands for it, or it is alone.
    assert_eq!(dense("[moe, layernorm+moe]"), ["moe", "layernorm+moe"]);
    assert_eq!(dense("moe"), ["moe"]);
    let words = "recompute: [none, mlp, moe, moe+moe_act, moe_act]";
    assert_eq!(sets(&mixture(1, words)), ["none", "moe", "moe_act"]);
    assert_eq!(sets(&mixture(2, words)), ["none", "mlp", "moe", "moe_act"]);
    // Whoever asks for a module by name keeps it.
    let asked = of_eight("plan: {recompute: [none, moe]}\nwhere: {with: recompute.moe}");
    assert_eq!(sets(&asked), ["moe"]);
    let two = "model.experts: [0, 8]\nmodel.topk: 2\nplan: {recompute: [none, moe, full], tp: [1, 2]}";
    assert_eq!(points(&sweep(&of_eight(two))).len(), 2 * (2 + 3));
}

#[test]
fn modules_that_are_not_multiplied_change_nothing() {
    let of = |yaml: &str| evaluations(yaml).remove(0);
    let dense = |words: &str| of(&of_eight(&format!("plan: {{tp: 8, recompute: {words}}}")));
    for words in ["moe", "moe_act", "shared_experts", "mla_up_proj"] {
        assert_eq!(dense(words), dense("none"), "{words}");
    }
    assert_eq!(dense("mlp+mlp_act"), dense("mlp"));
    let plan = |words: &str| of(&mixture(1, &format!("tp: 8, ep: 8, zero: 1, recompute: {words}")));
    for (words, same) in [("mlp+mlp_act", "none"), ("moe+moe_act+shared_experts", "moe")] {
        assert_eq!(plan(words), plan(same), "{words}");
    }
}

#[test]
fn what_experts_are_like_is_not_multiplied_without_experts() {
    let found = points(&sweep(&of_eight("model.experts: [0, 8]\nmodel.topk: [1, 2]\nmodel.moe_ffn: [1024, 2048]")));
    assert_eq!(found.len(), 1 + 4);
}

#[test]
fn a_model_that_an_axis_makes_impossible_is_infeasible_with_its_reason() {
    let reasons = |lines: &str| -> Vec<Option<&str>> {
        let found = points(&sweep(&of_eight(lines)));
        found.iter().map(|inputs| evaluate(inputs).2.err().map(|refused| refused.reason.name())).collect()
    };
    assert_eq!(reasons("model.kv_heads: [8, 7]\nplan: {tp: 8}"), [None, Some("heads % kv_heads")]);
    assert_eq!(reasons("model.experts: 8\nmodel.topk: [2, 9]\nplan: {tp: 8, ep: 8}")[1], Some("topk > experts"));
}

#[test]
fn the_engineers_counts_are_those_of_the_language() {
    // USERS: tp 12 x pp 12 x ep 12 x cp 3 x ...; without cp and overlap: world size leaves pairs with i + j <= 11, 78 of 144.
    let yaml = "
model: Llama-4-Maverick-400B
seq_len: 8192
global_batch: 2048 seq
cluster: {npu: H100-SXM-80GB, npus: 2048, network: {nvlink: {preset: NVLink4, size: 8}, leaf: {preset: IB-NDR400, size: rest}}}
plan: {tp: all, pp: all, ep: all, dp: rest, vpp: all, micro_batch_size: [1 seq, 2 seq], recompute: [none, selective, full]}
";
    let sweep = sweep(yaml);
    assert_eq!(sweep.space.len(), 12 * 12 * 12 * 10 * 2 * 3);
    let mut cursor = sweep.space.cursor(0);
    let mut world = 0;
    for _ in 0..sweep.space.len() {
        world += u64::from(matches!(
            sweep.space.remover(&cursor.inputs),
            Some(Remover::Rule(starsweep::sweep::Removal::WorldSize))
        ));
        cursor.step();
    }
    assert_eq!(world, (144 - 78) * 12 * 10 * 2 * 3);
}

#[test]
fn an_override_goes_over_the_file() {
    let file = read("sweeps/quickstart.yaml");
    let overrides = ["plan.tp=8".to_owned(), "cluster.npus=256".to_owned()];
    let sweep = resolve(&file, &overrides, &vocabulary()).expect("a sweep");
    assert!(sweep.space.axes.iter().all(|axis| axis.name != "plan.tp" && axis.name != "cluster.npus"));
}

#[test]
fn a_name_goes_over_a_name_and_a_list_over_a_mapping() {
    let file = "
model: GPT-3-13B
seq_len: 2048
global_batch: 64 seq
cluster: {npu: H100-SXM-80GB, npus: 8, network: {a: {block: switch, size: 8, bandwidth: 450 GB/s}}}
plan: {tp: 8}
";
    let with = |over: &str| resolve(file, &[over.to_owned()], &vocabulary());
    let mut room = Vec::new();
    let mut first = |sweep: &starsweep::sweep::Sweep| id(&points(sweep)[0], &mut room);
    let plain = first(&sweep(file));
    assert_ne!(first(&with("model=Llama-2-7B").expect("a sweep")), plain);
    assert_ne!(first(&with("cluster.npu=A100-SXM-80GB").expect("a sweep")), plain);
    assert_eq!(with("plan=[{tp: 2}, {tp: 4}]").expect("a sweep").space.len(), 2);
    for wrong in ["model=NOPE", "cluster.npu=NOPE", "precision=nope", "cluster.network=3"] {
        assert!(with(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_values_of_all_are_called_as_they_are_written() {
    let found = sweep(
        "model: Llama-3-8B\nseq_len: 2048\nglobal_batch: 4 seq\n\
         cluster: {npu: H100-SXM-80GB, network: {nvlink: {preset: NVLink4, size: 8}}}\n\
         plan: {tp: 2, sequence_parallel: all, micro_batch_size: all}\n",
    );
    let labels = |name: &str| {
        let axis = found.space.axes.iter().find(|axis| axis.name == name).expect("an axis");
        axis.alternatives.iter().map(|alternative| alternative.label.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(labels("plan.sequence_parallel"), ["false", "true"]);
    assert_eq!(labels("plan.micro_batch_size"), ["1 seq", "2 seq", "4 seq"]);
}

/// Points with tiers, of which nothing holds anything, or one the optimizer's states.
const TIERS: &str = "
model: GPT-3-13B
seq_len: 2048
global_batch: 64 seq
npu: H100-SXM-80GB
network: {a: {block: ring, size: 8, bandwidth: 100 GB/s}}
define: {one: {host: {capacity: 1 TB, bandwidth: 64 GB/s}}}
memory: [one]
plan: {offload_optimizer: [none, host]}
";

fn ids_of(yaml: &str) -> Vec<u64> {
    ids(&sweep(yaml))
}

#[test]
fn tiers_of_other_alternatives_leave_ids_as_they_are() {
    let before = ids_of(TIERS);
    assert_eq!(before.len(), 2);
    // One that comes first by its name, in an alternative of its own, and one that comes last.
    let more = "{aged: {capacity: 2 TB, bandwidth: 32 GB/s}, pool: {capacity: 3 TB, bandwidth: 16 GB/s}}";
    let other = TIERS.replace("define: {one:", &format!("define: {{two: {more}, one:"));
    let longer =
        other.replace("memory: [one]", "memory: [two, one]").replace("[none, host]", "[none, host, aged, pool]");
    let after = ids_of(&longer);
    assert!(before.iter().all(|id| after.contains(id)), "{before:?} {after:?}");
    // Nothing and one of two, nothing and the one.
    assert_eq!((after.len(), after.iter().collect::<HashSet<_>>().len()), (5, 5));
    // A tier by another name is the same.
    assert_eq!(ids_of(&TIERS.replace("host", "dram")), before);
}

#[test]
fn what_a_tier_is_like_that_holds_nothing_is_in_no_id() {
    let before = ids_of(TIERS);
    let longer = ids_of(&TIERS.replace("bandwidth: 64 GB/s", "bandwidth: [128 GB/s, 64 GB/s]"));
    assert_eq!(longer.len(), 3);
    assert!(before.iter().all(|id| longer.contains(id)), "{before:?} {longer:?}");
    assert_ne!(ids_of(&TIERS.replace("bandwidth: 64 GB/s", "bandwidth: 64 GB/s, price: 1 k$"))[0], before[0]);
    assert_ne!(ids_of(&TIERS.replace("{host: {capacity: 1 TB, bandwidth: 64 GB/s}}", "{host: none}"))[0], before[0]);
    // What an expression reads is tried, and told apart.
    let read =
        TIERS.replace("bandwidth: 64 GB/s", "bandwidth: [128 GB/s, 64 GB/s]") + "derive: {fast: host.bandwidth}\n";
    let read = ids_of(&read);
    assert_eq!((read.len(), read.iter().collect::<HashSet<_>>().len()), (4, 4));
}
