//! A column of the table: what questions and answers have in common.

use crate::units::Unit;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dtype {
    /// A text.
    Text,
    /// A whole number.
    Count,
    /// A real number.
    Real,
    /// True or false.
    Flag,
}

impl Dtype {
    /// The word in the column dictionary.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Count => "int64",
            Self::Real => "float64",
            Self::Flag => "bool",
        }
    }
}

/// Whether less or more of something is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Less.
    Min,
    /// More.
    Max,
}

impl Direction {
    /// The word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// A value turned so that less is better.
    #[must_use]
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Self::Min => value,
            Self::Max => -value,
        }
    }
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit's suffix.
    pub name: String,
    /// What it holds.
    pub dtype: Dtype,
    /// Its unit.
    pub unit: Unit,
    /// What it means.
    pub meaning: String,
}

/// A name with the suffix of its unit.
#[must_use]
pub fn with_suffix(name: &str, unit: Unit) -> String {
    format!("{name}{}", unit.suffix())
}
