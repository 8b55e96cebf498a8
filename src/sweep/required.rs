//! What must be written: keys of the model, of each line of the network, of each tier, of the machine.

use super::axis::{Alternative, Axis};
use super::family;
use super::inputs::REST;
use super::key::{self, DIM_KEYS, DIMS_FROM, Default, DimId, Id, KEYS, Key, Slot, dim_slot};
use super::resolve::Resolver;
use super::space::always_sets;
use super::walk::{Frame, Line, Walker};
use crate::input::diagnostic::{Diagnostic, Place};
use crate::system::MAX_DIMS;
use crate::system::collective::Collective;
use crate::units::narrow;

impl Walker {
    /// Whether a slot was written and could not be read: more often, since so many keys were written, than a frame has it.
    pub(super) fn has_failed(&self, slot: usize, frame: &Frame, since: usize) -> bool {
        let slot = narrow(slot as u64);
        let written = self.written[since..].iter().filter(|&&written| written == slot).count();
        let fixed = frame.settings.iter().filter(|setting| setting.0 == slot).count();
        written > fixed + frame.axes.iter().map(|axis| axis.times(slot)).sum::<usize>()
    }

    /// Remembers which required keys, from a slot on, a line or a tier lacks that was begun when so many keys were written.
    pub(super) fn note_lacking(
        &mut self,
        (from, keys): (usize, &[Key]),
        (name, place): (&str, Place),
        frame: &Frame,
        since: usize,
    ) {
        for (slot, _) in (from..).zip(keys).filter(|(_, key)| key.default == Default::Required) {
            if !frame.surely_sets(slot) && !self.has_failed(slot, frame, since) {
                self.lacking.push((slot, name.to_owned(), place));
            }
        }
    }
}

