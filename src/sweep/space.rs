//! The product as a number: any point is reached without walking, and what cannot be is skipped whole.

use std::sync::OnceLock;

use super::axis::{Alternative, Axis, product};
use super::inputs::Inputs;
use super::key::{
    DIM_KEYS, DIMS_FROM, DimId, EACH, Id, KEYS, NAMES_FROM, OFFLOADS, SLOTS, Slot, TIERS_FROM, dim_slot, line_of,
};
use super::moved::Moved;
use super::point::Canonical;
use super::recompute::tried;
use super::removal::Removal;
use super::rule::Rule;
use super::scope::{Before, reads};
use super::sizes::Lists;
use super::steps::Steps;
use crate::system::MAX_DIMS;
use crate::workload::Recompute;

/// All points of a sweep: axes, slowest first, and the rules that remove combinations before they are tried.
#[derive(Debug, Clone)]
pub struct Space {
    /// The axes, slowest first.
    pub axes: Vec<Axis>,
    /// What holds where no axis says otherwise.
    pub base: Vec<f64>,
    /// `where` rules, by name.
    pub filters: Vec<Rule>,
    /// Derived values, which filters may read.
    pub derived: Vec<Rule>,
    /// How many numbers one step of each axis is worth.
    strides: Vec<u64>,
    /// For each axis what follows from its values.
    steps: Vec<Steps>,
    /// For each axis what moves with it and with all faster ones.
    moves: Vec<Moved>,
    /// For each removal the level that decides it: the number of leading axes that must be known.
    removal_levels: [usize; Removal::ALL.len()],
    /// The same for each filter.
    filter_levels: Vec<usize>,
    /// The slots that filters and derived values read.
    read: Vec<usize>,
    /// How the ids of points are made, once it is known.
    canonical: OnceLock<Canonical>,
    /// The sizes that names are.
    lists: Lists,
}

/// What removes a combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remover {
    /// A rule of the language.
    Rule(Removal),
    /// A `where` rule, by its place.
    Filter(usize),
}

impl Space {
    /// The space of axes in canonical order.
    #[must_use]
    pub fn new(axes: Vec<Axis>, base: Vec<f64>, filters: Vec<Rule>, derived: Vec<Rule>) -> Self {
        debug_assert_eq!(base.len(), SLOTS);
        let mut strides = vec![1; axes.len()];
        for k in (1..axes.len()).rev() {
            strides[k - 1] = axes[k].len.saturating_mul(strides[k]);
        }
        let has_families = has_families(&axes, &base);
        let has_modules = tried(&axes).iter().any(|&set| set.done(Recompute::MODULES) != set);
        let is_module = |slot: Slot| has_modules && slot as usize == Id::Recompute as usize;
        let steps_of = |axis: &Axis| {
            let followed = axis.touched.iter().filter(|&&slot| has_families || is_followed(slot) || is_module(slot));
            followed.fold(Steps::NONE, |steps, &slot| steps.and(Steps::of(slot as usize)))
        };
        let steps = axes.iter().map(steps_of).collect();
        let moved_with = |axis: &Axis| axis.touched.iter().map(|&slot| Moved::with(slot as usize)).max();
        let mut moves: Vec<_> = axes.iter().map(|axis| moved_with(axis).unwrap_or(Moved::Order)).collect();
        for k in (1..moves.len()).rev() {
            moves[k - 1] = moves[k - 1].max(moves[k]);
        }
        let mut space = Self {
            axes,
            base,
            filters,
            derived,
            strides,
            steps,
            moves,
            removal_levels: [0; Removal::ALL.len()],
            filter_levels: Vec::new(),
            read: Vec::new(),
            canonical: OnceLock::new(),
            lists: Lists::default(),
        };
        space.read = space.filters.iter().chain(&space.derived).flat_map(|rule| reads(rule, &space.derived)).collect();
        space.removal_levels = Removal::ALL.map(|removal| space.level(&Self::reads_of(removal)));
        space.filter_levels = space.filters.iter().map(|filter| space.level(&reads(filter, &space.derived))).collect();
        space
    }

