//! Validation: measured runs predicted as points of a sweep are, and how far the predictions are off.

pub mod assume;
pub mod bars;
pub mod baseline;
pub mod columns;
pub mod known;
pub mod measurement;
pub mod memory;
pub mod page;
pub mod peers;
pub mod predict;
pub mod question;
pub mod ranks;
pub mod ratios;
pub mod score;
pub mod sections;
pub mod shipped;
pub mod table;

use itertools::Itertools as _;

use crate::input::Remarks;
use known::Known;
use measurement::Measurement;
pub use predict::{Case, Prediction};
pub use score::Score;
pub use sections::{GroupScore, Section};
pub use shipped::Half;

/// The group of runs whose source is not said.
const OWN: &str = "measured";

/// Measured runs, and what we make of them.
#[derive(Debug)]
pub struct Validation {
    /// Every run, in the order of its table.
    pub cases: Vec<Case>,
    /// Of the runs that we ship the half that each is in; of others none.
    pub halves: Vec<Option<Half>>,
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
        let mut runs: Vec<Measurement> = measurement::read(name, text, known)?;
        for run in runs.iter_mut().filter(|run| run.group == known.rest()) {
            run.group = run.text("source").unwrap_or(OWN).to_owned();
        }
        let cases = predict::cases(runs, known);
        let mut remarks = Remarks::default();
        remarks.add(name.to_owned(), text.to_owned());
        cases.iter().flat_map(|case| &case.mistakes).unique_by(|found| format!("{found:?}")).for_each(|found| {
            remarks.say(found.clone());
        });
        let halves = vec![None; cases.len()];
        if remarks.errors() == 0 { Ok(Self { cases, halves }) } else { Err(remarks) }
    }
}
