//! Answers to a key or a mapping that is not understood: what may stand there, and a network of lists as our lines.

use super::key::{DIM_KEYS, KEYS, Key, TIER_KEYS};
use super::walk::{Line, Walker, is_tier};
use crate::input::diagnostic::{Diagnostic, Place, quoted};
use crate::input::tree::Value;

/// Words of other tools, or of later versions, with what to say to whoever writes them.
pub(super) const FOREIGN: &[(&str, &str)] = &[
    ("gpus", "the word is `npus`"),
    ("gpu", "the word is `npu`"),
    ("tensor", "the word is `tp`"),
    ("pipeline", "the word is `pp`"),
    ("data", "the word is `dp`"),
    ("expert", "the word is `ep`"),
    ("context", "the word is `cp`"),
    ("pipeline_schedule", "the word is `schedule`"),
    ("microbatch", "the word is `micro_batch_size`, with its unit: `1 seq`"),
    ("micro_batch", "the word is `micro_batch_size`, with its unit: `1 seq`"),
    ("batch_size", "the word is `global_batch`, with its unit: `2048 seq`"),
    (
        "astra_sim",
        "a file of the reference simulator stands in `network` or in `collectives`: `network: {astra_sim: nets/mine.yml}`",
    ),
    ("hf", "a model's `config.json` stands in `model`, without a preset beside it: `model: {hf: ./config.json}`"),
    (
        "chakra",
        "a recorded trace stands in `workload`, a collective that is a trace in `algorithm`: `{chakra: mine/allreduce}`",
    ),
    ("link", "a link is a preset of a dimension: `{preset: NAME, size: 8}` (`starsweep list links`)"),
    ("adagrad", "the word is `rowwise_adagrad`: a number for each row of a table, one for each other parameter"),
    ("shards", "the word is `table_shards`"),
    ("sharding", "tables lie on ranks whole, or cut by columns: `table_shards`"),
    ("size", "of a tier of `memory` the word is `capacity`; a dimension and a collective have a `size`"),
    ("latency", "in a network the word is `hop_latency`: the latency of one hop"),
    ("active-chunks-per-dimension", "the word is `active_chunks`"),
    ("preferred-dataset-splits", "the word is `chunks`"),
    ("intra-dimension-scheduling", "the word is `chunk_order`"),
    ("inter-dimension-scheduling", "the word is `dimension_order`"),
    (
        "collective-optimization",
        "the word is `multi_dim`: `localBWAware` is `hierarchical`, `baseline` is `per_dimension`",
    ),
    ("endpoint-delay", "the word is `endpoint_delay`, with its unit: `10 ns`"),
    ("local-mem-bw", "the word is `hbm_bandwidth`, in `npu`: `npu: {hbm_bandwidth: 1600 GB/s}`"),
    ("queues_per_dim", "the word is `queues`"),
    ("num-queues-per-dim", "the word is `queues`"),
    ("rendezvous-protocol", "the word is `rendezvous`"),
    ("congestion_aware", "write `congestion: aware`, in `cluster`"),
    ("localBWAware", "the word is `hierarchical`"),
    ("baseline", "in `collectives` the word is `per_dimension`; in `decide` it is what others are measured against"),
    ("halvingDoubling", "the word is `halving_doubling`"),
    ("doubleBinaryTree", "the word is `double_binary_tree`"),
    ("oneRing", "write `algorithm: ring` and `multi_dim: flat`"),
    ("oneDirect", "write `algorithm: direct` and `multi_dim: flat`"),
    ("oneHalvingDoubling", "write `algorithm: halving_doubling` and `multi_dim: flat`"),
    ("offlineGreedy", "the word is `themis`"),
    ("offlineGreedyFlex", "the word is `themis_flex`"),
    ("roundRobin", "the word is `round_robin`"),
    ("smallestFirst", "the word is `smallest_first`"),
    ("lessRemainingPhaseFirst", "the word is `less_remaining_phase_first`"),
    ("RG", "the word is `rg`"),
    ("FIFO", "the word is `fifo`"),
    ("system", "the sections are `cluster` (npu, network), `memory` and `collectives`"),
    ("topology", "a network is named lines, innermost first: `nvlink: {block: switch, size: 8, bandwidth: 450 GB/s}`"),
    (
        "npus_count",
        "a network is named lines, innermost first: `nvlink: {block: switch, size: 8, bandwidth: 450 GB/s}`",
    ),
];