    /// With the sizes that names are.
    #[must_use]
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// How many numbers there are: the raw product.
    #[must_use]
    pub fn len(&self) -> u64 {
        product(&self.axes)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a filter lets a combination pass.
    fn holds(&self, filter: &Rule, inputs: &Inputs) -> bool {
        filter.expression.is_true(&Before { inputs, derived: &self.derived })
    }

    /// The slots that decide a removal.
    fn reads_of(removal: Removal) -> Vec<usize> {
        let mut slots: Vec<usize> = removal.keys().iter().map(|&id| id as usize).collect();
        match removal {
            Removal::NetworkSize => slots.extend(shape_slots()),
            Removal::OffloadWithoutTier | Removal::UnusedTier => slots.extend(TIERS_FROM..NAMES_FROM),
            _ => {}
        }
        slots
    }

    /// How many leading axes must be known before all of these slots, and what they follow from, are; none for slots
    /// whose values no axis changes.
    #[must_use]
    pub fn level(&self, slots: &[usize]) -> usize {
        let mut wanted = [false; SLOTS];
        let mut open = slots.to_vec();
        while let Some(slot) = open.pop() {
            if !std::mem::replace(&mut wanted[slot], true) {
                open.extend(self.follows(slot));
            }
        }
        let touches = |axis: &Axis| axis.touched.iter().any(|&slot| wanted[slot as usize]);
        self.axes.iter().rposition(touches).map_or(0, |k| k + 1)
    }

    /// The slots that the value of a slot follows from.
    fn follows(&self, slot: usize) -> Vec<usize> {
        let ids = |ids: &[Id]| ids.iter().map(|&id| id as usize).collect();
        let is = |id: Id| slot == id as usize;
        if is(Id::Npus) {
            // Written everywhere, it follows from nothing.
            let written = self.base[slot].is_finite() || self.axes.iter().any(|axis| always_sets(axis, slot));
            if written { Vec::new() } else { shape_slots().collect() }
        } else if is(Id::Dp) {
            ids(&[Id::Npus, Id::Tp, Id::Cp, Id::Pp, Id::Collective, Id::Chakra])
        } else if is(Id::Vpp) || is(Id::Schedule) || is(Id::LayerSplit) {
            ids(&[Id::Pp])
        } else if is(Id::Ep) || is(Id::Etp) {
            ids(&[Id::Experts])
        } else if is(Id::CpKind) {
            ids(&[Id::Cp])
        } else if is(Id::SequenceParallel) || is(Id::OverlapTp) {
            ids(&[Id::Tp])
        } else if is(Id::OverlapTpBackward) {
            ids(&[Id::Tp, Id::OverlapTp])
        } else if is(Id::ScatterGather) {
            ids(&[Id::Tp, Id::Pp, Id::SequenceParallel])
        } else if is(Id::OverlapPp) {
            ids(&[Id::Vpp])
        } else if is(Id::OverlapEp) || is(Id::Dispatcher) {
            ids(&[Id::Ep])
        } else if is(Id::ExpertImbalance) {
            ids(&[Id::Ep, Id::CapacityFactor])
        } else if is(Id::ZeroShard) || is(Id::Prefetch) || is(Id::ScatterGradients) {
            ids(&[Id::Zero])
        } else if is(Id::Zero) || is(Id::OverlapDp) {
            ids(&[Id::Dp, Id::Cp, Id::Tp, Id::Ep, Id::Etp, Id::Experts])
        } else if is(Id::Order) {
            ids(&[Id::Tp, Id::Cp, Id::Pp, Id::Dp])
        } else if is(Id::GlobalBatch) {
            ids(&[Id::SeqLen])
        } else if is(Id::SeqLen) || is(Id::FlashAttention) || is(Id::TableShards) {
            ids(&[Id::Family])
        } else if is(Id::OverlapEmbeddings) {
            ids(&[Id::Family, Id::Dp])
        } else if is(Id::MicroBatch) && has_families(&self.axes, &self.base) {
            ids(&[Id::Family, Id::GlobalBatch, Id::Dp])
        } else if is(Id::RemoteMemory) {
            (TIERS_FROM..NAMES_FROM).chain([Id::Chakra as usize]).collect()
        } else if is(Id::OffloadWeights) {
            let others = [Id::MasterOnly, Id::Zero, Id::OffloadOptimizer].map(|id| id as usize);
            (TIERS_FROM..NAMES_FROM).chain(others).collect()
        } else if OFFLOADS.iter().any(|&id| is(id)) {
            (TIERS_FROM..NAMES_FROM).collect()
        } else if is(Id::Capacity) {
            ids(&[Id::Hbm])
        } else if is(Id::LocalBandwidth) {
            ids(&[Id::HbmBandwidth])
        } else if is(Id::KvHeads) || is(Id::HeadDim) {
            ids(&[Id::Heads, Id::Hidden])
        } else if is(Id::MoeFfn) {
            ids(&[Id::Ffn])
        } else if is(Id::OptimizerBytes) {
            ids(&[Id::Optimizer, Id::MasterBytes, Id::MomentBytes])
        } else if let Some((dim, field)) = dim_field(slot) {
            // `rest` follows from all sizes; any key from what holds in each dimension, and from there being a dimension.
            let is_size = field == DimId::Size as usize;
            let sizes = is_size.then(|| shape_slots().chain([Id::Npus as usize])).into_iter().flatten();
            let blocks = (0..=dim.min(MAX_DIMS - 1)).map(|dim| dim_slot(dim, DimId::Block));
            sizes
                .chain(blocks)
                .chain([DIMS_FROM + EACH * DIM_KEYS.len() + field])
                .filter(|&other| other != slot)
                .collect()
        } else if (TIERS_FROM..NAMES_FROM).contains(&slot) {
            vec![line_of(slot)]
        } else {
            Vec::new()
        }
    }

    /// What moves between two points at which so many leading axes stand; all if none does.
    #[must_use]
    pub fn moved(&self, standing: usize) -> Moved {
        if standing == 0 { Moved::All } else { self.moves.get(standing).copied().unwrap_or(Moved::Order) }
    }

    /// How the ids of points are made, of which this is one.
    pub fn canonical(&self, inputs: &Inputs) -> &Canonical {
        self.canonical.get_or_init(|| Canonical::of(inputs, |slot| self.level(&[slot]) > 0))
    }

    /// The digits of a number, slowest first.
    #[must_use]
    pub fn digits(&self, index: u64) -> Vec<u64> {
        self.axes.iter().zip(&self.strides).map(|(axis, stride)| index / stride % axis.len).collect()
    }

    /// The number of digits, slowest first.
    #[must_use]
    pub fn index(&self, digits: &[u64]) -> u64 {
        digits.iter().zip(&self.strides).map(|(digit, stride)| digit * stride).sum()
    }

    /// The first remover of a complete combination, in the order in which removals are counted.
    #[must_use]
    pub fn remover(&self, inputs: &Inputs) -> Option<Remover> {
        // World and network first, then what the user removes, then knobs that do not matter.
        const RULES_FIRST: u32 = 0b111;
        let removed = inputs.removed();
        let rule = |mask: u32| {
            let bits = removed & mask;
            (bits != 0).then(|| Remover::Rule(Removal::ALL[bits.trailing_zeros() as usize]))
        };
        let filter = || self.filters.iter().position(|filter| !self.holds(filter, inputs)).map(Remover::Filter);
        rule(RULES_FIRST).or_else(filter).or_else(|| rule(!RULES_FIRST))
    }

    /// What a remover is called.
    #[must_use]
    pub fn name(&self, remover: Remover) -> &str {
        match remover {
            Remover::Rule(removal) => removal.name(),
            Remover::Filter(k) => &self.filters[k].name,
        }
    }

    /// A cursor before the point `start`.
    #[must_use]
    pub fn cursor(&self, start: u64) -> Cursor<'_> {
        Cursor::new(self, start)
    }
}

