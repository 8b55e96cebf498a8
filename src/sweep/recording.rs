//! Recorded traces as a workload: paths in which names in braces are values of the point.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use super::algorithm::{Written, trace_of};
use super::axis::Axis;
use super::expression::Scope as _;
use super::key::{self, Id, KEYS, Key, Kind, OF_COLLECTIVE, Slot};
use super::resolve::Resolver;
use super::scope::Names;
use super::walk::{Frame, Line, Walker};
use super::{Fidelity, Inputs, Sweep};
use crate::input::diagnostic::{Diagnostic, Place, suggest};
use crate::input::tree::{Node, Value};
use crate::system::collective::Collective;
use crate::units::{index, narrow, whole};

/// The files of one trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recording {
    /// The path of every rank's file, without the rank and what follows it.
    pub prefix: String,
    /// The file of communicator groups.
    pub groups: Option<String>,
    /// The traces that collectives are, in place of an algorithm.
    pub own: Vec<Own>,
}

/// A collective that is a trace of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Own {
    /// The collective.
    pub collective: Collective,
    /// The path of every member's file, without the member and what follows it.
    pub prefix: String,
}

/// A path, cut where values of the point stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(usize),
}

impl Walker {
    /// One path, or a list of paths.
    pub(super) fn paths(&mut self, name: &str, slot: Slot, key: &Key, node: &Node, frame: &mut Frame) {
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut values = Vec::new();
        for item in items {
            match &item.value {
                Value::Text(path) if values.iter().any(|(_, known)| known == path) => {
                    self.complain(super::walk::twice(name, path, item.place));
                }
                Value::Text(path) => values.push((self.intern(path), path.clone())),
                _ => self.complain(super::leaf::expected(key, item)),
            }
        }
        match (&node.value, values.as_slice()) {
            (Value::List(_), _) => frame.axes.push(Axis::of_values(name, node.place, slot, &values)),
            (_, [(value, _)]) => frame.settings.push((slot, *value, node.place)),
            _ => {}
        }
    }
}

/// The paths of the sweep with the values in them, by the numbers of their names.
pub(super) fn templates(frame: &Frame, names: &Names<'_>) -> (BTreeMap<usize, Template>, Vec<Diagnostic>) {
    let mut written: Vec<(usize, Place)> = Vec::new();
    let path = |slot: Slot, value: f64| match key::key_of(slot as usize)?.kind {
        Kind::Path => Some(index(whole(value))),
        _ => trace_of(slot as usize, value),
    };
    for setting in &frame.settings {
        written.extend(path(setting.0, setting.1).map(|name| (name, setting.2)));
    }
    for axis in &frame.axes {
        axis.visit(&mut |axis, alternative| {
            let names = alternative.settings.iter().filter_map(|setting| path(setting.slot, setting.value));
            written.extend(names.map(|name| (name, axis.place)));
        });
    }
    let (mut templates, mut complaints) = (BTreeMap::new(), Vec::new());
    for (number, place) in written {
        let text = names.names.get(number).map(String::as_str).unwrap_or_default();
        match template(text, names) {
            Ok(template) => {
                templates.insert(number, template);
            }
            Err(diagnostic) => complaints.push(diagnostic.at(place)),
        }
    }
    (templates, complaints)
}

