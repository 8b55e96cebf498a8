//! The input columns of the table: what was written, and what holds because nothing was.

use super::algorithm::Written;
use super::family;
use super::inputs::Inputs;
use super::key::{
    self, DIM_KEYS, DIM_NAMES_FROM, DIMS_FROM, Default, DimId, EACH, Id, KEYS, Key, NAMES_FROM, TIER_KEYS,
    TIER_NAMES_FROM, TIERS_FROM, ZIPS_FROM, dim_slot,
};
use super::recompute;
pub use crate::column::{Column, Dtype, with_suffix};
use crate::units::Unit;

/// Where an input column takes its values from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// A slot that holds a number.
    Number(usize),
    /// A slot that holds the place of a word.
    Word(usize, &'static [&'static str]),
    /// A slot that holds an algorithm.
    Algorithm(usize),
    /// A slot that holds what is computed again.
    Recompute(usize),
    /// A slot that holds the number of a name.
    Name(usize),
    /// A slot that holds the number of a tier.
    Tier(usize),
    /// The shape of the network.
    Shape,
}

/// An input column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputColumn {
    /// As it stands in the table.
    pub column: Column,
    /// Where its values come from.
    pub from: From,
}

/// What decides which columns a sweep has.
#[derive(Debug)]
pub struct Contents<'a> {
    /// Whether collectives run in place of training.
    pub is_collective: bool,
    /// The most dimensions of any network of the sweep.
    pub dims: usize,
    /// The zips.
    pub zips: &'a [String],
    /// The tiers beyond the local memory, by name.
    pub tiers: &'a [String],
    /// Slots that are axes of their own.
    pub swept: &'a [usize],
    /// Slots that have a value somewhere.
    pub set: &'a [usize],
}

/// The input columns of a sweep, in their order.
#[must_use]
pub fn input_columns(contents: &Contents<'_>) -> Vec<InputColumn> {
    let mut columns = Vec::new();
    for (k, name) in contents.zips.iter().enumerate() {
        columns.push(text(name.clone(), "the row of the zip", From::Name(ZIPS_FROM + k)));
    }
    for (k, &(name, meaning)) in NAMED_MEANINGS.iter().enumerate() {
        let slot = NAMES_FROM + k;
        let always =
            matches!(name, "npu" | "network") || (!contents.is_collective && matches!(name, "model" | "precision"));
        if always || contents.set.contains(&slot) {
            columns.push(text(name.to_owned(), meaning, From::Name(slot)));
        }
    }
    for (slot, key) in KEYS.iter().enumerate() {
        let of_training = key.path.starts_with("plan.") || matches!(key.path, "seq_len" | "global_batch" | "optimizer");
        let of_collective = key.path.starts_with("workload.");
        let applies = if contents.is_collective { !of_training } else { !of_collective };
        // What a trace does not use, and a trace where there is none.
        let is_recorded = contents.set.contains(&(Id::Chakra as usize));
        let idle = match key.kind {
            key::Kind::Path => !contents.set.contains(&slot),
            // What only some families of models have, where there is none of them.
            _ if family::of(slot).is_some_and(|family| family > 0) => !contents.set.contains(&(Id::Family as usize)),
            _ if key.path.starts_with("collectives.") && key.default == Default::Absent => {
                !contents.set.contains(&slot)
            }
            key::Kind::Tier if of_collective => !contents.set.contains(&slot),
            _ => is_recorded && !contents.set.contains(&slot) && of_collective,
        };
        if (key.column.is_some() && applies && !idle) || contents.swept.contains(&slot) {
            columns.push(of_key(with_suffix(&key.column_name(), key.unit()), slot, key));
        }
    }
    columns.push(text(
        "network_shape".into(),
        "the network's shape in the paper's notation, innermost first [ASTRA2]",
        From::Shape,
    ));
    for dim in 0..contents.dims {
        let name = format!("dim{dim}_name");
        columns.push(text(name, "the name of the dimension", From::Name(DIM_NAMES_FROM + dim)));
        let [own, each] = [dim, EACH].map(|dim| DIMS_FROM + dim * DIM_KEYS.len());
        columns.extend(of_line(&format!("dim{dim}"), DIM_KEYS, own, each, contents));
    }
    for (k, tier) in contents.tiers.iter().enumerate() {
        let from = TIERS_FROM + k * TIER_KEYS.len();
        if contents.swept.contains(&(TIER_NAMES_FROM + k)) {
            columns.push(text(format!("{tier}_name"), "the name of the tier", From::Name(TIER_NAMES_FROM + k)));
        }
        columns.extend(of_line(tier, TIER_KEYS, from, from, contents));
    }
    columns
}

