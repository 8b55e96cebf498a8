//! One axis: alternatives, each of which sets values and may hold axes of its own.

use super::key::Slot;
use crate::input::diagnostic::Place;

/// A value that an alternative gives to a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Which slot.
    pub slot: Slot,
    /// The value, in base units; a word by its place in its list.
    pub value: f64,
}

/// One value of an axis: what it sets, and the axes that multiply only here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Alternative {
    /// How it is called in messages and tables.
    pub label: String,
    /// What it sets.
    pub settings: Vec<Setting>,
    /// Axes of its own, slowest first.
    pub axes: Vec<Axis>,
    /// How many points it stands for.
    pub len: u64,
}

impl Alternative {
    /// What it sets a slot to.
    #[must_use]
    pub fn value(&self, slot: usize) -> Option<f64> {
        self.settings.iter().find(|setting| setting.slot as usize == slot).map(|setting| setting.value)
    }

    /// The same to the last bit, to be compared.
    #[must_use]
    pub fn bits(&self, slot: usize) -> Option<u64> {
        self.value(slot).map(f64::to_bits)
    }
}

/// A list of the sweep file: every point takes one of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The path of its key, or the name of its zip.
    pub name: String,
    /// Where it stands.
    pub place: Place,
    /// Its values.
    pub alternatives: Vec<Alternative>,
    /// Digits at which each alternative starts.
    pub starts: Vec<u64>,
    /// Every slot that any alternative sets, ascending.
    pub touched: Vec<Slot>,
    /// How many digits it has.
    pub len: u64,
    /// Whether some alternative leaves a slot to what holds elsewhere.
    pub partial: bool,
    /// Whether it stands for all values that its key's rules allow, still to be found.
    pub all: bool,
}

/// The largest product that is counted; a sweep beyond it is refused.
pub const MAX_POINTS: u64 = 1 << 53;

impl Axis {
    /// An axis of alternatives; counts are still to be made: see [`Axis::finish`].
    #[must_use]
    pub fn new(name: impl Into<String>, place: Place, alternatives: Vec<Alternative>) -> Self {
        let name = name.into();
        Self { name, place, alternatives, starts: Vec::new(), touched: Vec::new(), len: 0, partial: true, all: false }
    }

    /// An axis of the values of one slot.
    #[must_use]
    pub fn of_values(name: impl Into<String>, place: Place, slot: Slot, values: &[(f64, String)]) -> Self {
        let alternative = |(value, label): &(f64, String)| Alternative {
            label: label.clone(),
            settings: vec![Setting { slot, value: *value }],
            ..Alternative::default()
        };
        Self::new(name, place, values.iter().map(alternative).collect())
    }

    /// Orders the inner axes, counts, and lists what is set. The order of axes is that of the keys, whatever the file's.
    pub fn finish(&mut self) {
        let mut touched = Vec::new();
        let mut digits = 0_u64;
        self.starts.clear();
        for alternative in &mut self.alternatives {
            order(&mut alternative.axes);
            alternative.len = product(&alternative.axes);
            self.starts.push(digits);
            digits = digits.saturating_add(alternative.len);
            touched.extend(alternative.settings.iter().map(|setting| setting.slot));
            touched.extend(alternative.axes.iter().flat_map(|axis| axis.touched.iter().copied()));
        }
        touched.sort_unstable();
        touched.dedup();
        self.partial = self
            .alternatives
            .iter()
            .any(|alternative| !alternative.axes.is_empty() || alternative.settings.len() < touched.len());
        self.touched = touched;
        self.len = digits;
    }

    /// The alternative of a digit, and what is left for its inner axes.
    #[must_use]
    pub fn at(&self, digit: u64) -> (&Alternative, u64) {
        let k = match self.starts.binary_search(&digit) {
            Ok(k) => k,
            Err(k) => k - 1,
        };
        (&self.alternatives[k], digit - self.starts[k])
    }

    /// How often a slot is set in it, by inner axes too.
    #[must_use]
    pub fn times(&self, slot: Slot) -> usize {
        let of = |alternative: &Alternative| {
            let own = alternative.settings.iter().filter(|setting| setting.slot == slot).count();
            own + alternative.axes.iter().map(|axis| axis.times(slot)).sum::<usize>()
        };
        self.alternatives.iter().map(of).sum()
    }

    /// Calls `visit` with every alternative, inner ones too.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Self, &'a Alternative)) {
        for alternative in &self.alternatives {
            visit(self, alternative);
            for axis in &alternative.axes {
                axis.visit(visit);
            }
        }
    }
}

/// Finishes axes and puts them in canonical order: by the first key that they set, slowest first.
pub fn order(axes: &mut [Axis]) {
    for axis in axes.iter_mut() {
        axis.finish();
    }
    axes.sort_by(|a, b| (a.touched.first(), &a.name).cmp(&(b.touched.first(), &b.name)));
}

/// How many points the product of axes has; stops at `u64::MAX`.
#[must_use]
pub fn product(axes: &[Axis]) -> u64 {
    axes.iter().fold(1, |product, axis| product.saturating_mul(axis.len))
}
