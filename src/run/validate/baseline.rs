//! The one-constant baseline: arithmetic at one utilisation for each NPU and precision, dense models and mixtures of experts apart.

use std::collections::BTreeMap;

use super::Validation;
use super::predict::Case;
use super::shipped::Half;
use crate::sweep::point;
use crate::units::real;
use crate::workload::{Job, Recompute};

/// What one constant holds for: NPU, precision, whether there are experts.
type Kind = (String, String, bool);
/// Groups of so many rows and more weigh the same.
const FULL_GROUP: usize = 6;

/// The errors of the baseline, run by run; none where there is no measured time, or no constant.
///
/// ```text
/// T = c F / (u R N)                                                      [Korthikanti22]
/// ```
///
/// F model FLOPs of a step on N NPUs of rate R; c = 4/3 with full recomputation, else 1. u, the utilisation, is the weighted
/// median of what was measured on the fitted half, of all runs where there are no halves: groups of six rows and more weigh
/// the same.
#[must_use]
pub fn errors(validation: &Validation) -> Vec<Option<f64>> {
    let ideals: Vec<Option<(Kind, f64)>> = validation.cases.iter().map(ideal).collect();
    let of = |k: usize| Some((ideals[k].as_ref()?, validation.cases[k].measured?));
    let is_fitted = |k: &usize| validation.halves[*k] != Some(Half::HeldOut);
    let fitted = || (0..validation.cases.len()).filter(is_fitted);
    let mut members: BTreeMap<&str, usize> = BTreeMap::new();
    for k in fitted().filter(|&k| of(k).is_some()) {
        *members.entry(&validation.cases[k].run.group).or_default() += 1;
    }
    let mut ratios: BTreeMap<&Kind, Vec<(f64, f64)>> = BTreeMap::new();
    for k in fitted() {
        if let Some(((kind, ideal), measured)) = of(k) {
            let rows = members[validation.cases[k].run.group.as_str()].max(FULL_GROUP);
            ratios.entry(kind).or_default().push((measured / ideal, 1.0 / real(rows as u64)));
        }
    }
    let constants: BTreeMap<&Kind, f64> = ratios.into_iter().map(|(kind, ratios)| (kind, middle(ratios))).collect();
    let error = |k: usize| {
        let ((kind, ideal), measured) = of(k)?;
        Some(ideal * constants.get(kind)? / measured - 1.0)
    };
    (0..validation.cases.len()).map(error).collect()
}

/// The time of a run at the peak rate, and what its constant is that of.
fn ideal(case: &Case) -> Option<(Kind, f64)> {
    /// A second forward pass beside one forward and two backward.
    const AGAIN: f64 = 4.0 / 3.0;
    let question = case.question.as_ref()?;
    let Job::Training(training) = point::job(&question.inputs) else { return None };
    let preset = |section: &str| question.presets.iter().find(|used| used.0 == section).map(|used| used.1.clone());
    let rate = point::system(&question.inputs).npu.peak.get() * case.run.number("gpus")?;
    let work = training.model.flops_per_token(training.seq_len) * real(training.tokens());
    let work = if training.plan.recompute == Recompute::FULL { AGAIN * work } else { work };
    let kind = (preset("cluster.npu")?, preset("precision")?, training.model.has_experts());
    Some((kind, work / rate))
}

/// The weighted median: where half of the weight is below.
fn middle(mut ratios: Vec<(f64, f64)>) -> f64 {
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|ratio| ratio.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let found = ratios.iter().find(|ratio| {
        below += ratio.1;
        below >= half
    });
    found.map_or(f64::NAN, |ratio| ratio.0)
}

#[cfg(test)]
mod tests {
    use super::middle;

    #[test]
    fn the_middle_has_half_of_the_weight_below() {
        assert_eq!(middle(vec![(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), 2.0);
        assert_eq!(middle(vec![(3.0, 5.0), (1.0, 1.0), (2.0, 1.0)]), 3.0);
    }
}
