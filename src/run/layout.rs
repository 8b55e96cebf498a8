//! The layout of a sweep's table: input columns from the question, output columns from the metrics, joined.

use std::sync::Arc;

use super::anchor::predict;
use crate::column::{Column, Dtype, with_suffix};
use crate::results::TableColumn;
use crate::results::metric::{MetricPart, Scope};
use crate::results::status::Status;
use crate::sweep::algorithm;
use crate::sweep::column::From;
use crate::sweep::key::{DIMS_FROM, TIERS_FROM};
use crate::sweep::recompute;
use crate::sweep::{MetricWord, Sweep, Vocabulary};
use crate::system::MAX_DIMS;
use crate::units::Unit;
use crate::workload::Reason;

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// What became of the point.
    Status,
    /// Why.
    Reason,
    /// What an infeasible point needs.
    Demand,
    /// What there is of it.
    Bound,
    /// An input column, by its place.
    Input(usize),
    /// A metric, of a dimension if it is of one.
    Metric(MetricPart, usize),
    /// A derived value, by its place.
    Derived(usize),
}

/// The columns of a table, behind `id`, and where their values come from.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The columns.
    pub columns: Arc<[TableColumn]>,
    /// Their origins.
    pub origins: Vec<Origin>,
}

/// The columns that every table begins with.
#[must_use]
pub fn fixed_columns() -> [(Column, Origin); 4] {
    let column = |name: &str, dtype, meaning: &str| Column {
        name: name.into(),
        dtype,
        unit: Unit::NONE,
        meaning: meaning.into(),
    };
    [
        (
            column(
                "status",
                Dtype::Text,
                "feasible; infeasible (cannot exist); unmet (exists, not as required); error (our mistake); limit (its simulation takes too many events)",
            ),
            Origin::Status,
        ),
        (column("reason", Dtype::Text, "why it is not feasible; nothing if it is"), Origin::Reason),
        (
            column("demand", Dtype::Real, "what an infeasible point needs: bytes of memory, or what does not divide"),
            Origin::Demand,
        ),
        (
            column("bound", Dtype::Real, "what there is of it: bytes of memory, or what it must be divided by"),
            Origin::Bound,
        ),
    ]
}

/// The name of a metric's column; of a dimension's, for dimension `dim`.
#[must_use]
pub fn metric_column(metric: MetricPart, dim: usize) -> Column {
    let part = metric.part();
    let name = match part.scope() {
        Scope::Dimension(name) => with_suffix(&format!("dim{dim}_{name}"), part.unit()),
        _ => with_suffix(metric.name(), part.unit()),
    };
    Column { name, dtype: part.dtype(), unit: part.unit(), meaning: part.meaning().to_owned() }
}

/// The words of results that a sweep may use.
#[must_use]
pub fn vocabulary() -> Vocabulary {
    let words = single_metrics().map(|metric| {
        let column = metric_column(metric, 0);
        let is_text = column.dtype == Dtype::Text;
        MetricWord { column: column.name, unit: column.unit, better: metric.part().better(), is_text }
    });
    let fixed =
        fixed_columns().into_iter().map(|fixed| fixed.0.name).chain(["id".to_owned(), "network_shape".to_owned()]);
    let of_dims = (0..MAX_DIMS).flat_map(|dim| {
        let dims = MetricPart::ALL.iter().filter(|metric| matches!(metric.part().scope(), Scope::Dimension(_)));
        dims.map(move |&metric| metric_column(metric, dim).name).chain([format!("dim{dim}_name")])
    });
    Vocabulary { metrics: words.collect(), taken: fixed.chain(of_dims).collect(), loader: None, predict: Some(predict) }
}

/// The metrics that have one value at a point, in the order of the vocabulary.
pub fn single_metrics() -> impl Iterator<Item = MetricPart> {
    MetricPart::ALL.iter().copied().filter(|metric| !matches!(metric.part().scope(), Scope::Dimension(_)))
}

impl Layout {
    /// The layout of a sweep's table.
    #[must_use]
    pub fn of(sweep: &Sweep) -> Self {
        let mut columns = Vec::new();
        let mut origins = Vec::new();
        let mut add = |column: Column, words: Vec<String>, origin| {
            let constant = matches!(origin, Origin::Input(k) if is_constant(sweep, sweep.columns[k].from));
            columns.push(TableColumn { column, words: words.into(), constant });
            origins.push(origin);
        };
        for (column, origin) in fixed_columns() {
            let words = match origin {
                Origin::Status => Status::NAMES.iter().map(|&name| name.to_owned()).collect(),
                Origin::Reason => reasons(sweep),
                _ => Vec::new(),
            };
            add(column, words, origin);
        }
        for (k, input) in sweep.columns.iter().enumerate() {
            add(input.column.clone(), words_of(input.from, sweep), Origin::Input(k));
        }
        for &metric in MetricPart::ALL {
            let part = metric.part();
            let dims = match part.scope() {
                Scope::Training if sweep.is_collective => 0,
                Scope::Collective if !sweep.is_collective => 0,
                Scope::Recorded if !sweep.is_recorded() => 0,
                Scope::Step if sweep.is_collective && !sweep.is_recorded() => 0,
                Scope::Family(family) if !sweep.has_family(family) => 0,
                Scope::Training
                | Scope::Step
                | Scope::Family(_)
                | Scope::Collective
                | Scope::Recorded
                | Scope::Both => 1,
                Scope::Dimension(_) => sweep.dims,
            };
            for dim in 0..dims {
                let words = match (part.dtype(), part.words()) {
                    (Dtype::Text, []) => sweep.names.clone(),
                    (_, words) => words.iter().map(|&word| word.to_owned()).collect(),
                };
                add(metric_column(metric, dim), words, Origin::Metric(metric, dim));
            }
        }
        for (column, k) in &sweep.derived {
            add(column.clone(), Vec::new(), Origin::Derived(*k));
        }
        Self { columns: columns.into(), origins }
    }
}

/// Whether an input column has one value all through a sweep.
fn is_constant(sweep: &Sweep, from: From) -> bool {
    match from {
        From::Number(slot)
        | From::Word(slot, _)
        | From::Algorithm(slot)
        | From::Recompute(slot)
        | From::Name(slot)
        | From::Tier(slot) => sweep.space.level(&[slot]) == 0,
        From::Shape => sweep.space.level(&(DIMS_FROM..TIERS_FROM).collect::<Vec<_>>()) == 0,
    }
}

/// The texts of `reason`: those of infeasible points, then the requirements.
fn reasons(sweep: &Sweep) -> Vec<String> {
    let infeasible = Reason::ALL.iter().map(|reason| reason.name().to_owned());
    infeasible.chain(sweep.require.iter().map(|rule| rule.name.clone())).collect()
}

/// The texts of an input column.
fn words_of(from: From, sweep: &Sweep) -> Vec<String> {
    match from {
        From::Word(_, words) => words.iter().map(|&word| word.to_owned()).collect(),
        From::Algorithm(_) => algorithm::texts(&sweep.names),
        From::Recompute(_) => recompute::texts().to_vec(),
        From::Name(_) => sweep.names.clone(),
        From::Tier(_) => std::iter::once("none".to_owned()).chain(sweep.tiers.iter().cloned()).collect(),
        From::Number(_) | From::Shape => Vec::new(),
    }
}
