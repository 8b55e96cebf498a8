//! Parquet by polars: Zstandard at its first level, statistics, one row group a segment.

use std::io::Write;

use polars::prelude::{ArrowSchema, CompatLevel, DataFrame, PolarsError, PolarsResult, SchemaExt as _};
use polars_arrow::array::Array;
use polars_arrow::datatypes::ArrowDataType;
use polars_parquet::write::{
    CompressionOptions, Compressor, DynIter, DynStreamingIterator, Encoding, FallibleStreamingIterator as _, FileWriter,
    KeyValue, Page, ParquetType, StatisticsOptions, Version, WriteOptions, ZstdLevel, array_to_columns,
    schema_to_metadata_key,
};

use super::{Footer, Sink};
use crate::results::store::StoreError;

/// Bytes of a column that are not worth a compressor.
const FEW: usize = 64;

/// See the module.
pub struct Parquet;

impl Sink for Parquet {
    fn write(&self, frame: &mut DataFrame, footer: &Footer, out: &mut dyn Write) -> Result<(), StoreError> {
        let fields = frame.schema().iter_fields().map(|field| field.to_arrow(CompatLevel::newest()));
        let schema = fields.map(|field| (field.name.clone(), field)).collect();
        let rows = frame.rechunk_mut().height();
        let options = options()?;
        let pages = |kinds: Vec<ParquetType>| {
            frame.columns().iter().zip(kinds).map(move |(column, kind)| {
                let array = column.as_materialized_series().to_arrow(0, CompatLevel::newest());
                array_to_columns(&array, kind, options, &[encoding(array.as_ref())])?.into_iter().flatten().collect()
            })
        };
        write_columns(schema, rows, pages, footer, out)
    }

    fn summary(&self) -> &'static str {
        "Apache Parquet, Zstandard, with statistics"
    }
}

/// Writes columns, of which each is made when the one before it is written: `pages` makes them, told how each is to be stored.
///
/// # Errors
/// If the disk does not take it.
pub fn write_columns<C>(
    schema: ArrowSchema,
    rows: usize,
    pages: impl FnOnce(Vec<ParquetType>) -> C,
    footer: &Footer,
    out: &mut dyn Write,
) -> Result<(), StoreError>
where
    C: Iterator<Item = PolarsResult<Vec<Page>>> + Send + Sync,
{
    let options = options()?;
    let mut writer = FileWriter::try_new(out, schema, options)?;
    if rows > 0 {
        let columns = pages(writer.parquet_schema().fields().to_vec()).map(|pages| {
            let pages = pages?;
            let few = pages.iter().map(bytes_of).sum::<usize>() <= FEW;
            let compression = if few { CompressionOptions::Uncompressed } else { options.compression };
            let compressed = Compressor::new(pages.into_iter().map(Ok), compression, Vec::new());
            Ok(DynStreamingIterator::new(compressed.map_err(PolarsError::from)))
        });
        writer.write(rows as u64, DynIter::new(columns))?;
    }
    let pair = |(key, value): &(String, String)| KeyValue { key: key.clone(), value: Some(value.clone()) };
    let pairs = std::iter::once(schema_to_metadata_key(writer.schema())).chain(footer.iter().map(pair)).collect();
    writer.end(Some(pairs))?;
    Ok(())
}

/// How tables are written.
fn options() -> PolarsResult<WriteOptions> {
    Ok(WriteOptions {
        statistics: StatisticsOptions::default(),
        compression: CompressionOptions::Zstd(Some(ZstdLevel::try_new(1)?)),
        version: Version::V1,
        data_page_size: None,
    })
}

/// How many bytes a page has.
fn bytes_of(page: &Page) -> usize {
    match page {
        Page::Data(page) => page.buffer().len(),
        Page::Dict(page) => page.buffer.len(),
    }
}

/// How the values of a column of a frame are stored.
fn encoding(column: &dyn Array) -> Encoding {
    match column.dtype() {
        ArrowDataType::Boolean | ArrowDataType::LargeUtf8 | ArrowDataType::Float64 => Encoding::Plain,
        _ => Encoding::RleDictionary,
    }
}
