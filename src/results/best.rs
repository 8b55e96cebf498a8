//! The best: the feasible points that are first by some columns, in one pass over a folder.

use super::folder::{Folder, RowPlace};
use super::store::StoreError;
use super::summary::numbers;
use crate::column::Direction;

/// The places of the best feasible rows, the best first; of equal ones the first.
///
/// # Errors
/// If a segment cannot be read.
pub fn best(folder: &Folder, by: &[(String, Direction)], rows: usize) -> Result<Vec<RowPlace>, StoreError> {
    let names: Vec<String> = by.iter().map(|column| column.0.clone()).chain(["status".to_owned()]).collect();
    let mut best: Vec<(Vec<f64>, RowPlace)> = Vec::new();
    for file in 0..folder.files.len() {
        let frame = folder.read(file, Some(&names))?;
        let values: Vec<Vec<f64>> =
            by.iter().map(|column| Ok(numbers(frame.column(&column.0)?))).collect::<Result<_, StoreError>>()?;
        for (row, status) in frame.column("status")?.str()?.iter().enumerate() {
            let costs: Vec<f64> = by.iter().zip(&values).map(|(column, values)| column.1.cost(values[row])).collect();
            if status == Some("feasible") && !costs.iter().any(|cost| cost.is_nan()) {
                best.push((costs, RowPlace { file, row }));
            }
        }
        best.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal).then(a.1.cmp(&b.1)));
        best.truncate(rows);
    }
    Ok(best.into_iter().map(|best| best.1).collect())
}
