//! `zip:` as axes of named rows: a row sets keys of any section.

use super::axis::Axis;
use super::family;
use super::key::{Default, Id, KEYS, MAX_ZIPS, ZIPS_FROM};
use super::resolve::{Resolver, SHORT, TOP};
use super::walk::{Frame, Line, merge};
use crate::input::diagnostic::Diagnostic;
use crate::input::tree::{Entry, Value};
use crate::units::narrow;

/// How a zip is written.
pub(super) const ROWS: &str =
    "a zip is an axis of named rows: `zip: {job: {small: {model: Llama-3-8B, seq_len: 8192}, large: {...}}}`";

impl Resolver<'_> {
    /// `zip`: each name is an axis of named rows. Whether all of them have rows: if not, what is missing is not known.
    pub(super) fn zip(&mut self, lines: &[Line], frame: &mut Frame) -> bool {
        let complaints = self.walker.diagnostics.len();
        let zips = self.entries_of(lines, "zip");
        let is_no_row = |row: &&Entry| !matches!(row.node.value, Value::Map(_));
        let rows_of = |zip: &'_ Entry| if let Value::Map(rows) = &zip.node.value { rows.clone() } else { Vec::new() };
        if let Some(zip) = zips.iter().find(|zip| rows_of(zip).iter().any(|row| is_no_row(&row))) {
            let rows = rows_of(zip);
            let (name, row) = (&zip.key, rows.iter().find(is_no_row).map_or("", |row| row.key.as_str()));
            let message = format!("`{row}` is no row of the zip `{name}`: a row is a mapping of keys");
            self.complain(Diagnostic::error(message).at(zip.place).help(ROWS));
        }
        let mut has_rows = complaints == self.walker.diagnostics.len();
        self.walker.in_row = true;
        for (k, zip) in zips.iter().enumerate() {
            if k >= MAX_ZIPS {
                self.complain(Diagnostic::error(format!("a sweep has at most {MAX_ZIPS} zips")).at(zip.place));
                break;
            }
            let Value::Map(rows) = &zip.node.value else {
                self.complain(
                    Diagnostic::error(format!("the zip `{}` takes named rows, not {}", zip.key, zip.node.kind()))
                        .at(zip.node.place)
                        .help("write `small: {model: Llama-3-8B, global_batch: 512 seq}` lines"),
                );
                has_rows = false;
                continue;
            };
            if rows.is_empty() {
                self.complain(Diagnostic::error(format!("the zip `{}` is empty", zip.key)).at(zip.place));
            }
            self.zips.push(zip.key.clone());
            let slot = narrow((ZIPS_FROM + k) as u64);
            let mut alternatives = Vec::new();
            let mut sets: Vec<(&Entry, Vec<usize>)> = Vec::new();
            for row in rows {
                let mut inner = Frame::default();
                let Value::Map(keys) = &row.node.value else { continue };
                let number = self.walker.intern(&row.key);
                inner.settings.push((slot, number, row.place));
                let (row_lines, since) = (merge("", keys, &[]), self.walker.written.len());
                self.sections(&row_lines, &mut inner);
                for line in &row_lines {
                    let top = TOP.iter().any(|top| top.0 == line.0);
                    if top && !SHORT.contains(&line.0.as_str()) {
                        let message = format!("`{}` cannot stand in a row of a zip", line.0);
                        self.complain(Diagnostic::error(message).at(line.1).help("a row sets keys of sections"));
                    }
                }
                // What its family has no use for it does not lack, nor what could not be read.
                let has_failed = |slot: usize| self.walker.has_failed(slot, &inner, since);
                let is_given = |&slot: &usize| match family::of(slot) {
                    _ if has_failed(slot) => true,
                    Some(family) => has_failed(Id::Family as usize) || inner.surely_sets_of_family(slot, family),
                    None => inner.surely_sets(slot),
                };
                sets.push((row, (0..KEYS.len()).filter(is_given).collect()));
                alternatives.push(self.walker.alternative(row.key.clone(), inner));
            }
            self.rows_that_lack(&zip.key, &sets, frame);
            if !alternatives.is_empty() {
                frame.axes.push(Axis::new(zip.key.clone(), zip.place, alternatives));
            }
        }
        has_rows
    }

    /// Rows that leave out what must be written and what other rows of their zip write.
    fn rows_that_lack(&mut self, zip: &str, rows: &[(&Entry, Vec<usize>)], frame: &Frame) {
        for (slot, key) in KEYS.iter().enumerate().filter(|(_, key)| key.default == Default::Required) {
            let Some((other, _)) = rows.iter().find(|row| row.1.contains(&slot)) else { continue };
            // A model is a whole: its keys are not missing one by one.
            let what = if key.path.starts_with("model.") { "model" } else { key.path };
            let example = if what == "model" { "GPT-3-175B".to_owned() } else { key.example() };
            for (row, _) in rows.iter().filter(|row| !row.1.contains(&slot) && !frame.surely_sets(slot)) {
                if self.walker.is_unread(key.path) {
                    continue;
                }
                let message = format!("the row `{}` of `{zip}` has no `{what}`, and `{}` has", row.key, other.key);
                let help = format!("write for example `{what}: {example}`, or set it for all rows, outside");
                self.complain(Diagnostic::error(message).at(row.place).help(help));
            }
            if rows.iter().any(|row| !row.1.contains(&slot)) {
                self.walker.unread.push(what.to_owned());
            }
        }
    }
}
