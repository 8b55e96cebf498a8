//! A measured run: one row of a table of measurements, its cells checked, its words translated.

use std::collections::BTreeMap;

use super::columns::{COLUMNS, Column, Holds};
use super::known::{Known, other_family};
use super::table::{Row, Table};
use crate::input::{Diagnostic, Place, Remarks};
use crate::units::whole;

/// The largest count that a cell may hold.
const MOST: f64 = 1e15;
/// The column, and the key, of the software stack.
const SOFTWARE: &str = "software";

/// One measured run.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Its name.
    pub id: String,
    /// The source that it came from: see `groups.csv`.
    pub group: String,
    /// The columns that are not empty, by name; words are the language's.
    cells: BTreeMap<&'static str, String>,
    /// Keys of a sweep that the row sets, besides those of its columns: key and value.
    pub keys: Vec<(String, String)>,
    /// Where its cells stand.
    places: BTreeMap<String, Place>,
    line: Place,
}

/// Reads the measurements of a text.
///
/// # Errors
/// Every mistake, with its line, its column and what was expected.
pub fn read(name: &str, text: &str, known: &Known) -> Result<Vec<Measurement>, Remarks> {
    let mut remarks = Remarks::default();
    let source = remarks.add(name.to_owned(), text.to_owned());
    let table = match Table::read(text, source) {
        Ok(table) => table,
        Err(error) => {
            remarks.say(error);
            return Err(remarks);
        }
    };
    let is_other = |row: &Row| table.cell(row, "model").and_then(other_family).is_some();
    let are_others = !table.rows.is_empty() && table.rows.iter().all(is_other);
    for column in COLUMNS.iter().filter(|column| column.is_needed(are_others) && table.column(column.name).is_none()) {
        remarks.say(table.lacks(column.name, column.doc));
    }
    let mut found: Vec<Measurement> = Vec::new();
    let mut ids = BTreeMap::new();
    for row in &table.rows {
        let measurement = Measurement::of(&table, row, known, &mut remarks);
        if let Some(line) = ids.insert(measurement.id.clone(), measurement.line.line) {
            let message = format!("the row `{}` is there twice: here and in line {line}", measurement.id);
            remarks.say(Diagnostic::error(message).at(measurement.place("row_id")).help("every row has another name"));
        }
        found.push(measurement);
    }
    if remarks.errors() == 0 { Ok(found) } else { Err(remarks) }
}

impl Measurement {
    fn of(table: &Table, row: &Row, known: &Known, remarks: &mut Remarks) -> Self {
        let mut cells = BTreeMap::new();
        let mut places = BTreeMap::new();
        for column in COLUMNS {
            let Some(text) = table.cell(row, column.name) else { continue };
            let place = table.place(row, column.name);
            places.insert(column.name.to_owned(), place);
            match read_cell(column, text, known) {
                Ok(Some(value)) => _ = cells.insert(column.name, value),
                Ok(None) => {}
                Err(expected) => {
                    let message = format!("`{}` takes {expected}, not `{text}`", column.name);
                    remarks.say(Diagnostic::error(message).at(place).help(column.doc));
                }
            }
        }
        let id = cells.get("row_id").cloned().unwrap_or_default();
        if id.is_empty() {
            let message = "the row has no `row_id`";
            remarks.say(Diagnostic::error(message).at(table.place(row, "row_id")).help("give it a name of its own"));
        }
        let has_experts = cells.get("experts").is_some_and(|experts| experts != "0");
        let (group, ran_on) = known.group(&id, has_experts);
        let mut keys = known.facts(|column| cells.get(column).map(String::as_str));
        keys.extend(ran_on);
        // What the row says itself goes over what our tables say of its kind.
        keys.extend(cells.get(SOFTWARE).map(|software| (SOFTWARE.to_owned(), software.clone())));
        let is_key = |column: &&String| super::question::has_word(column);
        let is_ours = |column: &&String| COLUMNS.iter().any(|ours| ours.name == column.as_str());
        for column in table.columns.iter().filter(|column| is_key(column) && !is_ours(column)) {
            if let Some(text) = table.cell(row, column) {
                places.insert(column.clone(), table.place(row, column));
                keys.push((column.clone(), text.to_owned()));
            }
        }
        let line = table.place(row, "");
        Self { id, group, cells, keys, places, line }
    }

