//! What `decide` may name: whatever part of the file holds an axis, and the columns that tell its alternatives apart.

use std::sync::Arc;

use itertools::Itertools;

use super::algorithm::is_algorithm;
use super::anchor;
use super::axis::Axis;
use super::column::{Column, Dtype, InputColumn};
use super::decide::{self, Decide};
use super::key::{
    DIM_KEYS, DIM_NAMES_FROM, DIMS_FROM, EACH, KEYS, NAMED, NAMES_FROM, Slot, TIER_NAMES_FROM, TIERS_FROM, ZIPS_FROM,
};
use super::refine;
use super::resolve::Resolver;
use super::rule::Rule;
use super::scope::Direction;
use super::walk::{Frame, Line};
use crate::system::MAX_DIMS;
use crate::units::{index, whole};

/// An axis as the table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its path, dimensions by their names.
    pub path: String,
    /// The columns that tell its alternatives apart.
    pub columns: Vec<String>,
    /// What its alternatives are called.
    pub labels: Arc<[String]>,
    /// Its place among the axes of the space; none if an alternative of another holds it.
    pub axis: Option<usize>,
}

/// What `decide` may name: a part of the file, and the axes in it that no other axis in it holds.
#[derive(Debug, Clone)]
pub struct Subject {
    /// As people write it.
    pub name: String,
    /// Its axes.
    pub axes: Vec<Shown>,
}

/// Where an axis stands: what the dimensions around it are called, and the names that are taken by axes that hold it.
#[derive(Debug, Clone, Default)]
struct Around {
    dims: Vec<(usize, String)>,
    labels: Vec<String>,
    taken: Vec<String>,
}

impl Around {
    /// Notes the names of dimensions among some settings.
    fn note(&mut self, settings: impl Iterator<Item = (Slot, f64)>, names: &[String]) {
        for (slot, value) in settings {
            let dim = (slot as usize).checked_sub(DIM_NAMES_FROM).filter(|&dim| dim < MAX_DIMS);
            if let (Some(dim), Some(name)) = (dim, names.get(index(whole(value)))) {
                self.dims.push((dim, name.clone()));
            }
        }
    }

    /// A path with dimensions by their names: `leaf.bandwidth`.
    fn path(&self, path: &str) -> String {
        let dim = |number: &str| {
            number.parse().ok().and_then(|number: usize| self.dims.iter().rev().find(|dim| dim.0 == number))
        };
        let below = path.strip_prefix("cluster.network.").and_then(|rest| rest.split_once('.'));
        let named = below.and_then(|(number, field)| Some(format!("{}.{field}", dim(number)?.1)));
        named.unwrap_or_else(|| path.to_owned())
    }

    /// Every name of a path: each run of its words, dimensions by their own names or by `dim0`.
    fn names(&self, path: &str) -> Vec<String> {
        let with = |dim: &dyn Fn(usize) -> Option<String>| {
            let word = |(k, word): (usize, &str)| match word.parse() {
                Ok(number) if k == 2 => dim(number).unwrap_or_else(|| word.to_owned()),
                _ => word.to_owned(),
            };
            path.split('.').enumerate().map(word).collect_vec()
        };
        let own = |number| self.dims.iter().rev().find(|dim| dim.0 == number).map(|dim| dim.1.clone());
        let numbered = |number| Some(format!("dim{number}"));
        let runs = |words: Vec<String>| {
            let spans = (0..words.len()).flat_map(|from| (from..words.len()).map(move |to| (from, to))).collect_vec();
            spans.into_iter().map(move |(from, to)| words[from..=to].join("."))
        };
        runs(with(&own)).chain(runs(with(&numbered))).unique().collect()
    }
}

