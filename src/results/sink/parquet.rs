//! Parquet by polars: Zstandard at its first level, statistics, one row group a segment.

use std::io::Write;

use polars::prelude::{ArrowSchema, CompatLevel, DataFrame, PolarsError, PolarsResult, SchemaExt as _};
use polars_arrow::array::Array;
use polars_arrow::datatypes::ArrowDataType;
use polars_parquet::parquet::error::ParquetError;
use polars_parquet::write::{
    CompressionOptions, Compressor, DynIter, DynStreamingIterator, Encoding, FallibleStreamingIterator as _,
    FileWriter, KeyValue, StatisticsOptions, Version, WriteOptions, ZstdLevel, array_to_columns, schema_to_metadata_key,
};

use super::{Footer, Sink};
use crate::results::store::StoreError;

/// See the module.
pub struct Parquet;

impl Sink for Parquet {
    fn write(&self, frame: &mut DataFrame, footer: &Footer, out: &mut dyn Write) -> Result<(), StoreError> {
        let fields = frame.schema().iter_fields().map(|field| field.to_arrow(CompatLevel::newest()));
        let schema = fields.map(|field| (field.name.clone(), field)).collect();
        let rows = frame.rechunk_mut().height();
        let columns = frame.columns().iter();
        let arrays = columns.map(|column| Ok(column.as_materialized_series().to_arrow(0, CompatLevel::newest())));
        write_columns(schema, rows, arrays, footer, out)
    }

    fn summary(&self) -> &'static str {
        "Apache Parquet, Zstandard, with statistics"
    }
}

/// Writes columns, of which each is made when the one before it is written; one may be a dictionary of what its field says.
///
/// # Errors
/// If the disk does not take it.
pub fn write_columns(
    schema: ArrowSchema,
    rows: usize,
    columns: impl Iterator<Item = PolarsResult<Box<dyn Array>>> + Send + Sync,
    footer: &Footer,
    out: &mut dyn Write,
) -> Result<(), StoreError> {
    let options = WriteOptions {
        statistics: StatisticsOptions::default(),
        compression: CompressionOptions::Zstd(Some(ZstdLevel::try_new(1)?)),
        version: Version::V1,
        data_page_size: None,
    };
    let mut writer = FileWriter::try_new(out, schema, options)?;
    let fields = writer.parquet_schema().fields().to_vec();
    if rows > 0 {
        let columns = columns.zip(fields).map(|(array, field)| {
            let array = array?;
            let pages = array_to_columns(&array, field, options, &[encoding(array.as_ref())])?;
            let pages = pages.into_iter().flatten().map(|page| page.map_err(|error| ParquetError::OutOfSpec(error.to_string())));
            let compressed = Compressor::new(pages, options.compression, Vec::new()).map_err(PolarsError::from);
            Ok(DynStreamingIterator::new(compressed))
        });
        writer.write(rows as u64, DynIter::new(columns))?;
    }
    let pair = |(key, value): &(String, String)| KeyValue { key: key.clone(), value: Some(value.clone()) };
    let pairs = std::iter::once(schema_to_metadata_key(writer.schema())).chain(footer.iter().map(pair)).collect();
    writer.end(Some(pairs))?;
    Ok(())
}

/// How the values of a column are stored.
fn encoding(column: &dyn Array) -> Encoding {
    match column.dtype() {
        ArrowDataType::Boolean | ArrowDataType::LargeUtf8 | ArrowDataType::Float64 => Encoding::Plain,
        _ => Encoding::RleDictionary,
    }
}
