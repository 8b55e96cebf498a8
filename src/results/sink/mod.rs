//! Sinks: data frames as files. A sink is a file and a line.

use std::io::Write;

use polars::prelude::DataFrame;

use super::store::StoreError;
use crate::registry::registry;

/// What a file says of itself besides its rows.
pub type Footer = [(String, String)];

/// A way to write a data frame.
pub trait Sink {
    /// Writes a frame; a format without a footer leaves it out.
    ///
    /// # Errors
    /// If the disk does not take it.
    fn write(&self, frame: &mut DataFrame, footer: &Footer, out: &mut dyn Write) -> Result<(), StoreError>;
    /// One line on what it is.
    fn summary(&self) -> &'static str;
}

registry! {
    /// A format of a table.
    pub enum Format: Sink {
        parquet::Parquet,
        csv::Csv,
    }
}
