//! A segment: a range of point numbers in a file, the unit of writing and resuming; where it ends is fixed by the sweep.

use std::fmt;

/// How many rows a segment of a closed-form sweep has at most, and how many point numbers a dense one covers.
pub const CLOSED_FORM: u64 = 65_536;
/// The same of an event-driven sweep, whose points take a thousand times as long.
pub const EVENT_DRIVEN: u64 = 64;
/// How many rows a file of refined points has at most.
pub const REFINED: u64 = 8;

/// A range of point numbers, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// The first.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
}

impl Segment {
    /// The segments of so many points, in order.
    pub fn of(points: u64, len: u64) -> impl Iterator<Item = Self> {
        (0..points.div_ceil(len)).map(move |k| Self { start: k * len, end: ((k + 1) * len).min(points) })
    }

    /// Its file's name.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{self}.parquet")
    }

    /// The segment of a file's name.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let (start, last) = name.strip_suffix(".parquet")?.split_once('-')?;
        Some(Self { start: start.parse().ok()?, end: last.parse::<u64>().ok()? + 1 })
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016}-{:016}", self.start, self.end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_ends_with_the_points() {
        let segments: Vec<_> = Segment::of(10, 4).collect();
        assert_eq!(
            segments,
            [Segment { start: 0, end: 4 }, Segment { start: 4, end: 8 }, Segment { start: 8, end: 10 }]
        );
    }

    #[test]
    fn a_segment_is_its_files_name() {
        let segment = Segment { start: 65_536, end: 131_072 };
        assert_eq!(Segment::from_file_name(&segment.file_name()), Some(segment));
    }
}