    /// The text of a column, if it is not empty.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column).map(String::as_str)
    }

    /// The number of a column, if it is not empty.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok()
    }

    /// The count of a column, if it is not empty.
    #[must_use]
    pub fn count(&self, column: &str) -> Option<u64> {
        self.number(column).map(whole)
    }

    /// The place of a column's cell, or of a key's; of the row if it has none.
    #[must_use]
    pub fn place(&self, column: &str) -> Place {
        self.places.get(column).copied().unwrap_or(self.line)
    }

    /// Whether the row itself says something, and no table of ours.
    #[must_use]
    pub fn says(&self, column: &str) -> bool {
        self.places.contains_key(column)
    }

    /// The family of its model, if it is not that of transformers.
    #[must_use]
    pub fn other_family(&self) -> Option<String> {
        self.text("model").and_then(other_family)
    }

    /// The needed columns that are empty.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let is_other = self.other_family().is_some();
        let is_empty = |column: &&Column| column.is_needed(is_other) && !self.cells.contains_key(column.name);
        COLUMNS.iter().filter(is_empty).map(|column| column.name).collect()
    }

    /// Seconds of a step: as given, or as follows from tokens a second, or from arithmetic a second on an NPU of a `peak` rate.
    ///
    /// ```text
    /// T = B s / (r N)
    /// T = c B s l h^2 (1 + s / (6 h) + V / (16 l h)) / (R N)                                  [Narayanan21]
    /// ```
    ///
    /// B sequences of s tokens, r tokens a second of each of N NPUs, l layers of width h, V words; R the rate of an NPU. c is
    /// 96 where R counts a full recomputation, and 72 where it does not, as MFU never does. The second holds for an MLP of
    /// four times the width and two matrices, and for as many key heads as query heads.
    ///
    /// Worked: B = 1, s = 2048, l = 96, h = 12288, V = 51200 take 72 * 2048 * 96 * 12288^2 * 1.030490 = 2.2026e15
    /// operations: on one NPU at 100 TFLOP/s 22.03 s.
    #[must_use]
    pub fn step_seconds(&self, peak: f64) -> Option<f64> {
        /// Operations a token, layer and squared width, forward and backward.
        const WITHOUT: f64 = 72.0;
        /// The same, with a second forward pass.
        const WITH: f64 = 96.0;
        if let Some(seconds) = self.number("measured_step_s") {
            return Some(seconds);
        }
        // What has no sequences has samples of one token.
        let length = self.number("seq").or_else(|| self.other_family().map(|_| 1.0));
        let [batch, length, npus] = [self.number("global_batch")?, length?, self.number("gpus")?];
        if let Some(rate) = self.number("tokens_per_s_per_gpu") {
            return Some(batch * length / (rate * npus));
        }
        let [layers, hidden, vocab] = [self.number("layers")?, self.number("hidden")?, self.number("vocab")?];
        let is_plain =
            self.text("gated_mlp") == Some("gelu") && self.number("experts").is_none_or(|experts| experts == 0.0);
        let work = batch * length * layers * hidden * hidden;
        let work = work * (1.0 + length / (6.0 * hidden) + vocab / (16.0 * layers * hidden));
        let from_rate = || {
            let counted = if self.text("recompute") == Some("full") { WITH } else { WITHOUT };
            Some(counted * work / (self.number("measured_tflops_gpu")? * 1e12 * npus))
        };
        let from_mfu = || Some(WITHOUT * work / (self.number("measured_mfu_pct")? / 100.0 * peak * npus));
        from_rate().or_else(from_mfu).filter(|_| is_plain)
    }

    /// How many NPUs share the innermost link: as many as the links join that divide the job.
    #[must_use]
    pub fn inner_size(&self, joined: u64) -> u64 {
        let npus = self.count("gpus").unwrap_or(1);
        (1..=joined.min(npus)).rev().find(|&size| npus.is_multiple_of(size)).unwrap_or(1)
    }
}

/// The value of a cell; none if it says that there is none. Or what was expected.
fn read_cell(column: &Column, text: &str, known: &Known) -> Result<Option<String>, &'static str> {
    let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    match column.holds {
        Holds::Text => Ok(Some(text.to_owned())),
        Holds::Word => Ok(known.word(column.name, text)),
        Holds::Count => match number() {
            Some(count) if count.fract() == 0.0 && (0.0..MOST).contains(&count) => Ok(Some(format!("{count:.0}"))),
            _ => Err("a whole number"),
        },
        Holds::Number => match number() {
            Some(number) if number > 0.0 => Ok(Some(text.to_owned())),
            _ => Err("a number above 0"),
        },
    }
}
