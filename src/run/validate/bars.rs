//! Bars: how near predictions are to be, by source, and whether they are; and what is known of rows that are far off.

use itertools::Itertools as _;

use super::known::{begins, shipped};
use super::predict::Case;
use super::score::Score;
use super::table::{Row, Table};
use super::{Validation, memory, ranks, ratios};
use crate::units::{Quantity, real};

/// One bar, and what is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What it is for.
    pub what: String,
    /// The half that it is for; empty for all rows.
    pub half: String,
    /// What is measured.
    pub measure: String,
    /// The bar, as a share.
    pub bar: f64,
    /// The best peer, as written.
    pub peer: String,
    /// The prototype, as written.
    pub prototype: String,
    /// What is reached; none if no row is predicted.
    pub reached: Option<f64>,
    /// How many rows, pairs or groups it is of.
    pub count: usize,
}

/// A row that is more than twice its bar off.
#[derive(Debug, Clone, PartialEq)]
pub struct Far {
    /// The row.
    pub row: String,
    /// Its error.
    pub error: f64,
    /// What is known of it; none if nothing is.
    pub why: Option<String>,
}

/// What a bar measures of the times of rows.
const OF_ROWS: [&str; 3] = ["mean", "median", "worst"];

impl Bar {
    /// Whether it is met; none if there is nothing to judge.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        self.reached.map(|reached| reached <= self.bar)
    }
}

/// Every bar.
#[must_use]
pub fn bars(validation: &Validation) -> Vec<Bar> {
    let table = Table::of_ours(shipped!("bars.csv"));
    let ranks = ranks::ranks(validation);
    let ratios = ratios::ratios(validation);
    let bar = |row: &Row| {
        let cell = |column: &str| table.cell(row, column).unwrap_or_default();
        let score = |of: fn(&Case) -> Option<f64>| {
            let members = members(validation, cell("rows"), cell("half"));
            Score::of(&members.filter_map(of).collect::<Vec<_>>())
        };
        let of_ranks = |of: fn(&ranks::Ranks) -> f64| {
            let groups = ranks.iter().filter(|ranks| ranks.group == cell("rows")).map(of).collect::<Vec<_>>();
            Score::of(&groups).map(|score| (score.worst, score.rows))
        };
        let reached = match cell("measure") {
            "false calls" => {
                let calls = real(memory::calls(validation).iter().filter(|call| call.is_false).count() as u64);
                let runs = validation.cases.iter().filter(|case| case.prediction.is_some()).count();
                Some((calls / real(runs as u64), runs))
            }
            "memory" => score(memory::error).map(|score| (score.mean, score.rows)),
            "ratio" => {
                let of_kind = ratios.iter().filter(|ratios| ratios.kind.starts_with(cell("rows")));
                of_kind.map(|ratios| (ratios.score.median, ratios.score.rows)).max_by(|a, b| a.0.total_cmp(&b.0))
            }
            "regret" => of_ranks(|ranks| ranks.regret),
            "best of three" => of_ranks(|ranks| ranks.best_of_three),
            "shape" => Score::of(&shapes(validation).iter().map(|shape| shape.1).collect::<Vec<_>>())
                .map(|score| (score.worst, score.rows)),
            measure => score(Case::error).map(|score| {
                let shares = [score.mean, score.median, score.worst];
                let place = OF_ROWS.iter().position(|&of| of == measure).unwrap_or(0);
                (shares[place], score.rows)
            }),
        };
        Bar {
            what: cell("what").to_owned(),
            half: cell("half").to_owned(),
            measure: cell("measure").to_owned(),
            bar: share(cell("bar")),
            peer: cell("peer").to_owned(),
            prototype: cell("prototype").to_owned(),
            reached: reached.map(|reached| reached.0),
            count: reached.map_or(0, |reached| reached.1),
        }
    };
    table.rows.iter().map(bar).collect()
}

