//! One value of a key: a scalar with its unit, a word, a range.

use super::foreign::{FOREIGN, LATER};
use super::inputs::REST;
use super::key::{ALGORITHMS, Default, Id, Key, Kind};
use super::recompute;
use crate::input::diagnostic::{Diagnostic, Place, nearest, quoted, suggest};
use crate::input::tree::{Node, Value};
use crate::units::{Quantity, QuantityError, Unit, human, parse_unit, plain, unit_words};

/// The largest count that may be written: a thousand million.
const MAX_COUNT: f64 = 1e9;
/// The most values that a range may have.
const MAX_RANGE: u64 = 1_000_000;
/// How far, relatively, the end of a range may be from its last step.
const END_TOLERANCE: f64 = 1e-9;

/// A value in base units, and how it was written.
pub type Written = (f64, String);

/// Reads a scalar of a key.
///
/// # Errors
/// What was expected, with an example, if it is something else.
pub fn scalar(key: &Key, node: &Node, tiers: &[String]) -> Result<Written, Diagnostic> {
    let text = node.scalar().unwrap_or_default();
    let value = match key.kind {
        Kind::Quantity { .. } | Kind::Count { .. } | Kind::Share | Kind::Ratio => number(key, node)?,
        Kind::Choice(words) => choice(key, node, words)?,
        Kind::Algorithm => choice(key, node, &ALGORITHMS)?,
        Kind::Recompute => recompute::value(key, node)?,
        Kind::Flag => flag(key, node)?,
        Kind::Tier => tier(key, node, tiers)?,
        // Paths and sizes are names: see `Walker::leaf`.
        Kind::Path | Kind::Sizes { .. } => return Err(expected(key, node)),
    };
    Ok((value, text))
}

/// The complaint about a value that is not what its key takes.
pub(super) fn expected(key: &Key, node: &Node) -> Diagnostic {
    let what = match key.kind {
        Kind::Quantity { unit, .. } => unit.describe(),
        Kind::Count { unit, .. } if unit != Unit::NONE => unit.describe(),
        Kind::Count { .. } => "a whole number".to_owned(),
        Kind::Share => "a share between 0 and 1".to_owned(),
        Kind::Ratio => "a number from 1 on".to_owned(),
        Kind::Choice(_) | Kind::Algorithm | Kind::Recompute => "a word".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Tier => "the name of a tier, or `none`".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Sizes { .. } => "whole numbers with `-` between them".to_owned(),
    };
    let found = node.scalar().map_or_else(|| node.kind().to_owned(), |text| format!("`{text}`"));
    Diagnostic::error(format!("`{}` takes {what}, not {found}", key.name())).at(node.place).help(format!(
        "write for example `{}: {}`",
        key.name(),
        key.example()
    ))
}

/// A number with its unit.
fn number(key: &Key, node: &Node) -> Result<f64, Diagnostic> {
    let quantity = match &node.value {
        Value::Number(number) => Quantity { value: *number, unit: Unit::NONE },
        Value::Text(text) if text == "rest" && key.default == Default::Rest => return Ok(REST),
        Value::Text(text) if text == "rest" && key.path == "size" => return Ok(REST),
        Value::Text(text) => Quantity::parse(text).map_err(|error| not_read(key, node, text, &error))?,
        _ => return Err(expected(key, node)),
    };
    let value = in_unit(key, node, quantity)?;
    in_range(key, node, value)
}

/// A text that is no quantity.
fn not_read(key: &Key, node: &Node, text: &str, error: &QuantityError) -> Diagnostic {
    match error {
        QuantityError::NotANumber => expected(key, node),
        QuantityError::NotFinite => Diagnostic::error(format!("`{text}` is no finite number"))
            .at(node.place)
            .help(format!("write for example `{}: {}`", key.name(), key.example())),
        QuantityError::UnknownUnit(word) => {
            let near = near_unit(word, key.unit()).map(|near| format!("did you mean `{near}`? "));
            let help = format!("{}write for example `{}: {}`", near.unwrap_or_default(), key.name(), key.example());
            Diagnostic::error(format!("`{word}` in `{text}` is no unit")).at(node.place).help(help)
        }
    }
}

/// The unit that somebody means who writes `GBps`, or misspells one that measures what the key takes.
fn near_unit(word: &str, wanted: Unit) -> Option<String> {
    let slash = word.strip_suffix("ps").map(|head| format!("{head}/s"));
    let fits = |other: &str| parse_unit(other).is_ok_and(|unit| unit.1 == wanted);
    // A unit of two parts, as a bandwidth, has no word of its own: the word may be any part.
    let has_words = unit_words().any(fits);
    let near = || nearest(word, unit_words().filter(|other| !has_words || fits(other)));
    slash.filter(|slash| fits(slash)).or_else(|| near().map(str::to_owned))
}