/// The slots that make the shape of the network: blocks and sizes.
fn shape_slots() -> impl Iterator<Item = usize> {
    (0..MAX_DIMS).flat_map(|dim| [dim_slot(dim, DimId::Block), dim_slot(dim, DimId::Size)])
}

/// The dimension and the field of a slot of the network.
fn dim_field(slot: usize) -> Option<(usize, usize)> {
    let at = slot.checked_sub(DIMS_FROM).filter(|_| slot < TIERS_FROM)?;
    Some((at / DIM_KEYS.len(), at % DIM_KEYS.len()))
}

/// Whether a model may be of another family than the usual one.
fn has_families(axes: &[Axis], base: &[f64]) -> bool {
    let slot = Id::Family as usize;
    base[slot] != 0.0 || axes.iter().any(|axis| axis.touched.iter().any(|&touched| touched as usize == slot))
}

/// Whether other values follow from a slot.
fn is_followed(slot: Slot) -> bool {
    let slot = slot as usize;
    let free = [
        Id::MicroBatch,
        Id::Recompute,
        Id::FlashAttention,
        Id::Bf16,
        Id::Fp16,
        Id::Fp8,
        Id::Fp32,
        Id::GemmEfficiency,
        Id::MemoryEfficiency,
        Id::Power,
        Id::Price,
        Id::Rent,
        Id::Lifetime,
        Id::EnergyPrice,
        Id::Reserve,
        Id::Window,
        Id::Chunks,
        Id::EndpointDelay,
        Id::LocalReduction,
    ];
    if slot < KEYS.len() { !free.iter().any(|&id| id as usize == slot) } else { slot < NAMES_FROM }
}

/// Whether every alternative of an axis gives a slot a value that is no `rest`.
pub(super) fn always_sets(axis: &Axis, slot: usize) -> bool {
    let sets = |alternative: &Alternative| {
        let mut settings = alternative.settings.iter();
        settings.any(|setting| setting.slot as usize == slot && setting.value.is_finite())
            || alternative.axes.iter().any(|inner| always_sets(inner, slot))
    };
    axis.alternatives.iter().all(sets)
}

