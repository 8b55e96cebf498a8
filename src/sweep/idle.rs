//! Keys of a plan that are written once and change nothing at any point: which, and why.
//!
//! Values of an axis that change nothing are not tried, and a preview counts them ([`Removal`](super::Removal)); one value has no
//! such line. What is switched off where there is none of it is no mistake, as `overlap_dp: false` on one NPU.

use itertools::Itertools as _;

use super::Space;
use super::axis::Axis;
use super::family;
use super::inputs::Inputs;
use super::key::{Default, Id, KEYS, Key, Kind, Slot};
use super::walk::surely_sets;
use crate::input::diagnostic::{Diagnostic, Place, Source, quoted};
use crate::units::{plain, real};
use crate::workload::Model;

/// What a key needs to matter: at some point one of these keys, in each of the groups, at another value than this.
type Needs = &'static [&'static [(Id, f64)]];

/// The keys that need others, with what they need.
const NEEDS: [(Id, Needs); 13] = [
    (Id::Vpp, &[&[(Id::Pp, 1.0)]]),
    (Id::Schedule, &[&[(Id::Pp, 1.0)]]),
    (Id::LayerSplit, &[&[(Id::Pp, 1.0)]]),
    (Id::Ep, &[&[(Id::Experts, 0.0)]]),
    (Id::Etp, &[&[(Id::Experts, 0.0)]]),
    (Id::OverlapEp, &[&[(Id::Experts, 0.0)], &[(Id::Ep, 1.0)]]),
    (Id::Dispatcher, &[&[(Id::Experts, 0.0)], &[(Id::Ep, 1.0)]]),
    (Id::ExpertImbalance, &[&[(Id::Experts, 0.0)], &[(Id::Ep, 1.0)]]),
    (Id::CpKind, &[&[(Id::Cp, 1.0)]]),
    (Id::OverlapTp, &[&[(Id::Tp, 1.0)]]),
    (Id::Zero, &[&[(Id::Dp, 1.0), (Id::Cp, 1.0), (Id::Experts, 0.0)]]),
    (Id::ZeroShard, &[&[(Id::Zero, 0.0)]]),
    (
        Id::Order,
        &[
            &[(Id::Tp, 1.0), (Id::Cp, 1.0), (Id::Pp, 1.0)],
            &[(Id::Pp, 1.0), (Id::Dp, 1.0)],
            &[(Id::Tp, 1.0), (Id::Cp, 1.0), (Id::Dp, 1.0)],
        ],
    ),
];

/// A space with what is the same at all of its points.
struct Points<'a> {
    space: &'a Space,
    first: Inputs,
}

impl Points<'_> {
    /// Whether a key may have such a value at some point.
    fn may(&self, id: Id, is: &dyn Fn(f64) -> bool) -> bool {
        let slot = id as usize;
        if self.space.level(&[slot]) == 0 {
            return is(self.first.key(id));
        }
        let mut found = !self.space.axes.iter().any(|axis| surely_sets(axis, slot)) && is(self.space.base[slot]);
        for axis in &self.space.axes {
            axis.visit(&mut |_, alternative| found |= alternative.value(slot).is_some_and(is));
        }
        found
    }

    /// Why a key changes nothing, and what to do about it; nothing if it may change something.
    fn why_idle(&self, slot: usize) -> Option<(String, String)> {
        let has = |&family: &usize| self.may(Id::Family, &|value| value == real(family as u64));
        let families: Vec<usize> = (0..Model::NAMES.len()).filter(has).collect();
        let whys: Option<Vec<_>> = families.iter().map(|&family| family::why_unheeded(family, slot)).collect();
        if let (Some(&why), &[family, ..]) = (whys.as_ref().and_then(|whys| whys.first()), families.as_slice()) {
            let whose = family::of(slot).map(|family| format!(": it is for a `{}`", Model::NAMES[family]));
            let why = format!("every model is a `{}`, which {why}", Model::NAMES[family]);
            return Some((why, format!("remove it{}", whose.unwrap_or_default())));
        }
        let (_, needs) = NEEDS.iter().find(|needs| needs.0 as usize == slot)?;
        let is_met = |group: &&[(Id, f64)]| group.iter().any(|&(id, idle)| self.may(id, &|value| value != idle));
        let missing = needs.iter().find(|group| !is_met(group))?;
        if missing.iter().all(|need| need.0 == Id::Experts) {
            return Some(("no model has experts".to_owned(), "remove it: it is for models with `experts`".to_owned()));
        }
        let degrees = missing.iter().filter(|need| need.0 != Id::Experts);
        let (names, values): (Vec<&str>, Vec<String>) =
            degrees.map(|&(id, idle)| (KEYS[id as usize].name(), plain(idle))).unzip();
        let stands = names.iter().zip(values).map(|(name, value)| format!("`{name}` is {value}")).join(", ");
        Some((format!("{stands} at every point"), format!("remove it, or write more of {}", quoted(&names))))
    }
}

/// Whether a value of a key says anything: it is not the default, and nothing that is switched off. Gradients that are not
/// scattered are sent whole: that is more, not less.
fn is_said(key: &Key, slot: Slot, value: f64) -> bool {
    let is_off = key.kind == Kind::Flag && value == 0.0 && slot as usize != Id::ScatterGradients as usize;
    key.default != Default::Is(value) && !is_off
}

/// Keys of training with one value that says something and changes nothing.
pub fn cautions(space: &Space, settings: &[(Slot, f64, Place)]) -> Vec<Diagnostic> {
    let points = Points { space, first: space.cursor(0).inputs };
    // A list of one value is that value.
    let alone = |axis: &Axis| match (axis.touched.as_slice(), axis.alternatives.as_slice()) {
        (&[slot], [only]) => only.value(slot as usize).map(|value| (slot, value, axis.place)),
        _ => None,
    };
    let written = settings.iter().copied().chain(space.axes.iter().filter_map(alone));
    let own = written.filter(|written| written.2.source != Source::Preset);
    let caution = |(slot, value, place): (Slot, f64, Place)| {
        // Keys of a model are held against its family before.
        let key = KEYS.get(slot as usize).filter(|key| !key.path.starts_with("model.") && is_said(key, slot, value))?;
        let (why, help) = points.why_idle(slot as usize)?;
        Some(Diagnostic::caution(format!("`{}` changes nothing: {why}", key.name())).at(place).help(help))
    };
    own.filter_map(caution).collect()
}
