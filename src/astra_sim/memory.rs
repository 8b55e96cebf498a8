//! The remote memory file of the reference simulator: where the memory beyond the NPUs' own is, its latency and bandwidth.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::fields::{Fields, Form, number, open};
use crate::input::Remarks;
use crate::system::machine::{Place, RemoteMemory};
use crate::system::rules::{Quirk, Rules};

const TYPE: &str = "memory-type";
const LATENCY: &str = "remote-mem-latency";
const BANDWIDTH: &str = "remote-mem-bw";
const NODES: &str = "num-nodes";
const NPUS: &str = "num-npus-per-node";

/// Where a memory may be.
#[derive(Debug, Clone, Copy)]
enum Type {
    Nowhere,
    PerNpu,
    PerNode,
    Pool,
}

const TYPES: [(&str, Type); 4] = [
    ("NO_MEMORY_EXPANSION", Type::Nowhere),
    ("PER_NPU_MEMORY_EXPANSION", Type::PerNpu),
    ("PER_NODE_MEMORY_EXPANSION", Type::PerNode),
    ("MEMORY_POOL", Type::Pool),
];

/// Reads the memory of a machine with so many NPUs, if that is known; none if there is none, or something is wrong, which is
/// remarked.
pub fn read(path: &Path, npus: Option<u32>, rules: Rules, remarks: &mut Remarks) -> Option<RemoteMemory> {
    let node = open(path, "the memory file", Form::Json, remarks)?;
    let mut fields = Fields::new(&node, "the memory file", remarks);
    fields.unknown(&[TYPE, LATENCY, BANDWIDTH, NODES, NPUS]);
    if fields.entry(TYPE).is_none() {
        fields.missing(
            true,
            format!("the memory file lacks `{TYPE}`"),
            format!("write `\"{TYPE}\": \"{}\"`", TYPES[0].0),
        );
    }
    let latency = amount(LATENCY, rules.has(Quirk::WholeNanoseconds), &mut fields);
    let bandwidth = amount(BANDWIDTH, rules.has(Quirk::WholeMemoryBandwidth), &mut fields);
    let place = match fields.word(TYPE, &TYPES)? {
        Type::Nowhere => return None,
        Type::PerNpu => Place::PerNpu,
        Type::Pool => Place::Pool,
        Type::PerNode => {
            if fields.entry(NPUS).is_none() {
                let help = format!("write `\"{NPUS}\": 8`; the reference simulator divides by zero");
                fields.missing(true, format!("a memory for each node needs `{NPUS}`"), help);
            }
            let npus_of_node = fields.count(NPUS, 1)?;
            let nodes = fields.count(NODES, 1);
            if let (Some(npus), Some(nodes), Some(node)) = (npus, nodes, fields.get(NODES))
                && npus.div_ceil(npus_of_node) != nodes
            {
                let needed = npus.div_ceil(npus_of_node);
                let message =
                    format!("`{NODES}` is {nodes}, and {npus} NPUs, {npus_of_node} a node, are {needed} nodes");
                fields.caution(node.place, message, format!("here there are {needed}"));
            }
            Place::PerNode { npus: npus_of_node }
        }
    };
    let bandwidth = bandwidth?;
    if bandwidth == 0.0 {
        let message = format!("`{BANDWIDTH}` is 0 or missing: a transfer takes no time beyond its latency");
        fields.missing(false, message, "gigabytes a second, a whole number");
    }
    let bandwidth = if bandwidth == 0.0 { f64::INFINITY } else { bandwidth };
    Some(RemoteMemory { place, latency: latency?, bandwidth })
}

/// A number that is not below 0, and 0 if there is none; what stands behind its point is cut off if that is the rule.
fn amount(key: &str, is_cut: bool, fields: &mut Fields<'_>) -> Option<f64> {
    let Some(node) = fields.get(key) else { return Some(0.0) };
    let number = fields.number(key)?;
    if number < 0.0 {
        fields.error(node.place, format!("`{key}` is {number}"), "a number, not below 0");
        return None;
    }
    if is_cut {
        fields.cut(key, node.place, number);
        return Some(number.trunc());
    }
    Some(number)
}

/// The text of a memory file, for a machine with so many NPUs.
#[must_use]
pub fn write(memory: Option<RemoteMemory>, npus: u32) -> String {
    let name = |wanted: usize| TYPES[wanted].0;
    let Some(memory) = memory else { return json!({TYPE: name(0)}).to_string() };
    let bandwidth = if memory.bandwidth.is_finite() { memory.bandwidth } else { 0.0 };
    let mut file = json!({LATENCY: number(memory.latency), BANDWIDTH: number(bandwidth)});
    let kind = match memory.place {
        Place::PerNpu => 1,
        Place::PerNode { npus: of_node } => {
            file[NODES] = Json::from(npus.div_ceil(of_node.max(1)));
            file[NPUS] = Json::from(of_node);
            2
        }
        Place::Pool => 3,
    };
    file[TYPE] = Json::from(name(kind));
    format!("{file:#}\n")
}
