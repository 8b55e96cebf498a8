//! The keys of a file of the reference simulator: opened, read by kind, each mistake remarked with its place.

use std::path::Path;

use crate::input::diagnostic::{quoted, suggest};
use crate::input::tree::{Entry, MAX_BYTES, Node, Value, parse};
use crate::input::{Diagnostic, Place, Remarks};
use crate::units::{narrow, whole};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As JSON.
    Json,
    /// As JSON, and as nothing that is only like it.
    Strict,
    /// As YAML.
    Yaml,
}

impl Form {
    /// What to do about a file that is not in its form.
    const fn help(self) -> &'static str {
        match self {
            Self::Json | Self::Strict => "the file is JSON: `{\"key\": value, \"list\": [1, 2]}`",
            Self::Yaml => "the file is YAML: `key: value` lines, lists in `[a, b]`",
        }
    }
}

/// Opens a file whose text is a mapping; none if it is not, which is remarked.
pub fn open(path: &Path, what: &str, form: Form, remarks: &mut Remarks) -> Option<Node> {
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(why) => {
            let error = Diagnostic::error(format!("cannot read {what} `{}`: {why}", path.display()));
            remarks.say(error);
            return None;
        }
    };
    let (text, is_whole) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned(), false)
        }
    };
    let source = remarks.add(path.display().to_string(), text.clone());
    let at = |line, column| Place { source, line, column, length: 1 };
    if !is_whole {
        let line = narrow(text.matches('\n').count() as u64 + 1);
        let column = narrow(text.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u64 + 1);
        remarks.say(Diagnostic::error("the file is no UTF-8 text").at(at(line, column)).help(form.help()));
        return None;
    }
    let node = match parse(&text, source) {
        Ok(node) => node,
        Err(error) => {
            remarks.say(error.help(form.help()));
            return None;
        }
    };
    if let Value::Map(_) = node.value {
        if form != Form::Yaml
            && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text)
        {
            let place = at(narrow(error.line() as u64).max(1), narrow(error.column() as u64).max(1));
            if form == Form::Strict {
                remarks.say(Diagnostic::error(format!("{what} is no JSON here")).at(place).help(form.help()));
                return None;
            }
            let caution =
                Diagnostic::caution(format!("{what} is no JSON here, and the reference simulator refuses it"));
            remarks.say(caution.at(place).help(form.help()));
        }
        return Some(node);
    }
    let place = if node.place.line == 0 { at(1, 1) } else { node.place };
    let error = Diagnostic::error(format!("{what} is {}, not keys with their values", node.kind()));
    remarks.say(error.at(place).help(form.help()));
    None
}

/// The bytes of a file that is no larger than such files are.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if metadata.len() > MAX_BYTES as u64 {
        return Err(format!("it has {} bytes, and at most {MAX_BYTES} are read", metadata.len()));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// The keys of a mapping.
#[derive(Debug)]
pub struct Fields<'a> {
    entries: &'a [Entry],
    place: Place,
    /// What the mapping is: `the system file`.
    what: &'static str,
    /// What is said of it.
    pub remarks: &'a mut Remarks,
}

impl<'a> Fields<'a> {
    /// The keys of a mapping.
    pub fn new(node: &'a Node, what: &'static str, remarks: &'a mut Remarks) -> Self {
        let entries = if let Value::Map(entries) = &node.value { entries.as_slice() } else { &[] };
        Self { entries, place: node.place, what, remarks }
    }

    /// Remarks an error at a place.
    pub fn error(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        self.remarks.say(Diagnostic::error(message).at(place).help(help));
    }

    /// Remarks a caution at a place.
    pub fn caution(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        self.remarks.say(Diagnostic::caution(message).at(place).help(help));
    }

    /// Remarks a key that is missing.
    pub fn missing(&mut self, is_error: bool, message: impl Into<String>, help: impl Into<String>) {
        let make = if is_error { Diagnostic::error } else { Diagnostic::caution };
        let diagnostic = make(message.into()).at(self.place).help(help);
        self.remarks.say(diagnostic);
    }

    /// The line of a key.
    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// A number; true and false are 1 and 0, as the reference reads them.
    pub fn number(&mut self, key: &str) -> Option<f64> {
        let node = self.get(key)?;
        self.number_of(key, node)
    }

    /// The number that a value is.
    pub fn number_of(&mut self, key: &str, node: &Node) -> Option<f64> {
        match &node.value {
            Value::Number(number) => Some(*number),
            Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
            _ => {
                self.wrong_kind(key, node, "a number");
                None
            }
        }
    }

