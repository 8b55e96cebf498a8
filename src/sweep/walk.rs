//! From the tree to axes and settings: sections, names, alternatives, lines of a network, tiers of a memory.

use std::sync::Arc;

use super::axis::{Alternative, Axis, Setting};
use super::foreign::{FOREIGN, LATER, known_keys, readable, section_help};
use super::framework;
use super::inputs::REST;
use super::key::{self, DIM_KEYS, KEYS, Key, NAMED, NAMES_FROM, Slot, TIER_KEYS, TIER_NAMES_FROM};
use super::outside::{self, Loader, Named};
use super::preset;
use crate::input::diagnostic::{Diagnostic, Place, suggest};
use crate::input::tree::{Entry, Node, Value};
use crate::system::collective::Collective;
use crate::system::memory::MAX_TIERS;
use crate::system::topology::Topology;
use crate::units::{Quantity, narrow};

/// How deep names may refer to names.
const MAX_DEPTH: usize = 64;
/// The key of a line of the network that is an algorithm.
const ALGORITHM: &str = DIM_KEYS[key::DimId::Algorithm as usize].path;
/// How many values one list may have.
const MAX_LIST: usize = 1_000_000;

/// What is said of a number that stands where a key does.
const COMMA: &str = "in braces a comma ends a value: sizes have `-` between them, a list stands in brackets";

/// What a mapping adds: settings that hold in all of it, and axes.
#[derive(Debug, Default)]
pub struct Frame {
    /// Slot, value, place.
    pub settings: Vec<(Slot, f64, Place)>,
    /// Axes, in the order of the file.
    pub axes: Vec<Axis>,
}

impl Frame {
    /// Whether a slot has a value whatever the axes say.
    #[must_use]
    pub fn surely_sets(&self, slot: usize) -> bool {
        self.settings.iter().any(|setting| setting.0 as usize == slot)
            || self.axes.iter().any(|axis| surely_sets(axis, slot))
    }
}

/// Whether every alternative of an axis gives a slot a value.
pub(super) fn surely_sets(axis: &Axis, slot: usize) -> bool {
    let sets = |alternative: &Alternative| {
        alternative.settings.iter().any(|setting| setting.slot as usize == slot)
            || alternative.axes.iter().any(|inner| surely_sets(inner, slot))
    };
    axis.alternatives.iter().all(sets)
}

/// A walk through the sections of a sweep.
#[derive(Debug, Default)]
pub struct Walker {
    /// Names that the file defines.
    pub define: Vec<Entry>,
    /// The names in use, for columns and comparisons: a name's number is its place.
    pub names: Vec<String>,
    /// The tiers beyond the local memory, by name.
    pub tiers: Vec<String>,
    /// What was found wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// Presets that were used: kind and name.
    pub used: Vec<(&'static str, String)>,
    /// Defined names that were used.
    pub used_define: Vec<String>,
    /// Keys that a line of a network, or a tier, lacks: slot, what lacks it, where.
    pub lacking: Vec<(usize, String, Place)>,
    /// Slots that were written, rightly or not: what is wrong is not missing as well.
    pub written: Vec<Slot>,
    /// Paths of sections that could not be read, or that hold something of a later version: nothing is missing there.
    pub unread: Vec<String>,
    /// The dimensions of the network that is being walked, by name.
    pub dims: Vec<String>,
    /// How many networks have been walked.
    pub networks: usize,
    /// Whether a row of a zip is being walked: it may set keys of dimensions that stand elsewhere.
    pub in_row: bool,
    /// Names that were found to be defined by themselves.
    pub circular: Vec<String>,
    /// What reads files that the sweep names.
    pub loader: Option<Arc<dyn Loader>>,
    /// The keys that name files.
    pub files: Vec<Named>,
    /// For every network that was walked the building blocks that each of its dimensions may have.
    pub shapes: Vec<Vec<Vec<Topology>>>,
    /// The collectives that run in place of training.
    pub collectives: Vec<Collective>,
    /// Bandwidths of memories that system files say: bytes a second, the file, where it is named.
    pub memory_bandwidths: Vec<(f64, String, Place)>,
    /// That of them which is in force.
    pub memory_bandwidth: Option<f64>,
    /// Lists of algorithms by dimension: how many each has, and where it stands.
    pub by_dimension: Vec<(usize, Place)>,
    /// The frameworks that plans are limited to.
    pub frameworks: Vec<framework::Framework>,
    /// What files say that is worth knowing.
    pub cautions: Vec<Diagnostic>,
    /// Names that are being looked up, to find cycles.
    pub(super) stack: Vec<String>,
}

impl Walker {
    /// The number of a name.
    pub fn intern(&mut self, name: &str) -> f64 {
        let k = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        crate::units::real(k as u64)
    }