/// The columns of a dimension or a tier: its keys, those without a default only where they are set, here or in `each`.
fn of_line(
    name: &str,
    keys: &'static [Key],
    from: usize,
    each: usize,
    contents: &Contents<'_>,
) -> impl Iterator<Item = InputColumn> {
    let sets = |slot: usize| contents.set.contains(&slot);
    keys.iter()
        .enumerate()
        .filter(move |(k, key)| key.default != Default::Absent || sets(from + k) || sets(each + k))
        .map(move |(k, key)| of_key(format!("{name}_{}", with_suffix(key.path, key.unit())), from + k, key))
}

/// The sections whose alternatives have names, in the order of their slots, with what the name means.
pub const NAMED_MEANINGS: [(&str, &str); key::NAMED.len()] = [
    ("workload", "the name of the workload"),
    ("model", "the name of the model"),
    ("precision", "the name of the precision"),
    ("cluster", "the name of the cluster"),
    ("npu", "the name of the NPU"),
    ("network", "the name of the network"),
    ("software", "the name of the software"),
    ("memory", "the name of the memory"),
    ("plan", "the name of the plan"),
    ("collectives", "the name of the collectives' settings"),
    ("framework", "the framework that plans are limited to"),
];

fn text(name: String, meaning: &str, from: From) -> InputColumn {
    let column = Column { name, dtype: Dtype::Text, unit: Unit::NONE, meaning: meaning.to_owned() };
    InputColumn { column, from }
}

fn of_key(name: String, slot: usize, key: &'static Key) -> InputColumn {
    let is_zero = key.path == KEYS[Id::Zero as usize].path;
    let (dtype, from) = match key.kind {
        key::Kind::Choice(_) if is_zero => (Dtype::Count, From::Number(slot)),
        key::Kind::Choice(words) => (Dtype::Text, From::Word(slot, words)),
        key::Kind::Algorithm => (Dtype::Text, From::Algorithm(slot)),
        key::Kind::Recompute => (Dtype::Text, From::Recompute(slot)),
        key::Kind::Tier => (Dtype::Text, From::Tier(slot)),
        key::Kind::Path | key::Kind::Sizes { .. } => (Dtype::Text, From::Name(slot)),
        key::Kind::Flag => (Dtype::Flag, From::Number(slot)),
        key::Kind::Count { .. } | key::Kind::Quantity { unit: Unit::SEQUENCE, .. } => {
            (Dtype::Count, From::Number(slot))
        }
        key::Kind::Quantity { .. } | key::Kind::Share | key::Kind::Ratio => (Dtype::Real, From::Number(slot)),
    };
    InputColumn { column: Column { name, dtype, unit: key.unit(), meaning: key.doc.to_owned() }, from }
}

impl InputColumn {
    /// The slot that it shows, if it shows one.
    #[must_use]
    pub const fn slot(&self) -> Option<usize> {
        match self.from {
            From::Number(slot)
            | From::Word(slot, _)
            | From::Algorithm(slot)
            | From::Recompute(slot)
            | From::Name(slot)
            | From::Tier(slot) => Some(slot),
            From::Shape => None,
        }
    }

    /// The number of a point in this column; NaN where there is none.
    #[must_use]
    pub fn number(&self, inputs: &Inputs) -> f64 {
        self.slot().map_or(f64::NAN, |slot| inputs.get(slot))
    }

    /// The text for a number of this column, if it is a text column.
    #[must_use]
    pub fn text<'a>(&self, number: f64, names: &'a [String], tiers: &'a [String]) -> Option<&'a str> {
        let place = crate::units::index(crate::units::whole(number));
        match self.from {
            _ if number.is_nan() => None,
            From::Word(_, words) => words.get(place).copied(),
            From::Algorithm(_) => Written::of(number)?.text(names),
            From::Recompute(_) => recompute::text(number),
            From::Name(_) => names.get(place).map(String::as_str),
            From::Tier(_) if number < 0.0 => Some("none"),
            From::Tier(_) => tiers.get(place).map(String::as_str),
            From::Number(_) | From::Shape => None,
        }
    }
}

/// The sizes and blocks of a point's network: what its shape is made of.
pub fn shape_key(inputs: &Inputs) -> impl Iterator<Item = (f64, f64)> + '_ {
    (0..inputs.dim_count()).map(|k| (inputs.get(dim_slot(k, DimId::Block)), inputs.dim(k, DimId::Size)))
}
