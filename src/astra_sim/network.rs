//! The network file of the reference simulator: dimensions as four lists in YAML, a gigabyte of a link 2^30 bytes.

use std::fmt::Write as _;
use std::path::Path;

use itertools::Itertools as _;

use super::fields::{Fields, Form, inverse, open};
use crate::input::Remarks;
use crate::input::tree::Node;
use crate::system::machine::Dimension;
use crate::system::topology::Topology;
use crate::units::{narrow, whole};

/// Bytes of a gigabyte of a link.
const GIGABYTE: f64 = 1_073_741_824.0;
/// The keys, in the order in which they are written.
const KEYS: [&str; 4] = ["topology", "npus_count", "bandwidth", "latency"];
/// The words for building blocks.
const BLOCKS: [(&str, Topology); 3] =
    [("Ring", Topology::Ring), ("FullyConnected", Topology::FullyConnected), ("Switch", Topology::Switch)];

/// Bytes a nanosecond of so many gigabytes a second.
fn rate(gigabytes: f64) -> f64 {
    gigabytes * GIGABYTE / 1e9
}

/// Reads the dimensions of a network; none if something is wrong, which is remarked.
pub fn read(path: &Path, remarks: &mut Remarks) -> Option<Vec<Dimension>> {
    let node = open(path, "the network file", Form::Yaml, remarks)?;
    let mut fields = Fields::new(&node, "the network file", remarks);
    fields.unknown(&KEYS);
    let lists = KEYS.map(|key| {
        if fields.entry(key).is_none() {
            let message = format!("the network file lacks `{key}`");
            fields.missing(true, message, format!("write `{key}: [...]`, a value for each dimension, innermost first"));
        }
        fields.list(key)
    });
    let mut is_right = lists.iter().all(Option::is_some);
    let size = lists[0].map_or(0, <[Node]>::len);
    for (key, list) in KEYS.into_iter().zip(lists) {
        let (Some(list), Some(node)) = (list, fields.get(key)) else { continue };
        if list.is_empty() || (lists[0].is_some() && list.len() != size) {
            let message = format!("`{key}` has {} values, and `topology` has {size}", list.len());
            fields.error(node.place, message, "one value for each dimension, innermost first");
            is_right = false;
        }
    }
    let mut dimensions = Vec::new();
    for k in 0..lists.iter().flatten().map(|list| list.len()).max().unwrap_or(0) {
        let [block, count, bandwidth, latency] = lists.map(|list| list.and_then(|list| list.get(k)));
        let block = block.and_then(|node| block_of(node, &mut fields));
        let count = count.and_then(|node| {
            number(KEYS[1], node, "a whole number above 1", &mut fields, |it| {
                it > 1.0 && it <= f64::from(i32::MAX) && it.fract() == 0.0
            })
        });
        let bandwidth = bandwidth.and_then(|node| {
            number(KEYS[2], node, "gigabytes a second, above 0", &mut fields, |it| it > 0.0 && rate(it).is_finite())
        });
        let latency =
            latency.and_then(|node| number(KEYS[3], node, "nanoseconds, not below 0", &mut fields, |it| it >= 0.0));
        if let (Some(block), Some(size), Some(bandwidth), Some(latency)) = (block, count, bandwidth, latency) {
            dimensions.push(Dimension { block, size: narrow(whole(size)), bandwidth: rate(bandwidth), latency });
        } else {
            is_right = false;
        }
    }
    let npus = dimensions.iter().try_fold(1_u32, |all, dimension| all.checked_mul(dimension.size));
    if let (None, Some(node)) = (npus, fields.get(KEYS[1])) {
        fields.error(node.place, "the network has more NPUs than can be counted", "fewer than 2^32 in all");
        is_right = false;
    }
    is_right.then_some(dimensions)
}

fn block_of(node: &Node, fields: &mut Fields<'_>) -> Option<Topology> {
    let Some(text) = node.scalar() else {
        fields.wrong_kind(KEYS[0], node, "a building block");
        return None;
    };
    fields.word_of(KEYS[0], node.place, &text, &BLOCKS)
}

/// A number that is what it should be; digits in quotes are one too.
fn number(
    key: &str,
    node: &Node,
    wanted: &str,
    fields: &mut Fields<'_>,
    is_right: impl Fn(f64) -> bool,
) -> Option<f64> {
    let found = node.scalar().and_then(|text| text.trim().parse::<f64>().ok()).filter(|it| it.is_finite());
    match found {
        Some(number) if is_right(number) => Some(number),
        Some(number) => {
            fields.error(node.place, format!("`{key}` is {number}"), format!("write {wanted}"));
            None
        }
        None => {
            let written = node.scalar().map(|text| format!(" `{text}`")).unwrap_or_default();
            let message = format!("`{key}` is {}{written}, not a number", node.kind());
            fields.error(node.place, message, format!("write {wanted}"));
            None
        }
    }
}

/// The text of a network file.
#[must_use]
pub fn write(dimensions: &[Dimension]) -> String {
    let block =
        |it: &Dimension| BLOCKS.iter().find(|block| block.1 == it.block).map_or("Switch", |block| block.0).to_owned();
    let bandwidth = |it: &Dimension| inverse(it.bandwidth, it.bandwidth * 1e9 / GIGABYTE, rate).to_string();
    let lists: [Vec<String>; 4] = [
        dimensions.iter().map(block).collect(),
        dimensions.iter().map(|it| it.size.to_string()).collect(),
        dimensions.iter().map(bandwidth).collect(),
        dimensions.iter().map(|it| it.latency.to_string()).collect(),
    ];
    let notes = ["", "", "  # GB/s; a GB is 2^30 bytes", "  # ns"];
    let mut text = String::new();
    for ((key, list), note) in KEYS.into_iter().zip(lists).zip(notes) {
        let _ = writeln!(text, "{key}: [ {} ]{note}", list.iter().join(", "));
    }
    text
}
