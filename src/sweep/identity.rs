//! Identity: what makes two sweeps the same, whatever their comments, the order of their keys and their notation.

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use super::algorithm::{Written, is_algorithm};
use super::axis::Axis;
use super::key::{Kind, NAMES_FROM, key_of};
use super::rule::Rule;
use super::sizes::is_sizes;
use super::{InputColumn, Space};

/// Hash of a space and of the rules and columns that make its rows.
#[must_use]
pub fn of(space: &Space, require: &[Rule], columns: &[InputColumn], names: &[String], tiers: &[String]) -> u64 {
    let mut text = String::new();
    let name_of = |slot: usize, value: f64| {
        if is_algorithm(slot) {
            return Written::of(value).and_then(Written::name).and_then(|name| names.get(name)).cloned();
        }
        let place = crate::units::index(crate::units::whole(value));
        let is_name = slot >= NAMES_FROM || is_sizes(slot) || key_of(slot).is_some_and(|key| key.kind == Kind::Path);
        if is_name && !value.is_nan() { names.get(place).cloned() } else { None }
    };
    // A list of one value is that value.
    let (fixed, axes): (Vec<&Axis>, Vec<&Axis>) = space.axes.iter().partition(|axis| is_fixed(axis));
    let mut base = space.base.clone();
    for setting in fixed.iter().flat_map(|axis| &axis.alternatives[0].settings) {
        base[setting.slot as usize] = setting.value;
    }
    for (slot, value) in base.iter().enumerate() {
        if !value.is_nan() {
            push(&mut text, slot, *value, name_of(slot, *value));
        }
    }
    for axis in axes {
        push_axis(&mut text, axis, &name_of);
    }
    let rules = [("where", &space.filters[..]), ("derive", &space.derived[..]), ("require", require)];
    for (what, rules) in rules {
        for rule in rules {
            let _ = write!(text, "{what} {}={};", rule.name, rule.expression);
        }
    }
    for column in columns {
        let _ = write!(text, "column {};", column.column.name);
    }
    let _ = write!(text, "tiers {tiers:?}");
    xxh3_64(text.as_bytes())
}

/// Whether an axis has one value and nothing inside.
fn is_fixed(axis: &Axis) -> bool {
    axis.len == 1 && axis.alternatives.iter().all(|alternative| alternative.axes.is_empty())
}

fn push(text: &mut String, slot: usize, value: f64, name: Option<String>) {
    let _ = match name {
        Some(name) => write!(text, "{slot}={name:?};"),
        None => write!(text, "{slot}={:x};", value.to_bits()),
    };
}

fn push_axis(text: &mut String, axis: &Axis, name_of: &dyn Fn(usize, f64) -> Option<String>) {
    let _ = write!(text, "axis {}[", axis.name);
    for alternative in &axis.alternatives {
        text.push('(');
        let mut settings = alternative.settings.clone();
        settings.sort_by_key(|setting| setting.slot);
        for setting in settings {
            let slot = setting.slot as usize;
            push(text, slot, setting.value, name_of(slot, setting.value));
        }
        for inner in &alternative.axes {
            push_axis(text, inner, name_of);
        }
        text.push(')');
    }
    text.push(']');
}
