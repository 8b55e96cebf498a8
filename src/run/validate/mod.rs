//! Validation: measured runs predicted as points of a sweep are, and how far the predictions are off.

pub mod assume;
pub mod columns;
pub mod known;
pub mod measurement;
pub mod predict;
pub mod question;
pub mod score;
pub mod shipped;
pub mod table;

use itertools::Itertools as _;

use crate::input::Remarks;
use known::Known;
use measurement::Measurement;
pub use predict::{Case, Prediction};
pub use score::Score;
pub use shipped::Half;

/// Measured runs, and what we make of them.
#[derive(Debug)]
pub struct Validation {
    /// Every run, in the order of its table.
    pub cases: Vec<Case>,
    /// Of the runs that we ship the half that each is in; of others none.
    pub halves: Vec<Option<Half>>,
}

/// The score of a group, and of a half of it where it has halves.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupScore {
    /// The group.
    pub group: String,
    /// The half.
    pub half: Option<Half>,
    /// Its score.
    pub score: Score,
}

impl Validation {
    /// The runs that we ship.
    ///
    /// # Errors
    /// Never while our tables are right.
    pub fn shipped() -> Result<Self, Remarks> {
        let known = Known::tables();
        let mut runs = measurement::read("validation.csv", shipped::RUNS, known)?;
        runs.extend(measurement::read("validation_vtrain_single.csv", &shipped::single_node(), known)?);
        let halves = shipped::halves();
        let halves = runs.iter().map(|run| halves.get(&run.id).copied()).collect();
        Ok(Self { cases: predict::cases(runs, known), halves })
    }

    /// The runs of a user's table.
    ///
    /// # Errors
    /// Every mistake, with its line, its column and what was expected.
    pub fn of(name: &str, text: &str) -> Result<Self, Remarks> {
        let known = Known::tables();
        let runs: Vec<Measurement> = measurement::read(name, text, known)?;
        let cases = predict::cases(runs, known);
        let mut remarks = Remarks::default();
        remarks.add(name.to_owned(), text.to_owned());
        cases.iter().flat_map(|case| &case.mistakes).unique_by(|found| format!("{found:?}")).for_each(|found| {
            remarks.say(found.clone());
        });
        let halves = vec![None; cases.len()];
        if remarks.errors() == 0 { Ok(Self { cases, halves }) } else { Err(remarks) }
    }

    /// The score of every group and half that has one, in the order of the table.
    #[must_use]
    pub fn scores(&self) -> Vec<GroupScore> {
        let of = |k: usize| (self.cases[k].run.group.as_str(), self.halves[k]);
        let groups: Vec<&str> = self.cases.iter().map(|case| case.run.group.as_str()).unique().collect();
        let halves = [None, Some(Half::Fitted), Some(Half::HeldOut)];
        groups
            .into_iter()
            .cartesian_product(halves)
            .filter_map(|(group, half)| {
                let members = (0..self.cases.len()).filter(|&k| of(k) == (group, half)).map(|k| &self.cases[k]);
                Some(GroupScore { group: group.to_owned(), half, score: Score::of_cases(members)? })
            })
            .collect()
    }
}
