//! Fidelity: what evaluates a point, and what of a sweep only the event-driven engine knows.

use super::key::{Default, Id, KEYS, Kind};
use super::resolve::Resolver;
use super::walk::{Frame, Line};
use crate::input::diagnostic::{Diagnostic, Place};
use crate::units::{index, plain, whole};

/// What evaluates a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fidelity {
    /// By multiplication, in microseconds.
    ClosedForm,
    /// By execution of the whole graph.
    EventDriven,
}

impl Fidelity {
    /// Both; the first holds where nothing is said.
    pub const ALL: [Self; 2] = [Self::ClosedForm, Self::EventDriven];
    /// The names that people write, in the same order.
    pub const NAMES: [&'static str; 2] = ["closed_form", "event_driven"];

    /// The number of its word.
    #[must_use]
    pub const fn number(self) -> f64 {
        match self {
            Self::ClosedForm => 0.0,
            Self::EventDriven => 1.0,
        }
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Keys of chunks that queue: the closed form has no queue.
pub const QUEUE_KEYS: [Id; 3] = [Id::ActiveChunks, Id::DimensionOrder, Id::ChunkOrder];

/// Whether a key has a value that the closed form does not know: another than its default.
#[must_use]
pub fn is_beyond(id: Id, value: f64) -> bool {
    matches!(KEYS[id as usize].default, Default::Is(default) if default != value)
}

/// Why the closed form does not know a key.
const fn why(id: Id) -> &'static str {
    match id {
        Id::Rules => "the closed form knows our rules alone",
        _ => "the closed form has no queues",
    }
}

impl Resolver<'_> {
    /// Whether any point of a sweep may be event-driven.
    fn has_event_driven(frame: &Frame) -> bool {
        let is =
            |slot: u32, value: f64| slot as usize == Id::Fidelity as usize && value == Fidelity::EventDriven.number();
        let mut found = frame.settings.iter().any(|setting| is(setting.0, setting.1));
        for axis in &frame.axes {
            axis.visit(&mut |_, alternative| {
                found |= alternative.settings.iter().any(|setting| is(setting.slot, setting.value));
            });
        }
        found
    }

    /// What a sweep asks of the closed form that only the event-driven engine knows, and the reverse.
    pub(super) fn beyond_the_closed_form<'a>(&mut self, lines: &[Line], frame: &'a Frame) {
        if self.walker.has_failed(Id::Fidelity as usize, frame) {
            return;
        }
        if Self::has_event_driven(frame) {
            if let Some(line) = lines.iter().find(|line| line.0 == "refine") {
                let message =
                    "`refine` evaluates the best of a closed-form sweep again, and this one has event-driven points";
                self.complain(
                    Diagnostic::error(message).at(line.1).help("remove `refine`, or write `fidelity: closed_form`"),
                );
            }
            return;
        }
        // Which key, its value, where, and the alternative that sets it if it is named.
        let mut found: Vec<(Id, f64, Place, Option<&'a str>)> = Vec::new();
        for id in QUEUE_KEYS.into_iter().chain([Id::Rules]) {
            let mut note = |slot: u32, value: f64, place: Place, whose: Option<&'a str>| {
                // One word of an axis stands for all of it.
                let is_known = found.iter().any(|other| other.0 == id && other.2 == place && other.3 == whose);
                if slot as usize == id as usize && is_beyond(id, value) && !is_known {
                    found.push((id, value, place, whose));
                }
            };
            frame.settings.iter().for_each(|&(slot, value, place)| note(slot, value, place, None));
            for axis in &frame.axes {
                axis.visit(&mut |axis, alternative| {
                    let whose = (axis.name != KEYS[id as usize].path).then_some(alternative.label.as_str());
                    let settings = alternative.settings.iter();
                    settings.for_each(|setting| note(setting.slot, setting.value, axis.place, whose));
                });
            }
        }
        for (id, value, place, whose) in found {
            let key = &KEYS[id as usize];
            let words = |value: f64| match key.kind {
                Kind::Choice(words) => words[index(whole(value))].to_owned(),
                _ => plain(value),
            };
            let default = if let Default::Is(default) = key.default { words(default) } else { String::new() };
            let whose = whose.map_or_else(String::new, |name| format!(" of `{name}`"));
            let what = format!("`{}: {}`{whose}", key.name(), words(value));
            let message = format!("{what} needs `fidelity: event_driven`: {}", why(id));
            let help = format!("write the line `fidelity: event_driven`, or `{}: {default}`", key.name());
            self.complain(Diagnostic::error(message).at(place).help(help));
        }
    }
}
