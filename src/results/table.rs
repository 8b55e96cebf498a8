//! The table: rows as numbers, column by column, until a segment is full; then a file, or a data frame.

use std::sync::Arc;

use polars::prelude::{
    ArrowDataType, ArrowField, ArrowSchema, BooleanChunked, Column as FrameColumn, DataFrame, Float64Chunked,
    Int64Chunked, IntoColumn as _, NewChunkedArray as _, PolarsResult, StringChunked,
};
use polars_parquet::write::{Page, ParquetType, to_parquet_leaves};

use super::pages::{pages, pages_of_length};
use super::runs::Runs;
use crate::column::{Column, Dtype};
use crate::units::{index, real, signed, whole};

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

/// Rows of one segment. A number of a text column is the place of its word; NaN is null. A column that a row says nothing of has the
/// value of the row before.
#[derive(Debug)]
pub struct Table {
    columns: Arc<[TableColumn]>,
    runs: Vec<Runs>,
    rows: usize,
    /// Ids, as they are text that is never twice the same.
    ids: Vec<u8>,
    id_len: usize,
    /// Words that were met on the way, behind the known ones, by column.
    more_words: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. The first column, `id`, is not among `columns`.
    #[must_use]
    pub fn new(columns: Arc<[TableColumn]>, id_len: usize) -> Self {
        let (runs, more_words) = (vec![Runs::default(); columns.len()], vec![Vec::new(); columns.len()]);
        Self { columns, runs, rows: 0, ids: Vec::new(), id_len, more_words }
    }

    /// Forgets the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.runs.iter_mut().for_each(Runs::clear);
        self.more_words.iter_mut().for_each(Vec::clear);
        self.ids.clear();
        self.rows = 0;
    }

    /// How many rows there are.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Begins a row.
    pub fn begin(&mut self, id: &[u8]) {
        self.ids.extend_from_slice(id);
        self.rows += 1;
    }

    /// The value of a column in the row that was begun, and in those behind it until another is said.
    #[inline]
    pub fn set(&mut self, column: usize, value: f64) {
        self.runs[column].set(self.rows - 1, value);
    }

    /// The number of a text of a column that was not known before.
    pub fn word(&mut self, column: usize, text: &str) -> f64 {
        let known = &self.columns[column].words;
        let more = &mut self.more_words[column];
        let place = known.iter().chain(more.iter()).position(|word| word == text).unwrap_or_else(|| {
            more.push(text.to_owned());
            known.len() + more.len() - 1
        });
        real(place as u64)
    }

    /// The rows as a data frame.
    ///
    /// # Errors
    /// Never with rows that are complete; polars says otherwise.
    pub fn frame(&self) -> PolarsResult<DataFrame> {
        let ids = self.ids.chunks_exact(self.id_len).map(|id| String::from_utf8_lossy(id));
        let ids = StringChunked::from_iter_values("id".into(), ids).into_column();
        let others = (0..self.columns.len()).map(|column| self.column(column));
        DataFrame::new(self.rows, std::iter::once(ids).chain(others).collect())
    }

    /// A column of a frame.
    fn column(&self, column: usize) -> FrameColumn {
        let spec = &self.columns[column];
        let name = spec.column.name.as_str().into();
        let values = self.runs[column].each(self.rows).map(|value| (!value.is_nan()).then_some(value));
        match spec.column.dtype {
            Dtype::Real => Float64Chunked::from_iter_options(name, values).into_column(),
            Dtype::Count => Int64Chunked::from_iter_options(name, values.map(|it| it.map(signed))).into_column(),
            Dtype::Flag => {
                BooleanChunked::from_iter_options(name, values.map(|it| it.map(|it| it != 0.0))).into_column()
            }
            Dtype::Text => {
                let texts = values.map(|it| it.and_then(|it| self.text(column, index(whole(it)))));
                StringChunked::from_iter_options(name, texts).into_column()
            }
        }
    }

    /// The word at a place of a text column.
    fn text(&self, column: usize, place: usize) -> Option<&String> {
        let words = &self.columns[column].words;
        words.get(place).or_else(|| self.more_words[column].get(place - words.len()))
    }

    /// The names of the columns, and the types of their values.
    #[must_use]
    pub fn schema(&self) -> ArrowSchema {
        let columns = self.columns.iter().map(|spec| (spec.column.name.as_str(), type_of(spec.column.dtype)));
        let fields = std::iter::once(("id", ArrowDataType::Utf8View)).chain(columns);
        fields.map(|(name, dtype)| (name.into(), ArrowField::new(name.into(), dtype, true))).collect()
    }

    /// The pages of each column in Parquet, made one after the other.
    pub fn pages(&self, kinds: Vec<ParquetType>) -> impl Iterator<Item = PolarsResult<Vec<Page>>> + Send + Sync + '_ {
        kinds.into_iter().flat_map(to_parquet_leaves).enumerate().map(|(place, kind)| match place.checked_sub(1) {
            None => Ok(pages_of_length(&self.ids, self.id_len, &kind)),
            Some(column) => {
                let dtype = self.columns[column].column.dtype;
                Ok(pages(dtype, (&self.runs[column], self.rows), |place| self.text(column, place), &kind))
            }
        })
    }
}

