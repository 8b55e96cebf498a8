//! Scores: how far predictions are from what was measured, over the rows of a group.

use super::predict::Case;
use crate::units::real;

/// The errors of some rows, as shares: 0.05 is 5 % more than measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// How many rows.
    pub rows: usize,
    /// The mean of absolute errors.
    pub mean: f64,
    /// Their median.
    pub median: f64,
    /// The largest.
    pub worst: f64,
    /// The median of errors with their signs.
    pub bias: f64,
}

impl Score {
    /// The score of some errors; none if there are none.
    #[must_use]
    pub fn of(errors: &[f64]) -> Option<Self> {
        let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let worst = sizes.iter().copied().max_by(f64::total_cmp)?;
        let mean = sizes.iter().sum::<f64>() / real(sizes.len() as u64);
        Some(Self { rows: errors.len(), mean, median: median(&sizes), worst, bias: median(errors) })
    }

    /// The score of some cases: those that have a prediction and were measured.
    pub fn of_cases<'a>(cases: impl Iterator<Item = &'a Case>) -> Option<Self> {
        Self::of(&cases.filter_map(Case::error).collect::<Vec<_>>())
    }
}

/// The median: of an even number the middle of the two in the middle; 0 of nothing.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_scored() {
        // |errors| 1, 2, 3, 10 %: mean 4, median 2.5, worst 10; with signs -10, 1, 2, 3: median 1.5.
        let score = Score::of(&[0.01, 0.02, -0.10, 0.03]).expect("a score");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(
            near(score.mean, 0.04) && near(score.median, 0.025) && near(score.worst, 0.1) && near(score.bias, 0.015)
        );
        assert_eq!(Score::of(&[]), None);
    }
}
