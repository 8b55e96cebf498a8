//! A system file of the reference simulator as the base of `collectives`: its lists of algorithms in the words of a sweep.

use super::algorithm::{BY_DIMENSION, CHAKRA};
use super::key::{DimId, Id, KEYS, OF_COLLECTIVE, dim_slot};
use super::outside::{Said, SystemFile};
use super::walk::{Frame, Walker};
use crate::input::diagnostic::{Diagnostic, Place};
use crate::input::tree::{Entry, Node, Value};
use crate::system::collective::{Choice, Collective};
use crate::system::hierarchy::MultiDim;
use crate::system::topology::Topology;
use crate::units::{Unit, human, index, narrow, whole};

impl Walker {
    /// Remembers which building blocks a dimension of a network may have: algorithms of a file go by dimension.
    pub(super) fn note_blocks(&mut self, dim: usize, line: &Frame) {
        let mut blocks = Vec::new();
        let is_block = |slot: u32| slot as usize == dim_slot(dim, DimId::Block);
        blocks.extend(line.settings.iter().filter(|setting| is_block(setting.0)).map(|setting| setting.1));
        for axis in &line.axes {
            axis.visit(&mut |_, alternative| {
                let settings = alternative.settings.iter().filter(|setting| is_block(setting.slot));
                blocks.extend(settings.map(|setting| setting.value));
            });
        }
        let blocks = blocks.into_iter().filter_map(|block| Topology::ALL.get(index(whole(block))).copied()).collect();
        if let Some(shape) = self.shapes.last_mut() {
            shape.push(blocks);
        }
    }

    /// Remembers which collectives run, where one runs in place of training.
    pub(super) fn note_collectives(&mut self, frame: &Frame) {
        let mut found = Vec::new();
        let mut note = |slot: u32, value: f64| {
            if slot as usize == Id::Collective as usize {
                found.extend(Collective::ALL.get(index(whole(value))).copied());
            }
        };
        frame.settings.iter().for_each(|setting| note(setting.0, setting.1));
        for axis in &frame.axes {
            axis.visit(&mut |_, alternative| {
                alternative.settings.iter().for_each(|setting| note(setting.slot, setting.value));
            });
        }
        if !found.is_empty() {
            self.collectives = found;
        }
    }

    /// The memory of system files, where no NPU and no memory says how fast it is.
    pub(super) fn memory_of_files(&mut self, frame: &mut Frame) {
        let found = std::mem::take(&mut self.memory_bandwidths);
        let Some((bandwidth, file, place)) = found.first().cloned() else { return };
        let is_written = |id: Id| self.written.contains(&narrow(id as u64));
        if is_written(Id::HbmBandwidth) || is_written(Id::LocalBandwidth) {
            for (_, file, place) in found {
                let message =
                    format!("`local-mem-bw` of `{file}` counts for nothing: the sweep says how fast the memory is");
                self.cautions.push(Diagnostic::caution(message).at(place));
            }
            return;
        }
        if let Some((_, other, place)) = found.iter().find(|other| other.0 != bandwidth) {
            let message = format!("`{file}` and `{other}` differ in `local-mem-bw`");
            let help = "write `memory.local.bandwidth: 1600 GB/s` for all of them";
            self.complain(Diagnostic::error(message).at(*place).help(help));
        } else if self.in_row {
            let message = format!("`{file}` says how fast the memory is, in a row of a zip");
            let help =
                format!("write `memory.local.bandwidth: {}` outside of the rows", human(bandwidth, Unit::BANDWIDTH));
            self.complain(Diagnostic::error(message).at(place).help(help));
        } else {
            self.memory_bandwidth = Some(bandwidth);
            frame.settings.push((narrow(Id::LocalBandwidth as u64), bandwidth, place));
        }
    }

    /// What a system file says, with the algorithms that its lists come to, unless one is written beside.
    pub(super) fn system_file(&mut self, path: &str, file: SystemFile, over: &[&Node], place: Place) -> Said {
        let SystemFile { said: Said { node, mut found }, algorithms, own, memory_bandwidth } = file;
        let Some(mut node) = node else { return Said { node, found } };
        if let Some(bandwidth) = memory_bandwidth {
            self.memory_bandwidths.push((bandwidth, path.to_owned(), place));
        }
        if over.iter().all(|node| node.get("algorithm").is_none()) {
            match self.algorithm(path, &algorithms, &own) {
                Ok(keys) => {
                    if let Value::Map(entries) = &mut node.value {
                        // Over all NPUs at once there are no dimensions after each other.
                        entries.retain(|entry| keys.iter().all(|key| key.0 != entry.key));
                        let entry = |(key, value)| Entry { key, place, node: Node { value, place } };
                        entries.extend(keys.into_iter().map(entry));
                    }
                }
                // Of a network that is wrong it is not known what fits it.
                Err(_) if self.is_unread("cluster.network") || self.shapes.iter().flatten().any(Vec::is_empty) => {}
                Err(diagnostic) => found.push(diagnostic),
            }
        }
        Said { node: Some(node), found }
    }

