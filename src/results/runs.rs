//! Runs: a column as what it holds and from which row on; a row that says nothing has the value of the row before.

use crate::units::{index, narrow};

/// Bits that no number of ours has: those of a NaN that no arithmetic makes.
const NOTHING: u64 = u64::MAX;

/// The values of a column, each as often as it comes one behind the other.
#[derive(Debug, Clone)]
pub struct Runs {
    /// The bits of the last value: rows that repeat it touch nothing else.
    last: u64,
    values: Vec<f64>,
    /// The first row of each.
    starts: Vec<u32>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { last: NOTHING, values: Vec::new(), starts: Vec::new() }
    }
}

impl Runs {
    /// Forgets the values and keeps the memory.
    pub fn clear(&mut self) {
        self.last = NOTHING;
        self.values.clear();
        self.starts.clear();
    }

    /// Says the value of a row, and of those behind it until another is said.
    #[inline]
    pub fn set(&mut self, row: usize, value: f64) {
        if value.to_bits() != self.last {
            self.last = value.to_bits();
            self.values.push(value);
            self.starts.push(narrow(row as u64));
        }
    }

    /// Whether nothing was said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.last == NOTHING
    }

    /// The values of so many rows, with how many rows each has.
    pub fn of(&self, rows: usize) -> impl Iterator<Item = (f64, usize)> + Clone + '_ {
        let starts = self.starts.iter().map(|&start| index(start.into()));
        let ends = starts.clone().skip(1).chain([rows]);
        self.values.iter().copied().zip(starts.zip(ends).map(|(start, end)| end - start))
    }

    /// The value of each of so many rows.
    pub fn each(&self, rows: usize) -> impl Iterator<Item = f64> + '_ {
        self.of(rows).flat_map(|(value, rows)| std::iter::repeat_n(value, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_says_nothing_is_as_the_one_before() {
        let mut runs = Runs::default();
        runs.set(0, 1.0);
        runs.set(1, 1.0);
        runs.set(4, f64::NAN);
        runs.set(5, f64::NAN);
        runs.set(6, 2.0);
        let found: Vec<_> = runs.of(8).map(|(value, rows)| (value.is_nan(), rows)).collect();
        assert_eq!(found, [(false, 4), (true, 2), (false, 2)]);
        assert_eq!(runs.each(8).filter(|value| *value == 1.0).count(), 4);
        runs.clear();
        assert!(runs.is_empty() && runs.of(0).next().is_none());
    }
}
