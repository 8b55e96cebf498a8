//! `decide:`: what is compared, what is tuned, what is best.

use itertools::Itertools;

use super::expression::{Kind, Scope};
use super::refine::Refine;
use super::scope::{Direction, Names};
use super::subject::{Shown, Subject};
use crate::input::diagnostic::{Diagnostic, quoted, suggest};
use crate::input::tree::{Entry, Node, Value};

/// What is compared, what is tuned, what is best.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decide {
    /// The axes whose alternatives are compared; empty if nothing is.
    pub compare: Vec<Shown>,
    /// The columns of what is best, slowest decided last.
    pub objectives: Vec<(String, Direction)>,
    /// The compared alternative, or the measured run, that others are measured against.
    pub baseline: Option<String>,
    /// What is evaluated again, event-driven.
    pub refine: Option<Refine>,
}

impl Decide {
    /// The columns whose values tell compared alternatives apart.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        self.compare.iter().flat_map(|shown| &shown.columns).map(String::as_str).unique().collect()
    }
}

/// Reads `decide`; `fixed` are parts of the file that may be named although they may hold no axis, `anchor` is the measured run.
pub fn read(
    entries: &[Entry],
    subjects: &[Subject],
    fixed: &[String],
    names: &Names<'_>,
    columns: &[String],
    anchor: Option<&str>,
    complaints: &mut Vec<Diagnostic>,
) -> Decide {
    let mut decide = Decide::default();
    let mut baseline = None;
    for entry in entries {
        match entry.key.as_str() {
            "compare" => {
                let found = named_axes(&entry.node, subjects, &[], complaints);
                decide.compare = found.into_iter().unique_by(|shown| shown.columns.clone()).collect();
            }
            // All that is not compared is tuned anyway.
            "tune" => {
                named_axes(&entry.node, subjects, fixed, complaints);
            }
            "objectives" => decide.objectives = objectives(&entry.node, names, columns, complaints),
            "baseline" => baseline = Some(entry),
            other => {
                if let Some(later) = super::foreign::LATER.iter().find(|later| later.0 == other) {
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
        let labels = decide.compare.iter().flat_map(|shown| shown.labels.iter()).cloned().collect_vec();
        match entry.node.scalar() {
            Some(name) if labels.contains(&name) || anchor == Some(name.as_str()) => decide.baseline = Some(name),
            Some(name) => {
                let diagnostic =
                    Diagnostic::error(format!("`baseline: {name}` is not among what is compared")).at(entry.node.place);
                let help = suggest(&name, labels.iter().map(String::as_str).chain(anchor));
                complaints.push(
                    diagnostic.help(help.unwrap_or_else(|| "write what is compared: `compare: cluster`".to_owned())),
                );
            }
            None => complaints.push(Diagnostic::error("`baseline` takes a name").at(entry.node.place)),
        }
    }
    decide
}

/// The axes that one name or a list of names stands for; parts of the file without an axis stand for none.
fn named_axes(node: &Node, subjects: &[Subject], fixed: &[String], complaints: &mut Vec<Diagnostic>) -> Vec<Shown> {
    let items = if let Value::List(items) = &node.value { items } else { std::slice::from_ref(node) };
    let mut found = Vec::new();
    for item in items {
        let name = item.scalar().unwrap_or_default();
        if let Some(subject) = subjects.iter().find(|subject| subject.name == name) {
            // The last word of several paths may mean any of them; a section, or a line, means all that it holds.
            let ends = subject.axes.iter().filter(|shown| shown.path.rsplit('.').next() == Some(&name));
            let paths = ends.map(|shown| shown.path.as_str()).unique().collect_vec();
            if paths.len() > 1 {
                let diagnostic = Diagnostic::error(format!("`{name}` may be any of {}", quoted(&paths)));
                complaints.push(diagnostic.at(item.place).help(format!("write for example `{}`", paths[0])));
                continue;
            }
            found.extend(subject.axes.iter().cloned());
        } else if !fixed.contains(&name) {
            let known = subjects.iter().map(|subject| subject.name.as_str());
            let diagnostic = Diagnostic::error(format!("`{name}` is no axis of this sweep")).at(item.place);
            let help =
                suggest(&name, known).unwrap_or_else(|| "the sweep has no axis: write a list somewhere".to_owned());
            complaints.push(diagnostic.help(help));
        }
    }
    found
}

/// The column of the table that a name stands for, if it holds numbers.
pub(super) fn column_of(name: &str, names: &Names<'_>, columns: &[String]) -> Option<String> {
    let (_, Kind::Number(unit)) = names.name(name)? else { return None };
    let suffixed = super::column::with_suffix(name, unit);
    columns.iter().find(|column| *column == name || **column == suffixed).cloned()
}

/// `objectives: {column: min | max}`.
pub(super) fn objectives(
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
        if let Some(column) = column_of(&entry.key, names, columns) {
            found.push((column, direction));
        } else if let Some(later) = super::foreign::LATER.iter().find(|later| later.0 == entry.key) {
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
