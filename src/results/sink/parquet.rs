//! Parquet by polars: Zstandard at its first level, statistics, one row group a segment.

use std::io::Write;

use polars::prelude::{DataFrame, KeyValueMetadata, ParquetCompression, ParquetWriter, StatisticsOptions};
use polars_utils::compression::ZstdLevel;

use super::{Footer, Sink};
use crate::results::store::StoreError;

/// See the module.
pub struct Parquet;

impl Sink for Parquet {
    fn write(&self, frame: &mut DataFrame, footer: &Footer, out: &mut dyn Write) -> Result<(), StoreError> {
        let level = ZstdLevel::try_new(1)?;
        let metadata = KeyValueMetadata::from_static(footer.to_vec());
        ParquetWriter::new(out)
            .with_compression(ParquetCompression::Zstd(Some(level)))
            .with_statistics(StatisticsOptions::default())
            .with_row_group_size(Some(frame.height().max(1)))
            .with_key_value_metadata(Some(metadata))
            .set_parallel(false)
            .finish(frame)?;
        Ok(())
    }

    fn summary(&self) -> &'static str {
        "Apache Parquet, Zstandard, with statistics"
    }
}
