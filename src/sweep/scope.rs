//! What names mean in expressions: keys, names of alternatives, dimensions, tiers, derived values, metrics.

use std::sync::Arc;

use super::algorithm::Written;
use super::anchor::Predict;
use super::expression::{Environment, Kind, Scope};
use super::inputs::Inputs;
use super::key::{self, DIM_KEYS, Id, KEYS, Key, NAMED, NAMES_FROM, SLOTS, TIER_KEYS, ZIPS_FROM};
use super::outside::Loader;
use super::recompute;
use super::rule::Rule;
pub use crate::column::Direction;
use crate::column::with_suffix;
use crate::units::{Unit, narrow, real};
use crate::workload::recompute::Part;

/// The first slot of metrics.
pub const METRICS_FROM: usize = SLOTS;
/// The first slot of derived values.
pub const DERIVED_FROM: usize = METRICS_FROM + 256;

/// A name that a sweep may use and `sweep` does not know by itself: a column of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricWord {
    /// Its column, with the unit's suffix.
    pub column: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better, if one is.
    pub better: Option<Direction>,
    /// Whether it is a text.
    pub is_text: bool,
}

/// The words that come from elsewhere: so every name in a file is checked with its place.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    /// The metrics.
    pub metrics: Vec<MetricWord>,
    /// Columns that are neither inputs nor such metrics.
    pub taken: Vec<String>,
    /// What reads the files that a sweep names; none where no file can be read.
    pub loader: Option<Arc<dyn Loader>>,
    /// What predicts a measured run; none where nothing is evaluated.
    pub predict: Option<Predict>,
}

/// The names of one sweep.
#[derive(Debug)]
pub struct Names<'a> {
    /// Interned names: a text's number is its place.
    pub names: &'a [String],
    /// The tiers.
    pub tiers: &'a [String],
    /// The zips.
    pub zips: &'a [String],
    /// User's names of dimensions: the number if it is always the same, and the largest.
    pub dims: &'a [(String, Option<usize>, usize)],
    /// Names that may stand for a text column, by slot.
    pub labels: &'a [(usize, Vec<String>)],
    /// Derived values so far.
    pub derived: &'a [Rule],
    /// The metrics; none where an expression is decided before evaluation.
    pub metrics: &'a [MetricWord],
}

fn kind_of(key: &Key) -> Kind {
    match key.kind {
        _ if key.path == KEYS[Id::Zero as usize].path => Kind::Number(Unit::NONE),
        key::Kind::Choice(_)
        | key::Kind::Algorithm
        | key::Kind::Tier
        | key::Kind::Path
        | key::Kind::Recompute
        | key::Kind::Sizes { .. } => Kind::Text,
        key::Kind::Flag => Kind::Bool,
        _ => Kind::Number(key.unit()),
    }
}

impl Names<'_> {
    /// A key by its path, by the end of its path if only one key ends so, or with its unit's suffix.
    fn key(name: &str) -> Option<usize> {
        let exact = KEYS.iter().position(|key| key.path == name);
        let column = || {
            KEYS.iter().position(|key| {
                let column = key.column_name();
                column == name || with_suffix(&column, key.unit()) == name
            })
        };
        let ends = || {
            let mut found = KEYS
                .iter()
                .enumerate()
                .filter(|(_, key)| key.path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')));
            found.next().filter(|_| found.next().is_none()).map(|found| found.0)
        };
        exact.or_else(column).or_else(ends)
    }

    /// The number in `dim0`, `dim1`, ..., whether or not there is such a dimension.
    fn number(name: &str) -> Option<usize> {
        name.strip_prefix("dim").and_then(|number| number.parse().ok())
    }

    /// The most dimensions of any network of the sweep.
    fn dim_count(&self) -> usize {
        super::resolve::dim_count(self.dims)
    }

    fn dimension(&self, name: &str) -> Option<usize> {
        Self::number(name)
            .filter(|&k| k < self.dim_count())
            .or_else(|| self.dims.iter().find(|dim| dim.0 == name).and_then(|dim| dim.1))
    }
}

/// A field of a list of keys.
fn field(keys: &[Key], name: &str) -> Option<usize> {
    keys.iter().position(|key| key.path == name || with_suffix(key.path, key.unit()) == name)
}

