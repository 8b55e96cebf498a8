//! What is worth knowing before a sweep runs: names used nowhere, equal alternatives, missing values, defaults in force.

use itertools::Itertools;

use super::Space;
use super::axis::{Alternative, Axis, Setting};
use super::key::{
    self, DIM_KEYS, DIM_NAMES_FROM, DIMS_FROM, Default, Id, KEYS, Key, NAMED, NAMES_FROM, Slot, TIER_KEYS, TIERS_FROM,
};
use super::recompute;
use super::resolve::{Resolver, defaults};
use super::rule::Rule;
use super::sizes::single_sizes;
use super::walk::surely_sets;
use crate::input::diagnostic::{Diagnostic, Place, Source};
use crate::input::tree::{Entry, Node, Value};
use crate::system::MAX_DIMS;
use crate::system::collective::Collective;
use crate::system::rules::Rules;
use crate::units::{human, index, narrow, plain, whole};

impl Resolver<'_> {
    /// What is worth knowing.
    pub(super) fn cautions(&self, space: &Space, require: &[Rule], defined: &[Entry]) -> Vec<Diagnostic> {
        let mut cautions = self.cautions.clone();
        cautions.extend(self.walker.cautions.iter().cloned());
        for entry in defined {
            if !self.walker.used_define.contains(&entry.key) {
                let message = format!("`define.{}` is used nowhere", entry.key);
                cautions.push(
                    Diagnostic::caution(message).at(entry.place).help("name it where a mapping stands, or remove it"),
                );
            }
        }
        // Values of one key are told apart when they are read; alternatives of several are not.
        for axis in space.axes.iter().filter(|axis| axis.touched.len() > 1) {
            for (k, alternative) in axis.alternatives.iter().enumerate() {
                let content = |alternative: &Alternative| {
                    let settings = alternative.settings.iter().filter(|setting| (setting.slot as usize) < NAMES_FROM);
                    let mut settings: Vec<(Slot, u64)> =
                        settings.map(|setting: &Setting| (setting.slot, setting.value.to_bits())).collect();
                    settings.sort_unstable();
                    settings
                };
                let same =
                    |other: &&Alternative| content(other) == content(alternative) && other.axes == alternative.axes;
                if let Some(other) = axis.alternatives[..k].iter().find(same) {
                    let message = format!(
                        "`{}` and `{}` of `{}` are the same: their points have the same ids",
                        other.label, alternative.label, axis.name
                    );
                    cautions.push(Diagnostic::caution(message).at(axis.place));
                }
            }
        }
        cautions.extend(single_sizes(space));
        cautions.extend(idle_under_our_rules(space));
        cautions.extend(unsent_by_the_reference(space));
        for (section, rules) in [("where", &space.filters[..]), ("derive", &space.derived), ("require", require)] {
            // The conditions of a preset mean what they say.
            for rule in rules.iter().filter(|rule| rule.name_place.source != Source::Preset) {
                cautions.extend(self.missing(space, &format!("{section}.{}", rule.name), rule));
            }
        }
        cautions
    }

    /// Values that an expression reads and that nobody gives: they count as 0, which is seldom what is meant of a price.
    fn missing(&self, space: &Space, expression: &str, rule: &Rule) -> Vec<Diagnostic> {
        let in_dims = rule.expression.dim_slots().flat_map(|field| {
            let of = move |dim: usize| DIMS_FROM + dim * DIM_KEYS.len() + field as usize;
            (0..MAX_DIMS).map(of)
        });
        let slots = rule.expression.slots().map(|slot| slot as usize).chain(in_dims);
        let mut found: Vec<(&Key, usize, Vec<String>)> = Vec::new();
        for slot in slots {
            let Some(key) = key::key_of(slot) else { continue };
            let Some(mut names) = self.without(space, slot, key) else { continue };
            match found.iter_mut().find(|known| std::ptr::eq(known.0, key)) {
                Some(known) => known.2.append(&mut names),
                None => found.push((key, slot, names)),
            }
        }
        let caution = |(key, slot, mut names): (&Key, usize, Vec<String>)| {
            names.sort_unstable();
            names.dedup();
            let whose = if names.is_empty() { String::new() } else { format!(" for {}", names.join(", ")) };
            let place = match slot {
                DIMS_FROM..TIERS_FROM => "the line of the network".to_owned(),
                TIERS_FROM..NAMES_FROM => "the tier".to_owned(),
                _ => key.path.rsplit_once('.').map_or_else(|| "the file".to_owned(), |path| format!("`{}`", path.0)),
            };
            let zero =
                if matches!(key.kind, key::Kind::Quantity { strict: false, .. }) { ", 0 if that is meant" } else { "" };
            Diagnostic::caution(format!("no `{}`{whose}: it counts as 0 in `{expression}`", key.path))
                .at(rule.place)
                .help(format!("write `{}: {}` in {place}{zero}", key.name(), key.example()))
        };
        found.into_iter().map(caution).collect()
    }

    /// Who has no value for a key that has no default: names of NPUs, dimensions, tiers, as far as they have one. None if
    /// there is a value wherever there is something to have it.
    fn without(&self, space: &Space, slot: usize, key: &Key) -> Option<Vec<String>> {
        if !matches!(key.default, Default::Absent | Default::Required) {
            return None;
        }
        let is_dim = (DIMS_FROM..TIERS_FROM).contains(&slot);
        let each = if is_dim { slot - key::line_of(slot) + DIMS_FROM + key::EACH * DIM_KEYS.len() } else { slot };
        let gives = |set: usize| set == slot || set == each;
        let owner = match slot {
            DIMS_FROM..TIERS_FROM => Some(DIM_NAMES_FROM + (slot - DIMS_FROM) / DIM_KEYS.len()),
            TIERS_FROM..NAMES_FROM => Some(key::line_of(slot)),
            _ => key
                .path
                .rsplit('.')
                .nth(1)
                .and_then(|section| NAMED.iter().position(|name| *name == section))
                .map(|k| NAMES_FROM + k),
        };
        let everywhere = |axis: &Axis| [slot, each].iter().any(|&slot| surely_sets(axis, slot));
        if [slot, each].iter().any(|&slot| !space.base[slot].is_nan()) || space.axes.iter().any(everywhere) {
            return None;
        }
        let label = |value: f64| match slot {
            TIERS_FROM..NAMES_FROM => self.walker.tiers.get((slot - TIERS_FROM) / TIER_KEYS.len()).cloned(),
            _ => self.walker.names.get(index(whole(value))).cloned(),
        };
        let mut owners = Vec::new();
        let mut given = false;
        if let Some(owner) = owner.filter(|&owner| !space.base[owner].is_nan()) {
            owners.extend(label(space.base[owner]));
        }
        for axis in &space.axes {
            axis.visit(&mut |_, alternative| {
                let mut sets = false;
                let mut own = None;
                for setting in &alternative.settings {
                    sets |= gives(setting.slot as usize);
                    own = own.or((Some(setting.slot as usize) == owner).then_some(setting.value));
                }
                sets |= alternative.axes.iter().any(|axis| axis.touched.iter().any(|&slot| gives(slot as usize)));
                given |= sets;
                owners.extend(own.filter(|_| !sets).and_then(label));
            });
        }
        // A dimension that no network has lacks nothing; what is given wherever it has an owner is not missing.
        (!owners.is_empty() || !(given || is_dim)).then_some(owners)
    }

    /// Cautions where alternatives with different jobs fall into one line of what is compared.
    pub(super) fn jobs_not_compared(&mut self, compare: &Node, compared: &[usize], axes: &[Axis]) {
        for axis in axes {
            let touched = axis.touched.iter().map(|&slot| slot as usize);
            let job = touched.filter(|&slot| KEYS.get(slot).is_some_and(is_of_job)).collect_vec();
            let bits = |alternative: &Alternative, slots: &[usize]| {
                slots.iter().map(|&slot| alternative.bits(slot)).collect_vec()
            };
            let lines = axis.alternatives.iter().map(|alternative| bits(alternative, compared));
            let jobs = axis.alternatives.iter().map(|alternative| bits(alternative, &job));
            if !job.is_empty() && lines.clone().zip(jobs).unique().count() > lines.unique().count() {
                let name = &axis.name;
                let items = if let Value::List(items) = &compare.value { items } else { std::slice::from_ref(compare) };
                let wanted = items.iter().filter_map(Node::scalar).chain([name.clone()]).join(", ");
                self.cautions.push(
                    Diagnostic::caution(format!(
                        "`{name}` changes the job and is not compared: times of different jobs stand against each other"
                    ))
                    .at(compare.place)
                    .help(format!("write `compare: [{wanted}]` for a line of each job")),
                );
            }
            for alternative in &axis.alternatives {
                self.jobs_not_compared(compare, compared, &alternative.axes);
            }
        }
    }
}

