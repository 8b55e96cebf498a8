//! The measured part of `tests/VALIDATION.md`, made from the runs that we ship.

use std::fmt::Write as _;

use itertools::Itertools as _;

use super::assume::ASSUMPTIONS;
use super::columns::{COLUMNS, Column, Need};
use super::sections::{Section, percent, sections};
use super::{Half, Validation, bars};
use crate::input::Remarks;
use crate::run::calibrate::{Ask, Calibration, calibrate, our_constants, written};

/// How many times its bar a source may be off that the fit has not seen.
const UNSEEN: f64 = 1.6;

/// The page's part.
///
/// # Errors
/// Never while our tables are right.
pub fn page() -> Result<String, Remarks> {
    let validation = Validation::shipped()?;
    let constants = our_constants()?;
    let ask = Ask { half: Some(Half::Fitted), leaves_each_out: true, ..Ask::default() };
    let fitted = calibrate(&validation, &constants, &ask).ok();
    let predicted = validation.cases.iter().filter(|case| case.error().is_some()).count();
    let mut text = format!(
        "{} published runs, of which {predicted} have a measured and a predicted step time; where they come from, and their halves: \
         [data/measured](data/measured/README.md). Constants move on the fitted half alone.\n",
        validation.cases.len()
    );
    for section in sections(&validation).iter().chain(&fitted.iter().flat_map(of_fit).collect::<Vec<_>>()) {
        markdown(&mut text, section);
    }
    markdown(&mut text, &assumptions());
    markdown(&mut text, &unpredicted(&validation));
    Ok(text)
}

/// The columns of a table of measurements, as a table of a page.
#[must_use]
pub fn columns() -> String {
    let row = |column: &Column| {
        let needed = match column.need {
            Need::All => "yes",
            Need::Transformers => "transformers",
            Need::None => "",
        };
        let key = column.key.map_or_else(String::new, |(key, _)| format!("`{key}`"));
        vec![format!("`{}`", column.name), needed.to_owned(), key, column.doc.to_owned()]
    };
    let mut text = String::new();
    markdown_table(&mut text, &["column", "needed", "key", "what it is"], &COLUMNS.iter().map(row).collect::<Vec<_>>());
    text
}

fn markdown(text: &mut String, section: &Section) {
    let _ = writeln!(text, "\n### {}\n", section.title);
    markdown_table(text, &section.header, &section.rows);
}

fn markdown_table(text: &mut String, header: &[&str], rows: &[Vec<String>]) {
    let _ = writeln!(text, "| {} |", header.join(" | "));
    let _ = writeln!(text, "|{}", " --- |".repeat(header.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

/// The constants of our fit, and what each source comes to without it.
fn of_fit(fit: &Calibration) -> [Section; 2] {
    let constants = fit.constants.iter().map(|fitted| {
        let value = |value: f64| written(&fitted.constant, value);
        let values = [value(fitted.before), value(fitted.after), percent(fitted.spread), fitted.runs.to_string()];
        std::iter::once(fitted.constant.name()).chain(values).collect()
    });
    let without = fit.without_group.iter().map(|(group, score)| {
        let most = bars::of_group(group).map(|bar| percent(UNSEEN * bar)).unwrap_or_default();
        let shares = [score.mean, score.median, score.worst].map(percent);
        [group.clone(), score.rows.to_string()].into_iter().chain(shares).chain([most]).collect()
    });
    [
        Section {
            title: "Constants: in force, and as a fit to the fitted half would have them".to_owned(),
            header: vec!["constant", "in force", "fit", "spread", "rows"],
            rows: constants.collect(),
        },
        Section {
            title: "Each source, predicted by such a fit without it".to_owned(),
            header: vec!["group", "rows", "mean", "median", "worst", "at most"],
            rows: without.collect(),
        },
    ]
}

/// What holds of inputs that no source publishes.
fn assumptions() -> Section {
    Section {
        title: "Inputs that sources leave out".to_owned(),
        header: vec!["key", "what is assumed"],
        rows: ASSUMPTIONS.iter().map(|it| vec![format!("`{}`", it.key), it.doc.to_owned()]).collect(),
    }
}

/// Runs that are not held to anything, counted by the reason.
fn unpredicted(validation: &Validation) -> Section {
    let reasons = validation.cases.iter().filter_map(|case| case.reason.clone());
    let rows = reasons.counts().into_iter().sorted_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Section {
        title: "Rows without a predicted or a measured time".to_owned(),
        header: vec!["rows", "reason"],
        rows: rows.map(|(reason, count)| vec![count.to_string(), reason]).collect(),
    }
}
