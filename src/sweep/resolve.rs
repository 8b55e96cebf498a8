//! From the file to a sweep: presets, defaults, names, expressions; every mistake is gathered before anything runs.

use std::path::Path;
use std::sync::Arc;

use itertools::Itertools as _;

use super::algorithm::{Written, is_algorithm};
use super::anchor::{self, ANCHOR};
use super::axis::{self, Axis, MAX_POINTS};
use super::column::{Contents, input_columns};
use super::family;
use super::inputs::REST;
use super::key::{self, Default, Id, KEYS, NAMES_FROM, SLOTS, Slot};
use super::outside::{Loader, RELATIVE_TO};
use super::recording::templates;
use super::rule::Rule;
use super::scope::{Names, Vocabulary};
use super::sizes::{Lists, is_sizes};
use super::walk::{Frame, Line, Walker, merge};
use super::zip::ROWS;
use super::{Space, Sweep, caution, circle, freeze, identity, idle, rule};
use crate::input::diagnostic::{Diagnostic, Place, Source, suggest};
use crate::input::tree::{Entry, Node, Value, parse};
use crate::system::MAX_DIMS;
use crate::units::{index, narrow, plain, whole};

/// What may stand at the top of a file besides the sections of keys, with its meaning.
pub const TOP: &[(&str, &str)] = &[
    ("name", "how the results' folder is called, if not as the file"),
    (RELATIVE_TO, "the folder from which paths go, if not that of the file: a frozen sweep names that of its original"),
    (
        "define",
        "names for mappings: a name may stand wherever a mapping may, a list of names is an axis of alternatives",
    ),
    ("zip", "one axis of named rows; a row sets keys of any section"),
    ("where", "named expressions that decide, before evaluation, what is tried"),
    ("require", "named expressions that decide, after evaluation, what is acceptable"),
    ("derive", "named expressions that become columns"),
    ("decide", "compare, tune, objectives, baseline"),
    (
        "refine",
        "`{top: N, by: METRIC}`: when a closed-form sweep is done, its front and its best N are evaluated again, event-driven",
    ),
    ("network", "short for `cluster.network`"),
    (
        ANCHOR,
        "one measured run by its name: keys of its plan, `iteration_time`, `peak_memory`; every prediction goes through it",
    ),
    ("npu", "short for `cluster.npu`"),
    ("npus", "short for `cluster.npus`"),
    ("memory_reserve", "short for `cluster.memory_reserve`"),
    ("each_dimension", "sets a key in all lines of the network"),
];

/// What may be written without its `cluster.`.
pub(super) const SHORT: &[&str] = &["network", "npu", "npus", "memory_reserve", "each_dimension"];

/// Resolves a sweep file with its overrides (`key=value`), or returns everything that is wrong with it.
///
/// # Errors
/// All mistakes that can be seen at once, with their places.
pub fn resolve(text: &str, overrides: &[String], vocabulary: &Vocabulary) -> Result<Sweep, Vec<Diagnostic>> {
    let root = parse(text, Source::File).map_err(|error| vec![error])?;
    let Value::Map(entries) = &root.value else {
        return Err(vec![not_a_sweep(&root)]);
    };
    let mut complaints = Vec::new();
    let overrides = read_overrides(overrides, &mut complaints);
    let over = Node { value: Value::Map(overrides.clone()), place: root.place };
    let lines = merge("", entries, &[&over]);
    let loader = loader(&lines, vocabulary);
    let walk = |lines: &[Line], names: Vec<String>, tiers: Vec<String>| {
        let loader = loader.clone();
        let walker = Walker { diagnostics: complaints.clone(), names, tiers, loader, ..Walker::default() };
        Resolver { walker, vocabulary, zips: Vec::new(), cautions: Vec::new() }.sweep(lines, entries, &overrides)
    };
    let sweep = walk(&lines, vec![String::new()], Vec::new())?;
    // Names and tiers are numbers inside: in their own order, whatever the order in the file.
    let (names, tiers) = (in_order(&sweep.names), in_order(&sweep.tiers));
    let is_in_order = (&names, &tiers) == (&sweep.names, &sweep.tiers);
    let sweep = if is_in_order { sweep } else { walk(&lines, names, tiers)? };
    anchor::join(sweep, &lines, vocabulary, &walk)
}