    pub(super) fn complain(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Whether a path lies in a section that could not be read.
    #[must_use]
    pub fn is_unread(&self, path: &str) -> bool {
        let covers = |unread: &String| {
            path.strip_prefix(unread.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.unread.iter().any(covers)
    }

    /// A path as people write it: a dimension by its name.
    fn shown(&self, path: &str) -> String {
        let Some(rest) = path.strip_prefix("cluster.network.") else { return path.to_owned() };
        let (number, field) = rest.split_once('.').map_or((rest, ""), |(number, field)| (number, field));
        let name = number.parse().ok().and_then(|k: usize| self.dims.get(k));
        match name {
            Some(name) if field.is_empty() => name.clone(),
            Some(name) => format!("{name}.{field}"),
            None => path.to_owned(),
        }
    }

    /// Walks a section: a mapping, a name, or a list of alternatives. Mappings of `over` go over it, the last wins.
    pub fn section(&mut self, path: &str, node: &Node, over: &[&Node], frame: &mut Frame, label: Option<&str>) {
        match &node.value {
            Value::Map(entries) => match outside::base(path, entries) {
                Some(base) => {
                    let rest = entries.iter().filter(|entry| entry.key != base.key).cloned().collect();
                    let rest = Node { value: Value::Map(rest), place: node.place };
                    let over: Vec<&Node> = std::iter::once(&rest).chain(over.iter().copied()).collect();
                    match &base.node.value {
                        _ if outside::names_files(&base.key) => self.files(path, &base.node, &over, frame, label),
                        Value::Text(_) | Value::List(_) => self.section(path, &base.node, &over, frame, label),
                        _ => self.complain(
                            Diagnostic::error("`preset` takes a name")
                                .at(base.node.place)
                                .help("write `{preset: NAME, key: ...}`"),
                        ),
                    }
                }
                None => self.mapping(path, entries, over, frame, label),
            },
            Value::Text(name) => self.named(path, name, node.place, over, frame, label),
            Value::List(items) => self.alternatives(path, items, node.place, over, frame),
            Value::Null if !over.is_empty() => self.section(path, over[0], &over[1..], frame, label),
            _ => {
                self.unread.push(path.to_owned());
                let message = format!("`{}` takes a mapping or a name, not {}", self.shown(path), node.kind());
                self.complain(Diagnostic::error(message).at(node.place).help(section_help(path)));
            }
        }
    }

    /// A name in the place of a mapping.
    fn named(&mut self, path: &str, name: &str, place: Place, over: &[&Node], frame: &mut Frame, label: Option<&str>) {
        if name == "none" && is_tier(path) {
            return;
        }
        if self.stack.iter().any(|open| open == name) || self.stack.len() > MAX_DEPTH {
            let chain: Vec<_> = self.stack.iter().map(String::as_str).chain([name]).collect();
            self.circular.extend(self.stack.iter().cloned());
            self.unread.push(path.to_owned());
            self.complain(
                Diagnostic::error(format!("`{name}` is defined by itself: {}", chain.join(" -> ")))
                    .at(place)
                    .help("a name of `define` may use others, but not itself"),
            );
            return;
        }
        let defined = self.define.iter().find(|entry| entry.key == name).map(|entry| entry.node.clone());
        let node = if let Some(node) = defined {
            if !self.used_define.iter().any(|used| used == name) {
                self.used_define.push(name.to_owned());
            }
            node
        } else if let Some((kind, node)) = preset::at(path).and_then(|kind| Some((kind, kind.get(name)?))) {
            if !self.used.iter().any(|used| used.0 == kind.name && used.1 == name) {
                self.used.push((kind.name, name.to_owned()));
            }
            node.clone()
        } else {
            let presets =
                preset::at(path).into_iter().flat_map(|kind| kind.presets.iter().map(|entry| entry.key.as_str()));
            let known: Vec<&str> = self.define.iter().map(|entry| entry.key.as_str()).chain(presets).collect();
            // A quantity is no misspelt name.
            let help = suggest(name, known).filter(|_| Quantity::parse(name).is_err());
            let help = help.unwrap_or_else(|| section_help(path));
            self.unread.push(path.to_owned());
            self.complain(Diagnostic::error(format!("`{}` knows no `{name}`", self.shown(path))).at(place).help(help));
            return;
        };
        self.stack.push(name.to_owned());
        self.section(path, &node, over, frame, Some(label.unwrap_or(name)));
        self.stack.pop();
    }

    /// A list: an axis of alternatives.
    fn alternatives(&mut self, path: &str, items: &[Node], place: Place, over: &[&Node], frame: &mut Frame) {
        if items.is_empty() {
            self.complain(empty(path, place));
            return;
        }
        let mut found: Vec<Alternative> = Vec::new();
        for (k, item) in items.iter().enumerate() {
            if matches!(item.value, Value::List(_)) {
                self.complain(
                    Diagnostic::error("a list in a list")
                        .at(item.place)
                        .help("a list is an axis: name its values one by one"),
                );
                continue;
            }
            let named = match &item.value {
                Value::Text(name) => Some(name.clone()),
                Value::Map(entries) => outside::base(path, entries).and_then(|base| {
                    let name = base.node.scalar()?;
                    Some(if outside::names_files(&base.key) { outside::stem(&name) } else { name })
                }),
                _ => None,
            };
            let mut label = named.unwrap_or_else(|| format!("#{}", k + 1));
            if found.iter().any(|other| other.label == label) {
                if matches!(item.value, Value::Text(_)) {
                    self.complain(twice(path, &label, item.place));
                    continue;
                }
                label = format!("{label}#{}", k + 1);
            }
            let mut inner = Frame::default();
            self.section(path, item, over, &mut inner, Some(&label));
            found.push(self.alternative(label, inner));
        }
        frame.axes.push(Axis::new(path, place, found));
    }

    /// A frame as one alternative.
    pub fn alternative(&mut self, label: String, frame: Frame) -> Alternative {
        self.no_slot_twice(&frame);
        let settings = frame.settings.iter().map(|&(slot, value, _)| Setting { slot, value }).collect();
        Alternative { label, settings, axes: frame.axes, len: 0 }
    }

    /// Complains about a slot that is set in two places of one frame.
    pub fn no_slot_twice(&mut self, frame: &Frame) {
        let mut seen: Vec<(Slot, Place)> = frame.settings.iter().map(|&(slot, _, place)| (slot, place)).collect();
        for axis in &frame.axes {
            let mut axis = axis.clone();
            axis.finish();
            seen.extend(axis.touched.iter().map(|&slot| (slot, axis.place)));
        }
        seen.sort_by_key(|slot| slot.0);
        for pair in seen.windows(2) {
            if pair[0].0 == pair[1].0
                && let Some(key) = key::key_of(pair[0].0 as usize)
            {
                let place = pair[0].1.max(pair[1].1);
                let other = pair[0].1.min(pair[1].1);
                self.complain(
                    Diagnostic::error(format!("`{}` is set twice: here and in line {}", key.path, other.line))
                        .at(place)
                        .help("a key has one place: remove one of the two"),
                );
            }
        }
    }

    /// A mapping with what goes over it.
    fn mapping(&mut self, path: &str, entries: &[Entry], over: &[&Node], frame: &mut Frame, label: Option<&str>) {
        self.label(path, label, frame, entries.first().map_or_else(Place::default, |entry| entry.place));
        let lines = merge(path, entries, over);
        if path == "cluster.network" {
            self.network(&lines, frame);
        } else if path == framework::PATH {
            self.framework(label, &lines);
        } else {
            for (name, place, nodes) in &lines {
                self.line(path, name, *place, nodes, frame);
            }
        }
    }

    /// One line of a mapping.
    pub fn line(&mut self, path: &str, name: &str, place: Place, nodes: &[Node], frame: &mut Frame) {
        let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let (first, over) = base_and_over(nodes);
        if let Some((slot, key)) = leaf_slot(&below, self) {
            let node = nodes.last().unwrap_or(first);
            if nodes.len() > 1 && !matches!(node.value, Value::Map(_)) {
                self.complain(twice(path, name, node.place));
            }
            self.leaf(&below, slot, key, node, frame);
        } else if below == "cluster.each_dimension" {
            self.each_dimension(first, frame);
        } else if is_section(&below) {
            if path == "memory" && name != "local" && !self.open_tier(name, place, first) {
                return;
            }
            let tier = tier_number(&below, self);
            let is_none = matches!(&first.value, Value::Text(text) if text == "none");
            let (mut inner, since) = (Frame::default(), self.written.len());
            self.section(&below, first, &over, &mut inner, None);
            if let Some(k) = tier.filter(|_| !is_none && !self.is_unread(&below)) {
                self.note_lacking((key::TIERS_FROM + k * TIER_KEYS.len(), TIER_KEYS), (name, place), &inner, since);
            }
            frame.settings.append(&mut inner.settings);
            frame.axes.append(&mut inner.axes);
        } else {
            self.unknown(path, name, place, first);
        }
    }

    /// Makes room for a tier; its number is the same at every point of the sweep.
    fn open_tier(&mut self, name: &str, place: Place, node: &Node) -> bool {
        if self.tiers.iter().any(|tier| tier == name) {
            return true;
        }
        let writes = matches!(node.value, Value::Map(_) | Value::Text(_) | Value::List(_));
        if writes && self.tiers.len() == MAX_TIERS {
            self.complain(
                Diagnostic::error(format!(
                    "a sweep has at most {MAX_TIERS} memory tiers beyond the local one; `{name}` is one more"
                ))
                .at(place)
                .help("give tiers that never stand beside each other the same name"),
            );
            return false;
        }
        self.tiers.push(name.to_owned());
        true
    }

    /// The name of an alternative, as a value of its own.
    fn label(&mut self, path: &str, label: Option<&str>, frame: &mut Frame, place: Place) {
        let slot = if let Some(k) = tier_number(path, self) {
            TIER_NAMES_FROM + k
        } else {
            let name = path.rsplit('.').next().unwrap_or(path);
            match NAMED.iter().position(|named| *named == name) {
                Some(k)
                    if path == name
                        || ["cluster", "plan"].iter().any(|section| path == format!("{section}.{name}")) =>
                {
                    NAMES_FROM + k
                }
                _ => return,
            }
        };
        if let Some(label) = label {
            let number = self.intern(label);
            frame.settings.push((narrow(slot as u64), number, place));
        }
    }

    /// One value, a list of values, a range, `all`.
    pub fn leaf(&mut self, name: &str, slot: Slot, key: &'static Key, node: &Node, frame: &mut Frame) {
        self.written.push(slot);
        let is_all = matches!(&node.value, Value::Text(text) if text == "all");
        match key.kind {
            key::Kind::Path => return self.paths(name, slot, key, node, frame),
            key::Kind::Sizes { .. } => return self.sizes(name, slot, key, node, frame),
            key::Kind::Algorithm if !is_all => return self.algorithms(name, slot, key, node, frame),
            // A line's algorithm is a word, with a window or without one.
            _ if key.path == ALGORITHM && !is_all => return self.algorithms(name, slot, key, node, frame),
            _ => {}
        }
        match &node.value {
            Value::List(items) if items.is_empty() => self.complain(empty(name, node.place)),
            Value::List(items) if items.len() > MAX_LIST => {
                self.complain(Diagnostic::error(format!("`{name}` has more than {MAX_LIST} values")).at(node.place));
            }
            Value::List(items) => {
                let mut values: Vec<(f64, String)> = Vec::new();
                let complaints = self.diagnostics.len();
                let mut seen = std::collections::HashSet::new();
                for item in items {
                    match super::leaf::scalar(key, item, &self.tiers) {
                        Ok((value, _)) if value == REST => self.complain(rest_in_list(name, item.place)),
                        Ok((value, text)) if !seen.insert(value.to_bits()) => {
                            self.complain(twice(name, &text, item.place));
                        }
                        Ok(written) => values.push(written),
                        Err(_) if matches!(item.value, Value::List(_)) => {
                            self.complain(
                                Diagnostic::error("a list in a list")
                                    .at(item.place)
                                    .help("a list is an axis: name its values one by one"),
                            );
                        }
                        Err(diagnostic) => self.complain(diagnostic),
                    }
                }
                if complaints == self.diagnostics.len() {
                    frame.axes.push(Axis::of_values(name, node.place, slot, &values));
                }
            }
            Value::Map(_) => match super::leaf::range(key, node, &self.tiers) {
                Ok(values) => frame.axes.push(Axis::of_values(name, node.place, slot, &values)),
                Err(diagnostic) => self.complain(diagnostic),
            },
            Value::Text(_) if is_all => {
                let mut axis = Axis::of_values(name, node.place, slot, &[]);
                axis.all = true;
                // Stands for its slot until the values are known.
                axis.alternatives =
                    vec![Alternative { settings: vec![Setting { slot, value: f64::NAN }], ..Alternative::default() }];
                frame.axes.push(axis);
            }
            _ => match super::leaf::scalar(key, node, &self.tiers) {
                Ok((value, _)) => frame.settings.push((slot, value, node.place)),
                Err(diagnostic) => self.complain(diagnostic),
            },
        }
    }

    /// A key that is not known.
    pub fn unknown(&mut self, path: &str, name: &str, place: Place, node: &Node) {
        if LATER.iter().any(|later| later.0 == name) {
            self.later(path, name, place);
            return;
        }
        let known = known_keys(path);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        // A key that is misspelt is not missing.
        let meant = crate::input::diagnostic::nearest(name, known.iter().copied());
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match meant.map(below).map(|below| (leaf_slot(&below, self), below)) {
            Some((Some((slot, _)), _)) => self.written.push(slot),
            Some((None, section)) => self.unread.push(section),
            None if !path.is_empty() && FOREIGN.iter().any(|foreign| foreign.0 == name) => {
                self.unread.push(path.to_owned());
            }
            None => {}
        }
        let foreign = FOREIGN.iter().find(|foreign| foreign.0 == name).map(|foreign| foreign.1.to_owned());
        let per_dimension = path == "collectives" && name.ends_with("implementation");
        let stands_alone = matches!(node.value, Value::Null) && name.bytes().all(|byte| byte.is_ascii_digit());
        // A comma too many is one mistake, however many follow it.
        if stands_alone && self.diagnostics.last().is_some_and(|last| last.help.as_deref() == Some(COMMA)) {
            return;
        }
        let help = if stands_alone {
            Some(COMMA.to_owned())
        } else if per_dimension {
            Some(
                "write `algorithm: by_block`, or one of `ring`, `direct`, `halving_doubling`; a list is an axis here"
                    .to_owned(),
            )
        } else {
            foreign.or_else(|| suggest(name, known))
        };
        let section = match self.shown(path).as_str() {
            "" => "a sweep".to_owned(),
            shown if shown == path => readable(path),
            shown => format!("`{shown}`"),
        };
        let what = if matches!(node.value, Value::Map(_) | Value::List(_)) { "section or key" } else { "key" };
        let diagnostic = Diagnostic::error(format!("{section} has no {what} `{name}`")).at(place);
        self.complain(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }
}

/// The value that a line takes, and the mappings that go over it: a name, a list or a preset goes over all before it.
pub(super) fn base_and_over(nodes: &[Node]) -> (&Node, Vec<&Node>) {
    let has_base = |node: &Node| ["preset", outside::ASTRA_SIM, outside::HF].iter().any(|key| node.get(key).is_some());
    let replaces = |node: &Node| !matches!(node.value, Value::Map(_)) || has_base(node);
    let base = nodes.iter().rposition(replaces).unwrap_or(0);
    (&nodes[base], nodes[base + 1..].iter().collect())
}

/// A line of a mapping: its key, where it stands, and its values in the order in which they go over each other.
pub type Line = (String, Place, Vec<Node>);

/// The lines of a mapping with what goes over it. A value goes over a value; mappings go over each other key by key.
#[must_use]
pub fn merge(path: &str, entries: &[Entry], over: &[&Node]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |entry: &Entry, replaces: bool| {
        let (head, below) = Node::split_dots(entry);
        let node = below.unwrap_or_else(|| entry.node.clone());
        match lines.iter_mut().find(|line| line.0 == head) {
            Some(line) if replaces && is_leaf(path, &head) && !matches!(node.value, Value::Map(_)) => {
                line.2 = vec![node];
            }
            Some(line) => line.2.push(node),
            None => lines.push((head, entry.place, vec![node])),
        }
    };
    for entry in entries {
        add(entry, false);
    }
    for node in over {
        if let Value::Map(entries) = &node.value {
            for entry in entries {
                add(entry, true);
            }
        }
    }
    lines
}

/// Whether the path is that of a tier.
pub(super) fn is_tier(path: &str) -> bool {
    path.starts_with("memory.") && path != "memory.local" && path.matches('.').count() == 1
}

/// The number of the tier at a path.
fn tier_number(path: &str, walker: &Walker) -> Option<usize> {
    let name = path.strip_prefix("memory.").filter(|_| is_tier(path))?;
    walker.tiers.iter().position(|tier| tier == name)
}

/// Whether a mapping may stand at a path.
fn is_section(path: &str) -> bool {
    matches!(
        path,
        "workload"
            | "model"
            | "precision"
            | "cluster"
            | "software"
            | "cluster.npu"
            | "cluster.network"
            | "memory"
            | "plan"
            | "collectives"
            | "memory.local"
            | framework::PATH
    ) || is_tier(path)
        || (path.starts_with("cluster.network.") && path.matches('.').count() == 2)
}

/// Whether a value stands at a key of a path.
fn is_leaf(path: &str, name: &str) -> bool {
    let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    !is_section(&below)
}

/// The slot and the key of a path, if a value stands there.
pub(super) fn leaf_slot(path: &str, walker: &Walker) -> Option<(Slot, &'static Key)> {
    if let Some(k) = KEYS.iter().position(|key| key.path == path) {
        return Some((narrow(k as u64), &KEYS[k]));
    }
    let (section, field) = path.rsplit_once('.')?;
    if let Some(dim) = section.strip_prefix("cluster.network.") {
        let dim: usize = dim.parse().ok()?;
        let k = DIM_KEYS.iter().position(|key| key.path == field)?;
        return Some((narrow((key::DIMS_FROM + dim * DIM_KEYS.len() + k) as u64), &DIM_KEYS[k]));
    }
    let tier = tier_number(section, walker)?;
    let k = TIER_KEYS.iter().position(|key| key.path == field)?;
    Some((narrow((key::TIERS_FROM + tier * TIER_KEYS.len() + k) as u64), &TIER_KEYS[k]))
}

pub(super) fn empty(name: &str, place: Place) -> Diagnostic {
    Diagnostic::error(format!("the list of `{name}` is empty"))
        .at(place)
        .help("a list is an axis and has at least one value")
}

pub(super) fn twice(name: &str, value: &str, place: Place) -> Diagnostic {
    Diagnostic::error(format!("`{value}` stands twice in `{name}`"))
        .at(place)
        .help("every value of an axis is another one")
}

fn rest_in_list(name: &str, place: Place) -> Diagnostic {
    Diagnostic::error(format!("`rest` stands in a list of `{name}`"))
        .at(place)
        .help(format!("write `{name}: rest` alone, or the values"))
}
