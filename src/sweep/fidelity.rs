//! Fidelity: what evaluates a point, and what of a sweep only the event-driven engine knows.

use super::algorithm::{CHAKRA, Written, trace_of};
use super::key::{Default, Id, KEYS, Key, Kind, OF_COLLECTIVE};
use super::recompute;
use super::resolve::Resolver;
use super::walk::{Frame, Line};
use crate::input::diagnostic::{Diagnostic, Place};
use crate::system::hierarchy::MultiDim;
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
pub const QUEUE_KEYS: [Id; 4] = [Id::ActiveChunks, Id::Queues, Id::DimensionOrder, Id::ChunkOrder];
/// Keys of what only single messages show: the closed form has none.
pub const MESSAGE_KEYS: [Id; 4 + OF_COLLECTIVE.len()] = {
    let mut keys = [Id::Algorithm; 4 + OF_COLLECTIVE.len()];
    (keys[0], keys[1], keys[2]) = (Id::MultiDim, Id::Rendezvous, Id::Congestion);
    let mut k = 0;
    while k < OF_COLLECTIVE.len() {
        keys[4 + k] = OF_COLLECTIVE[k];
        k += 1;
    }
    keys
};

/// Whether a key has a value that the closed form does not know: another than its default, of `multi_dim` only `flat`, of
/// algorithms only traces.
#[must_use]
pub fn is_beyond(id: Id, value: f64) -> bool {
    match KEYS[id as usize].default {
        _ if matches!(id, Id::MultiDim) => MultiDim::ALL.get(index(whole(value))) == Some(&MultiDim::Flat),
        _ if matches!(KEYS[id as usize].kind, Kind::Algorithm) => trace_of(id as usize, value).is_some(),
        Default::Is(default) => default != value,
        _ => false,
    }
}

/// Why the closed form does not know a key.
const fn why(id: Id) -> &'static str {
    match id {
        Id::Rules => "the closed form knows our rules alone",
        Id::MultiDim => "the closed form goes dimension by dimension",
        _ if matches!(KEYS[id as usize].kind, Kind::Algorithm) => "the closed form executes no trace",
        Id::Rendezvous | Id::Congestion => "the closed form has no single messages",
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
    pub(super) fn beyond_the_closed_form(&mut self, lines: &[Line], frame: &Frame) {
        if self.walker.has_failed(Id::Fidelity as usize, frame, 0) {
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
        let beyond = QUEUE_KEYS.into_iter().chain(MESSAGE_KEYS).chain([Id::Rules]);
        for found in uses(frame, beyond, is_beyond) {
            let key = &KEYS[found.id as usize];
            let names = &self.walker.names;
            let default =
                if let Default::Is(default) = key.default { text(key, default, names) } else { key.example() };
            let message = format!("{} needs `fidelity: event_driven`: {}", found.what(names), why(found.id));
            let help = format!("write the line `fidelity: event_driven`, or `{}: {default}`", key.name());
            self.complain(Diagnostic::error(message).at(found.place).help(help));
        }
    }

    /// What takes every rank of a machine, beside a training job, of which one rank stands for each pipeline stage.
    pub(super) fn beyond_a_training_job(&mut self, frame: &Frame) {
        let of_messages =
            [Id::Congestion, Id::Rendezvous, Id::MultiDim, Id::Algorithm].into_iter().chain(OF_COLLECTIVE);
        for found in uses(frame, of_messages, is_beyond) {
            let why = match KEYS[found.id as usize].kind {
                Kind::Algorithm => "whose groups differ in size: a trace is made for one number of ranks",
                _ => "of which one rank stands for many",
            };
            let message = format!("{} stands beside a training job, {why}", found.what(&self.walker.names));
            let help = "remove it, or run `workload: {collective: all_reduce, size: 1 GB}` or a recorded trace";
            self.complain(Diagnostic::error(message).at(found.place).help(help));
        }
    }
}

/// A value that a key has somewhere in a sweep.
struct Use<'a> {
    id: Id,
    value: f64,
    place: Place,
    /// The alternative that sets it, if it is named.
    whose: Option<&'a str>,
}

impl Use<'_> {
    /// In words.
    fn what(&self, names: &[String]) -> String {
        let key = &KEYS[self.id as usize];
        let whose = self.whose.map_or_else(String::new, |name| format!(" of `{name}`"));
        format!("`{}: {}`{whose}", key.name(), text(key, self.value, names))
    }
}

/// A value as people write it.
fn text(key: &Key, value: f64, names: &[String]) -> String {
    match key.kind {
        Kind::Choice(words) => words[index(whole(value))].to_owned(),
        Kind::Flag => (value == 1.0).to_string(),
        Kind::Recompute => recompute::text(value).unwrap_or_default().to_owned(),
        Kind::Algorithm => match Written::of(value) {
            Some(Written::Chakra(name)) => format!("{{{CHAKRA}: {}}}", names.get(name).map_or("", String::as_str)),
            written => written.and_then(|written| written.text(names)).unwrap_or_default().to_owned(),
        },
        _ => plain(value),
    }
}

/// Where keys have values of a kind. One word of an axis stands for all of it.
fn uses<'a>(frame: &'a Frame, ids: impl IntoIterator<Item = Id>, is: impl Fn(Id, f64) -> bool) -> Vec<Use<'a>> {
    let mut found: Vec<Use<'a>> = Vec::new();
    for id in ids {
        let mut note = |slot: u32, value: f64, place: Place, whose: Option<&'a str>| {
            let is_known = found.iter().any(|it| it.id == id && it.place == place && it.whose == whose);
            if slot as usize == id as usize && is(id, value) && !is_known {
                found.push(Use { id, value, place, whose });
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
    found
}
