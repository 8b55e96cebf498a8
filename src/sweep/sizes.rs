//! Sizes as people write them: whole numbers with `-` between them, `512-256-128`, as the authors of DLRM do [Naumov19].

use std::sync::Arc;

use super::axis::Axis;
use super::key::{KEYS, Key, Kind, Slot};
use super::leaf::expected;
use super::walk::{Frame, Walker, twice};
use crate::input::diagnostic::Diagnostic;
use crate::input::tree::{Node, Value};
use crate::units::{index, whole};

/// What stands between sizes.
const AND: char = '-';
/// The largest size.
const MOST: u64 = 1_000_000_000;

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
    let sizes = read(&text).map_err(|part| {
        let what =
            if part.is_empty() { format!("a size is missing in `{text}`") } else { format!("`{part}` is no size") };
        let help = format!("write whole numbers from 1 with `{AND}` between them: `{}: {}`", key.name(), key.example());
        Diagnostic::error(format!("`{}: {text}`: {what}", key.name())).at(node.place).help(help)
    })?;
    if sizes.len() > most {
        let message = format!("`{}` has {} sizes, and there may be {most}", key.name(), sizes.len());
        let help = "many tables are described by one size, which all of them have: their mean";
        let diagnostic = Diagnostic::error(message).at(node.place);
        return Err(if key.name() == "rows" { diagnostic.help(help) } else { diagnostic });
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
    }
}
