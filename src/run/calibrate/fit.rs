//! The fit: robust least squares on the logarithm of predicted over measured time, with weak priors.

use itertools::Itertools as _;
use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::{DMatrix, DVector, Dyn, Owned};
use rayon::prelude::*;

use super::constant::Constant;
use crate::run::evaluate::Evaluator;
use crate::run::validate::predict::predict;
use crate::sweep::Inputs;
use crate::units::{narrow, real};

/// Errors well above this, as logarithms, count by their size and no more by its square.
const SCALE: f64 = 0.08;
/// What the priors weigh against measurements.
const PRIOR: f64 = 0.7;
/// The step of a difference, as a logarithm.
const STEP: f64 = 1e-3;
/// What a run counts that no trial value lets be predicted, as a logarithm.
const LOST: f64 = 3.0;
/// The weight of a group with as many runs as this or more; a smaller one weighs less, by its share of them.
const FULL_GROUP: f64 = 6.0;
/// Evaluations of all runs, in units of the number of constants, after which a fit gives up.
const PATIENCE: usize = 40;

/// One run in a fit.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The values of its point.
    pub inputs: Inputs,
    /// Seconds of a step, as measured.
    pub measured: f64,
    /// Its group.
    pub group: String,
    /// For each constant the slots that have it.
    pub slots: Vec<Vec<usize>>,
}

/// What a fit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The logarithm of each constant.
    pub logarithms: Vec<f64>,
    /// Its standard deviation.
    pub spreads: Vec<f64>,
}

impl Observation {
    /// The time that constants predict, in seconds; none if there is no such point.
    #[must_use]
    pub fn predict(&self, constants: &[Constant], logarithms: &[f64], evaluator: &mut Evaluator) -> Option<f64> {
        let mut inputs = self.inputs.clone();
        for ((constant, &logarithm), slots) in constants.iter().zip(logarithms).zip(&self.slots) {
            for &slot in slots {
                inputs.set(narrow(slot as u64), constant.value(logarithm), true);
            }
        }
        inputs.complete();
        predict(&inputs, evaluator).ok().map(|prediction| prediction.seconds)
    }

    /// The logarithm of predicted over measured time.
    fn error(&self, constants: &[Constant], logarithms: &[f64], evaluator: &mut Evaluator) -> f64 {
        self.predict(constants, logarithms, evaluator).map_or(LOST, |seconds| (seconds / self.measured).ln())
    }

    /// The error, and how it moves with each constant.
    fn slopes(&self, constants: &[Constant], logarithms: &[f64], evaluator: &mut Evaluator) -> Vec<f64> {
        let here = self.error(constants, logarithms, evaluator);
        let mut moved = logarithms.to_vec();
        let slope = |k: usize| {
            if self.slots[k].is_empty() {
                return 0.0;
            }
            moved[k] = logarithms[k] + STEP;
            let there = self.error(constants, &moved, evaluator);
            moved[k] = logarithms[k];
            (there - here) / STEP
        };
        (0..constants.len()).map(slope).collect()
    }
}

/// The weight of a run of a group of so many: groups of six and more weigh the same.
///
/// ```text
/// w = 6 / sqrt(max(n, 6))
/// ```
fn weight(members: usize) -> f64 {
    FULL_GROUP / real(members as u64).max(FULL_GROUP).sqrt()
}

/// A robust residual: r where it is small, as its root where it is large.
///
/// ```text
/// rho = sign(z) sqrt(2 (sqrt(1 + z^2) - 1))       z = r / 0.08
/// ```
///
/// Worked: z = 0.5 gives 0.486, z = 8 gives 3.758.
fn robust(error: f64) -> f64 {
    let z = error / SCALE;
    z.signum() * (2.0 * (z.hypot(1.0) - 1.0)).sqrt()
}

/// How a robust residual moves with its error.
fn robust_slope(error: f64) -> f64 {
    /// Below it the root is its argument to more than the digits of a number.
    const LINEAR: f64 = 1e-6;
    let z = error / SCALE;
    if z.abs() < LINEAR { 1.0 / SCALE } else { z / (z.hypot(1.0) * robust(error)) / SCALE }
}

