//! A file as a tree: every value with its place, read by `serde-saphyr`, no meaning yet.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::diagnostic::{Diagnostic, Place, Source};
use crate::units::narrow;

/// The largest sweep file that is read: bigger ones are mistakes.
pub const MAX_BYTES: usize = 4 << 20;

/// How many nodes a sweep file may have, aliases expanded.
const MAX_NODES: usize = 1_000_000;

/// A value of the file and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What is written.
    pub value: Value,
    /// Where.
    pub place: Place,
}

/// A value of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing is written.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A bare number.
    Number(f64),
    /// Any other scalar.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<Entry>),
}

/// A line of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Node {
    /// What kind of value it is, for messages: `a list`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The scalar as it would be written, for messages; none for lists and mappings.
    #[must_use]
    pub fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Text(text) => Some(text.clone()),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The entry of a mapping.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// A mapping whose keys with dots are mappings in mappings: `npu.power: 1` reaches down.
    ///
    /// A key with a dot goes over what its first part says elsewhere in the same mapping: see `walk`.
    #[must_use]
    pub fn split_dots(entry: &Entry) -> (String, Option<Self>) {
        match entry.key.split_once('.') {
            None => (entry.key.clone(), None),
            Some((head, rest)) => {
                let inner = Entry { key: rest.to_owned(), place: entry.place, node: entry.node.clone() };
                let value = Value::Map(vec![inner]);
                (head.to_owned(), Some(Self { value, place: entry.node.place }))
            }
        }
    }

    fn set_source(&mut self, source: Source) {
        self.place.source = source;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.set_source(source)),
            Value::Map(entries) => {
                for entry in entries {
                    entry.place.source = source;
                    entry.node.set_source(source);
                }
            }
            _ => {}
        }
    }
}

/// Reads a YAML text.
///
/// # Errors
/// One diagnostic with its place if the text is no YAML, has a key twice, or expands beyond a million nodes.
pub fn parse(text: &str, source: Source) -> Result<Node, Diagnostic> {
    let start = Place { source, line: 1, column: 1, length: 1 };
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; a sweep file has at most {MAX_BYTES}", text.len());
        return Err(Diagnostic::error(message)
            .at(start)
            .help("give the name of a sweep file, not of a result or a trace"));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES, max_events: 3 * MAX_NODES },
    };
    match serde_saphyr::from_str_with_options::<Spanned<Node>>(text, options) {
        Ok(spanned) => {
            let mut node = spanned.value;
            node.place = place_of(&spanned.referenced);
            node.set_source(source);
            Ok(node)
        }
        Err(error) => {
            let mut place = error.location().map_or(start, |location| Place { source, ..place_of(&location) });
            let said = describe(&error);
            let (message, help) = in_our_words(&said).unwrap_or((said, FORM));
            if message == TAB {
                place = tab(text).map_or(place, |(line, column)| Place { line, column, length: 1, source });
            }
            Err(Diagnostic::error(message).at(place).help(help))
        }
    }
}

/// The message of the parser, without the place that we show ourselves.
fn describe(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = text.split(" at line ").next().unwrap_or(text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = match text.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest,
        _ => text,
    };
    text.to_owned()
}

/// What is said of a tab.
const TAB: &str = "a tab stands where YAML wants spaces";
/// What to do about a mistake of form.
const FORM: &str = "a sweep file is YAML: `key: value` lines, indented with spaces, lists in `[a, b]`";

/// The parser's words for the mistakes that people make, as we say them, and what to do.
fn in_our_words(said: &str) -> Option<(String, &'static str)> {
    if let Some(rest) = said.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(',').next().unwrap_or(rest);
        let message = format!("duplicate key: `{key}` stands twice in its mapping");
        return Some((message, "a key stands once in its mapping: remove one of the two lines"));
    }
    let ours: &[(&str, &str, &str)] = &[
        (
            "budget breached",
            "the file grows beyond any limit when its aliases are written out",
            "aliases (`*name`) that repeat each other grow beyond any size: write the values out",
        ),
        (
            "alias replay limit",
            "the file grows beyond any limit when its aliases are written out",
            "aliases (`*name`) that repeat each other grow beyond any size: write the values out",
        ),
        ("a tab", TAB, "indent with spaces"),
        ("tabs", TAB, "indent with spaces"),
        (
            "multiple YAML documents",
            "a second document begins here",
            "a sweep file is one document: remove the line `---`, or make two files",
        ),
        (
            "unknown anchor",
            "the alias refers to nothing",
            "a name that stands for a mapping is `define: {name: {...}}` and then `name`; a `*` makes a YAML alias",
        ),
        (
            "unexpected character",
            "a character that no text has stands here",
            "a sweep file is YAML in UTF-8, as an editor writes it",
        ),
        ("unclosed bracket", "a bracket is opened here and closed nowhere", "close it: `[a, b]`, `{key: value}`"),
    ];
    let found = ours.iter().find(|(words, ..)| said.contains(words))?;
    Some((found.1.to_owned(), found.2))
}

/// The first tab in an indentation: its line and column.
fn tab(text: &str) -> Option<(u32, u32)> {
    text.lines().enumerate().find_map(|(k, line)| {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        let column = line[..blanks].find('\t')?;
        Some((narrow(k as u64 + 1), narrow(column as u64 + 1)))
    })
}

fn place_of(location: &serde_saphyr::Location) -> Place {
    Place {
        source: Source::File,
        line: narrow(location.line()).max(1),
        column: narrow(location.column()).max(1),
        length: narrow(location.span().len()).max(1),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_any(ValueVisitor)?;
        Ok(Self { value, place: Place::default() })
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "numbers of a sweep are `f64`")]
        Ok(Value::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(crate::units::real(number)))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        if number.is_finite() { Ok(Value::Number(number)) } else { Err(E::custom("a number must be finite")) }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Node>>()? {
            list.push(Node { place: place_of(&item.referenced), ..item.value });
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map: Vec<Entry> = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<Node>>()? {
            let place = place_of(&key.referenced);
            let name = key.value.scalar().ok_or_else(|| A::Error::custom("a key must be a word"))?;
            let item = entries.next_value::<Spanned<Node>>()?;
            let node = Node { place: place_of(&item.referenced), ..item.value };
            map.push(Entry { key: name, place, node });
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_with_its_places() {
        let text = "{\n\t\"a\":1,\"b\" : [true,2.5e1, \"x\\u00e9\\/\"],\r\n \"c\":{\"d\":null},\"1\":[0,1,-2]\n}\n";
        let node = parse(text, Source::Input(3)).expect("a tree");
        let at = |node: &Node| (node.place.line, node.place.column, node.place.length);
        let b = &node.get("b").expect("a key").node;
        let Value::List(items) = &b.value else { panic!("{b:?}") };
        assert_eq!(items.iter().map(at).collect::<Vec<_>>(), [(2, 15, 4), (2, 20, 5), (2, 27, 11)]);
        assert_eq!(items[2].value, Value::Text("x\u{e9}/".to_owned()));
        assert_eq!(at(&node.get("1").expect("a key").node), (3, 21, 1));
        assert_eq!(b.place.source, Source::Input(3));
    }
}
