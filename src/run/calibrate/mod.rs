//! Calibration: constants of machines and software fitted to measured runs, and how far predictions are off before and after.

pub mod constant;
pub mod fit;

use itertools::Itertools as _;
use rayon::prelude::*;
use thiserror::Error;

use super::evaluate::Evaluator;
use super::validate::known::shipped;
use super::validate::{Half, Score, Validation};
use crate::input::Remarks;
pub use constant::{Constant, Constants};
use fit::{Observation, Solution, fit};

/// The constants that our own fit moves.
const OUR_CONSTANTS: &str = shipped!("constants.yaml");
/// The most runs of a fit that is done again without each of them.
const MOST_RUNS_ONE_BY_ONE: usize = 64;

/// What takes part in a fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ask {
    /// The half of each group; none for both.
    pub half: Option<Half>,
    /// Groups that do not take part.
    pub leave_out: Vec<String>,
    /// Whether the fit is done again without each group.
    pub leaves_each_out: bool,
}

/// Why nothing can be fitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unfit {
    /// No run takes part.
    #[error("no run takes part in the fit: none has both a measured and a predicted time")]
    NoRuns,
    /// No run uses any of the constants.
    #[error("no run uses any of the constants")]
    NoConstants,
    /// A constant is 0 in force.
    #[error("`{0}` is 0 in force: no factor moves it")]
    Zero(String),
    /// A half is asked for of runs that have none.
    #[error("a table of one's own has no halves")]
    NoHalves,
    /// There is no such group.
    #[error("there is no group `{0}`")]
    NoGroup(String),
}

/// One constant, fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The constant.
    pub constant: Constant,
    /// The value in force: the geometric mean, where its presets have several.
    pub before: f64,
    /// The value of the fit.
    pub after: f64,
    /// Its standard deviation, as a share of it.
    pub spread: f64,
    /// How many runs of the fit use it.
    pub runs: usize,
}

/// The errors of a group, before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupErrors {
    /// The group.
    pub group: String,
    /// The half, where it has halves.
    pub half: Option<Half>,
    /// Whether its runs took part in the fit.
    pub is_fitted: bool,
    /// The errors with the values in force.
    pub before: Score,
    /// The errors with the values of the fit.
    pub after: Score,
}

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The constants.
    pub constants: Vec<Fitted>,
    /// The errors of the runs of the fit, before and after.
    pub before: Score,
    /// See `before`.
    pub after: Score,
    /// The errors of every group and half.
    pub groups: Vec<GroupErrors>,
    /// The errors of the runs of the fit, each predicted without itself; none if they are many.
    pub one_by_one: Option<Score>,
    /// The errors of each group, all of its rows, predicted without it.
    pub without_group: Vec<(String, Score)>,
}

/// The constants that our own fit moves.
///
/// # Errors
/// Never while our file is right.
pub fn our_constants() -> Result<Constants, Remarks> {
    constant::read("constants.yaml", OUR_CONSTANTS)
}

/// The constants of runs for which no file names any.
#[must_use]
pub fn usual_constants(validation: &Validation) -> Constants {
    let measured = validation.cases.iter().filter(|case| case.error().is_some());
    constant::usual(&measured.filter_map(|case| case.question.as_ref()).collect::<Vec<_>>())
}

/// Runs that can take part, and what the fit moves of them.
struct Bench {
    observations: Vec<Observation>,
    halves: Vec<Option<Half>>,
    constants: Vec<Constant>,
    /// The logarithms of the values in force.
    in_force: Vec<f64>,
}