    /// A whole number of at most 2^31 - 1, not below the least; what stands behind the point is cut off, which is remarked.
    pub fn count(&mut self, key: &str, least: u32) -> Option<u32> {
        let number = self.number(key)?;
        let place = self.get(key)?.place;
        if number.trunc() < f64::from(least) || number > f64::from(i32::MAX) {
            let message = format!("`{key}` is {number}");
            self.error(place, message, format!("a whole number from {least} to {}", i32::MAX));
            return None;
        }
        self.cut(key, place, number);
        Some(narrow(whole(number)))
    }

    /// Says that what stands behind the point of a number is cut off.
    pub fn cut(&mut self, key: &str, place: Place, number: f64) {
        if number.fract() != 0.0 {
            let message = format!("`{key}` is a whole number: {} counts as {}", number, number.trunc());
            self.caution(place, message, "the reference simulator cuts off what stands behind the point, and so do we");
        }
    }

    /// A switch: 0 and 1. The reference takes `false` as on; we do not, and say so.
    pub fn switch(&mut self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        match &node.value {
            Value::Number(number) => Some(*number != 0.0),
            Value::Bool(true) => Some(true),
            Value::Bool(false) => {
                let message = format!("`{key}` is `false`: off here, and on in the reference simulator");
                self.caution(node.place, message, "only the number 0 is off there: write 0");
                Some(false)
            }
            _ => {
                self.wrong_kind(key, node, "0 or 1");
                None
            }
        }
    }

    /// A text.
    pub fn text(&mut self, key: &str, node: &'a Node) -> Option<&'a str> {
        if let Value::Text(text) = &node.value {
            return Some(text);
        }
        self.wrong_kind(key, node, "a text");
        None
    }

    /// One of some words.
    pub fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let node = self.get(key)?;
        let text = self.text(key, node)?;
        self.word_of(key, node.place, text, words)
    }

    /// What one of some words stands for.
    pub fn word_of<T: Copy>(&mut self, key: &str, place: Place, text: &str, words: &[(&str, T)]) -> Option<T> {
        if let Some(found) = words.iter().find(|word| word.0 == text) {
            return Some(found.1);
        }
        let known: Vec<&str> = words.iter().map(|word| word.0).collect();
        let help = suggest(text, known.iter().copied()).unwrap_or_else(|| format!("one of {}", quoted(&known)));
        self.error(place, format!("`{key}` knows no `{text}`"), help);
        None
    }

    /// The values of a list.
    pub fn list(&mut self, key: &str) -> Option<&'a [Node]> {
        let node = self.get(key)?;
        if let Value::List(items) = &node.value {
            return Some(items);
        }
        let written = node.scalar().unwrap_or_else(|| "a, b".to_owned());
        self.error(node.place, format!("`{key}` is {}, not a list", node.kind()), format!("write `[{written}]`"));
        None
    }

    /// Says that a value is of another kind.
    pub fn wrong_kind(&mut self, key: &str, node: &Node, wanted: &str) {
        let written = node.scalar().map(|text| format!(" `{text}`")).unwrap_or_default();
        self.error(node.place, format!("`{key}` is {}{written}, not {wanted}", node.kind()), format!("write {wanted}"));
    }

    /// Says of every key that nobody reads that it counts for nothing.
    pub fn unknown(&mut self, known: &[&str]) {
        for entry in self.entries {
            if !known.contains(&entry.key.as_str()) {
                let message = format!("{} has no key `{}`: it counts for nothing", self.what, entry.key);
                let caution = Diagnostic::caution(message).at(entry.place);
                let near = crate::input::diagnostic::nearest(&entry.key, known.iter().copied());
                let help = near.map_or("the reference simulator does not read it either".to_owned(), |near| {
                    format!("did you mean `{near}`? The reference simulator says nothing")
                });
                self.remarks.say(caution.help(help));
            }
        }
    }
}

/// The number of a text such that what is made of it is the target; the nearest there is, with as few digits as can be.
#[must_use]
pub fn inverse(target: f64, guess: f64, made: impl Fn(f64) -> f64) -> f64 {
    const NEAR: usize = 4;
    let below = std::iter::successors(Some(guess), |it| Some(it.next_down())).take(NEAR);
    let above = std::iter::successors(Some(guess.next_up()), |it| Some(it.next_up())).take(NEAR);
    let exact = below.chain(above).filter(|&it| made(it) == target);
    exact.min_by_key(|it| it.to_string().len()).unwrap_or(guess)
}

/// A number as JSON has it: without a point if it is whole.
#[must_use]
pub fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { crate::units::signed(value).into() } else { value.into() }
}

/// How many there are of something: `1 dimension`, `2 dimensions`.
#[must_use]
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