/// Keys that the language will have and this version does not understand.
pub(super) const LATER: &[(&str, &str)] = &[
    ("assume", "guesses as ranges"),
    ("expect", "claims that are checked"),
    ("across", "weighting over jobs"),
    ("share", "weighting over jobs"),
    ("speedup", "speed against the baseline, over jobs"),
    ("tie", "ties"),
    ("shares", "dimensions that share a port"),
    ("oversubscription", "oversubscribed dimensions"),
    ("in_network", "collectives inside the network"),
    ("efficiency_like", "efficiencies borrowed from another NPU"),
];

impl Walker {
    /// A key of a later version.
    pub fn later(&mut self, path: &str, name: &str, place: Place) {
        if !path.is_empty() {
            self.unread.push(path.to_owned());
        }
        let what = LATER.iter().find(|later| later.0 == name).map_or("", |later| later.1);
        self.complain(
            Diagnostic::error(format!("`{name}` is not understood yet: {what}"))
                .at(place)
                .help("this version cannot take it into account: remove the line to run without it"),
        );
    }
}

/// The lines that a network of lists should be.
pub(super) fn one_line_each(lines: &[Line]) -> String {
    let list = |names: &[&str]| -> Vec<String> {
        let line = lines.iter().find(|line| names.contains(&line.0.as_str()));
        match line.map(|line| &line.2[0].value) {
            Some(Value::List(items)) => items.iter().map(|item| item.scalar().unwrap_or_default()).collect(),
            _ => Vec::new(),
        }
    };
    let blocks = list(&["topology", "block"]);
    let sizes = list(&["npus_count", "size"]);
    let bandwidths = list(&["bandwidth"]);
    let latencies = list(&["latency", "hop_latency"]);
    let dims = blocks.len().max(sizes.len()).max(bandwidths.len()).max(latencies.len()).clamp(1, 4);
    let unit = |text: Option<&String>, unit: &str, otherwise: &str| match text {
        Some(text) if text.parse::<f64>().is_ok() => format!("{text} {unit}"),
        Some(text) => text.clone(),
        None => otherwise.to_owned(),
    };
    let line = |k: usize| {
        let block = match blocks.get(k).map(String::as_str) {
            Some("FullyConnected" | "fully_connected") => "fully_connected",
            Some("Ring" | "ring") => "ring",
            _ => "switch",
        };
        let size = sizes.get(k).map_or("8", String::as_str);
        let bandwidth = unit(bandwidths.get(k), "GiB/s", "50 GiB/s");
        let latency = unit(latencies.get(k), "ns", "500 ns");
        format!("`d{}: {{block: {block}, size: {size}, bandwidth: {bandwidth}, hop_latency: {latency}}}`", k + 1)
    };
    let lines: Vec<_> = (0..dims).map(line).collect();
    format!("write one line a dimension, innermost first: {} (ASTRA-sim's GB is our GiB)", lines.join(", "))
}

/// The keys that may stand in a section.
pub(super) fn known_keys(path: &str) -> Vec<String> {
    let names = |keys: &[Key]| keys.iter().map(|key| key.path.to_owned()).collect::<Vec<_>>();
    if path.starts_with("cluster.network.") {
        return names(DIM_KEYS);
    }
    if is_tier(path) {
        return names(TIER_KEYS);
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
    let mut known: Vec<String> = Vec::new();
    for key in KEYS {
        if let Some(rest) = key.path.strip_prefix(&prefix) {
            let head = rest.split('.').next().unwrap_or(rest).to_owned();
            if !known.contains(&head) {
                known.push(head);
            }
        }
    }
    match path {
        "plan" => known.push(super::framework::NAME.into()),
        "cluster" => known.extend(["network".into(), "each_dimension".into()]),
        "" => known.extend(super::resolve::TOP.iter().map(|&(name, _)| name.to_owned())),
        _ => {}
    }
    known
}

/// How a section is written.
pub(super) fn section_help(path: &str) -> String {
    let known = known_keys(path);
    let known: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
    match path {
        "cluster.network" => {
            "write named lines, innermost first: `nvlink: {block: switch, size: 8, bandwidth: 450 GB/s}`".into()
        }
        "model" => {
            "write the name of a preset (`starsweep list models`), `{hf: ./config.json}`, or a mapping with `layers`, `hidden`, ...".into()
        }
        "memory" => {
            "write its tiers: `memory: {host: {capacity: 1 TB, bandwidth: 64 GB/s}}`; `{host: none}` is a memory without it".into()
        }
        _ if is_tier(path) => "write `{capacity: 1 TB, bandwidth: 64 GB/s}`, or the name of a preset (`starsweep list tiers`)".into(),
        _ if known.is_empty() => "write a mapping".into(),
        _ => format!("write a mapping with {}", quoted(&known)),
    }
}

/// A path as people write it.
pub(super) fn readable(path: &str) -> String {
    if path.starts_with("cluster.network.") { "a dimension of the network".to_owned() } else { format!("`{path}`") }
}