/// Fits constants to measured runs.
///
/// # Errors
/// If there is nothing to fit, or nothing to fit it to.
pub fn calibrate(validation: &Validation, constants: &Constants, ask: &Ask) -> Result<Calibration, Unfit> {
    let groups: Vec<&str> = validation.cases.iter().map(|case| case.run.group.as_str()).unique().collect();
    if let Some(unknown) = ask.leave_out.iter().find(|group| !groups.contains(&group.as_str())) {
        return Err(Unfit::NoGroup(unknown.clone()));
    }
    if ask.half.is_some() && validation.halves.iter().all(Option::is_none) {
        return Err(Unfit::NoHalves);
    }
    let bench = Bench::of(validation, constants)?;
    let is_out = |group: &String| ask.leave_out.contains(group) || constants.leave_out.contains(group);
    let takes_part = |k: usize| {
        let is_of_half = ask.half.is_none_or(|half| bench.halves[k] == Some(half));
        is_of_half && !is_out(&bench.observations[k].group)
    };
    let chosen: Vec<usize> = (0..bench.observations.len()).filter(|&k| takes_part(k)).collect();
    if chosen.is_empty() {
        return Err(Unfit::NoRuns);
    }
    let solution = bench.fit(&chosen, &bench.in_force);
    let (before, after) = (bench.errors_in_force(), bench.errors(&solution));
    let score = |errors: &[f64], of: &[usize]| Score::of(&of.iter().map(|&k| errors[k]).collect::<Vec<_>>());
    let of_fit = |errors: &[f64]| score(errors, &chosen).ok_or(Unfit::NoRuns);
    let without = |group: &str| {
        let rest: Vec<usize> = chosen.iter().copied().filter(|&k| bench.observations[k].group != group).collect();
        let members: Vec<usize> =
            (0..bench.observations.len()).filter(|&k| bench.observations[k].group == group).collect();
        let errors = bench.errors(&bench.fit(&rest, &solution.logarithms));
        Some((group.to_owned(), score(&errors, &members)?))
    };
    let left_out = chosen.iter().map(|&k| bench.observations[k].group.as_str()).unique();
    Ok(Calibration {
        constants: bench.fitted(&solution, &chosen),
        before: of_fit(&before)?,
        after: of_fit(&after)?,
        groups: bench.groups(&before, &after, &takes_part),
        one_by_one: bench.one_by_one(&chosen, &solution),
        without_group: left_out.filter(|_| ask.leaves_each_out).filter_map(without).collect(),
    })
}

impl Bench {
    fn of(validation: &Validation, constants: &Constants) -> Result<Self, Unfit> {
        let mut bench =
            Self { observations: Vec::new(), halves: Vec::new(), constants: Vec::new(), in_force: Vec::new() };
        let measured = validation.cases.iter().zip(&validation.halves).filter(|(case, _)| case.error().is_some());
        let asked: Vec<_> = measured.filter_map(|(case, half)| Some((case, half, case.question.as_ref()?))).collect();
        if asked.is_empty() {
            return Err(Unfit::NoRuns);
        }
        let is_used = |constant: &&Constant| asked.iter().any(|(.., question)| !constant.slots(question).is_empty());
        bench.constants = constants.list.iter().filter(is_used).cloned().collect();
        if bench.constants.is_empty() {
            return Err(Unfit::NoConstants);
        }
        for (case, half, question) in &asked {
            bench.halves.push(**half);
            bench.observations.push(Observation {
                inputs: question.inputs.clone(),
                measured: case.measured.unwrap_or(f64::NAN),
                group: case.run.group.clone(),
                slots: bench.constants.iter().map(|constant| constant.slots(question)).collect(),
            });
        }
        for (k, constant) in bench.constants.iter().enumerate() {
            let value = |observation: &Observation| observation.inputs.get(*observation.slots[k].first()?).into();
            let values: Vec<f64> =
                bench.observations.iter().filter_map(value).unique_by(|value: &f64| value.to_bits()).collect();
            if values.iter().any(|&value| value <= 0.0 || value.is_nan()) {
                return Err(Unfit::Zero(constant.name()));
            }
            let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
            bench.in_force.push(logarithms / crate::units::real(values.len() as u64));
        }
        Ok(bench)
    }

    fn fit(&self, chosen: &[usize], start: &[f64]) -> Solution {
        let observations: Vec<Observation> = chosen.iter().map(|&k| self.observations[k].clone()).collect();
        let prior = |(constant, &in_force): (&Constant, &f64)| constant.prior.map_or(in_force, f64::ln);
        let priors: Vec<f64> = self.constants.iter().zip(&self.in_force).map(prior).collect();
        fit(&observations, &self.constants, &priors, start)
    }

    /// The errors of all runs with the constants of a fit.
    fn errors(&self, solution: &Solution) -> Vec<f64> {
        self.each(|observation, evaluator| observation.predict(&self.constants, &solution.logarithms, evaluator))
    }