/// The value in the unit of the key.
fn in_unit(key: &Key, node: &Node, quantity: Quantity) -> Result<f64, Diagnostic> {
    let Quantity { value, unit } = quantity;
    let wanted = key.unit();
    let bare_is_enough = matches!(key.kind, Kind::Count { unit: Unit::TOKEN | Unit::NONE, .. } | Kind::Share);
    if unit == wanted || (unit == Unit::NONE && bare_is_enough) {
        return Ok(value);
    }
    let is_batch = key.path == super::key::KEYS[Id::GlobalBatch as usize].path;
    if is_batch && unit == Unit::TOKEN {
        return Ok(-value);
    }
    let name = key.name();
    if unit == Unit::NONE {
        let fixed = with_unit(value, wanted);
        return Err(Diagnostic::error(format!("`{name}` is {} and needs its unit", wanted.describe()))
            .at(node.place)
            .help(format!("write `{name}: {fixed}` if that is what you mean")));
    }
    Err(Diagnostic::error(format!("`{name}` is {}, not {}", wanted.describe(), unit.describe()))
        .at(node.place)
        .help(format!("write for example `{name}: {}`", key.example())))
}

/// A bare number with the unit that people most likely mean.
#[must_use]
pub fn with_unit(value: f64, unit: Unit) -> String {
    let word = unit.example().split_once(' ').map_or("", |split| split.1);
    format!("{} {word}", plain(value))
}

/// The bounds of a key.
fn in_range(key: &Key, node: &Node, value: f64) -> Result<f64, Diagnostic> {
    let name = key.name();
    let refuse = |what: &str| {
        let text = node.scalar().unwrap_or_default();
        let help = format!("write for example `{name}: {}`", key.example());
        Err(Diagnostic::error(format!("`{name}` must be {what}, not `{text}`")).at(node.place).help(help))
    };
    let size = value.abs();
    let is_batch = key.path == super::key::KEYS[Id::GlobalBatch as usize].path;
    match key.kind {
        Kind::Quantity { .. } if is_batch && value < 0.0 && node.scalar().is_some_and(|text| text.starts_with('-')) => {
            refuse("more than zero")
        }
        Kind::Quantity { .. } if is_batch && (size.fract() != 0.0 || size > MAX_COUNT * MAX_COUNT) => {
            refuse("a whole number")
        }
        Kind::Quantity { .. } if is_batch && size > 0.0 => Ok(value),
        Kind::Quantity { strict: true, .. } if value <= 0.0 => refuse("more than zero"),
        Kind::Quantity { strict: false, .. } if value < 0.0 => refuse("zero or more"),
        Kind::Count { .. } if value.fract() != 0.0 => refuse("a whole number"),
        Kind::Count { .. } if size > MAX_COUNT && key.column.is_some() => refuse("at most a thousand million"),
        Kind::Count { least, .. } if value < crate::units::real(least) => refuse(&format!("at least {least}")),
        Kind::Share if value <= 0.0 || value > 1.0 => refuse("a share above 0, at most 1"),
        Kind::Ratio if value < 1.0 => refuse("at least 1"),
        _ => Ok(value),
    }
}

/// One of a few words.
fn choice(key: &Key, node: &Node, words: &[&str]) -> Result<f64, Diagnostic> {
    let Some(text) = node.scalar() else { return Err(expected(key, node)) };
    if let Some(k) = words.iter().position(|word| *word == text) {
        return Ok(crate::units::real(k as u64));
    }
    // Megatron's order names degrees that have no place of their own here.
    if key.path == super::key::KEYS[Id::Order as usize].path {
        let known: Vec<_> = text.split('-').filter(|degree| !matches!(*degree, "cp" | "ep")).collect();
        if let Some(k) = words.iter().position(|word| *word == known.join("-")) {
            return Ok(crate::units::real(k as u64));
        }
    }
    let name = key.name();
    let foreign = FOREIGN.iter().find(|foreign| foreign.0 == text).map(|foreign| foreign.1.to_owned());
    let help = foreign.or_else(|| suggest(&text, words.iter().copied()));
    let diagnostic = Diagnostic::error(format!("`{name}` has no choice `{text}`")).at(node.place);
    Err(match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    })
}

/// `true` or `false`.
fn flag(key: &Key, node: &Node) -> Result<f64, Diagnostic> {
    match &node.value {
        Value::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        Value::Text(text) if matches!(text.to_lowercase().as_str(), "on" | "yes" | "off" | "no") => {
            let flag = matches!(text.to_lowercase().as_str(), "on" | "yes");
            Err(expected(key, node).help(format!("write `{}: {flag}`", key.name())))
        }
        _ => Err(expected(key, node)),
    }
}

