//! What we know of published runs beside their rows: words of their sources, machines, models, what each group ran on.

use std::sync::OnceLock;

use super::table::Table;
use crate::sweep::preset;
use crate::workload::Model;

/// A file beside the shipped measurements.
macro_rules! shipped {
    ($name:literal) => {
        include_str!(concat!("../../../tests/data/measured/", $name))
    };
}
pub(in crate::run) use shipped;

/// Our tables.
#[derive(Debug)]
pub struct Known {
    words: Table,
    machines: Table,
    models: Table,
    groups: Table,
}

/// What a machine is in the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The preset of its NPU.
    pub npu: String,
    /// The presets of its links, innermost first.
    pub links: Vec<String>,
}

/// What stands between the links of an interconnect.
const AND: char = '+';

impl Known {
    /// Our tables, read once.
    #[must_use]
    pub fn tables() -> &'static Self {
        static TABLES: OnceLock<Known> = OnceLock::new();
        TABLES.get_or_init(|| Self {
            words: Table::of_ours(shipped!("words.csv")),
            machines: Table::of_ours(shipped!("machines.csv")),
            models: Table::of_ours(shipped!("models.csv")),
            groups: Table::of_ours(shipped!("groups.csv")),
        })
    }

    /// The language's word for what a source writes in a column: that of the first line whose word it begins with, or
    /// itself; none if it means that nothing is said.
    #[must_use]
    pub fn word(&self, column: &str, written: &str) -> Option<String> {
        let table = &self.words;
        let fits = |row: &&super::table::Row| {
            table.cell(row, "column") == Some(column)
                && table.cell(row, "written").is_some_and(|word| written.starts_with(word))
        };
        match table.rows.iter().find(fits) {
            Some(row) => table.cell(row, "meaning").map(str::to_owned),
            None => Some(written.to_owned()),
        }
    }

    /// The machine of an NPU and an interconnect as sources write them: of the first line that begins as the one does and is
    /// part of the other. None if there is no such line; an NPU without a name if the language has no such machine.
    #[must_use]
    pub fn machine(&self, npu: &str, interconnect: &str) -> Option<Machine> {
        let table = &self.machines;
        let fits = |row: &&super::table::Row| {
            npu.starts_with(table.cell(row, "gpu_type").unwrap_or_default())
                && interconnect.contains(table.cell(row, "interconnect").unwrap_or_default())
        };
        let row = table.rows.iter().find(fits)?;
        let links = links(table.cell(row, "links").unwrap_or_default());
        Some(Machine { npu: table.cell(row, "npu").unwrap_or_default().to_owned(), links })
    }

    /// The group of a row, and the keys of what it ran on: of the lines whose pattern its name begins with, the first that says
    /// something of each.
    pub fn group(&self, id: &str, has_experts: bool) -> (String, Vec<(String, String)>) {
        let table = &self.groups;
        let fits = |row: &&super::table::Row| {
            begins(id, table.cell(row, "rows").unwrap_or_default())
                && table.cell(row, "experts").is_none_or(|word| (word == "yes") == has_experts)
        };
        let rows = || table.rows.iter().filter(fits);
        let group = rows().next().and_then(|row| table.cell(row, "group")).unwrap_or_default().to_owned();
        let mut said: Vec<(String, String)> = Vec::new();
        for line in rows().flat_map(|row| keys(table, row, &["rows", "experts", "group"])) {
            if said.iter().all(|known| known.0 != line.0) {
                said.push(line);
            }
        }
        (group, said)
    }

    /// The group of rows that no line but the last is for.
    #[must_use]
    pub fn rest(&self) -> &str {
        let table = &self.groups;
        table.rows.last().and_then(|row| table.cell(row, "group")).unwrap_or_default()
    }

    /// Keys that follow from what a model is called, and its attention.
    pub fn facts<'a>(&self, cell: impl Fn(&str) -> Option<&'a str>) -> Vec<(String, String)> {
        let table = &self.models;
        let fits = |row: &&super::table::Row| {
            let written = table.cell(row, "column").and_then(&cell).unwrap_or_default();
            table.cell(row, "begins").is_some_and(|begins| written.starts_with(begins))
        };
        table.rows.iter().filter(fits).flat_map(|row| keys(table, row, &["column", "begins"])).collect()
    }
}

/// The family of the models that a preset names, if it is not that of transformers.
#[must_use]
pub fn other_family(model: &str) -> Option<String> {
    let family = preset::at("model")?.get(model)?.get("family")?.node.scalar();
    family.filter(|family| Some(family.as_str()) != Model::NAMES.first().copied())
}

/// Whether a name begins with a pattern, in which `*` stands for anything.
pub(super) fn begins(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let rest = name.strip_prefix(first);
    parts.fold(rest, |rest, part| rest?.split_once(part).map(|split| split.1)).is_some()
}

/// The links of an interconnect.
#[must_use]
pub fn links(text: &str) -> Vec<String> {
    text.split(AND).map(|link| link.trim().to_owned()).filter(|link| !link.is_empty()).collect()
}

/// The keys that a line sets: its columns, but for those that say where it holds.
fn keys(table: &Table, row: &super::table::Row, conditions: &[&str]) -> Vec<(String, String)> {
    let keys = table.columns.iter().filter(|column| !conditions.contains(&column.as_str()));
    keys.filter_map(|key| Some((key.clone(), table.cell(row, key)?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_sources_are_the_languages() {
        let known = Known::tables();
        assert_eq!(known.word("gated_mlp", "1").as_deref(), Some("gated"));
        assert_eq!(known.word("zero_stage", "fsdp (zero-2-like: ..)").as_deref(), Some("2"));
        assert_eq!(known.word("zero_stage", "1").as_deref(), Some("1"));
        assert_eq!(known.word("recompute", "unstated"), None);
    }

    #[test]
    fn machines_are_presets() {
        let known = Known::tables();
        let machine = known.machine("A100-SXM-80GB", "NVLink3 + 4x100Gb Omni-Path per node").expect("a machine");
        assert_eq!((machine.npu.as_str(), machine.links.join(" ")), ("A100-SXM-80GB", "NVLink3 OPA-100x4".to_owned()));
        assert_eq!(known.machine("TPU-v4", "ICI").map(|machine| machine.npu), Some(String::new()));
        assert_eq!(known.machine("Abacus", ""), None);
    }

    #[test]
    fn a_group_is_that_of_the_first_line() {
        let known = Known::tables();
        assert_eq!(known.group("simumax-b200-x", true).0, "simumax-moe");
        assert_eq!(known.group("palm-540b", false).0, "single");
    }
}
