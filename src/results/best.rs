//! The best: the feasible points that are first by some columns, in one pass over a folder.

use itertools::Itertools as _;
use polars::prelude::DataFrame;

use super::folder::{Folder, RowPlace};
use super::sink::csv::text;
use super::store::StoreError;
use super::summary::numbers;
use crate::column::Direction;

/// The places of the best feasible rows, the best first; of equal ones the first.
///
/// # Errors
/// If a segment cannot be read.
pub fn best(folder: &Folder, by: &[(String, Direction)], rows: usize) -> Result<Vec<RowPlace>, StoreError> {
    best_with(folder, by, rows, &[])
}

/// The same among the rows in which some columns have some values, as texts.
///
/// # Errors
/// If a segment cannot be read.
pub fn best_with(
    folder: &Folder,
    by: &[(String, Direction)],
    rows: usize,
    with: &[(String, String)],
) -> Result<Vec<RowPlace>, StoreError> {
    let names = by.iter().map(|column| &column.0).chain(with.iter().map(|column| &column.0));
    let names: Vec<String> = names.cloned().chain(["status".to_owned()]).unique().collect();
    let mut best: Vec<(Vec<f64>, RowPlace)> = Vec::new();
    for file in 0..folder.files.len() {
        let frame = folder.read(file, Some(&names))?;
        let values: Vec<Vec<f64>> =
            by.iter().map(|column| Ok(numbers(frame.column(&column.0)?))).collect::<Result<_, StoreError>>()?;
        for (row, status) in frame.column("status")?.str()?.iter().enumerate() {
            let costs: Vec<f64> = by.iter().zip(&values).map(|(column, values)| column.1.cost(values[row])).collect();
            if status == Some("feasible") && !costs.iter().any(|cost| cost.is_nan()) && has(&frame, row, with)? {
                best.push((costs, RowPlace { file, row }));
            }
        }
        best.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal).then(a.1.cmp(&b.1)));
        best.truncate(rows);
    }
    Ok(best.into_iter().map(|best| best.1).collect())
}

/// Whether columns of a row have some values: equal texts, or equal numbers.
fn has(frame: &DataFrame, row: usize, with: &[(String, String)]) -> Result<bool, StoreError> {
    for (column, wanted) in with {
        let found = text(&frame.column(column)?.get(row)?);
        let is_number = || found.parse::<f64>().is_ok_and(|found| wanted.parse() == Ok(found));
        if found != *wanted && !is_number() {
            return Ok(false);
        }
    }
    Ok(true)
}