    /// The errors of all runs with the values in force.
    fn errors_in_force(&self) -> Vec<f64> {
        self.each(|observation, evaluator| observation.predict(&[], &[], evaluator))
    }

    fn each(&self, predict: impl Fn(&Observation, &mut Evaluator) -> Option<f64> + Sync) -> Vec<f64> {
        let error = |evaluator: &mut Evaluator, observation: &Observation| {
            predict(observation, evaluator).map_or(f64::INFINITY, |seconds| seconds / observation.measured - 1.0)
        };
        self.observations.par_iter().map_init(Evaluator::default, error).collect()
    }

    fn fitted(&self, solution: &Solution, chosen: &[usize]) -> Vec<Fitted> {
        let each = self.constants.iter().enumerate().map(|(k, constant)| Fitted {
            before: constant.value(self.in_force[k]),
            after: constant.value(solution.logarithms[k]),
            spread: solution.spreads[k],
            runs: chosen.iter().filter(|&&run| !self.observations[run].slots[k].is_empty()).count(),
            constant: constant.clone(),
        });
        each.collect()
    }

    fn groups(&self, before: &[f64], after: &[f64], takes_part: &dyn Fn(usize) -> bool) -> Vec<GroupErrors> {
        let key = |k: usize| (self.observations[k].group.clone(), self.halves[k], takes_part(k));
        let all = 0..self.observations.len();
        let members = |of: &(String, Option<Half>, bool)| all.clone().filter(|&k| key(k) == *of).collect::<Vec<_>>();
        let order: Vec<String> = self.observations.iter().map(|run| run.group.clone()).unique().collect();
        let place = |of: &(String, Option<Half>, bool)| order.iter().position(|group| *group == of.0);
        let keys = all.clone().map(key).unique().sorted_by_key(|of| (place(of), of.1));
        let score = |errors: &[f64], of: &[usize]| Score::of(&of.iter().map(|&k| errors[k]).collect::<Vec<_>>());
        let each = keys.filter_map(|of| {
            let members = members(&of);
            let (before, after) = (score(before, &members)?, score(after, &members)?);
            Some(GroupErrors { group: of.0, half: of.1, is_fitted: of.2, before, after })
        });
        each.collect()
    }

    /// The errors of the runs of a fit, each predicted by a fit without it.
    fn one_by_one(&self, chosen: &[usize], solution: &Solution) -> Option<Score> {
        if chosen.len() > MOST_RUNS_ONE_BY_ONE {
            return None;
        }
        let error = |&left: &usize| {
            let rest: Vec<usize> = chosen.iter().copied().filter(|&k| k != left).collect();
            self.errors(&self.fit(&rest, &solution.logarithms))[left]
        };
        Score::of(&chosen.iter().map(error).collect::<Vec<_>>())
    }
}

impl Calibration {
    /// The fitted presets as lines of a sweep: names that stand where presets stand.
    ///
    /// ```yaml
    /// define:
    ///   A100-SXM-80GB-fitted: {preset: A100-SXM-80GB, gemm_efficiency: 0.71}
    /// ```
    #[must_use]
    pub fn presets(&self) -> String {
        let keys = self.constants.iter().flat_map(|fitted| {
            let value = format!("{}: {}", fitted.constant.key, written(&fitted.constant, fitted.after));
            fitted.constant.presets.iter().map(move |preset| (preset.clone(), value.clone()))
        });
        let by_preset = keys.into_grouping_map().fold(String::new(), |text, _, value| format!("{text}, {value}"));
        let lines = by_preset.into_iter().sorted();
        let lines = lines.map(|(preset, keys)| format!("  {preset}-fitted: {{preset: {preset}{keys}}}\n"));
        let plain = self.constants.iter().filter(|fitted| fitted.constant.presets.is_empty());
        let plain =
            plain.map(|fitted| format!("{}: {}\n", fitted.constant.key, written(&fitted.constant, fitted.after)));
        let defined = lines.collect::<String>();
        let head = if defined.is_empty() { "" } else { "define:\n" };
        format!("{head}{defined}{}", plain.collect::<String>())
    }
}

/// A value as a sweep has it, with its unit.
#[must_use]
pub fn written(constant: &Constant, value: f64) -> String {
    let unit = constant.meaning().map_or(crate::units::Unit::NONE, crate::sweep::key::Key::unit);
    crate::units::human(value, unit)
}
