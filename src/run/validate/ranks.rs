//! Ranks: among plans of equal work, is the plan that we predict to be best one of the best measured?

use itertools::Itertools as _;

use super::Validation;
use super::predict::Case;
use crate::units::real;

/// The fewest distinct plans of a group that is ranked.
const FEWEST: usize = 5;
/// What equal work has in common.
const WORK: [&str; 13] = [
    "model",
    "layers",
    "hidden",
    "heads",
    "ffn",
    "vocab",
    "seq",
    "experts",
    "gpus",
    "gpu_type",
    "interconnect",
    "precision",
    "global_batch",
];
/// What makes a plan another one.
const PLAN: [&str; 11] =
    ["tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "recompute", "seq_parallel", "zero_stage", "schedule"];

/// The ranks of one group of plans.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// The source.
    pub group: String,
    /// One of its rows.
    pub first: String,
    /// How many distinct plans.
    pub plans: usize,
    /// Kendall's rank correlation tau-b.
    pub tau: f64,
    /// How much longer than the best the plan takes that is predicted to be best, as a share.
    pub regret: f64,
    /// The same of the best of the three that are predicted to be best.
    pub best_of_three: f64,
}

/// The ranks of every group of five or more distinct plans of equal work; rows of one plan are averaged.
#[must_use]
pub fn ranks(validation: &Validation) -> Vec<Ranks> {
    let ranked = validation.cases.iter().filter(|case| case.error().is_some());
    let by_work = ranked.into_group_map_by(|case| (case.run.group.clone(), of(case, &WORK)));
    let found = by_work.into_iter().sorted_by(|a, b| a.0.cmp(&b.0)).filter_map(|((group, _), cases)| {
        let by_plan = cases.iter().into_group_map_by(|case| of(case, &PLAN));
        let plans: Vec<(f64, f64)> =
            by_plan.into_iter().sorted_by(|a, b| a.0.cmp(&b.0)).map(|plan| mean(&plan.1)).collect();
        let first = cases.first().map(|case| case.run.id.clone()).filter(|_| plans.len() >= FEWEST)?;
        let [regret, best_of_three] = [1, 3].map(|first| regret(&plans, first));
        Some(Ranks { group, first, plans: plans.len(), tau: tau(&plans), regret, best_of_three })
    });
    found.collect()
}

fn of(case: &Case, columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| case.run.text(column).unwrap_or_default().to_owned()).collect()
}

/// Predicted and measured time of one plan, the means of its rows.
fn mean(cases: &[&&Case]) -> (f64, f64) {
    let times = cases.iter().filter_map(|case| Some((case.prediction?.seconds, case.measured?)));
    let sum = times.fold((0.0, 0.0), |sum, times| (sum.0 + times.0, sum.1 + times.1));
    let count = real(cases.len() as u64);
    (sum.0 / count, sum.1 / count)
}

/// How much longer than the best measured plan the best of those takes that are predicted to be the first.
fn regret(plans: &[(f64, f64)], first: usize) -> f64 {
    let least = |plans: &mut dyn Iterator<Item = f64>| plans.fold(f64::INFINITY, f64::min);
    let chosen = plans.iter().sorted_by(|a, b| a.0.total_cmp(&b.0)).take(first);
    least(&mut chosen.map(|plan| plan.1)) / least(&mut plans.iter().map(|plan| plan.1)) - 1.0
}

/// Kendall's rank correlation: pairs in the same order less pairs in the other, over the pairs that are not tied in each.
///
/// ```text
/// tau = (C - D) / sqrt((C + D + Tx) (C + D + Ty))                                        [Kendall45]
/// ```
///
/// Tx pairs are tied in the prediction alone, Ty in the measurement alone.
fn tau(plans: &[(f64, f64)]) -> f64 {
    let (mut sum, mut predicted, mut measured) = (0.0, 0.0, 0.0);
    for [a, b] in plans.iter().array_combinations() {
        let sign = |difference: f64| if difference == 0.0 { 0.0 } else { difference.signum() };
        let (x, y) = (sign(a.0 - b.0), sign(a.1 - b.1));
        sum += x * y;
        predicted += x * x;
        measured += y * y;
    }
    let pairs: f64 = predicted * measured;
    if pairs > 0.0 { sum / pairs.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_agree_are_one() {
        assert_eq!(tau(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]), 1.0);
        // Pairs: 1 against 2 agree, 1 against 3 agree, 2 against 3 do not: (2 - 1) / 3.
        assert!((tau(&[(1.0, 10.0), (2.0, 30.0), (3.0, 20.0)]) - 1.0 / 3.0).abs() < 1e-12);
        // One pair tied in the prediction: 2 / sqrt(2 * 3).
        assert!((tau(&[(1.0, 10.0), (2.0, 20.0), (2.0, 30.0)]) - 2.0 / 6.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn regret_is_what_the_choice_costs() {
        let plans = [(1.0, 11.0), (2.0, 10.5), (3.0, 12.0), (4.0, 10.0)];
        assert!((regret(&plans, 1) - 0.10).abs() < 1e-12 && (regret(&plans, 3) - 0.05).abs() < 1e-12);
    }
}
