//! What `decide` may name: axes, sections with axes, zips, and the columns that tell their values apart.

use super::axis::Axis;
use super::column::{Column, Dtype, From, InputColumn};
use super::decide::{self, Decide, Subject};
use super::key::{NAMED, NAMES_FROM, Slot, ZIPS_FROM};
use super::resolve::Resolver;
use super::rule::Rule;
use super::scope::{Direction, Names};
use super::walk::{Frame, Line};

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
        let subjects = self.subjects(frame, columns, labels);
        let dim_count = super::resolve::dim_count(dims);
        let dims: Vec<(String, Option<usize>)> = dims.iter().map(|dim| (dim.0.clone(), dim.1)).collect();
        let metrics = self.vocabulary.metrics.clone();
        let names = Names {
            names: &self.walker.names,
            tiers: &self.walker.tiers,
            zips: &self.zips,
            dims: &dims,
            dim_count,
            labels,
            derived,
            metrics: &metrics,
        };
        let numbers: Vec<String> = columns
            .iter()
            .filter(|column| matches!(column.column.dtype, Dtype::Count | Dtype::Real))
            .map(|column| column.column.name.clone())
            .chain(derived_columns.iter().map(|column| column.0.name.clone()))
            .chain(metrics.iter().filter(|metric| !metric.is_text).map(|metric| metric.column.clone()))
            .collect();
        let mut complaints = Vec::new();
        let mut decide = decide::read(&entries, &subjects, &names, &numbers, &mut complaints);
        self.walker.diagnostics.append(&mut complaints);
        if decide.objectives.is_empty() {
            let time = if is_collective { "finish_time_s" } else { "iteration_time_s" };
            decide.objectives = vec![(time.to_owned(), Direction::Min), ("npus".to_owned(), Direction::Min)];
        }
        decide
    }

    /// What `decide` may name: axes, sections with axes, zips.
    pub(super) fn subjects(
        &self,
        frame: &Frame,
        columns: &[InputColumn],
        labels: &[(usize, Vec<String>)],
    ) -> Vec<Subject> {
        let mut subjects: Vec<Subject> = Vec::new();
        let mut add = |name: &str, column: Vec<String>, labels: Vec<String>| match subjects
            .iter_mut()
            .find(|known| known.name == name)
        {
            Some(known) => {
                for column in column {
                    if !known.columns.contains(&column) {
                        known.columns.push(column);
                    }
                }
                known.labels.extend(labels);
            }
            None => subjects.push(Subject { name: name.to_owned(), columns: column, labels }),
        };
        let of_slot = |slot: Slot| {
            let from = |column: &&InputColumn| matches!(column.from, From::Number(s) | From::Word(s, _) | From::Name(s) | From::Tier(s) if s == slot as usize);
            columns.iter().find(from).map(|column| column.column.name.clone())
        };
        let mut visit = |axis: &Axis| {
            let path = axis.name.as_str();
            let short = path.rsplit('.').next().unwrap_or(path);
            let label_slot = axis.touched.iter().copied().find(|&slot| {
                let slot = slot as usize;
                let named = NAMED.iter().position(|named| *named == short).map(|k| NAMES_FROM + k);
                let zip = self.zips.iter().position(|zip| zip == path).map(|k| ZIPS_FROM + k);
                Some(slot) == named || Some(slot) == zip
            });
            let slot = label_slot.or_else(|| axis.touched.first().copied());
            let Some(column) = slot.and_then(of_slot) else { return };
            let names = label_slot.and_then(|slot| labels.iter().find(|label| label.0 == slot as usize)).map_or_else(
                || axis.alternatives.iter().map(|alternative| alternative.label.clone()).collect(),
                |label| label.1.clone(),
            );
            add(path, vec![column.clone()], names.clone());
            if short != path {
                add(short, vec![column.clone()], names.clone());
            }
            if let Some((section, _)) = path.split_once('.') {
                add(section, vec![column], names);
            }
        };
        let mut all = Vec::new();
        for axis in &frame.axes {
            axis.visit(&mut |axis, _| {
                if !all.iter().any(|known: &&Axis| std::ptr::eq(*known, axis)) {
                    all.push(axis);
                }
            });
        }
        all.into_iter().for_each(&mut visit);
        // A defined name that holds axes may be tuned.
        for name in &self.walker.used_define {
            if !subjects.iter().any(|known| known.name == *name) {
                subjects.push(Subject { name: name.clone(), columns: Vec::new(), labels: Vec::new() });
            }
        }
        subjects
    }
}
