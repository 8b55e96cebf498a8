//! The group file of the reference simulator: communicator groups by number, ranks in the order of their rings.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use itertools::Itertools as _;

use super::fields::{Fields, Form, open};
use crate::input::tree::{Entry, Value};
use crate::input::{Diagnostic, Remarks};
use crate::units::{narrow, whole};
use crate::workload::trace::Group;

/// From this number on, the reference's tags of a group are those of another.
const TAGS_COLLIDE: u64 = 500;

/// Whether the reference takes the path of a group file as none.
#[must_use]
pub fn is_none(path: &Path) -> bool {
    path.to_string_lossy().contains("empty")
}

/// Reads the groups of so many ranks; none if something is wrong, which is remarked.
pub fn read(path: &Path, ranks: u32, remarks: &mut Remarks) -> Option<Vec<Group>> {
    if is_none(path) {
        if path.exists() {
            let message = format!("`{}` is not read: `empty` in a path means no groups", path.display());
            remarks.say(Diagnostic::caution(message).help("give the file another name"));
        }
        return Some(Vec::new());
    }
    let node = open(path, "the group file", Form::Json, remarks)?;
    let errors = remarks.errors();
    let mut fields = Fields::new(&node, "the group file", remarks);
    let entries = if let Value::Map(entries) = &node.value { entries.as_slice() } else { &[] };
    let groups: Vec<Group> = entries.iter().filter_map(|entry| group(entry, ranks, &mut fields)).collect();
    collisions(entries, &mut fields);
    if let Some(twice) = groups.iter().duplicates_by(|group| group.id).next() {
        fields.missing(true, format!("two groups have the number {}", twice.id), "each group has a number of its own");
    }
    (remarks.errors() == errors).then_some(groups)
}

/// Says once that groups share their tags with others in the reference simulator.
fn collisions(entries: &[Entry], fields: &mut Fields<'_>) {
    let is_beyond = |entry: &&Entry| entry.key.parse::<u64>().is_ok_and(|id| id >= TAGS_COLLIDE);
    let mut beyond = entries.iter().filter(is_beyond);
    let Some(first) = beyond.next() else { return };
    let id = &first.key;
    let message = match beyond.count() {
        0 => format!("group {id} shares its tags with another group in the reference simulator"),
        more => format!("group {id} and {more} more share their tags with other groups in the reference simulator"),
    };
    fields.caution(first.place, message, format!("numbers below {TAGS_COLLIDE} have tags of their own"));
}

fn group(entry: &Entry, ranks: u32, fields: &mut Fields<'_>) -> Option<Group> {
    let id = entry.key.parse::<u64>().ok().filter(|&id| id > 0 && i32::try_from(id).is_ok());
    let Some(id) = id else {
        let message = format!("`{}` is no number of a group", entry.key);
        fields.error(entry.place, message, format!("a whole number from 1 to {}", i32::MAX));
        return None;
    };
    let Value::List(items) = &entry.node.value else {
        fields.wrong_kind(&entry.key, &entry.node, "a list of ranks");
        return None;
    };
    if items.is_empty() {
        fields.error(entry.node.place, format!("group {id} has no rank"), "a group has one rank at least");
        return None;
    }
    let mut members = Vec::with_capacity(items.len());
    let mut seen = BTreeSet::new();
    for item in items {
        let rank = match item.value {
            Value::Number(rank) if rank >= 0.0 && rank < f64::from(ranks) && rank.fract() == 0.0 => narrow(whole(rank)),
            Value::Number(rank) => {
                let message = format!("group {id} names rank {rank}, which is not there");
                fields.error(item.place, message, format!("ranks are 0 to {}", ranks.saturating_sub(1)));
                continue;
            }
            _ => {
                fields.wrong_kind(&format!("group {id}"), item, "a rank");
                continue;
            }
        };
        if !seen.insert(rank) {
            fields.error(item.place, format!("group {id} names rank {rank} twice"), "each rank once");
        }
        members.push(rank);
    }
    Some(Group { id, ranks: members })
}

/// The text of a group file.
#[must_use]
pub fn write(groups: &[Group]) -> String {
    let lines = groups.iter().map(|group| format!("  \"{}\": [{}]", group.id, group.ranks.iter().join(", ")));
    let mut text = String::new();
    let _ = write!(text, "{{\n{}\n}}\n", lines.format(",\n"));
    text
}