impl Resolver<'_> {
    #[expect(clippy::too_many_arguments, reason = "the parts of a sweep that `decide` may name")]
    pub(super) fn decide(
        &mut self,
        lines: &[Line],
        frame: &Frame,
        columns: &[InputColumn],
        derived_columns: &[(Column, usize)],
        labels: &[(usize, Vec<String>)],
        dims: &[(String, Option<usize>, usize)],
        derived: &[Rule],
        is_collective: bool,
    ) -> Decide {
        let entries = self.entries_of(lines, "decide");
        let refine = lines.iter().any(|line| line.0 == "refine").then(|| self.entries_of(lines, "refine"));
        let subjects = self.subjects(frame, columns, labels);
        let metrics = self.vocabulary.metrics.clone();
        let names = self.names(dims, labels, derived, &metrics);
        let numbers: Vec<String> = columns
            .iter()
            .filter(|column| matches!(column.column.dtype, Dtype::Count | Dtype::Real))
            .map(|column| column.column.name.clone())
            .chain(derived_columns.iter().map(|column| column.0.name.clone()))
            .chain(metrics.iter().filter(|metric| !metric.is_text).map(|metric| metric.column.clone()))
            .collect();
        let keys = KEYS.iter().flat_map(|key| [key.path, key.name(), key.path.split('.').next().unwrap_or_default()]);
        let fixed = keys
            .chain(NAMED.iter().copied())
            .map(str::to_owned)
            .chain(self.walker.used_define.iter().cloned())
            .collect_vec();
        let mut complaints = Vec::new();
        let anchor = anchor::name_of(lines);
        let mut decide = decide::read(&entries, &subjects, &fixed, &names, &numbers, anchor, &mut complaints);
        if decide.objectives.is_empty() {
            let time = if is_collective { "finish_time_s" } else { "iteration_time_s" };
            decide.objectives = vec![(time.to_owned(), Direction::Min), ("npus".to_owned(), Direction::Min)];
        }
        decide.refine =
            refine.map(|entries| refine::read(&entries, &decide.objectives[0], &names, &numbers, &mut complaints));
        self.walker.diagnostics.append(&mut complaints);
        if let Some(entry) = entries.iter().find(|entry| entry.key == "compare") {
            let compared = decide.columns();
            let is_compared = |column: &&InputColumn| compared.contains(&column.column.name.as_str());
            let slots = columns.iter().filter(is_compared).filter_map(InputColumn::slot).collect_vec();
            self.jobs_not_compared(&entry.node, &slots, &frame.axes);
        }
        decide
    }

    /// What `decide` may name: parts of the file with axes, names of alternatives with axes, columns that axes change.
    fn subjects(&self, frame: &Frame, columns: &[InputColumn], labels: &[(usize, Vec<String>)]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        let mut around = Around::default();
        around.note(frame.settings.iter().map(|setting| (setting.0, setting.1)), &self.walker.names);
        for (place, axis) in frame.axes.iter().enumerate() {
            self.visit(axis, Some(place), &around, (columns, labels), &mut subjects);
        }
        // What follows from an alternative may be named too: the `model` that a zip's rows set.
        let follows = |slot: Slot| columns.iter().find(|column| column.slot() == Some(slot as usize));
        let touched = frame.axes.iter().flat_map(|axis| axis.touched.iter().copied()).unique();
        for column in touched.filter_map(follows) {
            let slot = column.slot().unwrap_or_default();
            let labels = labels.iter().find(|label| label.0 == slot).map_or(&[][..], |label| &label.1);
            let name = column.column.name.clone();
            let shown = Shown { path: name.clone(), columns: vec![name], labels: labels.into(), axis: None };
            for name in both_names(&column.column) {
                if subjects.iter().all(|subject| subject.name != name) {
                    subjects.push(Subject { name, axes: vec![shown.clone()] });
                }
            }
        }
        subjects
    }

    /// Adds an axis, and those that its alternatives hold, to the subjects that they belong to.
    fn visit(
        &self,
        axis: &Axis,
        place: Option<usize>,
        around: &Around,
        table: (&[InputColumn], &[(usize, Vec<String>)]),
        subjects: &mut Vec<Subject>,
    ) {
        let (columns, labels) = table;
        let shown = columns_of(axis, self.label_slot(axis), columns);
        let alternatives = axis.alternatives.iter().map(|alternative| alternative.label.clone());
        let known = self.label_slot(axis).and_then(|slot| labels.iter().find(|label| label.0 == slot));
        let labels = known.map_or_else(|| alternatives.collect(), |label| label.1.as_slice().into());
        let mut names = around.names(&axis.name);
        names.extend(around.labels.iter().cloned());
        names.extend(shown.iter().flat_map(|column| both_names(column)));
        names.retain(|name| !around.taken.contains(name));
        if !shown.is_empty() {
            let path = around.path(&axis.name);
            let columns = shown.iter().map(|column| column.name.clone()).collect();
            let shown = Shown { path, columns, labels, axis: place };
            for name in names.iter().unique() {
                add(subjects, name, &shown);
            }
        }
        for alternative in axis.alternatives.iter().filter(|alternative| !alternative.axes.is_empty()) {
            let mut inner = around.clone();
            inner.note(alternative.settings.iter().map(|setting| (setting.slot, setting.value)), &self.walker.names);
            inner.labels.push(alternative.label.clone());
            inner.taken.extend(names.iter().cloned());
            for axis in &alternative.axes {
                self.visit(axis, None, &inner, table, subjects);
            }
        }
    }

    /// The slot that holds the names of an axis' alternatives, if they have names of their own in the table.
    pub(super) fn label_slot(&self, axis: &Axis) -> Option<usize> {
        let path = axis.name.as_str();
        let of = |list: &[String], name: &str| list.iter().position(|known| known == name);
        let named = || {
            let short = path.strip_prefix("cluster.").unwrap_or(path);
            NAMED.iter().position(|&named| named == short).map(|k| NAMES_FROM + k)
        };
        let tier = || path.strip_prefix("memory.").and_then(|name| of(&self.walker.tiers, name));
        let slot = of(&self.zips, path).map(|k| ZIPS_FROM + k);
        let slot = slot.or_else(named).or_else(|| tier().map(|k| TIER_NAMES_FROM + k));
        slot.filter(|&slot| axis.touched.iter().any(|&touched| touched as usize == slot))
    }
}