impl Scope for Names<'_> {
    fn name(&self, name: &str) -> Option<(u32, Kind)> {
        if let Some(k) = Self::key(name) {
            return Some((narrow(k as u64), kind_of(&KEYS[k])));
        }
        if let Some(k) = NAMED.iter().position(|named| *named == name) {
            return Some((narrow((NAMES_FROM + k) as u64), Kind::Text));
        }
        if let Some(k) = self.zips.iter().position(|zip| zip == name) {
            return Some((narrow((ZIPS_FROM + k) as u64), Kind::Text));
        }
        let derived = |rule: &Rule| match rule.expression.kind() {
            Kind::Number(unit) => rule.name == name || with_suffix(&rule.name, unit) == name,
            _ => rule.name == name,
        };
        if let Some(k) = self.derived.iter().position(derived) {
            return Some((narrow((DERIVED_FROM + k) as u64), self.derived[k].expression.kind()));
        }
        let metric = |metric: &&MetricWord| {
            let bare = metric.column.strip_suffix(metric.unit.suffix().as_str());
            metric.column == name || bare == Some(name)
        };
        if let Some(found) = self.metrics.iter().find(metric) {
            let k = self.metrics.iter().position(|metric| metric == found)?;
            let kind = if found.is_text { Kind::Text } else { Kind::Number(found.unit) };
            return Some((narrow((METRICS_FROM + k) as u64), kind));
        }
        // `dim0_bandwidth` of a table is `dim0.bandwidth`, and `pool_capacity` is `pool.capacity`.
        let in_dim = || name.starts_with("dim").then(|| name.split_once('_')).flatten();
        if let Some((head, rest)) = name.split_once('.').or_else(in_dim)
            && let Some(dim) = self.dimension(head)
        {
            let k = field(DIM_KEYS, rest)?;
            return Some((narrow((key::DIMS_FROM + dim * DIM_KEYS.len() + k) as u64), kind_of(&DIM_KEYS[k])));
        }
        let of_tier = |tier: &String| field(TIER_KEYS, name.strip_prefix(tier.as_str())?.strip_prefix(['.', '_'])?);
        let (tier, k) = self.tiers.iter().enumerate().find_map(|(tier, word)| Some((tier, of_tier(word)?)))?;
        Some((narrow((key::TIERS_FROM + tier * TIER_KEYS.len() + k) as u64), kind_of(&TIER_KEYS[k])))
    }

    fn dim_field(&self, name: &str) -> Option<(u32, Kind)> {
        let k = field(DIM_KEYS, name)?;
        Some((narrow(k as u64), kind_of(&DIM_KEYS[k])))
    }

    fn symbol(&self, slot: u32, text: &str) -> Option<f64> {
        let slot = slot as usize;
        let words = |words: &[&str]| words.iter().position(|word| *word == text).map(|k| real(k as u64));
        match key::key_of(slot).map(|key| key.kind) {
            Some(key::Kind::Choice(choices)) => words(choices),
            Some(key::Kind::Recompute) => recompute::read(text).ok().map(recompute::number),
            Some(key::Kind::Algorithm) => words(&key::ALGORITHMS).or_else(|| {
                let is_label = self.labels.iter().any(|label| label.0 == slot && label.1.iter().any(|it| it == text));
                let name = self.names.iter().position(|name| name == text).filter(|_| is_label)?;
                Some(Written::of_name(text, name).number())
            }),
            Some(key::Kind::Tier) if text == "none" => Some(-1.0),
            Some(key::Kind::Tier) => self.tiers.iter().position(|tier| tier == text).map(|k| real(k as u64)),
            _ => {
                let known = self.texts(narrow(slot as u64)).iter().any(|known| known == text);
                let k = self.names.iter().position(|name| name == text)?;
                known.then(|| real(k as u64))
            }
        }
    }

    fn word(&self, name: &str) -> Option<(u32, u8)> {
        let (head, word) = name.rsplit_once('.')?;
        let slot = Self::key(head).filter(|&k| KEYS[k].kind == key::Kind::Recompute)?;
        let bit = Part::NAMES.iter().position(|known| *known == word)?;
        Some((narrow(slot as u64), u8::try_from(bit).ok()?))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = KEYS.iter().map(|key| key.name().to_owned()).collect();
        names.extend(KEYS.iter().map(|key| key.path.to_owned()));
        let sets = KEYS.iter().filter(|key| key.kind == key::Kind::Recompute);
        names.extend(sets.flat_map(|key| Part::NAMES.map(|word| format!("{}.{word}", key.name()))));
        names.extend(NAMED.iter().map(|&name| name.to_owned()));
        names.extend(self.zips.iter().cloned());
        names.extend(self.derived.iter().map(|rule| rule.name.clone()));
        names.extend(self.metrics.iter().map(|metric| metric.column.clone()));
        for dim in self.dims.iter().map(|dim| dim.0.clone()).chain((0..self.dim_count()).map(|k| format!("dim{k}"))) {
            names.extend(DIM_KEYS.iter().map(|key| format!("{dim}.{}", key.path)));
        }
        for tier in self.tiers {
            names.extend(TIER_KEYS.iter().map(|key| format!("{tier}.{}", key.path)));
        }
        names
    }

    fn texts(&self, slot: u32) -> Vec<String> {
        let slot = slot as usize;
        match key::key_of(slot).map(|key| key.kind) {
            Some(key::Kind::Choice(choices)) => choices.iter().map(|&word| word.to_owned()).collect(),
            Some(key::Kind::Algorithm) => {
                let labels = self.labels.iter().filter(|label| label.0 == slot).flat_map(|label| &label.1);
                key::ALGORITHMS.iter().map(|&word| word.to_owned()).chain(labels.cloned()).collect()
            }
            Some(key::Kind::Tier) => self.tiers.iter().cloned().chain(["none".to_owned()]).collect(),
            _ => self.labels.iter().find(|label| label.0 == slot).map(|label| label.1.clone()).unwrap_or_default(),
        }
    }

    fn advice(&self, name: &str) -> Option<String> {
        let head = name.split(['.', '_']).next()?;
        Self::number(head).filter(|&k| k >= self.dim_count())?;
        Some(match self.dim_count() {
            0 => "the sweep has no network yet".to_owned(),
            1 => "every network of the sweep has one dimension, `dim0`".to_owned(),
            count => format!("the networks of the sweep have at most {count} dimensions, `dim0` to `dim{}`", count - 1),
        })
    }
}