/// A walk through a space: the current number, its digits, its values.
#[derive(Debug)]
pub struct Cursor<'a> {
    space: &'a Space,
    digits: Vec<u64>,
    index: u64,
    /// The values at the current number.
    pub inputs: Inputs,
    /// How many leading axes stand as they did when filters were last asked; none of them at the start.
    unchanged: Option<usize>,
    /// How many leading axes stand as they did at the point that was stepped past last; none before that.
    standing: usize,
}

impl<'a> Cursor<'a> {
    fn new(space: &'a Space, start: u64) -> Self {
        let mut cursor = Self {
            space,
            digits: space.digits(start),
            index: start,
            inputs: Inputs::new(&space.base).with_lists(space.lists.clone()).with_sets(tried(&space.axes)),
            unchanged: None,
            standing: 0,
        };
        for &slot in &space.read {
            cursor.inputs.keep(slot);
        }
        for level in 0..space.axes.len() {
            cursor.apply(level);
        }
        cursor.inputs.complete();
        cursor
    }

    /// The current number.
    #[must_use]
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// How many leading axes stand as they did at the point that was stepped past last; none before that.
    #[must_use]
    pub const fn standing(&self) -> usize {
        self.standing
    }

    /// Whether the current number is a point; if not, how many leading axes decide that.
    fn obstacle(&self) -> Option<usize> {
        let space = self.space;
        let removed = self.inputs.removed();
        let mut least = None;
        let mut note = |level: usize| least = Some(least.map_or(level, |other: usize| other.min(level)));
        for (k, &level) in space.removal_levels.iter().enumerate() {
            if removed & (1 << k) != 0 {
                note(level);
            }
        }
        for (filter, &level) in space.filters.iter().zip(&space.filter_levels) {
            // A filter that held before the axes that changed still holds.
            let asked = self.unchanged.is_some_and(|unchanged| level <= unchanged);
            if !asked && !space.holds(filter, &self.inputs) {
                note(level);
            }
        }
        least
    }

    /// Moves on until the current number is a point below `end`; none if there is no more. The first call may stay.
    pub fn next_point(&mut self, end: u64) -> Option<u64> {
        while self.index < end {
            match self.obstacle() {
                None => return Some(self.index),
                Some(0) => self.index = end,
                Some(level) => self.advance(level - 1),
            }
        }
        None
    }

    /// Past the current point.
    pub fn step(&mut self) {
        self.standing = self.space.axes.len();
        match self.space.axes.len() {
            0 => self.index += 1,
            axes => self.advance(axes - 1),
        }
    }

    /// To the next value of an axis, all faster ones at their first.
    fn advance(&mut self, level: usize) {
        let stride = self.space.strides[level];
        self.index = (self.index / stride + 1).saturating_mul(stride);
        let mut top = level;
        for k in level + 1..self.digits.len() {
            if self.digits[k] != 0 {
                self.digits[k] = 0;
                self.apply(k);
            }
        }
        loop {
            self.digits[top] += 1;
            if self.digits[top] < self.space.axes[top].len || top == 0 {
                break;
            }
            self.digits[top] = 0;
            self.apply(top);
            top -= 1;
        }
        if self.digits[top] < self.space.axes[top].len {
            self.apply(top);
        } else {
            // Past the last point.
            self.index = self.index.max(self.space.len());
        }
        self.unchanged = Some(top);
        self.standing = self.standing.min(top);
        let steps = self.space.steps[top..].iter().fold(Steps::NONE, |all, &steps| all.and(steps));
        if steps != Steps::NONE {
            self.inputs.follow(steps);
        }
    }

    /// Puts the values of an axis in place.
    fn apply(&mut self, level: usize) {
        let axis = &self.space.axes[level];
        let digit = self.digits[level];
        if axis.partial {
            for &slot in &axis.touched {
                self.inputs.set(slot, self.space.base[slot as usize], true);
            }
        }
        put(&mut self.inputs, axis, digit);
    }
}

/// Puts the values of a digit of an axis in place, inner axes too.
fn put(inputs: &mut Inputs, axis: &Axis, digit: u64) {
    let (alternative, mut rest) = axis.at(digit);
    let is_first = std::ptr::eq(alternative, &raw const axis.alternatives[0]);
    for setting in &alternative.settings {
        // Only a value axis has a first value; a named alternative is what it is.
        inputs.set(setting.slot, setting.value, is_first || axis.touched.len() > 1);
    }
    for inner in alternative.axes.iter().rev() {
        put(inputs, inner, rest % inner.len);
        rest /= inner.len;
    }
}
