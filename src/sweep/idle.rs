//! What is written once and changes nothing at any point: keys of a plan, parts of a layer, tiers; and why.
//!
//! Values of an axis that change nothing are not tried, and a preview counts them ([`Removal`](super::Removal)); one value has no
//! such line. What is switched off where there is none of it is no mistake, as `overlap_dp: false` on one NPU.

use super::Space;
use super::axis::Axis;
use super::family;
use super::inputs::Inputs;
use super::key::{Default, Id, KEYS, Key, Kind, OFFLOADS, Slot, TierId, tier_slot};
use super::recompute;
use super::walk::surely_sets;
use crate::input::diagnostic::{Diagnostic, Place, Source};
use crate::units::{plain, real};
use crate::workload::Model;
use crate::workload::recompute::Part;

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

/// Parts of a layer that a model has with a key of its own.
const OWNERS: [(Part, Id); 4] = [
    (Part::LatentUp, Id::KvRank),
    (Part::Moe, Id::Experts),
    (Part::MoeActivation, Id::Experts),
    (Part::SharedExperts, Id::Shared),
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
        let names: Vec<String> = missing
            .iter()
            .filter(|need| need.0 != Id::Experts)
            .map(|need| format!("`{}`", KEYS[need.0 as usize].name()))
            .collect();
        let (idle, verb) = (plain(missing[0].1), if names.len() == 1 { "is" } else { "are" });
        let why = format!("{} {verb} {idle} at every point", names.join(" and "));
        Some((why, format!("remove it, or let {} be more than {idle}", names.join(" or "))))
    }

    /// Parts of layers that are to be computed again and that no model has.
    fn idle_parts(&self, recompute: &[(f64, Place)]) -> Vec<Diagnostic> {
        let mut cautions = Vec::new();
        for (part, owner) in OWNERS {
            let named = recompute.iter().find(|(value, _)| recompute::of(*value).has(part));
            if let Some(&(_, place)) = named.filter(|_| !self.may(owner, &|value| value != 0.0)) {
                let (name, owner) = (Part::NAMES[part as usize], KEYS[owner as usize].name());
                let message = format!("`{name}` of `recompute` changes nothing: no model has `{owner}`");
                cautions.push(Diagnostic::caution(message).at(place).help(format!("leave `{name}` out")));
            }
        }
        cautions
    }

    /// Tiers that nothing lives in, that cost nothing and that no expression reads.
    fn idle_tiers(&self, tiers: &[String], written: &[(Slot, f64, Place)]) -> Vec<Diagnostic> {
        let mut cautions = Vec::new();
        for (tier, name) in tiers.iter().enumerate() {
            let is_used = OFFLOADS.iter().any(|&user| self.may(user, &|value| value == real(tier as u64)));
            let slots = tier_slot(tier, TierId::Capacity)..tier_slot(tier + 1, TierId::Capacity);
            let capacity = written.iter().find(|setting| setting.0 as usize == slots.start);
            let counts = |slot: usize| self.first.is_read(slot);
            let is_paid = written.iter().any(|setting| setting.0 as usize == tier_slot(tier, TierId::Price));
            if let Some(&(_, _, place)) = capacity.filter(|_| !is_used && !is_paid && !slots.clone().any(counts)) {
                let caution = Diagnostic::caution(format!("nothing lives in the tier `{name}`: it changes nothing"));
                let caution = caution.help(format!("write `plan: {{offload_optimizer: {name}}}`, or remove the tier"));
                cautions.push(if place.source == Source::Preset { caution } else { caution.at(place) });
            }
        }
        cautions
    }
}

/// Whether a value of a key says anything: it is not the default, and nothing that is switched off. Gradients that are not
/// scattered are sent whole: that is more, not less.
fn is_said(key: &Key, slot: Slot, value: f64) -> bool {
    let is_off = key.kind == Kind::Flag && value == 0.0 && slot as usize != Id::ScatterGradients as usize;
    key.default != Default::Is(value) && !is_off
}

/// What is written of training and changes nothing: keys with one value, parts of `recompute`, tiers.
pub fn cautions(space: &Space, settings: &[(Slot, f64, Place)], tiers: &[String]) -> Vec<Diagnostic> {
    let points = Points { space, first: space.cursor(0).inputs };
    // A list of one value is that value.
    let alone = |axis: &Axis| match (axis.touched.as_slice(), axis.alternatives.as_slice()) {
        (&[slot], [only]) => only.value(slot as usize).map(|value| (slot, value, axis.place)),
        _ => None,
    };
    let fixed = settings.iter().copied().chain(space.axes.iter().filter_map(alone));
    let own = fixed.filter(|fixed| fixed.2.source != Source::Preset);
    let caution = |(slot, value, place): (Slot, f64, Place)| {
        // Keys of a model are held against its family before.
        let key = KEYS.get(slot as usize).filter(|key| !key.path.starts_with("model.") && is_said(key, slot, value))?;
        let (why, help) = points.why_idle(slot as usize)?;
        Some(Diagnostic::caution(format!("`{}` changes nothing: {why}", key.name())).at(place).help(help))
    };
    let mut cautions: Vec<Diagnostic> = own.filter_map(caution).collect();
    let mut written = settings.to_vec();
    for axis in &space.axes {
        axis.visit(&mut |axis, alternative| {
            written.extend(alternative.settings.iter().map(|setting| (setting.slot, setting.value, axis.place)));
        });
    }
    let of_recompute = written.iter().filter(|setting| setting.0 as usize == Id::Recompute as usize);
    cautions.extend(points.idle_parts(&of_recompute.map(|setting| (setting.1, setting.2)).collect::<Vec<_>>()));
    cautions.extend(points.idle_tiers(tiers, &written));
    cautions
}
