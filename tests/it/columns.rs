//! Does the table tell points apart? Whatever key is an axis, some input column has another value at each of its values.

use starsweep::run::vocabulary;
use starsweep::sweep::family;
use starsweep::sweep::fidelity::{MESSAGE_KEYS, QUEUE_KEYS};
use starsweep::sweep::key::{DIM_KEYS, Id, KEYS, Key, Kind, TIER_KEYS};
use starsweep::sweep::{Sweep, resolve};

use crate::support::sweep;

/// Training on a machine on which every knob matters: several degrees, experts, a tier that holds the optimizer.
const TRAINING: &str = "
model: {layers: 8, hidden: 1024, heads: 16, kv_heads: 8, head_dim: 64, ffn: 4096, mlp: gated, vocab: 32000, experts: 8, topk: 2}
seq_len: 2048
global_batch: 64 seq
cluster:
  npu: H100-SXM-80GB
  npus: 64
  network:
    inner: {block: switch, size: 8, bandwidth: 450 GB/s}
    outer: {block: switch, size: rest, bandwidth: 50 GB/s}
memory: {pool: {capacity: 4 TB, bandwidth: 512 GB/s}}
plan: {tp: 2, cp: 2, pp: 2, vpp: 2, ep: 4, etp: 2, zero: 1, offload_optimizer: pool}
";

/// A recommendation model on a machine on which its knobs matter.
const RECOMMENDING: &str = "
model: {family: dlrm, tables: 64, rows: 1000, embedding_dim: 64, dense_features: 13, bottom_mlp: 512-64, top_mlp: 512-1}
global_batch: 4096 samples
cluster:
  npu: H100-SXM-80GB
  network: {inner: {block: switch, size: 8, bandwidth: 450 GB/s}}
";

/// A collective on a ring.
const COLLECTIVE: &str = "
workload: {collective: all_reduce, size: 1 GB}
network: {inner: {block: ring, size: 8, bandwidth: 450 GB/s}}
collectives: {local_reduction: false}
";

/// A recorded trace.
const RECORDED: &str = "
workload: {chakra: w}
memory: {pool: {capacity: 4 TB, bandwidth: 512 GB/s}}
network: {inner: {block: ring, size: 8, bandwidth: 450 GB/s}}
collectives: {local_reduction: false}
";

/// Two values of a key, the first with an example's unit; none if its kind has only one.
fn two_values(key: &Key) -> Option<String> {
    let pair = match key.kind {
        Kind::Quantity { unit, .. } | Kind::Count { unit, .. } => {
            let unit = unit.example().split_once(' ').map_or("", |example| example.1);
            format!("[4 {unit}, 8 {unit}]")
        }
        Kind::Share => "[0.5, 0.6]".to_owned(),
        Kind::Ratio => "[1.5, 2]".to_owned(),
        Kind::Choice(words) => format!("[{}, {}]", words[0], words.get(1)?),
        Kind::Algorithm => "[ring, direct]".to_owned(),
        Kind::Recompute => "[selective, layernorm+moe_act]".to_owned(),
        Kind::Flag => "[false, true]".to_owned(),
        Kind::Tier => "[none, pool]".to_owned(),
        Kind::Path => "[a/w, b/w]".to_owned(),
        Kind::Sizes { .. } => "[512-64, 256-64]".to_owned(),
    };
    Some(pair)
}

/// The input columns in which the two numbers of a sweep differ.
fn telling(sweep: &Sweep) -> Vec<&str> {
    assert_eq!(sweep.space.len(), 2);
    let [one, other] = [0, 1].map(|number| sweep.space.cursor(number).inputs);
    let differs =
        |column: &&starsweep::sweep::InputColumn| column.number(&one).to_bits() != column.number(&other).to_bits();
    sweep.columns.iter().filter(differs).map(|column| column.column.name.as_str()).collect()
}