/// The values that expressions read before evaluation: inputs, and derived values worked out when asked for.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// The inputs.
    pub inputs: &'a Inputs,
    /// The derived values.
    pub derived: &'a [Rule],
}

impl Environment for Before<'_> {
    fn value(&self, slot: u32) -> f64 {
        match (slot as usize).checked_sub(DERIVED_FROM) {
            Some(k) => self.derived[k].expression.evaluate(self),
            None => self.inputs.value(slot),
        }
    }

    fn dims(&self) -> u32 {
        self.inputs.dims()
    }

    fn dim_value(&self, dim: u32, slot: u32) -> f64 {
        self.inputs.dim_value(dim, slot)
    }
}

/// The values that expressions read after evaluation: metrics too.
#[derive(Debug, Clone, Copy)]
pub struct After<'a> {
    /// The inputs.
    pub inputs: &'a Inputs,
    /// The derived values.
    pub derived: &'a [Rule],
    /// The metrics, in the order of the vocabulary; NaN where there is none.
    pub metrics: &'a [f64],
}

impl Environment for After<'_> {
    fn value(&self, slot: u32) -> f64 {
        let slot_number = slot as usize;
        if let Some(k) = slot_number.checked_sub(DERIVED_FROM) {
            self.derived[k].expression.evaluate(self)
        } else if let Some(k) = slot_number.checked_sub(METRICS_FROM) {
            self.metrics[k]
        } else {
            self.inputs.value(slot)
        }
    }

    fn dims(&self) -> u32 {
        self.inputs.dims()
    }

    fn dim_value(&self, dim: u32, slot: u32) -> f64 {
        self.inputs.dim_value(dim, slot)
    }
}

/// Whether an expression can only be decided after evaluation.
#[must_use]
pub fn is_after(rule: &Rule, derived: &[Rule]) -> bool {
    rule.expression.slots().any(|slot| {
        let slot = slot as usize;
        match slot.checked_sub(DERIVED_FROM) {
            Some(k) => is_after(&derived[k], derived),
            None => slot >= METRICS_FROM,
        }
    })
}

/// The input slots that an expression reads, through derived values too.
#[must_use]
pub fn reads(rule: &Rule, derived: &[Rule]) -> Vec<usize> {
    let mut slots = Vec::new();
    for slot in rule.expression.slots().map(|slot| slot as usize) {
        match slot.checked_sub(DERIVED_FROM) {
            Some(k) => slots.extend(reads(&derived[k], derived)),
            None => slots.push(slot),
        }
    }
    if rule.expression.dim_slots().next().is_some() {
        slots.extend(key::DIMS_FROM..key::TIERS_FROM);
    }
    slots
}
