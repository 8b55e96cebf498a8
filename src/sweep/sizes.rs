//! Sizes as people write them: whole numbers with `-` between them, `512-256-128`, as the authors of DLRM do [Naumov19].

use std::sync::Arc;

use super::Space;
use super::axis::Axis;
use super::key::{Id, KEYS, Key, Kind, Slot};
use super::leaf::expected;
use super::walk::{Frame, Walker, twice};
use crate::input::diagnostic::Diagnostic;
use crate::input::tree::{Node, Value};
use crate::units::{index, real, whole};

/// What stands between sizes.
const AND: char = '-';
/// The largest size.
pub(super) const MOST: u64 = 1_000_000_000;

/// The sizes that names are, by the numbers of names; none for names that are no sizes.
#[derive(Debug, Clone, Default)]
pub struct Lists(Arc<[Vec<u64>]>);

impl Lists {
    /// Of all names of a sweep.
    #[must_use]
    pub fn of(names: &[String]) -> Self {
        Self(names.iter().map(|name| read(name).unwrap_or_default()).collect())
    }

    /// The sizes of a name.
    #[must_use]
    pub fn get(&self, number: f64) -> &[u64] {
        if number.is_nan() { &[] } else { self.0.get(index(whole(number))).map_or(&[], Vec::as_slice) }
    }
}

/// The sizes of a text.
///
/// # Errors
/// The part of it that is none.
fn read(text: &str) -> Result<Vec<u64>, &str> {
    let size = |part: &str| part.parse().ok().filter(|size| (1..=MOST).contains(size));
    text.split(AND).map(str::trim).map(|part| size(part).ok_or(part)).collect()
}

/// What is wrong with a part of a text that is no size.
fn wrong(part: &str, text: &str) -> String {
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if part.is_empty() {
        format!("a size is missing in `{text}`")
    } else if is_number && part.bytes().any(|byte| byte != b'0') {
        format!("`{part}` is more than a size may be, {MOST}")
    } else {
        format!("`{part}` is no size")
    }
}

/// Sizes with other signs between them, as they should be.
fn otherwise_apart(text: &str) -> Option<String> {
    let is_apart = |sign: char| matches!(sign, ',' | ';' | '/' | 'x' | '*' | '_') || sign.is_whitespace();
    let meant: Vec<&str> = text.split(is_apart).map(str::trim).filter(|part| !part.is_empty()).collect();
    let meant = meant.join(&AND.to_string());
    (meant != text && read(&meant).is_ok()).then_some(meant)
}

/// What a list of sizes has one size for each of.
fn each_of(key: &Key) -> &'static str {
    if key.path == KEYS[Id::Rows as usize].path { "table" } else { "layer behind its input" }
}

/// How sizes are written.
fn how(key: &Key) -> String {
    format!("write whole numbers from 1 to {MOST} with `{AND}` between them: `{}: {}`", key.name(), key.example())
}

/// Lists of single sizes that look as if they were one MLP, or the rows of all tables: a list is an axis.
pub(super) fn single_sizes(space: &Space) -> Vec<Diagnostic> {
    let tables = space.base[Id::Tables as usize];
    let mut cautions = Vec::new();
    for axis in &space.axes {
        axis.visit(&mut |axis, alternative| {
            let is_first = std::ptr::eq(alternative, &raw const axis.alternatives[0]);
            let (&[slot], true) = (axis.touched.as_slice(), is_first) else { return };
            let Some(key) = KEYS.get(slot as usize).filter(|_| is_sizes(slot as usize)) else { return };
            let sizes: Vec<&str> = axis.alternatives.iter().map(|alternative| alternative.label.as_str()).collect();
            let is_rows = slot as usize == Id::Rows as usize;
            let looks_like_one = if is_rows { real(sizes.len() as u64) == tables } else { sizes.len() > 1 };
            if !looks_like_one || sizes.len() == 1 || sizes.iter().any(|size| size.contains(AND)) {
                return;
            }
            let what = if is_rows { "of equal tables each" } else { "of one layer each" };
            let name = key.name();
            let message = format!("the list of `{name}` is an axis of {} models with a `{name}` {what}", sizes.len());
            let help = format!("sizes of one model have `{AND}` between them: `{name}: {}`", sizes.join("-"));
            cautions.push(Diagnostic::caution(message).at(axis.place).help(help));
        });
    }
    cautions
}

/// Whether sizes stand in a slot.
#[must_use]
pub fn is_sizes(slot: usize) -> bool {
    KEYS.get(slot).is_some_and(|key| matches!(key.kind, Kind::Sizes { .. }))
}

impl Walker {
    /// Sizes, or a list of them.
    pub(super) fn sizes(&mut self, name: &str, slot: Slot, key: &Key, node: &Node, frame: &mut Frame) {
        let items = match &node.value {
            Value::List(items) if items.is_empty() => return self.complain(super::walk::empty(name, node.place)),
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let complaints = self.diagnostics.len();
        let mut values: Vec<(f64, String)> = Vec::new();
        for item in items {
            match sizes_of(key, item) {
                Ok(text) if values.iter().any(|known| known.1 == text) => self.complain(twice(name, &text, item.place)),
                Ok(text) => values.push((self.intern(&text), text)),
                Err(diagnostic) => self.complain(diagnostic),
            }
        }
        if complaints < self.diagnostics.len() {
            return;
        }
        match (&node.value, values.as_slice()) {
            (Value::List(_), _) => frame.axes.push(Axis::of_values(name, node.place, slot, &values)),
            (_, [(value, _)]) => frame.settings.push((slot, *value, node.place)),
            _ => {}
        }
    }
}

/// The sizes in a node, written without spaces.
fn sizes_of(key: &Key, node: &Node) -> Result<String, Diagnostic> {
    let Kind::Sizes { most } = key.kind else { return Err(expected(key, node)) };
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Number(number) if number.fract() == 0.0 && *number >= 1.0 => whole(*number).to_string(),
        _ => return Err(expected(key, node)),
    };
    let name = key.name();
    let sizes = read(&text).map_err(|part| {
        let help = otherwise_apart(&text).map(|meant| format!("sizes have `{AND}` between them: `{name}: {meant}`"));
        let message = format!("`{name}: {text}`: {}", wrong(part, &text));
        Diagnostic::error(message).at(node.place).help(help.unwrap_or_else(|| how(key)))
    })?;
    if sizes.len() > most {
        let (found, each) = (sizes.len(), each_of(key));
        let message = format!("`{name}` has {found} sizes, and at most {most} may stand there: one for each {each}");
        let help = if each == "table" {
            "many tables are described by one size, which all of them have: their mean"
        } else {
            "leave out the narrowest: they cost least"
        };
        return Err(Diagnostic::error(message).at(node.place).help(help));
    }
    Ok(sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(&AND.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_hyphen_between_them() {
        assert_eq!(read("512-256 - 128"), Ok(vec![512, 256, 128]));
        assert_eq!(read("7"), Ok(vec![7]));
        assert_eq!(read("512-x"), Err("x"));
        assert_eq!(read("512-"), Err(""));
        assert_eq!(read("0"), Err("0"));
        assert_eq!(otherwise_apart("512, 256,128").as_deref(), Some("512-256-128"));
        assert_eq!([otherwise_apart("512-x"), otherwise_apart("512-")], [None, None]);
    }
}