/// Axes that change nothing under our rules, under which a dimension serves one chunk at a time, unless links do it themselves.
fn idle_under_our_rules(space: &Space) -> Vec<Diagnostic> {
    let may_be_first = |id: Id| {
        let slot = id as usize;
        let mut found = !space.axes.iter().any(|axis| surely_sets(axis, slot)) && space.base[slot] == 0.0;
        for axis in &space.axes {
            axis.visit(&mut |_, alternative| found |= alternative.value(slot) == Some(0.0));
        }
        found
    };
    if !may_be_first(Id::Rules) || !may_be_first(Id::Congestion) {
        return Vec::new();
    }
    let mut cautions = Vec::new();
    for id in [Id::ActiveChunks, Id::Queues] {
        let mut values = Vec::new();
        for axis in &space.axes {
            axis.visit(&mut |axis, alternative| {
                values.extend(alternative.value(id as usize).map(|it| (it, axis.place)));
            });
        }
        if let Some(&(_, place)) = values.iter().find(|value| value.0 != values[0].0) {
            let message = format!(
                "`{}` changes nothing under `rules: ours`: a dimension serves one chunk at a time",
                KEYS[id as usize].name()
            );
            let help = "write `rules: astra_sim` to see what it does there, or one value";
            cautions.push(Diagnostic::caution(message).at(place).help(help));
        }
    }
    cautions
}

