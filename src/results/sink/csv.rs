//! CSV: a header, a row a line, nothing where there is no value; numbers at full precision.

use std::io::Write;

use polars::prelude::{AnyValue, DataFrame};

use super::{Footer, Sink};
use crate::results::store::StoreError;

/// See the module.
pub struct Csv;

impl Sink for Csv {
    fn write(&self, frame: &mut DataFrame, _footer: &Footer, out: &mut dyn Write) -> Result<(), StoreError> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(frame.get_column_names().iter().map(|name| name.as_str()))?;
        append(frame, &mut writer)?;
        writer.flush()?;
        Ok(())
    }

    fn summary(&self) -> &'static str {
        "comma-separated values with a header"
    }
}

/// Writes the rows of a frame without a header.
///
/// # Errors
/// If the disk does not take it.
pub fn append<W: Write>(frame: &DataFrame, writer: &mut csv::Writer<W>) -> Result<(), StoreError> {
    for row in 0..frame.height() {
        for column in frame.columns() {
            writer.write_field(text(&column.get(row)?))?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(())
}

/// A value as text: nothing for null, the shortest text that reads back as the same number.
#[must_use]
pub fn text(value: &AnyValue<'_>) -> String {
    match value {
        AnyValue::Null => String::new(),
        AnyValue::String(text) => (*text).to_owned(),
        AnyValue::StringOwned(text) => text.to_string(),
        AnyValue::Float64(number) => number.to_string(),
        AnyValue::Boolean(flag) => flag.to_string(),
        AnyValue::Int64(number) => number.to_string(),
        other => other.to_string(),
    }
}