impl Resolver<'_> {
    /// Keys that must be written.
    pub(super) fn required(&mut self, frame: &Frame, lines: &[Line], is_collective: bool) {
        let start = lines.first().map_or_else(Place::default, |line| line.1);
        let of = |section: &str| lines.iter().find(|line| line.0 == section).map_or(start, |line| line.1);
        for (slot, key) in KEYS.iter().enumerate() {
            if key.default != Default::Required || is_collective || !self.is_missing(slot, key.path, frame) {
                continue;
            }
            // Which family it is may be what is wrong.
            let is_open = self.walker.has_failed(Id::Family as usize, frame, 0);
            if family::of(slot).is_some_and(|family| is_open || frame.surely_sets_of_family(slot, family)) {
                continue;
            }
            let section = key.path.split('.').next().unwrap_or(key.path);
            if section == "model" && !lines.iter().any(|line| line.0 == "model") {
                if slot == Id::Layers as usize {
                    self.complain(
                        Diagnostic::error("`model` is missing")
                            .at(start)
                            .help("write `model: GPT-3-175B` (`starsweep list models`), or `workload: {collective: all_reduce, size: 1 GB}`"),
                    );
                }
                continue;
            }
            self.complain(Diagnostic::error(format!("`{}` is missing", key.path)).at(of(section)).help(format!(
                "{}: write for example `{}: {}`",
                key.doc,
                key.name(),
                key.example()
            )));
        }
        let is_recorded = self.walker.written.contains(&narrow(Id::Chakra as u64));
        for (id, example) in [(Id::Collective, "all_reduce"), (Id::Size, "1 GB")] {
            let key = &KEYS[id as usize];
            if is_collective && !is_recorded && self.is_missing(id as usize, key.path, frame) {
                let help = format!("write `{}: {example}`", key.name());
                self.complain(Diagnostic::error(format!("`{}` is missing", key.path)).at(of("workload")).help(help));
            }
        }
        self.required_of_lines(frame);
        self.required_of_machine(frame, is_collective, &of);
    }

    /// Whether a key is nowhere: what was written and could not be read has been complained about.
    fn is_missing(&self, slot: usize, path: &str, frame: &Frame) -> bool {
        !frame.surely_sets(slot) && !self.walker.has_failed(slot, frame, 0) && !self.walker.is_unread(path)
    }

    /// Keys that a line of the network or a tier must have.
    pub(super) fn required_of_lines(&mut self, frame: &Frame) {
        for (slot, name, place) in std::mem::take(&mut self.walker.lacking) {
            let is_dim = slot < key::TIERS_FROM;
            let each = if is_dim {
                DIMS_FROM + key::EACH * DIM_KEYS.len() + (slot - DIMS_FROM) % DIM_KEYS.len()
            } else {
                slot
            };
            // A row of a zip may set what the line itself leaves open.
            let elsewhere = frame.surely_sets(slot) || (is_dim && !self.is_missing(each, "", frame));
            let Some(key) = key::key_of(slot).filter(|_| !elsewhere) else { continue };
            self.complain(Diagnostic::error(format!("`{name}` has no `{}`", key.name())).at(place).help(format!(
                "{}: write for example `{}: {}`",
                key.doc,
                key.name(),
                key.example()
            )));
        }
    }

    /// What a machine must have.
    pub(super) fn required_of_machine(&mut self, frame: &Frame, is_collective: bool, of: &dyn Fn(&str) -> Place) {
        let sets = |slot: usize| frame.surely_sets(slot);
        if !sets(dim_slot(0, DimId::Block)) && self.walker.diagnostics.is_empty() {
            self.complain(
                Diagnostic::error("`cluster.network` is missing").at(of("cluster")).help(
                    "write named lines, innermost first: `nvlink: {block: switch, size: 8, bandwidth: 450 GB/s}`",
                ),
            );
        }
        if !self.walker.diagnostics.is_empty() {
            return;
        }
        let memory = |id: Id, like: Id| sets(id as usize) || sets(like as usize);
        if !is_collective && !memory(Id::Capacity, Id::Hbm) {
            self.complain(
                Diagnostic::error("the NPU has no memory")
                    .at(of("cluster"))
                    .help("write `cluster: {npu: {hbm: 80 GB, ...}}`, or name a preset (`starsweep list npus`)"),
            );
        }
        if !memory(Id::LocalBandwidth, Id::HbmBandwidth) {
            let reduces = |axis: &Axis| {
                let mut any = false;
                axis.visit(&mut |_, alternative| {
                    any |= alternative
                        .settings
                        .iter()
                        .any(|setting| setting.slot as usize == Id::LocalReduction as usize && setting.value == 1.0);
                });
                any
            };
            let fixed = frame.settings.iter().find(|setting| setting.0 as usize == Id::LocalReduction as usize);
            let swept = frame.axes.iter().any(reduces);
            let never = !swept
                && (fixed.is_some_and(|setting| setting.1 == 0.0)
                    || frame.surely_sets(Id::LocalReduction as usize) && fixed.is_none());
            let sums = |collective: &Collective| collective.sums();
            let adds = self.walker.collectives.is_empty() || self.walker.collectives.iter().any(sums);
            if !is_collective || (!never && adds) {
                self.complain(
                    Diagnostic::error("the NPU's memory has no bandwidth, and reductions need it")
                        .at(of("cluster"))
                        .help(
                            "write `npu: {hbm_bandwidth: 3350 GB/s, ...}`, or `collectives: {local_reduction: false}`",
                        ),
                );
            }
        }
        self.rest_of_npus(frame);
    }

    /// A `rest` is what is left of `npus`, which must be known wherever there is one.
    pub(super) fn rest_of_npus(&mut self, frame: &Frame) {
        let npus = Id::Npus as usize;
        let fixed = frame.settings.iter().any(|&(slot, value, _)| slot as usize == npus && value != REST);
        if fixed || frame.axes.iter().any(|axis| always_sets(axis, npus)) {
            return;
        }
        let own =
            frame.settings.iter().find(|setting| is_open_size(setting.0, setting.1)).map(|setting| (setting.2, None));
        if let Some((place, cluster)) = own.or_else(|| frame.axes.iter().find_map(open_rest)) {
            let cluster = cluster.unwrap_or("cluster");
            self.complain(
                Diagnostic::error("`size: rest` needs to know how many NPUs there are")
                    .at(place)
                    .help(format!("write `npus: 2048` in `{cluster}`")),
            );
        }
    }

    /// A workload stands in place of a model and a plan.
    pub(super) fn plan_without_training(&mut self, lines: &[Line], is_collective: bool) {
        if !is_collective {
            return;
        }
        // The degrees of a recorded trace stand in its path.
        let is_recorded = self.walker.written.contains(&narrow(Id::Chakra as u64));
        for (name, place, _) in lines.iter().filter(|line| !is_recorded || line.0 != "plan") {
            if matches!(name.as_str(), "model" | "plan" | "seq_len" | "global_batch" | "optimizer") {
                self.complain(
                    Diagnostic::error(format!("`{name}` stands beside `workload`, which replaces it"))
                        .at(*place)
                        .help(format!("remove `{name}`, or `workload` to train a model")),
                );
            }
        }
    }
}

/// Whether a value is the `rest` of a dimension's size.
fn is_open_size(slot: Slot, value: f64) -> bool {
    value == REST && (0..MAX_DIMS).any(|dim| dim_slot(dim, DimId::Size) == slot as usize)
}

/// Where an axis has a `rest` in an alternative that does not know `npus`, and the name of the cluster that lacks them.
fn open_rest(axis: &Axis) -> Option<(Place, Option<&str>)> {
    let npus = Id::Npus as usize;
    let is_known = |alternative: &&Alternative| {
        alternative.value(npus).is_some_and(|value| value != REST)
            || alternative.axes.iter().any(|axis| always_sets(axis, npus))
    };
    let is_open = |alternative: &Alternative| {
        alternative.settings.iter().any(|setting| is_open_size(setting.slot, setting.value))
    };
    axis.alternatives.iter().filter(|alternative| !is_known(alternative)).find_map(|alternative| {
        let place = is_open(alternative).then_some((axis.place, None));
        let (place, cluster) = place.or_else(|| alternative.axes.iter().find_map(open_rest))?;
        let own = (axis.name == "cluster").then_some(alternative.label.as_str());
        Some((place, cluster.or(own)))
    })
}
