//! Diagnostics, failures and tables as text.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use polars::prelude::{AnyValue, DataFrame};

use super::exit::WrongFlag;
use crate::input::{Diagnostic, Place, Remarks, Severity, Source};
use crate::run::preview::Estimate;
pub use crate::units::count;
use crate::units::{Unit, human, whole};

/// Prints remarks on a sweep file, and on the files that it names, with the lines they are about.
pub fn diagnostics(found: &[Diagnostic], file: &Path, text: &str, overrides: &[String], named: &Remarks) {
    let name = file.display().to_string();
    for diagnostic in found {
        let other = diagnostic.place.and_then(|place| named.text(place));
        let (name, text) = other.map_or((name.as_str(), text), |other| (&other.name, &other.content));
        anstream::eprintln!("{}\n", diagnostic_text(diagnostic, name, text, overrides));
    }
}

/// Prints remarks on several files, each with the line of its file.
pub fn remarks(remarks: &Remarks) {
    for diagnostic in &remarks.found {
        let text = diagnostic.place.and_then(|place| remarks.text(place));
        let (name, content) = text.map_or(("", ""), |text| (&text.name, &text.content));
        anstream::eprintln!("{}\n", diagnostic_text(diagnostic, name, content, &[]));
    }
}

/// One remark as text.
fn diagnostic_text(diagnostic: &Diagnostic, file: &str, text: &str, overrides: &[String]) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Caution => Level::WARNING.with_name("caution"),
    };
    let title = level.primary_title(diagnostic.message.as_str());
    let argument;
    let mut group: Group<'_> = match diagnostic.place {
        Some(place) => {
            let (path, source) = match place.source {
                Source::File | Source::Input(_) => (file.to_owned(), text),
                Source::Override(k) => {
                    argument = overrides.get(usize::from(k)).cloned().unwrap_or_default();
                    (format!("-s argument {}", k + 1), argument.as_str())
                }
                Source::Preset => (format!("a preset named in {file}"), ""),
            };
            let span = span(source, place);
            let annotation = AnnotationKind::Primary.span(span);
            title.element(Snippet::source(source.to_owned()).path(path).annotation(annotation))
        }
        None => Group::with_title(title),
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::styled().render(&[group])
}

/// The bytes of a place in its text.
fn span(text: &str, place: Place) -> std::ops::Range<usize> {
    let mut from = 0;
    for (k, line) in text.split_inclusive('\n').enumerate() {
        if k + 1 == place.line as usize {
            let line = line.trim_end_matches(['\n', '\r']);
            let at = |characters: usize| line.char_indices().nth(characters).map_or(line.len(), |found| found.0);
            let start = at(place.column.saturating_sub(1) as usize);
            let end = at((place.column.saturating_sub(1) + place.length) as usize);
            return from + start..from + end.max(start);
        }
        from += line.len();
    }
    let end = text.trim_end().len();
    end..end
}

/// Prints why something failed, cause by cause.
pub fn failure(error: &anyhow::Error) {
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    anstream::eprintln!("error: {error}");
    for cause in causes {
        anstream::eprintln!("  because {cause}");
    }
    if let Some(help) = error.downcast_ref::<WrongFlag>().and_then(|wrong| wrong.help.as_ref()) {
        anstream::eprintln!("help: {help}");
    }
}

/// A table of texts with aligned columns: numbers to the right.
pub fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..header.len())
        .map(|k| rows.iter().map(|row| row[k].chars().count()).chain([header[k].chars().count()]).max().unwrap_or(0))
        .collect();
    let numeric: Vec<bool> = (0..header.len())
        .map(|k| {
            rows.iter().all(|row| {
                row[k].is_empty()
                    || row[k] == "-"
                    || row[k].starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'))
            })
        })
        .collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(k, cell)| {
            let pad = " ".repeat(widths[k].saturating_sub(cell.chars().count()));
            if numeric[k] { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    let mut text = line(header);
    for row in rows {
        text.push('\n');
        text.push_str(&line(row));
    }
    text
}

/// A value of a column for people: scaled to its unit.
pub fn cell(column: &str, value: &AnyValue<'_>) -> String {
    match value {
        AnyValue::Null => "-".to_owned(),
        AnyValue::Float64(number) => human(*number, unit_of(column)),
        AnyValue::Int64(number) => number.to_string(),
        other => crate::results::sink::csv::text(other),
    }
}

/// The unit that a column's name ends in.
pub fn unit_of(column: &str) -> Unit {
    let is_count = |unit: &Unit| matches!(*unit, Unit::FLOP | Unit::SEQUENCE | Unit::TOKEN);
    Unit::NAMED
        .into_iter()
        .filter(|unit| !is_count(unit))
        .find(|unit| column.ends_with(&unit.suffix()))
        .unwrap_or(Unit::NONE)
}

/// Some columns of a frame as a table.
pub fn frame(frame: &DataFrame, columns: &[String]) -> anyhow::Result<String> {
    let mut rows = vec![Vec::new(); frame.height()];
    for name in columns {
        let column = frame.column(name)?;
        for (row, cells) in rows.iter_mut().enumerate() {
            cells.push(cell(name, &column.get(row)?));
        }
    }
    Ok(table(columns, &rows))
}

/// A count as well as it is known: `1,658,880`, `about 1,700,000,000 +- 3,000,000`, `fewer than about 15,000,000`.
pub fn estimate(estimate: Estimate) -> String {
    let rounded = |value: f64| count(whole(value.round()));
    match estimate {
        Estimate::Exact(exact) => count(exact),
        Estimate::About(value, error) => format!("about {} +- {}", rounded(value), rounded(error.ceil())),
        Estimate::Below(bound) => format!("fewer than about {}", rounded(bound)),
    }
}