fn in_order(names: &[String]) -> Vec<String> {
    names.iter().cloned().sorted().collect()
}

fn not_a_sweep(root: &Node) -> Diagnostic {
    Diagnostic::error(format!("a sweep file is a mapping, not {}", root.kind()))
        .at(root.place)
        .help("write `key: value` lines: `model: GPT-3-175B`, `cluster: {...}`, `plan: {tp: all, pp: all}`")
}

/// What reads files, from the folder from which paths go.
fn loader(lines: &[Line], vocabulary: &Vocabulary) -> Option<Arc<dyn Loader>> {
    let loader = vocabulary.loader.clone()?;
    let node = lines.iter().find(|line| line.0 == RELATIVE_TO).and_then(|line| line.2.last());
    Some(match node.map(|node| &node.value) {
        Some(Value::Text(folder)) => loader.within(Path::new(folder)),
        _ => loader,
    })
}

/// `key=value` arguments as lines, each a source of its own.
fn read_overrides(overrides: &[String], complaints: &mut Vec<Diagnostic>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (k, text) in overrides.iter().enumerate() {
        let source = Source::Override(u16::try_from(k).unwrap_or(u16::MAX));
        let place = Place { source, line: 1, column: 1, length: narrow(text.chars().count() as u64).max(1) };
        let Some((key, value)) = text.split_once('=') else {
            complaints
                .push(Diagnostic::error(format!("`{text}` is no `key=value`")).at(place).help("write `-s plan.tp=8`"));
            continue;
        };
        match parse(value, source) {
            Ok(mut node) => {
                shift(&mut node, narrow(key.chars().count() as u64 + 1));
                entries.push(Entry { key: key.trim().to_owned(), place, node });
            }
            Err(mut error) => {
                if let Some(place) = &mut error.place {
                    place.column += narrow(key.chars().count() as u64 + 1);
                }
                complaints.push(error);
            }
        }
    }
    entries
}

/// Moves the places of a value behind `key=`.
fn shift(node: &mut Node, by: u32) {
    node.place.column += by;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| shift(item, by)),
        Value::Map(entries) => {
            for entry in entries {
                entry.place.column += by;
                shift(&mut entry.node, by);
            }
        }
        _ => {}
    }
}

/// A resolution under way.
pub(super) struct Resolver<'a> {
    pub(super) walker: Walker,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) zips: Vec<String>,
    pub(super) cautions: Vec<Diagnostic>,
}

/// The nodes of one top-level key, as one mapping.
fn as_map(line: &Line) -> Result<Vec<Entry>, Diagnostic> {
    let mut entries: Vec<Entry> = Vec::new();
    for node in &line.2 {
        match &node.value {
            Value::Map(more) => {
                for entry in more {
                    match entries.iter_mut().find(|known| known.key == entry.key) {
                        Some(known) => *known = entry.clone(),
                        None => entries.push(entry.clone()),
                    }
                }
            }
            Value::Null => {}
            _ => {
                return Err(Diagnostic::error(format!("`{}` takes a mapping, not {}", line.0, node.kind()))
                    .at(node.place)
                    .help(if line.0 == "zip" {
                        ROWS.to_owned()
                    } else {
                        format!("write `{}:` and below it `name: ...` lines", line.0)
                    }));
            }
        }
    }
    Ok(entries)
}

