//! What is worth knowing before a sweep runs: names used nowhere, alternatives that are the same, defaults in force.

use super::Space;
use super::axis::{Alternative, Setting};
use super::diagnostic::Diagnostic;
use super::key::{self, Default, KEYS, NAMES_FROM, Slot};
use super::resolve::{Resolver, defaults};
use super::tree::Entry;
use crate::units::{human, index, narrow, plain, whole};

impl Resolver<'_> {
    /// What is worth knowing.
    pub(super) fn cautions(&self, space: &Space, defined: &[Entry]) -> Vec<Diagnostic> {
        let mut cautions = Vec::new();
        for entry in defined {
            if !self.walker.used_define.contains(&entry.key) {
                let message = format!("`define.{}` is used nowhere", entry.key);
                cautions.push(
                    Diagnostic::caution(message).at(entry.place).help("name it where a mapping stands, or remove it"),
                );
            }
        }
        // Values of one key are told apart when they are read; alternatives of several are not.
        for axis in space.axes.iter().filter(|axis| axis.touched.len() > 1) {
            for (k, alternative) in axis.alternatives.iter().enumerate() {
                let content = |alternative: &Alternative| {
                    let settings = alternative.settings.iter().filter(|setting| (setting.slot as usize) < NAMES_FROM);
                    let mut settings: Vec<(Slot, u64)> =
                        settings.map(|setting: &Setting| (setting.slot, setting.value.to_bits())).collect();
                    settings.sort_unstable();
                    settings
                };
                let same =
                    |other: &&Alternative| content(other) == content(alternative) && other.axes == alternative.axes;
                if let Some(other) = axis.alternatives[..k].iter().find(same) {
                    let message = format!(
                        "`{}` and `{}` of `{}` are the same: their points have the same ids",
                        other.label, alternative.label, axis.name
                    );
                    cautions.push(Diagnostic::caution(message).at(axis.place));
                }
            }
        }
        cautions
    }
}

/// Keys that nobody wrote, with what is in force.
pub(super) fn defaults_in_force(space: &Space, is_collective: bool) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let unwritten = defaults();
    for (slot, key) in KEYS.iter().enumerate() {
        let of_training =
            key.path.starts_with("plan.") || key.path.starts_with("model.") || key.path.starts_with("precision.");
        let touched = space.axes.iter().any(|axis| axis.touched.contains(&narrow(slot as u64)));
        let same = space.base[slot].to_bits() == unwritten[slot].to_bits();
        if touched || !same || (of_training && is_collective) {
            continue;
        }
        let text = match (key.default, key.kind) {
            (Default::Is(value), key::Kind::Choice(words)) => words[index(whole(value))].to_owned(),
            (Default::Is(value), key::Kind::Flag) => (value == 1.0).to_string(),
            (Default::Is(_), key::Kind::Tier) => "none".to_owned(),
            (Default::Is(value), key::Kind::Share) => plain(value),
            (Default::Is(value), _) => human(value, key.unit()),
            (Default::Rest, _) => "rest".to_owned(),
            (Default::Like(other), _) => format!("as {other}"),
            (Default::Required | Default::Absent, _) => continue,
        };
        found.push((key.path, text));
    }
    found
}
