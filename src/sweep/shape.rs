//! A model that cannot exist, seen before anything runs where no axis decides its shape.

use super::inputs::Inputs;
use super::key::{Id, KEYS, Kind};
use super::point;
use super::resolve::Resolver;
use super::sizes::Lists;
use super::walk::{Frame, Line};
use crate::input::diagnostic::{Diagnostic, Place, Source};
use crate::units::{index, narrow, plain, whole};

impl Resolver<'_> {
    /// A model whose written values contradict each other. Where an axis has a part in it, points are infeasible instead.
    pub(super) fn possible_model(&mut self, frame: &Frame, lines: &[Line], base: &[f64]) {
        let is_there = |id: Id| frame.surely_sets(id as usize);
        if !(is_there(Id::Layers) || is_there(Id::Tables)) || !self.walker.diagnostics.is_empty() {
            return;
        }
        let family = narrow(Id::Family as u64);
        if frame.axes.iter().any(|axis| axis.touched.contains(&family)) {
            return;
        }
        let mut inputs = Inputs::new(base).with_lists(Lists::of(&self.walker.names));
        inputs.complete();
        let Err(refused) = point::model(&inputs).check() else { return };
        let slot = |lever: &&str| KEYS.iter().position(|key| key.path.strip_prefix("model.") == Some(lever));
        let slots: Vec<usize> = refused.reason.levers().iter().filter_map(slot).collect();
        let is_axis = |slot: &usize| frame.axes.iter().any(|axis| axis.touched.contains(&narrow(*slot as u64)));
        if slots.iter().any(is_axis) {
            return;
        }
        let written = |slot: &usize| frame.settings.iter().find(|setting| setting.0 as usize == *slot);
        let own =
            slots.iter().filter_map(written).map(|setting| setting.2).find(|place| place.source != Source::Preset);
        let section = || lines.iter().find(|line| line.0 == "model").map_or_else(Place::default, |line| line.1);
        let (known, unknown): (Vec<usize>, Vec<usize>) = slots.iter().partition(|&&slot| base[slot].is_finite());
        let known: Vec<String> =
            known.iter().map(|&slot| format!("`{}` is {}", KEYS[slot].name(), self.shown(slot, base[slot]))).collect();
        let write = unknown.iter().map(|&slot| format!("write `{}`", KEYS[slot].name()));
        let ways: Vec<String> = std::iter::once("change one of them".to_owned()).chain(write).collect();
        self.complain(
            Diagnostic::error(format!("there is no such model: {}", refused.reason.meaning()))
                .at(own.unwrap_or_else(section))
                .help(format!("{}: {}", known.join(", "), ways.join(", or "))),
        );
    }

    /// A value of a model's key as people write it.
    fn shown(&self, slot: usize, value: f64) -> String {
        let place = index(whole(value));
        let text = match KEYS[slot].kind {
            Kind::Sizes { .. } => self.walker.names.get(place).cloned(),
            Kind::Choice(words) => words.get(place).map(|&word| word.to_owned()),
            _ => None,
        };
        text.unwrap_or_else(|| plain(value))
    }
}