/// A fit under way.
struct Problem<'a> {
    observations: &'a [Observation],
    constants: &'a [Constant],
    weights: Vec<f64>,
    priors: &'a [f64],
    logarithms: DVector<f64>,
    errors: Vec<f64>,
}

impl Problem<'_> {
    fn each<T: Send>(&self, of: impl Fn(&Observation, &mut Evaluator) -> T + Sync) -> Vec<T> {
        let evaluate = |evaluator: &mut Evaluator, observation: &Observation| of(observation, evaluator);
        self.observations.par_iter().map_init(Evaluator::default, evaluate).collect()
    }
}

impl LeastSquaresProblem<f64, Dyn, Dyn> for Problem<'_> {
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;
    type ParameterStorage = Owned<f64, Dyn>;

    fn set_params(&mut self, logarithms: &DVector<f64>) {
        self.logarithms.copy_from(logarithms);
        let values = logarithms.as_slice();
        self.errors = self.each(|observation, evaluator| observation.error(self.constants, values, evaluator));
    }

    fn params(&self) -> DVector<f64> {
        self.logarithms.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let measured = self.errors.iter().zip(&self.weights).map(|(&error, weight)| weight * robust(error));
        let moved = self.logarithms.iter().zip(self.priors).zip(self.constants);
        let prior = moved.map(|((value, prior), constant)| (value - prior) / constant.spread * PRIOR);
        Some(DVector::from_vec(measured.chain(prior).collect()))
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let values = self.logarithms.as_slice();
        let slopes = self.each(|observation, evaluator| observation.slopes(self.constants, values, evaluator));
        let (runs, constants) = (self.observations.len(), self.constants.len());
        Some(DMatrix::from_fn(runs + constants, constants, |row, column| {
            if row < runs {
                self.weights[row] * robust_slope(self.errors[row]) * slopes[row][column]
            } else if row - runs == column {
                PRIOR / self.constants[column].spread
            } else {
                0.0
            }
        }))
    }
}

/// Fits constants to runs, from a start on, with priors that weigh where runs do not decide; both as logarithms.
#[must_use]
pub fn fit(observations: &[Observation], constants: &[Constant], priors: &[f64], start: &[f64]) -> Solution {
    let members = observations.iter().counts_by(|observation| observation.group.as_str());
    let mut problem = Problem {
        observations,
        constants,
        weights: observations.iter().map(|observation| weight(members[observation.group.as_str()])).collect(),
        priors,
        logarithms: DVector::from_column_slice(start),
        errors: Vec::new(),
    };
    problem.set_params(&DVector::from_column_slice(start));
    let (problem, _) = LevenbergMarquardt::new().with_tol(1e-8).with_patience(PATIENCE).minimize(problem);
    let slopes = problem.jacobian().unwrap_or_else(|| DMatrix::zeros(0, constants.len()));
    // Priors make the product regular.
    let covariance = (slopes.transpose() * slopes).try_inverse();
    let spreads = covariance.map_or_else(
        || constants.iter().map(|constant| constant.spread).collect(),
        |covariance| covariance.diagonal().iter().map(|variance| variance.sqrt()).collect(),
    );
    Solution { logarithms: problem.logarithms.as_slice().to_vec(), spreads }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_errors_count_by_their_root() {
        let near = |a: f64, b: f64| (a - b).abs() < 5e-4;
        assert!(near(robust(0.5 * SCALE), 0.486) && near(robust(-8.0 * SCALE), -3.758));
        let numeric = |error: f64| (robust(error + 1e-7) - robust(error - 1e-7)) / 2e-7;
        for error in [-0.3, 0.01, 0.08, 1.0] {
            assert!((numeric(error) / robust_slope(error) - 1.0).abs() < 1e-5, "{error}");
        }
    }

    #[test]
    fn groups_of_six_and_more_weigh_the_same() {
        let total = |members: usize| weight(members).powi(2) * real(members as u64);
        assert!((total(6) / total(1440) - 1.0).abs() < 1e-12);
        assert!((total(3) / total(6) - 0.5).abs() < 1e-12);
    }
}