impl Resolver<'_> {
    /// What only a trace has stands beside one.
    pub(super) fn of_a_trace(&mut self, lines: &[Line]) {
        let place = lines.iter().find(|line| line.0 == "workload").map_or_else(Place::default, |line| line.1);
        for id in OF_A_TRACE {
            if self.walker.written.contains(&narrow(id as u64)) {
                let message = format!("`{}` is of a recorded trace, and there is none", KEYS[id as usize].name());
                self.complain(Diagnostic::error(message).at(place).help("write `chakra: traces/w` beside it"));
            }
        }
    }

    /// A trace is executed: the closed form knows none; and it stands alone.
    pub(super) fn recorded_alone(&mut self, lines: &[Line], frame: &Frame) {
        let place = lines.iter().find(|line| line.0 == "workload").map_or_else(Place::default, |line| line.1);
        let is_closed =
            |slot: Slot, value: f64| slot as usize == Id::Fidelity as usize && value == Fidelity::ClosedForm.number();
        let mut closed =
            !frame.surely_sets(Id::Fidelity as usize) && !self.walker.has_failed(Id::Fidelity as usize, frame, 0);
        closed |= frame.settings.iter().any(|setting| is_closed(setting.0, setting.1));
        for axis in &frame.axes {
            axis.visit(&mut |_, alternative| {
                closed |= alternative.settings.iter().any(|setting| is_closed(setting.slot, setting.value));
            });
        }
        if closed {
            let message = "`chakra` needs `fidelity: event_driven`: the closed form executes no trace";
            self.complain(Diagnostic::error(message).at(place).help("write the line `fidelity: event_driven`"));
        }
        if self.walker.written.contains(&narrow(Id::Collective as u64)) {
            let message = "`chakra` stands beside `collective`: a sweep runs one or the other";
            self.complain(Diagnostic::error(message).at(place).help("remove one of the two, or make two sweeps"));
        }
    }
}

/// Keys of `workload` that a trace alone has.
const OF_A_TRACE: [Id; 2] = [Id::CommGroups, Id::RemoteMemory];

/// A path with its values.
fn template(text: &str, names: &Names<'_>) -> Result<Template, Diagnostic> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else {
            return Err(
                Diagnostic::error(format!("a brace of `{text}` does not close")).help("write `traces/tp{tp}/w`")
            );
        };
        let slot = names.name(name).map(|(slot, _)| slot as usize).filter(|&slot| slot < key::SLOTS);
        let Some(slot) = slot else {
            let of_sections =
                |key: &&Key| ["plan.", "collectives.", "cluster.npus"].iter().any(|head| key.path.starts_with(head));
            let known = KEYS.iter().filter(of_sections).map(Key::name);
            let diagnostic = Diagnostic::error(format!("`{{{name}}}` in a path is no value of a point"));
            return Err(diagnostic.help(suggest(name, known).unwrap_or_else(|| "write `traces/tp{tp}/w`".to_owned())));
        };
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(Piece::Value(slot));
        rest = behind;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(Template(pieces))
}

impl Sweep {
    /// The trace that a point runs, if it runs one.
    #[must_use]
    pub fn recording(&self, inputs: &Inputs) -> Option<Recording> {
        let path = |id: Id| {
            let number = inputs.key(id);
            self.path(index(whole(number)), inputs).filter(|_| !number.is_nan())
        };
        Some(Recording { prefix: path(Id::Chakra)?, groups: path(Id::CommGroups), own: self.own(inputs) })
    }

    /// The collectives of a point that are traces of their own: the one that runs, or some of a recorded trace.
    #[must_use]
    pub fn own(&self, inputs: &Inputs) -> Vec<Own> {
        // Most sweeps name no file.
        if self.templates.is_empty() {
            return Vec::new();
        }
        let running = Collective::ALL.get(index(whole(inputs.key(Id::Collective)))).filter(|_| inputs.is_collective());
        let of = |collective: Collective| {
            let own = OF_COLLECTIVE[collective as usize];
            // `algorithm` is that of the collective that runs, or of all-reduces.
            let is_meant = running.map_or(collective == Collective::AllReduce, |&running| collective == running);
            let id = if inputs.key(own).is_nan() && is_meant { Id::Algorithm } else { own };
            let name = trace_of(id as usize, inputs.key(id))?;
            Some(Own { collective, prefix: self.path(name, inputs)? })
        };
        let is_used = |collective: &Collective| running.is_none_or(|running| running == collective);
        Collective::ALL.into_iter().filter(is_used).filter_map(of).collect()
    }