/// Adds an axis to a subject, or to what the subject knows of its columns.
fn add(subjects: &mut Vec<Subject>, name: &str, shown: &Shown) {
    let Some(subject) = subjects.iter_mut().find(|known| known.name == name) else {
        subjects.push(Subject { name: name.to_owned(), axes: vec![shown.clone()] });
        return;
    };
    match subject.axes.iter_mut().find(|known| known.columns == shown.columns) {
        Some(known) => {
            known.axis = known.axis.filter(|_| known.axis == shown.axis);
            if known.labels != shown.labels {
                known.labels = known.labels.iter().chain(&*shown.labels).unique().cloned().collect();
            }
        }
        None => subject.axes.push(shown.clone()),
    }
}

/// The name of a column with and without its unit.
fn both_names(column: &Column) -> impl Iterator<Item = String> {
    let bare = column.name.strip_suffix(column.unit.suffix().as_str()).unwrap_or(&column.name);
    [column.name.clone(), bare.to_owned()].into_iter().unique()
}

/// The columns that tell the alternatives of an axis apart: of their names, else of the values in which they differ.
fn columns_of<'a>(axis: &Axis, label_slot: Option<usize>, columns: &'a [InputColumn]) -> Vec<&'a Column> {
    let bits = |slot: usize| axis.alternatives.iter().map(move |alternative| alternative.bits(slot));
    // What an algorithm sets in dimensions follows from it.
    let tells =
        axis.touched.iter().map(|&slot| slot as usize).find(|&slot| is_algorithm(slot) && bits(slot).all_unique());
    let slots = match (label_slot.or(tells), axis.touched.as_slice()) {
        (Some(slot), _) => vec![slot],
        (None, &[slot]) => vec![slot as usize],
        (None, _) => changed_slots(axis),
    };
    let shown = |slot| columns.iter().find(|column| column.slot() == Some(in_first_dimension(slot)));
    slots.into_iter().filter_map(shown).map(|column| &column.column).collect()
}

/// A slot of `each_dimension` as that of the first dimension, where it holds as well.
#[must_use]
pub fn in_first_dimension(slot: usize) -> usize {
    let each = DIMS_FROM + EACH * DIM_KEYS.len();
    if (each..TIERS_FROM).contains(&slot) { slot - each + DIMS_FROM } else { slot }
}

/// The slots that alternatives of an axis set, and not all alike.
fn changed_slots(axis: &Axis) -> Vec<usize> {
    let slots = axis.touched.iter().map(|&slot| slot as usize);
    slots.filter(|&slot| !axis.alternatives.iter().map(|alternative| alternative.bits(slot)).all_equal()).collect()
}