/// The name of a tier.
fn tier(key: &Key, node: &Node, tiers: &[String]) -> Result<f64, Diagnostic> {
    let Value::Text(text) = &node.value else {
        let known: Vec<&str> = tiers.iter().map(String::as_str).chain(["none"]).collect();
        return Err(expected(key, node).help(format!("write one of {}", quoted(&known))));
    };
    if text == "none" {
        return Ok(-1.0);
    }
    if let Some(k) = tiers.iter().position(|tier| tier == text) {
        return Ok(crate::units::real(k as u64));
    }
    let known = tiers.iter().map(String::as_str).chain(["none"]);
    let help = if tiers.is_empty() {
        "describe the tier in `memory`: `memory: {host: {capacity: 512 GB, bandwidth: 64 GB/s}}`".to_owned()
    } else {
        suggest(text, known).unwrap_or_default()
    };
    Err(Diagnostic::error(format!("`memory` has no tier `{text}`")).at(node.place).help(help))
}

/// Reads a range: `{from: 25 GB/s, to: 400 GB/s, times: 2}` or `{..., step: 25 GB/s}`, both ends included.
///
/// # Errors
/// If a part is missing or wrong, or the end is not hit.
pub fn range(key: &Key, node: &Node, tiers: &[String]) -> Result<Vec<Written>, Diagnostic> {
    let name = key.name();
    if let Value::Map(entries) = &node.value
        && let Some((entry, later)) =
            entries.iter().find_map(|entry| Some((entry, LATER.iter().find(|later| later.0 == entry.key)?)))
    {
        let message = format!("`{name}: {{{}: ..}}` is not understood yet: {}", entry.key, later.1);
        let help = format!("write for example `{name}: {}`", key.example());
        return Err(Diagnostic::error(message).at(entry.place).help(help));
    }
    let shape = format!("write `{name}: {{from: A, to: B, times: 2}}` or `{{from: A, to: B, step: C}}`");
    let wrong = |message: String, place: Place| Diagnostic::error(message).at(place).help(shape.clone());
    if let Value::Map(entries) = &node.value
        && let Some(entry) =
            entries.iter().find(|entry| !matches!(entry.key.as_str(), "from" | "to" | "times" | "step"))
    {
        let message = format!("`{name}` takes a value, a list or a range; a range has no `{}`", entry.key);
        return Err(wrong(message, entry.place));
    }
    if !matches!(key.kind, Kind::Quantity { .. } | Kind::Count { .. } | Kind::Share | Kind::Ratio) {
        return Err(expected(key, node));
    }
    let part = |part: &str| match node.get(part) {
        Some(entry) => scalar(key, &entry.node, tiers).map(|written| (written.0, entry.node.place)),
        None => Err(wrong(format!("the range of `{name}` has no `{part}`"), node.place)),
    };
    let ((from, _), (to, end)) = (part("from")?, part("to")?);
    if !from.is_finite() || !to.is_finite() || from > to {
        return Err(wrong(format!("the range of `{name}` ends before it starts"), end));
    }
    let values = match (node.get("times"), node.get("step")) {
        (Some(times), None) => {
            let factor = match times.node.value {
                Value::Number(factor) if factor > 1.0 => factor,
                _ => return Err(wrong("`times` takes a number above 1".into(), times.node.place)),
            };
            if from <= 0.0 {
                return Err(wrong("a range with `times` starts above zero".into(), node.place));
            }
            let mut values = vec![from];
            let mut last = from;
            while last * factor <= to * (1.0 + END_TOLERANCE) {
                last *= factor;
                values.push(last);
            }
            values
        }
        (None, Some(step)) => {
            let by = scalar(key, &step.node, tiers)?.0;
            if by <= 0.0 || !by.is_finite() {
                return Err(wrong("`step` takes more than zero".into(), step.node.place));
            }
            let steps = crate::units::whole(((to - from) / by * (1.0 + END_TOLERANCE)).floor());
            if steps > MAX_RANGE {
                return Err(wrong(format!("the range of `{name}` has more than {MAX_RANGE} values"), node.place));
            }
            (0..=steps).map(|k| from + crate::units::real(k) * by).collect()
        }
        _ => return Err(wrong(format!("the range of `{name}` needs either `times` or `step`"), node.place)),
    };
    let last = values.last().copied().unwrap_or(from);
    if (last - to).abs() > END_TOLERANCE * to.abs() {
        let unit = key.unit();
        let near = human(last, unit);
        let message = format!("the range of `{name}` misses its end `{}`: its last value is `{near}`", human(to, unit));
        return Err(wrong(message, end).help(format!("write `to: {near}`, or another `from`, `times` or `step`")));
    }
    values.into_iter().map(|value| checked(key, node, value)).collect()
}

/// A value of a range, which must keep the key's bounds like any other.
fn checked(key: &Key, node: &Node, value: f64) -> Result<Written, Diagnostic> {
    if matches!(key.kind, Kind::Count { .. }) && value.fract() != 0.0 {
        let message =
            format!("the range of `{}` has the value `{}`, and it takes whole numbers", key.name(), plain(value));
        return Err(Diagnostic::error(message).at(node.place).help("choose `from` and `step` whole"));
    }
    Ok((value, human(value, key.unit())))
}
