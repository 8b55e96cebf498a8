//! A named expression of the file: a `where`, a `require`, a `derive`.

use super::circle;
use super::column::{Column, Dtype, with_suffix};
use super::expression::{self, Expression, Kind, Scope as _};
use super::resolve::Resolver;
use super::scope::{Names, is_after};
use super::walk::Line;
use crate::input::diagnostic::{Diagnostic, Place};
use crate::input::tree::Entry;
use crate::units::{Unit, narrow};

/// A named expression.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// As written, with single blanks.
    pub text: String,
    /// Where its name stands.
    pub name_place: Place,
    /// Where it stands.
    pub place: Place,
    /// Compiled.
    pub expression: Expression,
}

impl Rule {
    /// Whether it is true or false.
    #[must_use]
    pub fn is_condition(&self) -> bool {
        self.expression.kind() == Kind::Bool
    }
}

impl Resolver<'_> {
    /// The named expressions of a section, in the order of their names; derived values in the order of their needs.
    pub(super) fn rules(
        &mut self,
        lines: &[Line],
        section: &str,
        labels: &[(usize, Vec<String>)],
        dims: &[(String, Option<usize>, usize)],
        derived: &[Rule],
        metrics: &[super::MetricWord],
    ) -> Vec<Rule> {
        let mut entries = self.entries_of(lines, section);
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        let entries: Vec<&Entry> = entries.iter().collect();
        let is_derive = section == "derive";
        // Derived values may use each other: what is used is worked out first.
        let order = if is_derive {
            circle::of_expressions(&entries)
        } else {
            circle::Order { order: (0..entries.len()).collect(), circles: Vec::new() }
        };
        for round in &order.circles {
            let message =
                format!("`{}` is derived from itself: {}", entries[round[0]].key, circle::as_text(round, &entries));
            let place = entries[round[0]].place;
            self.complain(Diagnostic::error(message).at(place).help("a derived value may use others, but not itself"));
        }
        let mut rules: Vec<Rule> = Vec::new();
        for &k in &order.order {
            let known = if is_derive { rules.clone() } else { derived.to_vec() };
            let names = self.names(dims, labels, &known, metrics);
            match compile(entries[k], &names) {
                Ok(rule) => rules.push(rule),
                // What hangs on a circle is said with the circle.
                Err(_) if !order.circles.is_empty() => {}
                Err(error) if section == "where" && self.is_about_a_metric(&error) => self.complain(
                    error.help("`where` decides before evaluation: put a condition on results into `require`"),
                ),
                Err(error) => self.complain(error),
            }
        }
        for rule in &rules {
            if section != "derive" && !rule.is_condition() {
                let message =
                    format!("`{section}.{}` is {}, not a condition", rule.name, rule.expression.kind().describe());
                self.complain(Diagnostic::error(message).at(rule.place).help("compare it with something: `tp <= 8`"));
            }
            if section == "where" && is_after(rule, derived) {
                self.complain(
                    Diagnostic::error(format!("`where.{}` needs a result", rule.name))
                        .at(rule.place)
                        .help("`where` decides before evaluation: put a condition on results into `require`"),
                );
            }
        }
        rules
    }

    /// Whether an expression failed on the name of a result.
    fn is_about_a_metric(&self, error: &Diagnostic) -> bool {
        self.vocabulary.metrics.iter().any(|metric| {
            let bare = metric.column.trim_end_matches(metric.unit.suffix().as_str());
            [metric.column.as_str(), bare].iter().any(|name| error.message.contains(&format!("`{name}`")))
        })
    }

    /// Derived values that are called as something that is there already.
    pub(super) fn no_column_twice(
        &mut self,
        derived: &[Rule],
        labels: &[(usize, Vec<String>)],
        dims: &[(String, Option<usize>, usize)],
    ) {
        let names = self.names(dims, labels, &[], &self.vocabulary.metrics);
        let taken = |name: &str| names.name(name).is_some() || self.vocabulary.taken.iter().any(|taken| taken == name);
        let unit = |rule: &Rule| match rule.expression.kind() {
            Kind::Number(unit) => unit,
            _ => Unit::NONE,
        };
        let twice = |rule: &&Rule| taken(&rule.name) || taken(&with_suffix(&rule.name, unit(rule)));
        let complaints: Vec<Diagnostic> = derived
            .iter()
            .filter(twice)
            .map(|rule| {
                Diagnostic::error(format!("`derive.{}` has the name of something else", rule.name))
                    .at(rule.name_place)
                    .help("a derived value becomes a column: give it a name that no key and no column has")
            })
            .collect();
        self.walker.diagnostics.extend(complaints);
    }
}

/// A line `name: expression`.
pub(super) fn compile(entry: &Entry, names: &Names<'_>) -> Result<Rule, Diagnostic> {
    let Some(text) = entry.node.scalar() else {
        return Err(Diagnostic::error(format!("`{}` takes an expression, not {}", entry.key, entry.node.kind()))
            .at(entry.node.place)
            .help("write for example `tp <= 8`"));
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if entry.key.is_empty() || !entry.key.chars().all(valid) || entry.key.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Diagnostic::error(format!("`{}` is no name for an expression", entry.key))
            .at(entry.place)
            .help("use letters, digits and `_`, a letter first"));
    }
    match expression::compile(&text, names) {
        Ok(expression) => {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Ok(Rule { name: entry.key.clone(), text, name_place: entry.place, place: entry.node.place, expression })
        }
        Err(error) => {
            let characters = |bytes: usize| narrow(text.get(..bytes).map_or(0, |part| part.chars().count()) as u64);
            let mut place = entry.node.place;
            // A text over several lines, or in quotes, has other columns than its content.
            if place.length >= narrow(text.chars().count() as u64) && !text.contains('\n') {
                place.column += characters(error.start);
                place.length = (characters(error.end) - characters(error.start)).max(1);
            }
            let diagnostic = Diagnostic::error(format!("in `{}`: {}", entry.key, error.message)).at(place);
            Err(match error.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            })
        }
    }
}

/// The columns of derived values.
pub(super) fn columns(derived: &[Rule]) -> Vec<(Column, usize)> {
    let column = |(k, rule): (usize, &Rule)| {
        let (dtype, unit) = match rule.expression.kind() {
            Kind::Number(unit) => (Dtype::Real, unit),
            Kind::Bool => (Dtype::Flag, Unit::NONE),
            Kind::Text => return None,
        };
        let meaning = format!("derived: {}", rule.text);
        Some((Column { name: with_suffix(&rule.name, unit), dtype, unit, meaning }, k))
    };
    derived.iter().enumerate().filter_map(column).collect()
}