#[test]
fn every_key_has_a_column_that_tells_its_values_apart() {
    let own = KEYS.iter().map(|key| (key.path.to_owned(), key));
    let dims = DIM_KEYS.iter().map(|key| (format!("cluster.network.inner.{}", key.path), key));
    let wide = DIM_KEYS.iter().filter(|key| !matches!(key.path, "block" | "size"));
    let each = wide.map(|key| (format!("each_dimension.{}", key.path), key));
    let tiers = TIER_KEYS.iter().map(|key| (format!("memory.pool.{}", key.path), key));
    let mut looked_at = 0;
    let is_of_tables = |path: &str| KEYS.iter().position(|key| key.path == path).and_then(family::of) == Some(1);
    for (path, key) in own.chain(dims).chain(each).chain(tiers) {
        let Some(values) = two_values(key) else { continue };
        let is_recorded = key.kind == Kind::Path || path == "workload.remote_memory";
        let file = match path.starts_with("workload") {
            true if is_recorded => RECORDED,
            true => COLLECTIVE,
            // Every message of every rank.
            false if matches!(key.name(), "rendezvous" | "congestion") => COLLECTIVE,
            false if is_of_tables(&path) => RECOMMENDING,
            false => TRAINING,
        };
        // What only the event-driven engine knows.
        let beyond = is_recorded
            || QUEUE_KEYS.into_iter().chain(MESSAGE_KEYS).chain([Id::Rules]).any(|id| KEYS[id as usize].path == path);
        let evaluator = beyond.then(|| "fidelity=event_driven".to_owned());
        // With sequence parallelism a tensor rank holds no more than its part.
        let whole = (path == "plan.scatter_gather").then(|| "plan.sequence_parallel=false".to_owned());
        // Only the third stage shards weights.
        let sharded = (path == "plan.prefetch").then(|| "plan.zero=3".to_owned());
        // A model of either family has the keys of both here.
        let tables = ["tables=8", "rows=1000", "embedding_dim=64", "dense_features=13", "bottom_mlp=64", "top_mlp=1"];
        let tables = tables.into_iter().filter(|_| path == "model.family").map(|key| format!("model.{key}"));
        let over: Vec<String> = evaluator
            .into_iter()
            .chain(whole)
            .chain(sharded)
            .chain(tables)
            .chain([format!("{path}={values}")])
            .collect();
        let sweep = resolve(file, &over, &vocabulary()).unwrap_or_else(|errors| panic!("{path}={values}: {errors:#?}"));
        assert!(!telling(&sweep).is_empty(), "{path}: no column tells {values} apart");
        looked_at += 1;
    }
    assert_eq!(looked_at, KEYS.len() + 2 * DIM_KEYS.len() - 2 + TIER_KEYS.len());
}

#[test]
fn a_tier_and_a_price_have_columns_that_say_their_unit() {
    let with = |over: &str| resolve(TRAINING, &[over.to_owned()], &vocabulary()).expect("a sweep");
    assert_eq!(telling(&with("memory.pool.capacity=[1 TB, 2 TB]")), ["pool_capacity_bytes"]);
    assert_eq!(telling(&with("memory.pool.shared_by=[1, 2]")), ["pool_shared_by"]);
    let price = with("each_dimension.price=[10 $/(GB/s), 20 $/(GB/s)]");
    assert_eq!(telling(&price), ["dim0_price_usd_per_bytes_per_s", "dim1_price_usd_per_bytes_per_s"]);
}

#[test]
fn a_tier_that_is_not_there_has_columns_without_values() {
    let file = TRAINING
        .replace("memory: {pool: {", "define: {without: {pool: none}, with: {pool: {")
        .replace("GB/s}}\nplan", "GB/s}}}\nmemory: [without, with]\nplan");
    let sweep = sweep(&file);
    let [without, with] = [0, 1].map(|number| sweep.space.cursor(number).inputs);
    let pool = |column: &&starsweep::sweep::InputColumn| column.column.name.starts_with("pool_");
    assert_eq!(sweep.columns.iter().filter(pool).count(), 4);
    for column in sweep.columns.iter().filter(pool) {
        assert!(column.number(&without).is_nan() && !column.number(&with).is_nan(), "{}", column.column.name);
    }
}

#[test]
fn a_column_may_be_named_in_an_expression() {
    for name in ["pool_capacity_bytes", "pool_capacity", "pool.capacity", "dim0_bandwidth_bytes_per_s", "npu_price"] {
        let sweep = sweep(&format!("{TRAINING}derive: {{twice: 2 * {name}}}\n"));
        assert_eq!(sweep.derived.len(), 1, "{name}");
    }
}
