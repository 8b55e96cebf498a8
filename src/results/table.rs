//! The table: rows as numbers, column by column, until a segment is full; then a data frame.

use std::sync::Arc;

use polars::prelude::{
    ArrowField, ArrowSchema, DataFrame, IntoColumn, NewChunkedArray, PolarsResult, Series, StringChunked,
};
use polars_arrow::array::{
    Array, BooleanArray, DictionaryArray, MutablePlString, PrimitiveArray, Utf8Array, Utf8ViewArray, new_null_array,
};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::datatypes::ArrowDataType;

use crate::column::{Column, Dtype};
use crate::units::{index, narrow, real, signed, whole};

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

/// Cells between columns: some lines of a cache, and no power of two.
const APART: usize = 3 * 8;

/// Rows of one segment. A number of a text column is the place of its word; NaN is null.
#[derive(Debug)]
pub struct Table {
    columns: Arc<[TableColumn]>,
    /// Room for all columns, one behind the other.
    cells: Vec<f64>,
    /// From one column to the next.
    stride: usize,
    /// How many values each column has.
    filled: Vec<usize>,
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
        // Values of one row would else lie in the same few lines of a cache.
        let stride = rows + APART;
        let cells = vec![0.0; stride * columns.len()];
        let (filled, more_words) = (vec![0; columns.len()], vec![Vec::new(); columns.len()]);
        Self { columns, cells, stride, filled, ids: Vec::new(), id_len, more_words }
    }

    /// Forgets the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.filled.fill(0);
        self.more_words.iter_mut().for_each(Vec::clear);
        self.ids.clear();
    }

    /// The values of a column.
    fn values(&self, column: usize) -> &[f64] {
        let start = column * self.stride;
        &self.cells[start..start + self.filled[column]]
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
        !self.columns[column].constant || self.filled[column] == 0
    }

    /// The next value of a column.
    #[inline]
    pub fn push(&mut self, column: usize, value: f64) {
        self.cells[column * self.stride + self.filled[column]] = value;
        self.filled[column] += 1;
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
        let names = std::iter::once("id").chain(self.columns.iter().map(|spec| spec.column.name.as_str()));
        let plain = |(name, array): (&str, PolarsResult<Box<dyn Array>>)| {
            let array = array?;
            let column = match array.as_any().downcast_ref::<DictionaryArray<u32>>() {
                Some(texts) => {
                    StringChunked::from_iter_options(name.into(), texts.iter_typed::<Utf8ViewArray>()?).into_column()
                }
                None => Series::from_arrow(name.into(), array)?.into_column(),
            };
            Ok(if column.len() < rows { column.new_from_index(0, rows) } else { column })
        };
        DataFrame::new(rows, names.zip(self.distinct()).map(plain).collect::<PolarsResult<_>>()?)
    }

    /// The names of the columns, and the types of their values.
    #[must_use]
    pub fn schema(&self) -> ArrowSchema {
        let columns = self.columns.iter().map(|spec| (spec.column.name.as_str(), type_of(spec.column.dtype)));
        let fields = std::iter::once(("id", ArrowDataType::Utf8View)).chain(columns);
        fields.map(|(name, dtype)| (name.into(), ArrowField::new(name.into(), dtype, true))).collect()
    }

    /// The columns, one after the other, as Parquet stores them: texts, and what is the same in all rows, are dictionaries.
    ///
    /// # Errors
    /// Never with rows that are complete; polars says otherwise.
    pub fn arrays(&self) -> impl Iterator<Item = PolarsResult<Box<dyn Array>>> + '_ {
        let rows = self.rows();
        self.distinct().map(move |array| {
            array.and_then(|array| if array.len() < rows { repeated(array, rows) } else { Ok(array) })
        })
    }

    /// The columns with one value where all rows have the same.
    fn distinct(&self) -> impl Iterator<Item = PolarsResult<Box<dyn Array>>> + '_ {
        let columns = self.columns.iter().zip(&self.more_words).enumerate();
        let others = columns.map(|(column, (spec, more))| {
            let word = |place: usize| spec.words.get(place).or_else(|| more.get(place - spec.words.len()));
            array_of(spec.column.dtype, self.values(column), word)
        });
        std::iter::once_with(|| self.id_array()).chain(others)
    }

    /// The ids, which are texts of one length.
    fn id_array(&self) -> PolarsResult<Box<dyn Array>> {
        let ends = (0..=self.rows()).map(|row| signed(real((row * self.id_len) as u64))).collect::<Vec<_>>();
        let ids = Utf8Array::try_new(ArrowDataType::LargeUtf8, ends.try_into()?, self.ids.clone().into(), None)?;
        Ok(ids.boxed())
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

/// The values of a column: of texts a dictionary of those that it has, in the order in which they come.
fn array_of<'a>(
    dtype: Dtype,
    values: &[f64],
    word: impl Fn(usize) -> Option<&'a String>,
) -> PolarsResult<Box<dyn Array>> {
    let has_gaps = values.iter().any(|value| value.is_nan());
    let gaps = has_gaps.then(|| values.iter().map(|value| !value.is_nan()).collect::<Bitmap>());
    Ok(match dtype {
        Dtype::Real => PrimitiveArray::from_vec(values.to_vec()).with_validity(gaps).boxed(),
        Dtype::Count => {
            PrimitiveArray::from_vec(values.iter().copied().map(signed).collect()).with_validity(gaps).boxed()
        }
        Dtype::Flag => {
            let flags = values.iter().map(|&flag| flag != 0.0).collect();
            BooleanArray::new(type_of(dtype), flags, gaps).boxed()
        }
        Dtype::Text => {
            let mut places: Vec<f64> = Vec::new();
            let mut key = |value: f64| {
                let known = places.iter().position(|&place| place == value);
                narrow(known.unwrap_or_else(|| {
                    places.extend((!value.is_nan()).then_some(value));
                    places.len().saturating_sub(1)
                }) as u64)
            };
            let keys = PrimitiveArray::from_vec(values.iter().map(|&value| key(value)).collect::<Vec<u32>>());
            let words: Utf8ViewArray =
                places.iter().map(|&place| word(index(whole(place)))).collect::<MutablePlString>().into();
            DictionaryArray::try_from_keys(keys.with_validity(gaps), words.boxed(), false)?.boxed()
        }
    })
}

/// An array of one value, again in every row: a dictionary of that value.
fn repeated(one: Box<dyn Array>, rows: usize) -> PolarsResult<Box<dyn Array>> {
    let words = one.as_any().downcast_ref::<DictionaryArray<u32>>().map(DictionaryArray::values);
    if one.null_count() > 0 {
        let dtype = words.map_or_else(|| one.dtype(), |words| words.dtype());
        return Ok(new_null_array(dtype.clone(), rows));
    }
    if let Some(flag) = one.as_any().downcast_ref::<BooleanArray>() {
        return Ok(BooleanArray::new(flag.dtype().clone(), Bitmap::new_with_value(flag.value(0), rows), None).boxed());
    }
    let keys = PrimitiveArray::from_vec(vec![0_u8; rows]);
    let values = words.cloned().unwrap_or(one);
    Ok(DictionaryArray::try_from_keys(keys, values, false)?.boxed())
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