/// What a group may be off in the mean, or in the median where that is its bar; none if it has no bar.
#[must_use]
pub fn of_group(group: &str) -> Option<f64> {
    let table = Table::of_ours(shipped!("bars.csv"));
    let cell = |row: &Row, column: &str| table.cell(row, column).unwrap_or_default().to_owned();
    let is_of_times = |row: &&Row| matches!(table.cell(row, "measure"), Some("mean" | "median"));
    let is_of_group =
        |row: &&Row| cell(row, "rows").split(' ').any(|word| group.starts_with(word) || word.starts_with(group));
    table.rows.iter().find(|row| is_of_times(row) && is_of_group(row)).map(|row| share(&cell(row, "bar")))
}

/// A share as it is written: `3.5 %`.
fn share(text: &str) -> f64 {
    Quantity::parse(text).map_or(f64::NAN, |quantity| quantity.value)
}

/// The runs that a bar is for: of groups, or of rows whose names begin so.
fn members<'a>(validation: &'a Validation, words: &str, half: &str) -> impl Iterator<Item = &'a Case> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let half = half.to_owned();
    let of_half = move |of: Option<super::Half>| half.is_empty() || of.is_some_and(|of| of.name() == half);
    let cases = validation.cases.iter().zip(&validation.halves).filter(move |(_, of)| of_half(**of));
    cases
        .map(|(case, _)| case)
        .filter(move |case| words.iter().any(|word| case.run.group == *word || case.run.id.starts_with(word.as_str())))
}

/// Pairs of runs that differ in a shape: their names, and predicted over measured ratio, less 1.
#[must_use]
pub fn shapes(validation: &Validation) -> Vec<(String, f64)> {
    let table = Table::of_ours(shipped!("shapes.csv"));
    let error = |id: &str| validation.cases.iter().find(|case| case.run.id == id).and_then(Case::error);
    let pairs = table.rows.iter().filter_map(|row| Some((table.cell(row, "row")?, table.cell(row, "against")?)));
    pairs
        .filter_map(|(row, against)| {
            Some((format!("{row} / {against}"), (1.0 + error(row)?) / (1.0 + error(against)?) - 1.0))
        })
        .collect()
}

/// Why a run cannot have been as it is published, if it cannot.
#[must_use]
pub fn impossible(id: &str) -> Option<String> {
    let known = Table::of_ours(shipped!("doubtful.csv"));
    let line = line_of(&known, id).filter(|row| known.cell(row, "impossible").is_some());
    line.and_then(|row| known.cell(row, "why")).map(str::to_owned)
}

/// The first line of what is known of doubtful rows whose pattern a row's name begins with.
fn line_of<'a>(known: &'a Table, id: &str) -> Option<&'a Row> {
    known.rows.iter().find(|row| known.cell(row, "rows").is_some_and(|pattern| begins(id, pattern)))
}

/// Every row whose time is more than twice off what the mean or median of its source may be.
#[must_use]
pub fn far(validation: &Validation) -> Vec<Far> {
    let bars = Table::of_ours(shipped!("bars.csv"));
    let known = Table::of_ours(shipped!("doubtful.csv"));
    let mut found: Vec<(&str, f64)> = Vec::new();
    for row in &bars.rows {
        let cell = |column: &str| bars.cell(row, column).unwrap_or_default();
        if matches!(cell("measure"), "mean" | "median") {
            let most = 2.0 * share(cell("bar"));
            let members = members(validation, cell("rows"), "");
            let errors = members.filter_map(|case| Some((case.run.id.as_str(), case.error()?)));
            found.extend(errors.filter(|row| row.1.abs() > most));
        }
    }
    let why = |id: &str| line_of(&known, id).and_then(|row| known.cell(row, "why")).map(str::to_owned);
    let found = found.into_iter().unique_by(|row| row.0);
    found.map(|(row, error)| Far { row: row.to_owned(), error, why: why(row) }).collect()
}