    /// The keys that stand for the algorithms of all collectives that run, on all networks.
    fn algorithm(&self, path: &str, lists: &Lists, own: &Traces) -> Result<Vec<Line>, Diagnostic> {
        let list = |collective: Collective| lists[collective as usize].as_slice();
        let trace = |collective: Collective| own[collective as usize].clone();
        let mut wanted: Vec<Collective> = if self.collectives.is_empty() {
            let is_there = |&collective: &Collective| !list(collective).is_empty() || trace(collective).is_some();
            Collective::ALL.into_iter().filter(is_there).collect()
        } else {
            self.collectives.clone()
        };
        let traces: Vec<Line> = wanted.iter().filter_map(|&it| Some((name(it), traced(trace(it)?)))).collect();
        wanted.retain(|&collective| trace(collective).is_none());
        if wanted.is_empty() && !traces.is_empty() {
            return Ok(traces);
        }
        let lacks =
            |collective: Collective| Diagnostic::error(format!("`{path}` lacks `{}`", key(collective))).help(HELP);
        if let Some(&collective) = wanted.iter().find(|&&collective| list(collective).is_empty()) {
            return Err(lacks(collective));
        }
        let Some(&first) = wanted.first() else { return Err(lacks(Collective::AllReduce)) };
        if let Some(word) = Choice::words().into_iter().find(|word| self.is_everywhere(word, &wanted, lists)) {
            let word = ("algorithm".to_owned(), Value::Text(word.to_owned()));
            return Ok(std::iter::once(word).chain(traces).collect());
        }
        // One list stands in `algorithm`; another is that of one collective, if it is one word.
        let is_word = |list: &[Part]| self.is_one_word(list);
        let base = wanted.iter().copied().find(|&collective| !is_word(list(collective))).unwrap_or(first);
        let mut keys = stands_for(list(base), self.shapes.iter().all(|shape| shape.len() == 1));
        for &collective in wanted.iter().filter(|&&collective| list(collective) != list(base)) {
            let is_whole = |list: &[Part]| list.iter().any(|part| part.whole);
            if !is_word(list(collective)) || is_whole(list(collective)) != is_whole(list(base)) {
                let written =
                    |collective: Collective| format!("`{}: [{}]`", key(collective), written(list(collective)));
                let message = format!(
                    "a sweep has one list of algorithms by dimension, and `{path}` has {} and {}",
                    written(base),
                    written(collective)
                );
                return Err(Diagnostic::error(message).help(HELP));
            }
            keys.push((name(collective), Value::Text(list(collective)[0].word.to_owned())));
        }
        keys.extend(traces);
        Ok(keys)
    }

    /// Whether a word is what the lists of some collectives say on every network.
    fn is_everywhere(&self, word: &str, wanted: &[Collective], lists: &Lists) -> bool {
        let choice = Choice::of_word(word);
        wanted.iter().all(|&collective| {
            let list = &lists[collective as usize];
            let is = |part: &Part, block: Topology| {
                part.window.is_none() && choice.is_some_and(|choice| part.word == choice.of(block, collective).name())
            };
            let fits = |shape: &Vec<Vec<Topology>>| {
                let whole = list.iter().any(|part| part.whole);
                list.len() == shape.len()
                    && (!whole || list.len() == 1)
                    && list
                        .iter()
                        .zip(shape)
                        .all(|(part, blocks)| !blocks.is_empty() && blocks.iter().all(|&block| is(part, block)))
            };
            !self.shapes.is_empty() && self.shapes.iter().all(fits)
        })
    }

    /// Whether a list is the same word in every dimension of every network, without a window.
    fn is_one_word(&self, list: &[Part]) -> bool {
        let is_same = list.iter().all(|part| part.window.is_none() && *part == list[0]);
        is_same && (list[0].whole || self.shapes.iter().all(|shape| shape.len() == list.len()))
    }
}

/// What helps where a file's lists cannot stand in a sweep.
const HELP: &str = "write `algorithm: by_block` beside it, or one of `ring`, `direct`, `halving_doubling`";

/// A key and its value.
type Line = (String, Value);
/// The algorithms of each collective.
type Lists = [Vec<Part>; Collective::ALL.len()];
/// The traces that collectives are.
type Traces = [Option<String>; Collective::ALL.len()];

/// The key of the algorithm of a collective.
fn name(collective: Collective) -> String {
    KEYS[OF_COLLECTIVE[collective as usize] as usize].name().to_owned()
}

/// A trace in place of an algorithm.
fn traced(path: String) -> Value {
    let place = Place::default();
    Value::Map(vec![Entry { key: CHAKRA.to_owned(), place, node: Node { value: Value::Text(path), place } }])
}

/// The key of a collective's list.
fn key(collective: Collective) -> String {
    format!("{}-implementation", Collective::NAMES[collective as usize].replace('_', "-"))
}

/// A list as it stands in its file.
fn written(list: &[Part]) -> String {
    list.iter().map(|part| part.written.as_str()).collect::<Vec<_>>().join(", ")
}

/// The keys for one list: over all NPUs at once, in the only dimension, or dimension by dimension.
fn stands_for(list: &[Part], has_one_dimension: bool) -> Vec<Line> {
    let algorithm = |value: Value| ("algorithm".to_owned(), value);
    match list {
        [part] if part.whole => {
            let flat = MultiDim::NAMES[MultiDim::Flat as usize].to_owned();
            vec![algorithm(Value::Text(part.text())), ("multi_dim".to_owned(), Value::Text(flat))]
        }
        [part] if has_one_dimension => vec![algorithm(Value::Text(part.text()))],
        _ => {
            let place = Place::default();
            let items = list.iter().map(|part| Node { value: Value::Text(part.text()), place }).collect();
            let node = Node { value: Value::List(items), place };
            vec![algorithm(Value::Map(vec![Entry { key: BY_DIMENSION.to_owned(), place, node }]))]
        }
    }
}

/// An algorithm of a list, for one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The word of a sweep.
    pub word: &'static str,
    /// How many messages are under way at once, if not all.
    pub window: Option<u32>,
    /// What is written.
    pub written: String,
    /// Whether it runs over all NPUs at once.
    pub whole: bool,
}

impl Part {
    /// The words of a sweep: `direct(4)`.
    fn text(&self) -> String {
        self.window.map_or_else(|| self.word.to_owned(), |window| format!("{}({window})", self.word))
    }
}
