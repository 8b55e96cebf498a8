//! The summary: counts by status and reason, the front, the best of each compared alternative; one pass over a folder.

use std::collections::{BTreeMap, HashMap};

use itertools::Itertools;
use polars::prelude::{AnyValue, Column as Series, DataFrame};

use super::folder::{Folder, RowPlace};
use super::front::{Front, Member};
use super::store::StoreError;
use crate::column::Direction;

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Columns that tell compared alternatives apart.
    pub compare: Vec<String>,
    /// The alternatives that are known beforehand, by their values in these columns: each has its line.
    pub alternatives: Vec<Vec<AnyValue<'static>>>,
    /// Objectives.
    pub objectives: Vec<(String, Direction)>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Rows by status and reason.
    pub counts: BTreeMap<(String, String), u64>,
    /// The front over all feasible points.
    pub front: Vec<Member<RowPlace>>,
    /// The compared alternatives: those known beforehand in their order, then those that were met.
    pub compared: Vec<Compared>,
    /// The point that lacks least memory, and how many bytes it lacks.
    pub nearest: Option<(RowPlace, f64)>,
    /// For each requirement the best point by the first objective that exists and fails it, and its cost.
    pub unmet: BTreeMap<String, (RowPlace, f64)>,
}

/// A compared alternative.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Its values in the columns that are compared.
    pub name: Vec<AnyValue<'static>>,
    /// How many points were tried.
    pub points: u64,
    /// How many are feasible.
    pub feasible: u64,
    /// The best feasible one: its place and objectives, turned so that less is better.
    pub best: Option<(RowPlace, Vec<f64>)>,
}

impl Summary {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How many rows have a status.
    #[must_use]
    pub fn with_status(&self, status: &str) -> u64 {
        self.counts.iter().filter(|count| count.0.0 == status).map(|count| count.1).sum()
    }

    /// Reads a folder once, column by column.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn of(folder: &Folder, ask: &Ask) -> Result<Self, StoreError> {
        let known = folder.columns()?;
        let mut columns = vec!["status".to_owned(), "reason".to_owned()];
        let has_margin = known.iter().any(|column| column == MARGIN);
        columns.extend(has_margin.then(|| MARGIN.to_owned()));
        let asked = ask.compare.iter().chain(ask.objectives.iter().map(|objective| &objective.0));
        for column in asked {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        let compared =
            ask.alternatives.iter().unique_by(|name| texts(name)).map(|name| Compared::new(name.clone())).collect();
        let mut summary = Self { compared, ..Self::default() };
        let mut front = Front::default();
        let known = summary.compared.iter().enumerate();
        let mut groups: Groups = known.map(|(place, compared)| (texts(&compared.name), place)).collect();
        for file in 0..folder.files.len() {
            let frame = folder.read(file, Some(&columns))?;
            summary.add(file, &frame, ask, has_margin, &mut front, &mut groups)?;
        }
        summary.front = front.sorted();
        Ok(summary)
    }

    fn add(
        &mut self,
        file: usize,
        frame: &DataFrame,
        ask: &Ask,
        has_margin: bool,
        front: &mut Front<RowPlace>,
        groups: &mut Groups,
    ) -> Result<(), StoreError> {
        let statuses = frame.column("status")?.str()?.clone();
        let reasons = frame.column("reason")?.str()?.clone();
        let margins = if has_margin { Some(numbers(frame.column(MARGIN)?)) } else { None };
        let objectives: Vec<(Vec<f64>, Direction)> = ask
            .objectives
            .iter()
            .map(|(column, direction)| Ok((numbers(frame.column(column)?), *direction)))
            .collect::<Result<_, StoreError>>()?;
        let compared: Vec<&Series> =
            ask.compare.iter().map(|column| Ok(frame.column(column)?)).collect::<Result<_, StoreError>>()?;
        let mut costs = vec![0.0; objectives.len()];
        let mut tally: Vec<(&str, &str, u64)> = Vec::new();
        let mut group = None;
        let mut last_name = Vec::new();
        for (row, (status, reason)) in statuses.iter().zip(reasons.iter()).enumerate() {
            let (status, reason) = (status.unwrap_or_default(), reason.unwrap_or_default());
            match tally.iter_mut().find(|count| count.0 == status && count.1 == reason) {
                Some(count) => count.2 += 1,
                None => tally.push((status, reason, 1)),
            }
            let place = RowPlace { file, row };
            let feasible = status == "feasible";
            for (cost, (values, direction)) in costs.iter_mut().zip(&objectives) {
                *cost = direction.cost(values[row]);
            }
            if feasible {
                front.insert(place, &costs);
            } else if status == "unmet" {
                let cost = costs.first().copied().filter(|cost| !cost.is_nan()).unwrap_or(f64::INFINITY);
                if self.unmet.get(reason).is_none_or(|best| cost < best.1) {
                    self.unmet.insert(reason.to_owned(), (place, cost));
                }
            } else if reason == "memory"
                && let Some(lacks) = margins.as_ref().map(|margins| -margins[row])
                && self.nearest.is_none_or(|nearest| lacks < nearest.1)
            {
                self.nearest = Some((place, lacks));
            }
            if !compared.is_empty() {
                let name = names(&compared, row)?;
                if group.is_none() || name != last_name {
                    last_name.clone_from(&name);
                    group = Some(*groups.entry(texts(&name)).or_insert_with(|| {
                        self.compared.push(Compared::new(name));
                        self.compared.len() - 1
                    }));
                }
                if let Some(group) = group {
                    self.compared[group].take(place, feasible, &costs);
                }
            }
        }
        for (status, reason, count) in tally {
            *self.counts.entry((status.to_owned(), reason.to_owned())).or_default() += count;
        }
        Ok(())
    }
}

/// Where the alternative of each name stands, by the texts of its values.
type Groups = HashMap<Vec<String>, usize>;

impl Compared {
    fn new(name: Vec<AnyValue<'static>>) -> Self {
        Self { name, points: 0, feasible: 0, best: None }
    }

    fn take(&mut self, place: RowPlace, feasible: bool, costs: &[f64]) {
        self.points += 1;
        if !feasible || costs.first().is_none_or(|cost| cost.is_nan()) {
            return;
        }
        self.feasible += 1;
        let better = |best: &(RowPlace, Vec<f64>)| {
            let orders = costs.iter().zip(&best.1).map(|(new, old)| new.total_cmp(old));
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).is_lt()
        };
        if self.best.as_ref().is_none_or(better) {
            self.best = Some((place, costs.to_vec()));
        }
    }
}

/// The column by which near misses are measured.
const MARGIN: &str = "memory_margin_bytes";

/// A column as numbers; NaN where there is none.
#[must_use]
pub fn numbers(column: &Series) -> Vec<f64> {
    if let Ok(values) = column.f64() {
        values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
    } else if let Ok(values) = column.i64() {
        values.iter().map(|value| value.map_or(f64::NAN, crate::units::from_signed)).collect()
    } else {
        vec![f64::NAN; column.len()]
    }
}

/// The same values have the same texts.
fn texts(name: &[AnyValue<'_>]) -> Vec<String> {
    name.iter().map(super::sink::csv::text).collect()
}

/// The values of a row.
fn names(columns: &[&Series], row: usize) -> Result<Vec<AnyValue<'static>>, StoreError> {
    columns.iter().map(|column| Ok(column.get(row)?.into_static())).collect()
}
