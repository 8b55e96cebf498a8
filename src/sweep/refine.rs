//! `refine:`: which points of a closed-form sweep are evaluated again, event-driven.

use super::decide::{column_of, objectives};
use super::scope::{Direction, MetricWord, Names};
use crate::input::diagnostic::{Diagnostic, suggest};
use crate::input::tree::{Entry, Node, Value};

/// How many of the best are evaluated again if nobody says so.
const TOP: u64 = 10;
/// How many may be.
const MOST: u64 = 1_000_000;

/// What is evaluated again: the front, and the best by one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Refine {
    /// How many of the best.
    pub top: u64,
    /// The column by which they are the best.
    pub by: (String, Direction),
}

/// Reads the lines of `refine`; the first objective is what is best if they do not say.
pub(super) fn read(
    entries: &[Entry],
    first_objective: &(String, Direction),
    names: &Names<'_>,
    columns: &[String],
    complaints: &mut Vec<Diagnostic>,
) -> Refine {
    let mut refine = Refine { top: TOP, by: first_objective.clone() };
    for entry in entries {
        match entry.key.as_str() {
            "top" => match entry.node.scalar().and_then(|text| text.parse().ok()).filter(|&top| top <= MOST) {
                Some(top) => refine.top = top,
                None => complaints.push(
                    Diagnostic::error(format!("`refine.top` takes a whole number up to {MOST}"))
                        .at(entry.node.place)
                        .help(format!("write for example `top: {TOP}`; with 0 the front alone is evaluated again")),
                ),
            },
            "by" => refine.by = by(&entry.node, names, columns, complaints).unwrap_or(refine.by),
            other => {
                let diagnostic = Diagnostic::error(format!("`refine` has no `{other}`")).at(entry.place);
                let help = suggest(other, ["top", "by"]);
                complaints.push(diagnostic.help(help.unwrap_or_else(|| "write `refine: {top: 10}`".to_owned())));
            }
        }
    }
    refine
}

/// `by: METRIC`, of which it is known what is better, or `by: {COLUMN: min | max}`.
fn by(
    node: &Node,
    names: &Names<'_>,
    columns: &[String],
    complaints: &mut Vec<Diagnostic>,
) -> Option<(String, Direction)> {
    if let Value::Map(entries) = &node.value {
        if entries.len() == 1 {
            return objectives(node, names, columns, complaints).pop();
        }
        complaints.push(
            Diagnostic::error("`refine.by` takes one column").at(node.place).help("write `by: {iteration_time: min}`"),
        );
        return None;
    }
    let name = node.scalar().unwrap_or_default();
    let Some(column) = column_of(&name, names, columns) else {
        let diagnostic = Diagnostic::error(format!("`{name}` is no number of the table")).at(node.place);
        let help = suggest(&name, columns.iter().map(String::as_str));
        complaints.push(diagnostic.help(help.unwrap_or_else(|| "write `by: iteration_time`".to_owned())));
        return None;
    };
    let metric = names.metrics.iter().find(|metric: &&MetricWord| metric.column == column);
    let better = metric.and_then(|metric| metric.better);
    if better.is_none() {
        complaints.push(
            Diagnostic::error(format!("it is not known whether less or more of `{name}` is better"))
                .at(node.place)
                .help(format!("write `by: {{{name}: min}}` or `by: {{{name}: max}}`")),
        );
    }
    Some((column, better?))
}
