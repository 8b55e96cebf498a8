//! The frozen file: the sweep as it was asked, overrides applied, with every preset and every file it uses, as YAML.

use std::fmt::Write as _;

use super::key::{Id, KEYS};
use super::outside::{Named, RELATIVE_TO, names_files};
use super::preset;
use super::walk::Walker;
use crate::input::tree::{Entry, Node, Value};

/// The file as YAML, with the used presets and files among its definitions.
#[must_use]
pub fn freeze(entries: &[Entry], overrides: &[Entry], walker: &Walker) -> String {
    // From which folder paths go is said by who writes the file: it stands elsewhere.
    let mut lines: Vec<Entry> = entries.iter().filter(|entry| entry.key != RELATIVE_TO).cloned().collect();
    for entry in overrides.iter().filter(|entry| entry.key != RELATIVE_TO) {
        match lines.iter_mut().find(|line| line.key == entry.key) {
            Some(line) => *line = entry.clone(),
            None => lines.push(entry.clone()),
        }
    }
    let mut presets: Vec<Entry> = walker.used.iter().filter_map(|(kind, name)| preset_entry(kind, name)).collect();
    let names = || walker.files.iter().flat_map(|named| &named.names);
    presets.extend(walker.define.iter().filter(|entry| names().any(|name| *name == entry.key)).cloned());
    presets.dedup_by(|a, b| a.key == b.key);
    name_files(&mut lines, &walker.files);
    presets.sort_by(|a, b| a.key.cmp(&b.key));
    match lines.iter_mut().find(|line| line.key == "define") {
        Some(line) => {
            if let Value::Map(defined) = &mut line.node.value {
                presets.retain(|preset| defined.iter().all(|entry| entry.key != preset.key));
                defined.extend(presets);
            }
        }
        None if presets.is_empty() => {}
        None => {
            let place = lines.first().map_or_else(Default::default, |line| line.place);
            let node = Node { value: Value::Map(presets), place };
            lines.push(Entry { key: "define".into(), place, node });
        }
    }
    if let Some(bandwidth) = walker.memory_bandwidth {
        let place = lines.first().map_or_else(Default::default, |line| line.place);
        let node = Node { value: Value::Text(format!("{bandwidth} B/s")), place };
        lines.push(Entry { key: KEYS[Id::LocalBandwidth as usize].path.to_owned(), place, node });
    }
    let mut text = String::new();
    write_map(&mut text, &lines, 0);
    text
}

/// The line that says from which folder paths go.
#[must_use]
pub fn relative_to(folder: &str) -> String {
    format!("{RELATIVE_TO}: {}\n", quote(folder))
}

/// Puts the names of files' mappings in the place of their paths.
fn name_files(entries: &mut [Entry], files: &[Named]) {
    for entry in entries {
        if names_files(&entry.key) {
            name_file(entry, files);
            continue;
        }
        match &mut entry.node.value {
            Value::Map(entries) => name_files(entries, files),
            Value::List(items) => {
                for item in items {
                    if let Value::Map(entries) = &mut item.value {
                        name_files(entries, files);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The same of one key.
fn name_file(entry: &mut Entry, files: &[Named]) {
    let place = entry.node.place;
    let patterns = match &entry.node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let of = |pattern: &Node| files.iter().find(|named| Some(&named.pattern) == pattern.scalar().as_ref());
    let names = patterns.iter().filter_map(of).flat_map(|named| &named.names);
    let names: Vec<Node> = names.map(|name| Node { value: Value::Text(name.clone()), place }).collect();
    entry.node = match names.as_slice() {
        [] => return,
        [name] => name.clone(),
        _ => Node { value: Value::List(names), place },
    };
    "preset".clone_into(&mut entry.key);
}

fn preset_entry(kind: &str, name: &str) -> Option<Entry> {
    let kind = preset::kinds().iter().find(|known| known.name == kind)?;
    kind.presets.iter().find(|entry| entry.key == name).cloned()
}

/// Mappings two levels deep are blocks; deeper ones are flows, a line each.
const BLOCK_DEPTH: usize = 2;

fn write_map(text: &mut String, entries: &[Entry], depth: usize) {
    for entry in entries {
        let _ = write!(text, "{:indent$}{}:", "", quote(&entry.key), indent = 2 * depth);
        match &entry.node.value {
            Value::Map(inner) if depth < BLOCK_DEPTH && !inner.is_empty() => {
                text.push('\n');
                write_map(text, inner, depth + 1);
            }
            _ => {
                text.push(' ');
                write_flow(text, &entry.node);
                text.push('\n');
            }
        }
    }
}

fn write_flow(text: &mut String, node: &Node) {
    match &node.value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::Text(words) => text.push_str(&quote(words)),
        Value::List(items) => {
            text.push('[');
            for (k, item) in items.iter().enumerate() {
                text.push_str(if k == 0 { "" } else { ", " });
                write_flow(text, item);
            }
            text.push(']');
        }
        Value::Map(entries) => {
            text.push('{');
            for (k, entry) in entries.iter().enumerate() {
                let _ = write!(text, "{}{}: ", if k == 0 { "" } else { ", " }, quote(&entry.key));
                write_flow(text, &entry.node);
            }
            text.push('}');
        }
    }
}

/// A text as YAML: bare where that is safe, else in double quotes.
fn quote(words: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '$' | '(' | ')');
    let starts = words.starts_with(|c: char| c.is_ascii_alphabetic());
    let reserved =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&words.to_lowercase().as_str());
    let quantity = crate::units::Quantity::parse(words).is_ok() && words.contains(' ');
    if words.chars().all(safe) && (starts || quantity) && !reserved && !words.ends_with(' ') {
        words.to_owned()
    } else {
        let escaped = words.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        format!("\"{escaped}\"")
    }
}
