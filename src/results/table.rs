//! The table: rows as numbers, column by column, until a segment is full; then a data frame.

use std::sync::Arc;

use polars::prelude::{
    BooleanChunked, ChunkedArray, DataFrame, Float64Type, Int64Type, IntoColumn, NewChunkedArray, PolarsResult,
    StringChunked,
};

use crate::column::{Column, Dtype};

/// A column and, if it holds texts, the words that its numbers stand for.
#[derive(Debug, Clone)]
pub struct TableColumn {
    /// As it stands in the table.
    pub column: Column,
    /// The texts of a text column, by number.
    pub words: Arc<[String]>,
    /// Whether every row has the value of the first.
    pub constant: bool,
}

/// Rows of one segment. A number of a text column is the place of its word; NaN is null.
#[derive(Debug)]
pub struct Table {
    columns: Arc<[TableColumn]>,
    values: Vec<Vec<f64>>,
    /// Ids, as they are text that is never twice the same.
    ids: Vec<u8>,
    id_len: usize,
    /// Words that were met on the way, behind the known ones, by column.
    more_words: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with room for `rows` rows. The first column, `id`, is not among `columns`.
    #[must_use]
    pub fn new(columns: Arc<[TableColumn]>, id_len: usize, rows: usize) -> Self {
        let values = columns.iter().map(|_| Vec::with_capacity(rows)).collect();
        let more_words = vec![Vec::new(); columns.len()];
        Self { columns, values, ids: Vec::with_capacity(rows * id_len), id_len, more_words }
    }

    /// Forgets the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        self.more_words.iter_mut().for_each(Vec::clear);
        self.ids.clear();
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.ids.len() / self.id_len
    }

    /// Begins a row.
    pub fn push_id(&mut self, id: &[u8]) {
        self.ids.extend_from_slice(id);
    }

    /// Whether a column still wants the value of the row that was begun: a constant one only that of the first.
    #[inline]
    #[must_use]
    pub fn wants(&self, column: usize) -> bool {
        !self.columns[column].constant || self.values[column].is_empty()
    }

    /// The next value of a column.
    #[inline]
    pub fn push(&mut self, column: usize, value: f64) {
        self.values[column].push(value);
    }

    /// The number of a text of a column that was not known before.
    pub fn word(&mut self, column: usize, text: &str) -> f64 {
        let known = &self.columns[column].words;
        let more = &mut self.more_words[column];
        let place = known.iter().chain(more.iter()).position(|word| word == text).unwrap_or_else(|| {
            more.push(text.to_owned());
            known.len() + more.len() - 1
        });
        crate::units::real(place as u64)
    }

    /// The rows as a data frame.
    ///
    /// # Errors
    /// Never with rows that are complete; polars says otherwise.
    pub fn frame(&self) -> PolarsResult<DataFrame> {
        let rows = self.rows();
        let ids = self.ids.chunks_exact(self.id_len).map(|id| std::str::from_utf8(id).ok());
        let mut columns = Vec::with_capacity(1 + self.columns.len());
        columns.push(StringChunked::from_iter_options("id".into(), ids).into_column());
        for ((spec, values), more) in self.columns.iter().zip(&self.values).zip(&self.more_words) {
            let name = spec.column.name.as_str().into();
            let present = |value: &f64| if value.is_nan() { None } else { Some(*value) };
            let text = |value: &f64| {
                let place = crate::units::index(crate::units::whole(present(value)?));
                spec.words.get(place).or_else(|| more.get(place - spec.words.len())).map(String::as_str)
            };
            let whole = |value: &f64| present(value).map(crate::units::signed);
            let flag = |value: &f64| present(value).map(|flag| flag != 0.0);
            let column = match spec.column.dtype {
                Dtype::Real => {
                    ChunkedArray::<Float64Type>::from_iter_options(name, values.iter().map(present)).into_column()
                }
                Dtype::Count => {
                    ChunkedArray::<Int64Type>::from_iter_options(name, values.iter().map(whole)).into_column()
                }
                Dtype::Flag => BooleanChunked::from_iter_options(name, values.iter().map(flag)).into_column(),
                Dtype::Text => StringChunked::from_iter_options(name, values.iter().map(text)).into_column(),
            };
            columns.push(if spec.constant && rows > 1 { column.new_from_index(0, rows) } else { column });
        }
        DataFrame::new(rows, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    #[test]
    fn every_dtype_keeps_its_type_when_all_is_null() {
        let spec = |name: &str, dtype| TableColumn {
            column: Column { name: name.into(), dtype, unit: Unit::NONE, meaning: String::new() },
            words: Arc::from(["yes".to_owned()]),
            constant: false,
        };
        let columns = [spec("r", Dtype::Real), spec("c", Dtype::Count), spec("f", Dtype::Flag), spec("t", Dtype::Text)];
        let filled = |value: f64| {
            let mut table = Table::new(Arc::from(columns.clone()), 1, 1);
            table.push_id(b"x");
            (0..columns.len()).for_each(|column| table.push(column, value));
            table.frame().expect("a frame")
        };
        assert_eq!(filled(f64::NAN).dtypes(), filled(0.0).dtypes());
        assert_eq!(filled(f64::NAN).height(), 1);
    }
}
