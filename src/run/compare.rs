//! What is compared: every alternative of a sweep, whether any point of it is tried or none, and what removes it.

use std::cmp::Reverse;

use itertools::Itertools;
use polars::prelude::AnyValue;

use super::preview::sample;
use crate::sweep::axis::Alternative;
use crate::sweep::subject::{Shown, in_first_dimension};
use crate::sweep::{Dtype, InputColumn, Sweep};

/// How many alternatives are listed before any of them is found in a row.
const MAX_CANDIDATES: usize = 1024;
/// How many numbers of an alternative are looked at for what removes it.
const LOOKED_AT: u64 = 20_000;

/// An alternative that is compared, or a combination of them.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What it is called, axis by axis.
    pub labels: Vec<String>,
    /// Its values in the columns that are compared.
    pub values: Vec<AnyValue<'static>>,
    /// Its axes and which of their alternatives it takes.
    digits: Vec<(usize, usize)>,
}

/// Every alternative that is compared; none where that cannot be told from the axes alone.
#[must_use]
pub fn candidates(sweep: &Sweep) -> Vec<Candidate> {
    let compared = &sweep.decide.compare;
    let axes: Option<Vec<usize>> = compared.iter().map(|shown| shown.axis).collect();
    let Some(axes) = axes.filter(|axes| !axes.is_empty()) else { return Vec::new() };
    let counts = axes.iter().map(|&axis| sweep.space.axes[axis].alternatives.len());
    if counts.clone().fold(1, usize::saturating_mul) > MAX_CANDIDATES {
        return Vec::new();
    }
    let all: Option<Vec<Candidate>> = counts
        .map(|count| 0..count)
        .multi_cartesian_product()
        .map(|digits| {
            let taken = |(&axis, &k): (&usize, &usize)| &sweep.space.axes[axis].alternatives[k];
            let alternatives = axes.iter().zip(&digits).map(taken).collect_vec();
            let values =
                compared.iter().zip(&alternatives).map(|(shown, alternative)| values(sweep, shown, alternative));
            Some(Candidate {
                labels: alternatives.iter().map(|alternative| alternative.label.clone()).collect(),
                values: values.collect::<Option<Vec<_>>>()?.concat(),
                digits: axes.iter().copied().zip(digits).collect(),
            })
        })
        .collect();
    all.unwrap_or_default()
}

/// The values of an alternative in its columns, where they do not depend on others.
fn values(sweep: &Sweep, shown: &Shown, alternative: &Alternative) -> Option<Vec<AnyValue<'static>>> {
    let of = |name: &String| {
        let column = sweep.columns.iter().find(|column| column.column.name == *name)?;
        let slot = column.slot()?;
        let set = alternative.settings.iter().find(|setting| in_first_dimension(setting.slot as usize) == slot);
        let number = set.map_or(sweep.space.base[slot], |setting| setting.value);
        value(sweep, column, number)
    };
    shown.columns.iter().map(of).collect()
}

/// A number of a column as it stands in the table; none if it is still to be worked out: `rest`, a batch in tokens.
fn value(sweep: &Sweep, column: &InputColumn, number: f64) -> Option<AnyValue<'static>> {
    if let Some(text) = column.text(number, &sweep.names, &sweep.tiers) {
        return Some(AnyValue::StringOwned(text.into()));
    }
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    match column.column.dtype {
        Dtype::Count => Some(AnyValue::Int64(crate::units::signed(number))),
        Dtype::Real => Some(AnyValue::Float64(number)),
        Dtype::Flag => Some(AnyValue::Boolean(number != 0.0)),
        Dtype::Text => None,
    }
}

/// The rule that removes most of an alternative, counted over its numbers or a sample of them.
#[must_use]
pub fn remover<'a>(sweep: &'a Sweep, candidate: &Candidate) -> Option<&'a str> {
    let space = &sweep.space;
    let mut ranges = space.axes.iter().map(|axis| (0, axis.len)).collect_vec();
    for &(axis, k) in &candidate.digits {
        let of = &space.axes[axis];
        ranges[axis] = (of.starts[k], of.alternatives[k].len);
    }
    let numbers = ranges.iter().fold(1_u64, |product, range| product.saturating_mul(range.1));
    let removed = sample(numbers, LOOKED_AT).filter_map(|mut number| {
        let mut digits = ranges
            .iter()
            .rev()
            .map(|&(from, len)| {
                let digit = from + number % len;
                number /= len;
                digit
            })
            .collect_vec();
        digits.reverse();
        space.remover(&space.cursor(space.index(&digits)).inputs)
    });
    let most = removed.counts().into_iter().max_by_key(|&(remover, count)| (count, Reverse(remover)))?;
    Some(space.name(most.0))
}
