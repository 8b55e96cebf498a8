//! `decide:`: what is compared, what is tuned, what is best.

use super::diagnostic::{Diagnostic, suggest};
use super::expression::{Kind, Scope};
use super::scope::{Direction, Names};
use super::tree::{Entry, Node, Value};

/// What is compared, what is tuned, what is best.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decide {
    /// The columns whose values tell compared alternatives apart; empty if nothing is compared.
    pub compare: Vec<String>,
    /// The columns of what is best, slowest decided last.
    pub objectives: Vec<(String, Direction)>,
    /// The compared alternative that others are measured against.
    pub baseline: Option<String>,
}

/// What `decide` may name: an axis or a section, and the columns that tell its values apart.
#[derive(Debug, Clone)]
pub struct Subject {
    /// As people write it.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// The labels of its alternatives.
    pub labels: Vec<String>,
}

/// Reads `decide`.
pub fn read(
    entries: &[Entry],
    subjects: &[Subject],
    names: &Names<'_>,
    columns: &[String],
    complaints: &mut Vec<Diagnostic>,
) -> Decide {
    let mut decide = Decide::default();
    let mut labels = Vec::new();
    let mut baseline = None;
    for entry in entries {
        match entry.key.as_str() {
            "compare" => {
                for subject in subjects_of(&entry.node, subjects, complaints) {
                    decide.compare.extend(subject.columns.iter().cloned());
                    labels.extend(subject.labels.iter().cloned());
                }
            }
            "tune" => {
                subjects_of(&entry.node, subjects, complaints);
            }
            "objectives" => decide.objectives = objectives(&entry.node, names, columns, complaints),
            "baseline" => baseline = Some(entry),
            other => {
                if let Some(later) = super::key::LATER.iter().find(|later| later.0 == other) {
                    complaints.push(
                        Diagnostic::error(format!("`decide.{other}` is not understood yet: {}", later.1))
                            .at(entry.place)
                            .help("this version cannot take it into account: remove the line to run without it"),
                    );
                } else {
                    let diagnostic = Diagnostic::error(format!("`decide` has no `{other}`")).at(entry.place);
                    let help = suggest(other, ["compare", "tune", "objectives", "baseline"]).unwrap_or_default();
                    complaints.push(diagnostic.help(help));
                }
            }
        }
    }
    if let Some(entry) = baseline {
        match entry.node.scalar() {
            Some(name) if labels.contains(&name) => decide.baseline = Some(name),
            Some(name) => {
                let diagnostic =
                    Diagnostic::error(format!("`baseline: {name}` is not among what is compared")).at(entry.node.place);
                let help = suggest(&name, labels.iter().map(String::as_str));
                complaints.push(
                    diagnostic.help(help.unwrap_or_else(|| "write what is compared: `compare: cluster`".to_owned())),
                );
            }
            None => complaints.push(Diagnostic::error("`baseline` takes a name").at(entry.node.place)),
        }
    }
    decide
}

/// One name or a list of names of axes.
fn subjects_of<'a>(node: &Node, subjects: &'a [Subject], complaints: &mut Vec<Diagnostic>) -> Vec<&'a Subject> {
    let one = std::slice::from_ref(node);
    let items = if let Value::List(items) = &node.value { items.as_slice() } else { one };
    let mut found = Vec::new();
    for item in items {
        let name = item.scalar().unwrap_or_default();
        if let Some(subject) = subjects.iter().find(|subject| subject.name == name) {
            found.push(subject);
        } else {
            let known = subjects.iter().map(|subject| subject.name.as_str());
            let diagnostic = Diagnostic::error(format!("`{name}` is no axis of this sweep")).at(item.place);
            let help =
                suggest(&name, known).unwrap_or_else(|| "the sweep has no axis: write a list somewhere".to_owned());
            complaints.push(diagnostic.help(help));
        }
    }
    found
}

/// `objectives: {column: min | max}`.
fn objectives(
    node: &Node,
    names: &Names<'_>,
    columns: &[String],
    complaints: &mut Vec<Diagnostic>,
) -> Vec<(String, Direction)> {
    let Value::Map(entries) = &node.value else {
        complaints.push(
            Diagnostic::error(format!("`objectives` takes a mapping, not {}", node.kind()))
                .at(node.place)
                .help("write `objectives: {iteration_time: min, npus: min}`"),
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let direction = match entry.node.scalar().as_deref() {
            Some("min") => Direction::Min,
            Some("max") => Direction::Max,
            _ => {
                complaints.push(
                    Diagnostic::error(format!("the objective `{}` takes `min` or `max`", entry.key))
                        .at(entry.node.place)
                        .help(format!("write `{}: min` if less is better", entry.key)),
                );
                continue;
            }
        };
        let column = names.name(&entry.key).and_then(|(_, kind)| match kind {
            Kind::Number(unit) => {
                let suffixed = super::column::with_suffix(&entry.key, unit);
                columns.iter().find(|column| **column == entry.key || **column == suffixed).cloned()
            }
            _ => None,
        });
        if let Some(column) = column {
            found.push((column, direction));
        } else if let Some(later) = super::key::LATER.iter().find(|later| later.0 == entry.key) {
            complaints.push(
                Diagnostic::error(format!("the objective `{}` is not understood yet: {}", entry.key, later.1))
                    .at(entry.place)
                    .help("this version cannot take it into account: remove it to run without it"),
            );
        } else {
            let diagnostic = Diagnostic::error(format!("`{}` is no number of the table", entry.key)).at(entry.place);
            let help = suggest(&entry.key, columns.iter().map(String::as_str)).unwrap_or_default();
            complaints.push(diagnostic.help(help));
        }
    }
    found
}