    /// A path with the values of a point in it, by the number of its name.
    fn path(&self, name: usize, inputs: &Inputs) -> Option<String> {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(slot) => self.value_text(*slot, inputs.get(*slot)),
        };
        Some(self.templates.get(&name)?.0.iter().map(piece).collect())
    }

    /// Whether any point runs a recorded trace.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        let slot = narrow(Id::Chakra as u64);
        !self.space.base[slot as usize].is_nan() || self.space.axes.iter().any(|axis| axis.touched.contains(&slot))
    }

    /// A value as it stands in a path.
    fn value_text(&self, slot: usize, value: f64) -> String {
        let place = index(whole(value));
        let text = match key::key_of(slot).map(|key| key.kind) {
            _ if value.is_nan() => None,
            Some(Kind::Choice(words)) => words.get(place).map(|&word| word.to_owned()),
            Some(Kind::Algorithm) => Written::of(value).and_then(|it| it.text(&self.names)).map(str::to_owned),
            Some(Kind::Flag) => Some((value == 1.0).to_string()),
            Some(Kind::Tier) if value < 0.0 => Some("none".to_owned()),
            Some(Kind::Tier) => self.tiers.get(place).cloned(),
            Some(Kind::Path | Kind::Sizes { .. }) | None => self.names.get(place).cloned(),
            Some(_) => Some(value.to_string()),
        };
        text.unwrap_or_default()
    }

    /// The id of a point: of its inputs, and of what its files hold.
    #[must_use]
    pub fn id(&self, inputs: &Inputs, canonical: &mut Vec<u8>) -> u64 {
        let id = self.space.canonical(inputs).id(inputs, canonical);
        let Some(loader) = self.loader.as_ref().filter(|_| !self.templates.is_empty()) else { return id };
        let recording = self.recording(inputs);
        let own = self.own(inputs);
        if recording.is_none() && own.is_empty() {
            return id;
        }
        if let Some(recording) = recording {
            canonical.extend_from_slice(&loader.content(&recording.prefix, recording.groups.as_deref()).to_le_bytes());
        }
        for own in own {
            canonical.push(own.collective as u8);
            canonical.extend_from_slice(&loader.content(&own.prefix, None).to_le_bytes());
        }
        xxh3_64(canonical)
    }

    /// The identity with that of all files of traces, and what is wrong with traces that are the same at all points: with the
    /// recorded one, and with those of collectives, for no number of ranks of which there is one.
    pub(super) fn with_recordings(mut self, workload: Place, collectives: Place) -> Result<Self, Vec<Diagnostic>> {
        let Some(loader) = self.loader.clone().filter(|_| !self.templates.is_empty()) else { return Ok(self) };
        let mut recordings = BTreeSet::new();
        let mut own = BTreeMap::<String, BTreeSet<u32>>::new();
        let mut npus = BTreeSet::new();
        let mut cursor = self.space.cursor(0);
        while cursor.next_point(self.space.len()).is_some() {
            let ranks = narrow(whole(cursor.inputs.key(Id::Npus)));
            let recording = self.recording(&cursor.inputs).map(|recording| Recording { own: Vec::new(), ..recording });
            for found in self.own(&cursor.inputs) {
                let of_its_own = own.entry(found.prefix).or_default();
                // Of groups of a recorded trace it is not known here how large they are.
                of_its_own.extend(recording.is_none().then_some(ranks));
            }
            recordings.extend(recording);
            npus.insert(ranks);
            cursor.step();
        }
        let mut text = self.identity.to_le_bytes().to_vec();
        for recording in &recordings {
            text.extend_from_slice(&loader.content(&recording.prefix, recording.groups.as_deref()).to_le_bytes());
        }
        for prefix in own.keys() {
            text.extend_from_slice(&loader.content(prefix, None).to_le_bytes());
        }
        self.identity = xxh3_64(&text);
        let at = |found: &[Diagnostic], place: Place| -> Vec<Diagnostic> {
            let at = |error: Diagnostic| if error.place.is_some() { error } else { error.at(place) };
            found.iter().cloned().map(at).collect()
        };
        if self.templates.values().any(|template| template.0.len() > 1) {
            return Ok(self);
        }
        if let (Some(recording), Some(&npus), true) = (recordings.first(), npus.first(), recordings.len() == 1)
            && let Err(found) = loader.trace(recording, npus)
        {
            return Err(at(&found, workload));
        }
        for (prefix, ranks) in own {
            let read: Vec<_> = ranks.into_iter().map(|ranks| loader.own(&prefix, ranks)).collect();
            if let (Some(Err(found)), false) = (read.first(), read.iter().any(Result::is_ok)) {
                return Err(at(found, collectives));
            }
        }
        Ok(self)
    }
}