impl Resolver<'_> {
    pub(super) fn complain(&mut self, diagnostic: Diagnostic) {
        self.walker.diagnostics.push(diagnostic);
    }

    /// What names mean in the expressions of this sweep.
    pub(super) fn names<'a>(
        &'a self,
        dims: &'a [(String, Option<usize>, usize)],
        labels: &'a [(usize, Vec<String>)],
        derived: &'a [Rule],
        metrics: &'a [super::MetricWord],
    ) -> Names<'a> {
        let (names, tiers, zips) = (&self.walker.names, &self.walker.tiers, &self.zips);
        Names { names, tiers, zips, dims, labels, derived, metrics }
    }

    pub(super) fn entries_of(&mut self, lines: &[Line], name: &str) -> Vec<Entry> {
        let Some(line) = lines.iter().find(|line| line.0 == name) else { return Vec::new() };
        as_map(line).unwrap_or_else(|error| {
            self.complain(error);
            Vec::new()
        })
    }

    fn sweep(mut self, lines: &[Line], entries: &[Entry], overrides: &[Entry]) -> Result<Sweep, Vec<Diagnostic>> {
        let defined = self.entries_of(lines, "define");
        self.walker.define.clone_from(&defined);
        for entry in &defined {
            if !matches!(entry.node.value, Value::Map(_) | Value::List(_) | Value::Text(_)) {
                let message = format!("`define.{}` takes a mapping, not {}", entry.key, entry.node.kind());
                self.complain(Diagnostic::error(message).at(entry.node.place).help("a name stands for a mapping"));
            }
        }
        let mut frame = Frame::default();
        self.sections(lines, &mut frame);
        let has_rows = self.zip(lines, &mut frame);
        self.walker.lists_that_fit_nothing();
        self.walker.no_slot_twice(&frame);
        self.tokens_as_sequences(&mut frame);
        self.circles(&defined);
        let is_collective = lines.iter().any(|line| line.0 == "workload");
        let is_recorded = self.walker.written.contains(&narrow(Id::Chakra as u64));
        let mut base = defaults();
        for &(slot, value, _) in &frame.settings {
            base[slot as usize] = value;
        }
        self.fill_all(&mut frame.axes, &base);
        axis::order(&mut frame.axes);
        self.keys_of_another_family(&frame);
        if has_rows {
            self.required(&frame, lines, is_collective);
        }
        self.plan_without_training(lines, is_collective);
        self.possible_model(&frame, lines, &base);
        let points = axis::product(&frame.axes);
        if points > MAX_POINTS {
            self.complain(
                Diagnostic::error(format!("the product has more than {MAX_POINTS} points"))
                    .help("shorten an axis, or split the sweep: points are numbered below 2^53"),
            );
        }
        let labels = self.labels(&frame);
        let dims = self.dimensions(&frame);
        let no_metrics: &[super::MetricWord] = &[];
        let derived = self.rules(lines, "derive", &labels, &dims, &[], &self.vocabulary.metrics.clone());
        let require = self.rules(lines, "require", &labels, &dims, &derived, &self.vocabulary.metrics.clone());
        let mut filters = self.rules(lines, "where", &labels, &dims, &derived, no_metrics);
        let (launchable, wrong) = self.launchable(&self.names(&dims, &labels, &derived, no_metrics));
        filters.extend(launchable);
        self.walker.diagnostics.extend(wrong);
        let columns = self.columns(&frame, is_collective, &dims);
        self.no_name_of_two_columns(lines, &columns);
        let derived_columns = rule::columns(&derived);
        self.no_column_twice(&derived, &labels, &dims);
        let decide = self.decide(lines, &frame, &columns, &derived_columns, &labels, &dims, &derived, is_collective);
        self.beyond_the_closed_form(lines, &frame);
        if !is_collective {
            self.beyond_a_training_job(&frame);
        }
        let (templates, wrong) = {
            let (labels, dims) = (labels.as_slice(), dims.as_slice());
            templates(&frame, &self.names(dims, labels, &[], no_metrics))
        };
        self.walker.diagnostics.extend(wrong);
        if is_recorded {
            self.recorded_alone(lines, &frame);
        } else {
            self.of_a_trace(lines);
        }
        self.folder_name(lines);
        self.folder_of_paths(lines);
        let mut found = std::mem::take(&mut self.walker.diagnostics);
        if !found.is_empty() {
            found.sort_by_key(|diagnostic| diagnostic.place);
            found.dedup();
            return Err(found);
        }
        let lists = Lists::of(&self.walker.names);
        let space = Space::new(frame.axes, base, filters, derived).with_lists(lists);
        let mut cautions = self.cautions(&space, &require, &defined);
        if !is_collective {
            cautions.extend(idle::cautions(&space, &frame.settings, &self.walker.tiers));
        }
        let identity = identity::of(&space, &require, &columns, &self.walker.names, &self.walker.tiers);
        let place = |name: &str| lines.iter().find(|line| line.0 == name).map_or_else(Place::default, |line| line.1);
        let sweep = Sweep {
            templates,
            loader: self.walker.loader.clone(),
            name: lines.iter().find(|line| line.0 == "name").and_then(|line| line.2[0].scalar()),
            anchor: None,
            identity,
            frozen: freeze::freeze(entries, overrides, &self.walker),
            cautions,
            defaults: caution::defaults_in_force(&space, is_collective),
            dims: dim_count(&dims),
            is_collective,
            decide,
            derived: derived_columns,
            columns,
            require,
            names: self.walker.names,
            tiers: self.walker.tiers,
            space,
        };
        sweep.with_recordings(place("workload"), place("collectives"))
    }

    /// The sections of keys. The memory comes first: plans name its tiers.
    pub(super) fn sections(&mut self, lines: &[Line], frame: &mut Frame) {
        let mut cluster: Vec<Node> = Vec::new();
        let mut cluster_place = None;
        self.no_short_twice(lines);
        for line in lines {
            if line.0 == "cluster" {
                cluster.splice(0..0, line.2.iter().cloned());
                cluster_place = Some(line.1);
            } else if SHORT.contains(&line.0.as_str()) {
                for node in &line.2 {
                    let entry = Entry { key: line.0.clone(), place: line.1, node: node.clone() };
                    cluster.push(Node { value: Value::Map(vec![entry]), place: node.place });
                }
                cluster_place = cluster_place.or(Some(line.1));
            }
        }
        let order = [
            "memory",
            "workload",
            "model",
            "seq_len",
            "global_batch",
            "optimizer",
            "precision",
            "cluster",
            "software",
            "collectives",
            "plan",
            "rules",
            "fidelity",
        ];
        for name in order {
            if name == "cluster" {
                if let Some(place) = cluster_place {
                    self.walker.line("", "cluster", place, &cluster, frame);
                }
            } else if let Some((_, place, nodes)) = lines.iter().find(|line| line.0 == name) {
                self.walker.note_collectives(frame);
                self.walker.line("", name, *place, nodes, frame);
                self.walker.memory_of_files(frame);
            }
        }
        for (name, place, nodes) in lines {
            if !order.contains(&name.as_str()) && !TOP.iter().any(|top| top.0 == name) {
                self.walker.unknown("", name, *place, &nodes[0]);
            }
        }
    }

    /// Short forms of `cluster.KEY` beside a `cluster` that has the key: one of the two would be lost.
    fn no_short_twice(&mut self, lines: &[Line]) {
        let Some(cluster) = lines.iter().find(|line| line.0 == "cluster") else { return };
        let in_file = |node: &&Node| node.place.source == Source::File;
        for line in lines.iter().filter(|line| SHORT.contains(&line.0.as_str())) {
            let other = cluster.2.iter().filter(in_file).find_map(|node| node.get(&line.0));
            if let (Some(other), true) = (other, line.2.iter().any(|node| in_file(&node))) {
                let message = format!("`{}` is set twice: here and in `cluster`, line {}", line.0, other.place.line);
                self.complain(Diagnostic::error(message).at(line.1).help("a key has one place: remove one of the two"));
            }
        }
    }

    /// The texts that each slot of names can have.
    fn labels(&self, frame: &Frame) -> Vec<(usize, Vec<String>)> {
        let mut found: Vec<(usize, Vec<String>)> = Vec::new();
        let names = &self.walker.names;
        let mut note = |slot: Slot, value: f64| {
            let slot = slot as usize;
            let place = match slot {
                NAMES_FROM.. => Some(index(whole(value))),
                _ if is_sizes(slot) => Some(index(whole(value))),
                _ if is_algorithm(slot) => Written::of(value).and_then(Written::name),
                _ => None,
            };
            let Some(name) = place.and_then(|place| names.get(place)) else { return };
            match found.iter_mut().find(|known| known.0 == slot) {
                Some(known) if !known.1.contains(name) => known.1.push(name.clone()),
                Some(_) => {}
                None => found.push((slot, vec![name.clone()])),
            }
        };
        frame.settings.iter().for_each(|setting| note(setting.0, setting.1));
        for axis in &frame.axes {
            axis.visit(&mut |_, alternative| {
                alternative.settings.iter().for_each(|setting| note(setting.slot, setting.value));
            });
        }
        found
    }

    /// User's names of dimensions: name, number if it is always the same, largest number.
    fn dimensions(&self, frame: &Frame) -> Vec<(String, Option<usize>, usize)> {
        let mut found: Vec<(String, Option<usize>, usize)> = Vec::new();
        for (slot, names) in self.labels(frame) {
            let Some(dim) = slot.checked_sub(key::DIM_NAMES_FROM).filter(|&dim| dim < MAX_DIMS) else { continue };
            for name in names {
                match found.iter_mut().find(|known| known.0 == name) {
                    Some(known) => {
                        known.1 = known.1.filter(|&other| other == dim);
                        known.2 = known.2.max(dim);
                    }
                    None => found.push((name, Some(dim), dim)),
                }
            }
        }
        found
    }

    /// Zips and tiers name columns: none may be called as another column.
    fn no_name_of_two_columns(&mut self, lines: &[Line], columns: &[super::InputColumn]) {
        let names: Vec<&str> = columns.iter().map(|column| column.column.name.as_str()).collect();
        let metrics = self.vocabulary.metrics.iter().map(|metric| metric.column.as_str());
        let taken: Vec<&str> = self.vocabulary.taken.iter().map(String::as_str).chain(metrics).collect();
        let owner = |column: &str| {
            let zip = self.zips.iter().find(|zip| *zip == column);
            let tier = self.walker.tiers.iter().find(|tier| column.starts_with(&format!("{tier}_")));
            zip.map(|zip| ("zip", zip)).or(tier.map(|tier| ("memory", tier)))
        };
        let twice = names.iter().enumerate().filter(|(k, name)| names[..*k].contains(name) || taken.contains(name));
        let owned: Vec<_> = twice.filter_map(|(_, column)| Some((*column, owner(column)?))).collect();
        let complaints: Vec<Diagnostic> = owned
            .into_iter()
            .map(|(column, (section, name))| {
                let place = lines.iter().find(|line| line.0 == section).map_or_else(Place::default, |line| line.1);
                Diagnostic::error(format!("`{section}.{name}` makes a second column `{column}`"))
                    .at(place)
                    .help(format!("give `{name}` a name that no key and no column has"))
            })
            .unique_by(|diagnostic| diagnostic.message.clone())
            .collect();
        self.walker.diagnostics.extend(complaints);
    }

    /// A batch in tokens is one in sequences, where all sequences have one length.
    fn tokens_as_sequences(&mut self, frame: &mut Frame) {
        let fixed = |id: Id| frame.settings.iter().position(|setting| setting.0 as usize == id as usize);
        let Some(length) = fixed(Id::SeqLen).map(|k| frame.settings[k].1) else { return };
        // Samples of other families have a length of their own: each point divides by its model's.
        if fixed(Id::Family).is_some() || frame.axes.iter().any(|axis| family::touches(axis, Id::Family)) {
            return;
        }
        // Tokens are written as less than nothing until then.
        let sequences = |batch: f64| Some(-batch / length).filter(|found| batch < 0.0 && found.fract() == 0.0);
        if let Some(k) = fixed(Id::GlobalBatch) {
            let (_, batch, place) = frame.settings[k];
            if let Some(found) = sequences(batch) {
                frame.settings[k].1 = found;
            } else if batch < 0.0 {
                let message = format!("{} tokens are no whole number of sequences of {}", plain(-batch), plain(length));
                let near = plain((-batch / length).round().max(1.0));
                let help = format!("write the batch in sequences, for example `global_batch: {near} seq`");
                self.complain(Diagnostic::error(message).at(place).help(help));
            }
        }
        let mut open: Vec<&mut Axis> = frame.axes.iter_mut().collect();
        while let Some(axis) = open.pop() {
            for alternative in &mut axis.alternatives {
                let batches =
                    alternative.settings.iter_mut().filter(|setting| setting.slot as usize == Id::GlobalBatch as usize);
                for batch in batches {
                    batch.value = sequences(batch.value).unwrap_or(batch.value);
                }
                open.extend(alternative.axes.iter_mut());
            }
        }
    }

    /// Names of `define` that run in a circle and that nothing uses: those in use were found on the way.
    fn circles(&mut self, defined: &[Entry]) {
        let entries: Vec<&Entry> = defined.iter().collect();
        for round in circle::of_definitions(&entries) {
            if round.iter().any(|&k| self.walker.circular.contains(&entries[k].key)) {
                continue;
            }
            let text = circle::as_text(&round, &entries);
            let message = format!("`{}` is defined by itself: {text}", entries[round[0]].key);
            let place = entries[round[0]].place;
            self.complain(
                Diagnostic::error(message).at(place).help("a name of `define` may use others, but not itself"),
            );
        }
    }

    /// The input columns.
    fn columns(
        &self,
        frame: &Frame,
        is_collective: bool,
        dims: &[(String, Option<usize>, usize)],
    ) -> Vec<super::InputColumn> {
        let mut swept = Vec::new();
        let mut set: Vec<usize> = frame.settings.iter().map(|setting| setting.0 as usize).collect();
        for axis in &frame.axes {
            axis.visit(&mut |axis, alternative| {
                match *axis.touched.as_slice() {
                    [slot] if axis.len > 1 => swept.push(slot as usize),
                    [_] => {}
                    _ => swept.extend(self.label_slot(axis)),
                }
                set.extend(alternative.settings.iter().map(|setting| setting.slot as usize));
            });
        }
        for slots in [&mut swept, &mut set] {
            slots.sort_unstable();
            slots.dedup();
        }
        input_columns(&Contents {
            is_collective,
            dims: dim_count(dims),
            zips: &self.zips,
            tiers: &self.walker.tiers,
            swept: &swept,
            set: &set,
        })
    }

    /// The folder from which paths go.
    fn folder_of_paths(&mut self, lines: &[Line]) {
        let nodes = lines.iter().filter(|line| line.0 == RELATIVE_TO).flat_map(|line| &line.2);
        let wrong: Vec<Place> =
            nodes.filter(|node| !matches!(node.value, Value::Text(_))).map(|node| node.place).collect();
        for place in wrong {
            let message = format!("`{RELATIVE_TO}` takes the path of a folder");
            self.complain(Diagnostic::error(message).at(place).help(format!("write `{RELATIVE_TO}: ../traces`")));
        }
    }

    /// The name of the folder.
    fn folder_name(&mut self, lines: &[Line]) {
        if let Some((_, _, nodes)) = lines.iter().find(|line| line.0 == "name") {
            let node = &nodes[nodes.len() - 1];
            let text = node.scalar().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if text.is_empty() || text.starts_with('.') || !text.chars().all(plain) {
                self.complain(
                    Diagnostic::error(format!("`name: {text}` is no name of a folder"))
                        .at(node.place)
                        .help("use letters, digits, `_`, `-` and `.`"),
                );
            }
        }
    }
}

/// The most dimensions of any network.
pub(super) fn dim_count(dims: &[(String, Option<usize>, usize)]) -> usize {
    dims.iter().map(|dim| dim.2 + 1).max().unwrap_or(0)
}

/// What holds where nothing is written.
pub(super) fn defaults() -> Vec<f64> {
    let mut base = vec![f64::NAN; SLOTS];
    for (slot, key) in KEYS.iter().enumerate() {
        base[slot] = match key.default {
            Default::Is(value) => value,
            Default::Rest => REST,
            Default::Required | Default::Like(_) | Default::Absent => f64::NAN,
        };
    }
    base
}

/// A suggestion for a word among names, for those who look names up themselves.
#[must_use]
pub fn suggestion(word: &str, known: &[String]) -> Option<String> {
    suggest(word, known.iter().map(String::as_str))
}