/// The type of a column's values.
const fn type_of(dtype: Dtype) -> ArrowDataType {
    match dtype {
        Dtype::Real => ArrowDataType::Float64,
        Dtype::Count => ArrowDataType::Int64,
        Dtype::Flag => ArrowDataType::Boolean,
        Dtype::Text => ArrowDataType::Utf8View,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sink::parquet::write_columns;
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
            let mut table = Table::new(Arc::from(columns.clone()), 1);
            table.begin(b"x");
            (0..columns.len()).for_each(|column| table.set(column, value));
            table.frame().expect("a frame")
        };
        assert_eq!(filled(f64::NAN).dtypes(), filled(0.0).dtypes());
        assert_eq!(filled(f64::NAN).height(), 1);
    }

    #[test]
    fn a_file_holds_the_rows_of_the_frame() {
        use polars::prelude::{ParquetReader, SerReader as _};

        let dtypes = [Dtype::Real, Dtype::Count, Dtype::Flag, Dtype::Text];
        let spec = |dtype| TableColumn {
            column: Column { name: format!("{dtype:?}"), dtype, unit: Unit::NONE, meaning: String::new() },
            words: Arc::from(["one".to_owned(), String::new(), "three".to_owned()]),
            constant: false,
        };
        // How many rows a value stays, how many values there are, and how many of three values are none: each kind of page is there.
        for (stays, values, none, rows) in [
            (1, 1000, 0, 700),
            (1, 3, 1, 1000),
            (7, 3, 2, 999),
            (29, 3, 1, 999),
            (8, 2, 0, 64),
            (1, 3, 3, 9),
            (1, 1, 0, 1),
        ] {
            let mut table = Table::new(dtypes.map(spec).into(), 13);
            for row in 0..rows {
                table.begin(format!("{row:013}").as_bytes());
                let place = row / stays;
                let is_none = place % 3 < none;
                for (column, dtype) in dtypes.iter().enumerate() {
                    let least = if matches!(dtype, Dtype::Real | Dtype::Count) { values } else { values.min(3) };
                    table.set(column, if is_none { f64::NAN } else { real(place * 7 % least) });
                }
            }
            let mut bytes = Vec::new();
            write_columns(table.schema(), table.rows(), |kinds| table.pages(kinds), &[], &mut bytes).expect("a file");
            let read = ParquetReader::new(std::io::Cursor::new(bytes)).finish().expect("what was written");
            assert!(read.equals_missing(&table.frame().expect("a frame")), "{stays} {values} {none} {rows}");
        }
    }
}
