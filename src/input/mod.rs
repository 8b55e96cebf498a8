//! Files in: a text as a tree of values with their places, and what is wrong in it.

pub mod diagnostic;
pub mod remarks;
pub mod tree;

pub use diagnostic::{Diagnostic, Place, Severity, Source};
pub use remarks::{Remarks, Text};
