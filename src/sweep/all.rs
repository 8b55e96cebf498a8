//! `all`: every value that a key's own rules allow.

use super::Space;
use super::axis::{self, Axis};
use super::inputs::Inputs;
use super::key::{self, DIMS_FROM, Id, Key};
use super::leaf::with_unit;
use super::recompute;
use super::resolve::Resolver;
use crate::input::diagnostic::Diagnostic;
use crate::units::{Unit, real, whole};

/// How many combinations of sizes are looked at for the possible numbers of NPUs.
const MAX_SIZES: u64 = 100_000;

impl Resolver<'_> {
    /// Gives axes that were written `all` their values.
    pub(super) fn fill_all(&mut self, axes: &mut [Axis], base: &[f64]) {
        let snapshot = axes.to_vec();
        for axis in axes {
            if axis.all {
                self.fill_one(axis, &snapshot, base);
            } else {
                for alternative in &mut axis.alternatives {
                    // An inner axis sees what its own alternative sets before what others do.
                    let inner = alternative.axes.clone();
                    let mut base = base.to_vec();
                    for setting in &alternative.settings {
                        base[setting.slot as usize] = setting.value;
                    }
                    for axis in alternative.axes.iter_mut().filter(|axis| axis.all) {
                        let seen: Vec<Axis> = inner.iter().chain(&snapshot).cloned().collect();
                        self.fill_one(axis, &seen, &base);
                    }
                }
            }
        }
    }

    pub(super) fn fill_one(&mut self, axis: &mut Axis, axes: &[Axis], base: &[f64]) {
        let slot = axis.alternatives[0].settings[0].slot;
        let key = key::key_of(slot as usize);
        let degrees = [Id::Tp, Id::Cp, Id::Pp, Id::Dp, Id::Ep, Id::Etp, Id::ZeroShard];
        let is = |id: Id| slot as usize == id as usize;
        let wholes: Vec<u64> = if degrees.iter().any(|&id| is(id)) {
            divisors(&npus_of(axes, base))
        } else if is(Id::Vpp) {
            divisors(&values_of(Id::Layers as usize, axes, base))
        } else if is(Id::MicroBatch) {
            let sequences = values_of(Id::SeqLen as usize, axes, base);
            let batches = values_of(Id::GlobalBatch as usize, axes, base);
            let in_sequences = batches.iter().flat_map(|&batch| match batch {
                batch if batch > 0.0 => vec![batch],
                batch => sequences.iter().map(|sequence| (-batch / sequence).floor()).collect(),
            });
            divisors(&in_sequences.collect::<Vec<_>>())
        } else {
            match key.map(|key| key.kind) {
                _ if key.and_then(Key::words).is_some() => Vec::new(),
                Some(key::Kind::Flag) => vec![0, 1],
                _ => Vec::new(),
            }
        };
        let name = axis.name.clone();
        let label = |value: u64| match key.map(|key| (key.kind, key.unit())) {
            Some((key::Kind::Flag, _)) => (value == 1).to_string(),
            Some((_, unit)) if unit != Unit::NONE => with_unit(real(value), unit),
            _ => value.to_string(),
        };
        let mut values: Vec<(f64, String)> = wholes.iter().map(|&value| (real(value), label(value))).collect();
        if key::OFFLOADS.iter().any(|&id| is(id)) {
            let tiers = self.walker.tiers.iter().enumerate().map(|(k, tier)| (real(k as u64), tier.clone()));
            values = std::iter::once((-1.0, "none".to_owned())).chain(tiers).collect();
        }
        if is(Id::Recompute) {
            values = recompute::all().collect();
        }
        if let Some(words) = key.and_then(Key::words) {
            values = words.iter().enumerate().map(|(k, word)| (real(k as u64), (*word).to_owned())).collect();
        }
        let has_rule = degrees.iter().any(|&id| is(id)) || is(Id::Vpp) || is(Id::MicroBatch);
        // What the rule of the key needs may be wrong itself, and has been complained about.
        if values.is_empty() && (!has_rule || self.walker.diagnostics.is_empty()) {
            self.complain(
                Diagnostic::error(format!("`{name}: all` has no list of values to stand for"))
                    .at(axis.place)
                    .help("`all` is for degrees, for words and for true and false: write the values, or a range"),
            );
        }
        let place = axis.place;
        *axis = Axis::of_values(name, place, slot, &values);
    }
}

/// Every value that a slot has anywhere.
fn values_of(slot: usize, axes: &[Axis], base: &[f64]) -> Vec<f64> {
    let mut values = vec![base[slot]];
    for axis in axes {
        axis.visit(&mut |_, alternative| {
            let set = alternative.settings.iter().filter(|setting| setting.slot as usize == slot);
            values.extend(set.map(|setting| setting.value));
        });
    }
    values.retain(|value| value.is_finite());
    values
}

/// Every number of NPUs that the sweep may have.
fn npus_of(axes: &[Axis], base: &[f64]) -> Vec<f64> {
    let written = values_of(Id::Npus as usize, axes, base);
    if !written.is_empty() {
        return written;
    }
    let mut sizes: Vec<Axis> = axes.to_vec();
    axis::order(&mut sizes);
    sizes.retain(|axis| axis.touched.iter().any(|&slot| (DIMS_FROM..key::TIERS_FROM).contains(&(slot as usize))));
    let space = Space::new(sizes, base.to_vec(), Vec::new(), Vec::new());
    let mut found: Vec<f64> = Vec::new();
    let mut inputs = Inputs::new(base);
    inputs.complete();
    let mut cursor = space.cursor(0);
    for _ in 0..space.len().min(MAX_SIZES) {
        let npus = cursor.inputs.key(Id::Npus);
        if npus.is_finite() && !found.contains(&npus) {
            found.push(npus);
        }
        cursor.step();
    }
    found
}

/// Every divisor of any of some numbers, ascending.
fn divisors(numbers: &[f64]) -> Vec<u64> {
    let mut found = Vec::new();
    for number in numbers.iter().map(|&number| whole(number)) {
        let mut k = 1;
        while k * k <= number {
            if number % k == 0 {
                found.extend([k, number / k]);
            }
            k += 1;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
