//! The record: rows in, files out.

pub mod best;
pub mod folder;
pub mod front;
pub mod metric;
pub mod pages;
pub mod runs;
pub mod seal;
pub mod segment;
pub mod sink;
pub mod status;
pub mod store;
pub mod summary;
pub mod table;

pub use metric::{MetricPart, Outcome};
pub use segment::Segment;
pub use status::Status;
pub use store::{Store, StoreError};
pub use table::{Table, TableColumn};