/// What the reference simulator makes of a collective that it does not send: a broadcast is a delay, and of a scatter it knows nothing.
fn unsent_by_the_reference(space: &Space) -> Vec<Diagnostic> {
    let values = |id: Id| {
        let base = space.base[id as usize];
        let mut found: Vec<(f64, Place)> = if base.is_nan() { Vec::new() } else { vec![(base, Place::default())] };
        for axis in &space.axes {
            axis.visit(&mut |axis, alternative| {
                found.extend(alternative.value(id as usize).map(|it| (it, axis.place)));
            });
        }
        found
    };
    let is_theirs = |value: &(f64, Place)| Rules::NAMED.get(index(whole(value.0))) == Some(&Rules::ASTRA_SIM);
    let Some(&(_, place)) = values(Id::Rules).iter().find(|value| is_theirs(value)) else { return Vec::new() };
    let has = |collective: Collective| {
        values(Id::Collective).iter().any(|value| Collective::ALL.get(index(whole(value.0))) == Some(&collective))
    };
    let said = [
        (Collective::Broadcast, "a broadcast takes 1 ns under `rules: astra_sim`: the reference simulator sends none"),
        (
            Collective::Scatter,
            "the reference simulator knows no scatter: under `rules: astra_sim` it is ours in its manner",
        ),
    ];
    let caution = |(_, message): (Collective, &str)| {
        let caution = Diagnostic::caution(message).help("write `rules: ours` to see what it costs");
        if place == Place::default() { caution } else { caution.at(place) }
    };
    said.into_iter().filter(|said| has(said.0)).map(caution).collect()
}

/// Whether a key says what is computed, whatever computes it.
pub(super) fn is_of_job(key: &Key) -> bool {
    let section = key.path.split('.').next().unwrap_or_default();
    matches!(section, "model" | "workload" | "seq_len" | "global_batch" | "optimizer") && key.path != "model.parameters"
}

/// Keys that nobody wrote, with what is in force.
pub(super) fn defaults_in_force(space: &Space, is_collective: bool) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let unwritten = defaults();
    for (slot, key) in KEYS.iter().enumerate() {
        let of_training = ["plan.", "model.", "precision.", "optimizer"].iter().any(|head| key.path.starts_with(head));
        let touched = space.axes.iter().any(|axis| axis.touched.contains(&narrow(slot as u64)));
        let same = space.base[slot].to_bits() == unwritten[slot].to_bits();
        if touched || !same || (of_training && is_collective) {
            continue;
        }
        let text = match (key.default, key.kind) {
            (Default::Is(value), key::Kind::Choice(words)) => words[index(whole(value))].to_owned(),
            (Default::Is(value), key::Kind::Algorithm) => key::ALGORITHMS[index(whole(value))].to_owned(),
            (Default::Is(value), key::Kind::Recompute) => recompute::text(value).unwrap_or_default().to_owned(),
            (Default::Is(value), key::Kind::Flag) => (value == 1.0).to_string(),
            (Default::Is(_), key::Kind::Tier) => "none".to_owned(),
            (Default::Is(value), key::Kind::Share) => plain(value),
            (Default::Is(value), _) => human(value, key.unit()),
            (Default::Rest, _) => "rest".to_owned(),
            (Default::Like(other), _) => format!("as {other}"),
            (Default::Required | Default::Absent, _) => continue,
        };
        found.push((key.path, text));
    }
    found
}
