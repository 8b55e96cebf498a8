//! Recorded traces as a workload: paths in which names in braces are values of the point.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use super::algorithm::Written;
use super::axis::Axis;
use super::expression::Scope as _;
use super::key::{self, Id, KEYS, Key, Kind, Slot};
use super::resolve::Resolver;
use super::scope::Names;
use super::walk::{Frame, Line, Walker};
use super::{Fidelity, Inputs, Sweep, point};
use crate::input::diagnostic::{Diagnostic, Place, suggest};
use crate::input::tree::{Node, Value};
use crate::units::{index, narrow, whole};

/// The files of one trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recording {
    /// The path of every rank's file, without the rank and what follows it.
    pub prefix: String,
    /// The file of communicator groups.
    pub groups: Option<String>,
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
    let is_path = |slot: Slot| key::key_of(slot as usize).is_some_and(|key| key.kind == Kind::Path);
    for setting in frame.settings.iter().filter(|setting| is_path(setting.0)) {
        written.push((index(whole(setting.1)), setting.2));
    }
    for axis in &frame.axes {
        axis.visit(&mut |axis, alternative| {
            let settings = alternative.settings.iter().filter(|setting| is_path(setting.slot));
            written.extend(settings.map(|setting| (index(whole(setting.value)), axis.place)));
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
            !frame.surely_sets(Id::Fidelity as usize) && !self.walker.has_failed(Id::Fidelity as usize, frame);
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
            let template = self.templates.get(&index(whole(number))).filter(|_| !number.is_nan())?;
            let piece = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Value(slot) => self.value_text(*slot, inputs.get(*slot)),
            };
            Some(template.0.iter().map(piece).collect::<String>())
        };
        Some(Recording { prefix: path(Id::Chakra)?, groups: path(Id::CommGroups) })
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
            Some(Kind::Path) | None => self.names.get(place).cloned(),
            Some(_) => Some(value.to_string()),
        };
        text.unwrap_or_default()
    }

    /// The id of a point: of its inputs, and of what its files hold.
    #[must_use]
    pub fn id(&self, inputs: &Inputs, canonical: &mut Vec<u8>) -> u64 {
        let id = point::id(inputs, canonical);
        match (self.recording(inputs), &self.loader) {
            (Some(recording), Some(loader)) => {
                canonical.extend_from_slice(&loader.content(&recording).to_le_bytes());
                xxh3_64(canonical)
            }
            _ => id,
        }
    }

    /// The identity with that of all files of traces, and what is wrong with a trace that is the same at all points.
    pub(super) fn with_recordings(mut self, place: Place) -> Result<Self, Vec<Diagnostic>> {
        let Some(loader) = self.loader.clone().filter(|_| !self.templates.is_empty()) else { return Ok(self) };
        let mut recordings = BTreeSet::new();
        let mut npus = BTreeSet::new();
        let mut cursor = self.space.cursor(0);
        while cursor.next_point(self.space.len()).is_some() {
            recordings.extend(self.recording(&cursor.inputs));
            npus.insert(whole(cursor.inputs.key(Id::Npus)));
            cursor.step();
        }
        let mut text = self.identity.to_le_bytes().to_vec();
        for recording in &recordings {
            text.extend_from_slice(&loader.content(recording).to_le_bytes());
        }
        self.identity = xxh3_64(&text);
        let has_value = |template: &Template| template.0.len() > 1;
        if let (Some(recording), Some(&npus), false) =
            (recordings.first(), npus.first(), self.templates.values().any(has_value))
        {
            let only = recordings.len() == 1;
            if let Err(found) = loader.trace(recording, narrow(npus)).map_err(|found| found.to_vec())
                && only
            {
                return Err(found
                    .into_iter()
                    .map(|error| if error.place.is_some() { error } else { error.at(place) })
                    .collect());
            }
        }
        Ok(self)
    }
}
