//! The question: a YAML file as a space of design points.

pub mod algorithm;
mod all;
pub mod anchor;
pub mod axis;
pub mod bill;
mod bits;
mod canonical;
mod caution;
mod circle;
pub mod collectives;
pub mod column;
pub mod decide;
pub mod document;
pub mod expression;
pub mod family;
pub mod fidelity;
mod foreign;
pub mod framework;
pub mod freeze;
pub mod identity;
mod idle;
pub mod inputs;
pub mod key;
pub mod leaf;
pub mod moved;
mod network;
pub mod outside;
pub mod point;
pub mod preset;
pub mod recompute;
pub mod recording;
pub mod refine;
mod removal;
mod required;
pub mod resolve;
pub mod rule;
pub mod scope;
mod shape;
pub mod sizes;
pub mod space;
mod steps;
pub mod subject;
pub mod walk;
mod zip;

pub use anchor::Anchor;
pub use column::{Column, Dtype, InputColumn};
pub use decide::Decide;
pub use fidelity::Fidelity;
pub use inputs::Inputs;
pub use moved::Moved;
pub use outside::{Loader, Said, SystemFile};
pub use refine::Refine;
pub use removal::Removal;
pub use resolve::resolve;
pub use rule::Rule;
pub use scope::{Direction, MetricWord, Vocabulary};
pub use space::{Cursor, Remover, Space};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::input::Diagnostic;

/// A sweep, resolved: every name known, every value in base units, every mistake reported.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// What the file calls it, if it does.
    pub name: Option<String>,
    /// All points.
    pub space: Space,
    /// What is acceptable after evaluation, by name.
    pub require: Vec<Rule>,
    /// Interned names: a text's number is its place.
    pub names: Vec<String>,
    /// The tiers beyond the local memory, by name.
    pub tiers: Vec<String>,
    /// The input columns of the table.
    pub columns: Vec<InputColumn>,
    /// The columns of derived values, each with its place in `space.derived`.
    pub derived: Vec<(Column, usize)>,
    /// What kind each axis is, and what is best.
    pub decide: Decide,
    /// Whether collectives run in place of training.
    pub is_collective: bool,
    /// The most dimensions of any network of the sweep.
    pub dims: usize,
    /// The paths of recorded traces, by the numbers of their names.
    pub templates: BTreeMap<usize, recording::Template>,
    /// What reads recorded traces.
    pub loader: Option<Arc<dyn Loader>>,
    /// The measured run that every prediction goes through, if there is one.
    pub anchor: Option<Anchor>,
    /// Hash of all that makes a point what it is.
    pub identity: u64,
    /// The file with every preset it uses, to be run again anywhere.
    pub frozen: String,
    /// What is worth knowing before it runs.
    pub cautions: Vec<Diagnostic>,
    /// Keys that are not written and the value in force.
    pub defaults: Vec<(&'static str, String)>,
}

impl Sweep {
    /// Whether any point may be event-driven.
    #[must_use]
    pub fn has_event_driven(&self) -> bool {
        let slot = key::Id::Fidelity as usize;
        let is = |value: f64| value == Fidelity::EventDriven.number();
        let mut found = is(self.space.base[slot]);
        for axis in &self.space.axes {
            axis.visit(&mut |_, alternative| found |= alternative.value(slot).is_some_and(is));
        }
        found
    }

    /// Whether an axis that is compared changes what is computed: times of different jobs do not stand against each other.
    #[must_use]
    pub fn is_of_job(&self, shown: &subject::Shown) -> bool {
        let slots = self.columns.iter().filter(|column| shown.columns.contains(&column.column.name));
        let own = slots.filter_map(InputColumn::slot);
        let axis = shown.axis.map(|axis| self.space.axes[axis].touched.as_slice()).unwrap_or_default();
        own.chain(axis.iter().map(|&slot| slot as usize))
            .any(|slot| key::KEYS.get(slot).is_some_and(caution::is_of_job))
    }

    /// The columns that are axes: of values, of named alternatives, of rows of a zip. Not those that follow from one.
    #[must_use]
    pub fn axis_columns(&self) -> Vec<&str> {
        use column::From;
        let mut slots = Vec::new();
        for axis in &self.space.axes {
            axis.visit(&mut |axis, _| {
                let name = axis.name.rsplit('.').next().unwrap_or(&axis.name);
                let named = self.columns.iter().find(|column| column.column.name == name);
                match (axis.touched.as_slice(), named.map(|column| column.from)) {
                    (&[slot], _) => slots.push(subject::in_first_dimension(slot as usize)),
                    (_, Some(From::Name(slot))) => slots.push(slot),
                    (touched, Some(From::Algorithm(slot))) => {
                        slots.extend(touched.iter().map(|&slot| slot as usize).filter(|&slot| slot < key::DIMS_FROM));
                        slots.push(slot);
                    }
                    _ => {}
                }
            });
        }
        let is_axis = |column: &&InputColumn| column.slot().is_some_and(|slot| slots.contains(&slot));
        let dp = |column: &&InputColumn| column.from == From::Number(key::Id::Dp as usize);
        self.columns
            .iter()
            .filter(|column| is_axis(column) || dp(column))
            .map(|column| column.column.name.as_str())
            .collect()
    }
}
