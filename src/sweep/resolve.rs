//! From the file to a sweep: presets, defaults, names, expressions; every mistake is gathered before anything runs.

use super::axis::{self, Alternative, Axis, MAX_POINTS, Setting};
use super::column::{Column, Contents, Dtype, input_columns, with_suffix};
use super::decide::{self, Decide, Subject};
use super::diagnostic::{Diagnostic, Place, Source, suggest};
use super::expression::{self, Kind};
use super::inputs::{Inputs, REST};
use super::key::{
    self, DIM_KEYS, DIMS_FROM, Default, DimId, Id, KEYS, MAX_ZIPS, NAMED, NAMES_FROM, SLOTS, Slot, ZIPS_FROM, dim_slot,
};
use super::rule::Rule;
use super::scope::{Direction, Names, Vocabulary, is_after};
use super::tree::{Entry, Node, Value, parse};
use super::walk::{Frame, Line, Walker, merge};
use super::{Space, Sweep, freeze, identity};
use crate::system::MAX_DIMS;
use crate::units::{Unit, human, index, narrow, plain, real, whole};

/// What may stand at the top of a file besides the sections of keys, with its meaning.
pub const TOP: &[(&str, &str)] = &[
    ("name", "how the results' folder is called, if not as the file"),
    (
        "define",
        "names for mappings: a name may stand wherever a mapping may, a list of names is an axis of alternatives",
    ),
    ("zip", "one axis of named rows; a row sets keys of any section"),
    ("where", "named expressions that decide, before evaluation, what is tried"),
    ("require", "named expressions that decide, after evaluation, what is acceptable"),
    ("derive", "named expressions that become columns"),
    ("decide", "compare, tune, objectives, baseline"),
    ("rules", "`ours`: bandwidth is conserved, times are whole picoseconds"),
    ("fidelity", "`closed_form`: about a microsecond a point"),
    ("network", "short for `cluster.network`"),
    ("npu", "short for `cluster.npu`"),
    ("npus", "short for `cluster.npus`"),
    ("memory_reserve", "short for `cluster.memory_reserve`"),
    ("each_dimension", "sets a key in all lines of the network"),
];

/// How many combinations of sizes are looked at for the possible numbers of NPUs.
const MAX_SIZES: u64 = 100_000;

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
    let mut resolver =
        Resolver { walker: Walker { diagnostics: complaints, ..Walker::default() }, vocabulary, zips: Vec::new() };
    resolver.walker.intern("");
    let over = Node { value: Value::Map(overrides.clone()), place: root.place };
    let lines = merge("", entries, &[&over]);
    resolver.sweep(&lines, entries, &overrides)
}

fn not_a_sweep(root: &Node) -> Diagnostic {
    Diagnostic::error(format!("a sweep file is a mapping, not {}", root.kind()))
        .at(root.place)
        .help("write `key: value` lines: `model: GPT-3-175B`, `cluster: {...}`, `plan: {tp: all, pp: all}`")
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
            Err(error) => complaints.push(error),
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

struct Resolver<'a> {
    walker: Walker,
    vocabulary: &'a Vocabulary,
    zips: Vec<String>,
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
                    .help(format!("write `{}:` and below it `name: ...` lines", line.0)));
            }
        }
    }
    Ok(entries)
}

impl Resolver<'_> {
    fn complain(&mut self, diagnostic: Diagnostic) {
        self.walker.diagnostics.push(diagnostic);
    }

    fn entries_of(&mut self, lines: &[Line], name: &str) -> Vec<Entry> {
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
        self.zip(lines, &mut frame);
        self.walker.no_slot_twice(&frame);
        let is_collective = frame.surely_sets(Id::Collective as usize);
        let mut base = defaults();
        for &(slot, value, _) in &frame.settings {
            base[slot as usize] = value;
        }
        self.fill_all(&mut frame.axes, &base);
        axis::order(&mut frame.axes);
        self.required(&frame, lines, is_collective);
        self.plan_without_training(lines, is_collective);
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
        let filters = self.rules(lines, "where", &labels, &dims, &derived, no_metrics);
        let columns = self.columns(&frame, is_collective, &dims);
        let derived_columns = derived_columns(&derived);
        let decide = self.decide(lines, &frame, &columns, &derived_columns, &labels, &dims, &derived, is_collective);
        self.words(lines);
        let mut found = std::mem::take(&mut self.walker.diagnostics);
        if !found.is_empty() {
            found.sort_by_key(|diagnostic| diagnostic.place);
            found.dedup();
            return Err(found);
        }
        let space = Space::new(frame.axes, base, filters, derived);
        let cautions = self.cautions(&space, &defined);
        let identity = identity::of(&space, &require, &columns, &self.walker.names, &self.walker.tiers);
        Ok(Sweep {
            name: lines.iter().find(|line| line.0 == "name").and_then(|line| line.2[0].scalar()),
            identity,
            frozen: freeze::freeze(entries, overrides, &self.walker.used),
            cautions,
            defaults: defaults_in_force(&space, is_collective),
            dims: dims.iter().map(|dim| dim.2 + 1).max().unwrap_or(0),
            is_collective,
            decide,
            derived: derived_columns,
            columns,
            require,
            names: self.walker.names,
            tiers: self.walker.tiers,
            space,
        })
    }

    /// The sections of keys. The memory comes first: plans name its tiers.
    fn sections(&mut self, lines: &[Line], frame: &mut Frame) {
        let mut cluster: Vec<Node> = Vec::new();
        let mut cluster_place = None;
        for line in lines {
            if line.0 == "cluster" {
                cluster.splice(0..0, line.2.iter().cloned());
                cluster_place = Some(line.1);
            } else if matches!(line.0.as_str(), "network" | "npu" | "npus" | "memory_reserve" | "each_dimension") {
                for node in &line.2 {
                    let entry = Entry { key: line.0.clone(), place: line.1, node: node.clone() };
                    cluster.push(Node { value: Value::Map(vec![entry]), place: node.place });
                }
                cluster_place = cluster_place.or(Some(line.1));
            }
        }
        let order =
            ["memory", "workload", "model", "seq_len", "global_batch", "precision", "cluster", "collectives", "plan"];
        for name in order {
            if name == "cluster" {
                if let Some(place) = cluster_place {
                    self.walker.line("", "cluster", place, &cluster, frame);
                }
            } else if let Some((_, place, nodes)) = lines.iter().find(|line| line.0 == name) {
                self.walker.line("", name, *place, nodes, frame);
            }
        }
        for (name, place, nodes) in lines {
            if !order.contains(&name.as_str()) && !TOP.iter().any(|top| top.0 == name) {
                self.walker.unknown("", name, *place, &nodes[0]);
            }
        }
    }

    /// `zip`: each name is an axis of named rows.
    fn zip(&mut self, lines: &[Line], frame: &mut Frame) {
        let zips = self.entries_of(lines, "zip");
        for (k, zip) in zips.iter().enumerate() {
            if k >= MAX_ZIPS {
                self.complain(Diagnostic::error(format!("a sweep has at most {MAX_ZIPS} zips")).at(zip.place));
                break;
            }
            let Value::Map(rows) = &zip.node.value else {
                self.complain(
                    Diagnostic::error(format!("the zip `{}` takes named rows, not {}", zip.key, zip.node.kind()))
                        .at(zip.node.place)
                        .help("write `small: {model: Llama-3-8B, global_batch: 512 seq}` lines"),
                );
                continue;
            };
            if rows.is_empty() {
                self.complain(Diagnostic::error(format!("the zip `{}` is empty", zip.key)).at(zip.place));
            }
            self.zips.push(zip.key.clone());
            let slot = narrow((ZIPS_FROM + k) as u64);
            let mut alternatives = Vec::new();
            for row in rows {
                let mut inner = Frame::default();
                let Value::Map(keys) = &row.node.value else {
                    let message = format!("the row `{}` takes a mapping, not {}", row.key, row.node.kind());
                    self.complain(Diagnostic::error(message).at(row.node.place).help("a row sets keys of any section"));
                    continue;
                };
                let number = self.walker.intern(&row.key);
                inner.settings.push((slot, number, row.place));
                let row_lines = merge("", keys, &[]);
                self.sections(&row_lines, &mut inner);
                for line in &row_lines {
                    let top = TOP.iter().any(|top| top.0 == line.0);
                    let short =
                        ["network", "npu", "npus", "memory_reserve", "each_dimension"].contains(&line.0.as_str());
                    if top && !short {
                        let message = format!("`{}` cannot stand in a row of a zip", line.0);
                        self.complain(Diagnostic::error(message).at(line.1).help("a row sets keys of sections"));
                    }
                }
                alternatives.push(self.walker.alternative(row.key.clone(), inner));
            }
            if !alternatives.is_empty() {
                frame.axes.push(Axis::new(zip.key.clone(), zip.place, alternatives));
            }
        }
    }

    /// Gives axes that were written `all` their values.
    fn fill_all(&mut self, axes: &mut [Axis], base: &[f64]) {
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

    fn fill_one(&mut self, axis: &mut Axis, axes: &[Axis], base: &[f64]) {
        let slot = axis.alternatives[0].settings[0].slot;
        let key = key::key_of(slot as usize);
        let degrees = [Id::Tp, Id::Pp, Id::Dp, Id::Ep];
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
                Some(key::Kind::Choice(words)) => (0..words.len() as u64).collect(),
                Some(key::Kind::Flag) => vec![0, 1],
                _ => Vec::new(),
            }
        };
        let name = axis.name.clone();
        let mut values: Vec<(f64, String)> = wholes.iter().map(|&value| (real(value), value.to_string())).collect();
        if is(Id::OffloadOptimizer) {
            let tiers = self.walker.tiers.iter().enumerate().map(|(k, tier)| (real(k as u64), tier.clone()));
            values = std::iter::once((-1.0, "none".to_owned())).chain(tiers).collect();
        }
        if let Some(key::Kind::Choice(words)) = key.map(|key| key.kind) {
            values = words.iter().enumerate().map(|(k, word)| (real(k as u64), (*word).to_owned())).collect();
        }
        if values.is_empty() {
            self.complain(
                Diagnostic::error(format!("`{name}: all` has no list of values to stand for"))
                    .at(axis.place)
                    .help("`all` is for degrees, for words and for true and false: write the values, or a range"),
            );
        }
        let place = axis.place;
        *axis = Axis::of_values(name, place, slot, &values);
    }

    /// Keys that must be written.
    fn required(&mut self, frame: &Frame, lines: &[Line], is_collective: bool) {
        let start = lines.first().map_or_else(Place::default, |line| line.1);
        let of = |section: &str| lines.iter().find(|line| line.0 == section).map_or(start, |line| line.1);
        for (slot, key) in KEYS.iter().enumerate() {
            if key.default != Default::Required || is_collective || frame.surely_sets(slot) {
                continue;
            }
            let section = key.path.split('.').next().unwrap_or(key.path);
            // A section that could not be read has been complained about already.
            let unread = self
                .walker
                .diagnostics
                .iter()
                .any(|diagnostic| diagnostic.message.contains(&format!("`{section}` knows no")));
            if unread
                || self
                    .walker
                    .diagnostics
                    .iter()
                    .any(|diagnostic| diagnostic.message.contains(&format!("`{}`", key.name())))
            {
                continue;
            }
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
        if is_collective && !frame.surely_sets(Id::Size as usize) {
            self.complain(
                Diagnostic::error("`workload.size` is missing").at(of("workload")).help("write `size: 1 GB`"),
            );
        }
        self.required_of_lines(frame);
        self.required_of_machine(frame, is_collective, &of);
    }

    /// Keys that a line of the network or a tier must have.
    fn required_of_lines(&mut self, frame: &Frame) {
        for (slot, name, place) in std::mem::take(&mut self.walker.lacking) {
            let is_dim = slot < key::TIERS_FROM;
            let each = if is_dim {
                DIMS_FROM + key::EACH * DIM_KEYS.len() + (slot - DIMS_FROM) % DIM_KEYS.len()
            } else {
                slot
            };
            if is_dim && frame.surely_sets(each) {
                continue;
            }
            let Some(key) = key::key_of(slot) else { continue };
            let complained = self.walker.diagnostics.iter().any(|diagnostic| {
                diagnostic.message.contains(&format!("`{}`", key.name()))
                    && diagnostic.place.is_some_and(|at| at.line == place.line)
            });
            if !complained {
                self.complain(Diagnostic::error(format!("`{name}` has no `{}`", key.name())).at(place).help(format!(
                    "{}: write for example `{}: {}`",
                    key.doc,
                    key.name(),
                    key.example()
                )));
            }
        }
    }

    /// What a machine must have.
    fn required_of_machine(&mut self, frame: &Frame, is_collective: bool, of: &dyn Fn(&str) -> Place) {
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
            if !is_collective || !never {
                self.complain(
                    Diagnostic::error("the NPU's memory has no bandwidth, and reductions need it")
                        .at(of("cluster"))
                        .help(
                            "write `npu: {hbm_bandwidth: 3350 GB/s, ...}`, or `collectives: {local_reduction: false}`",
                        ),
                );
            }
        }
        self.too_many_rests(frame);
    }

    /// One `rest` a product.
    fn too_many_rests(&mut self, frame: &Frame) {
        let is_rest = |slot: usize| {
            let fixed = frame
                .settings
                .iter()
                .find(|setting| setting.0 as usize == slot && setting.1 == REST)
                .map(|setting| setting.2);
            fixed.or_else(|| {
                let mut place = None;
                for axis in &frame.axes {
                    axis.visit(&mut |axis, alternative| {
                        if alternative
                            .settings
                            .iter()
                            .any(|setting| setting.slot as usize == slot && setting.value == REST)
                        {
                            place = Some(axis.place);
                        }
                    });
                }
                place
            })
        };
        let fixed: Vec<Place> = (0..MAX_DIMS)
            .filter_map(|k| {
                frame
                    .settings
                    .iter()
                    .find(|setting| setting.0 as usize == dim_slot(k, DimId::Size) && setting.1 == REST)
            })
            .map(|setting| setting.2)
            .collect();
        if let Some(place) = fixed.get(1) {
            self.complain(
                Diagnostic::error("a network has one `rest`").at(*place).help("write the size of the other dimension"),
            );
        }
        let any_rest = (0..MAX_DIMS).find_map(|k| is_rest(dim_slot(k, DimId::Size)));
        if let Some(place) = any_rest
            && !frame.surely_sets(Id::Npus as usize)
        {
            self.complain(
                Diagnostic::error("`size: rest` needs to know how many NPUs there are")
                    .at(place)
                    .help("write `npus: 2048` in `cluster`"),
            );
        }
    }

    /// A workload stands in place of a model and a plan.
    fn plan_without_training(&mut self, lines: &[Line], is_collective: bool) {
        if !is_collective {
            return;
        }
        for (name, place, _) in lines {
            if matches!(name.as_str(), "model" | "plan" | "seq_len" | "global_batch") {
                self.complain(
                    Diagnostic::error(format!("`{name}` stands beside `workload`, which replaces it"))
                        .at(*place)
                        .help(format!("remove `{name}`, or `workload` to train a model")),
                );
            }
        }
    }

    /// The texts that each slot of names can have.
    fn labels(&self, frame: &Frame) -> Vec<(usize, Vec<String>)> {
        let mut found: Vec<(usize, Vec<String>)> = Vec::new();
        let names = &self.walker.names;
        let mut note = |slot: Slot, value: f64| {
            let slot = slot as usize;
            if slot < NAMES_FROM {
                return;
            }
            let Some(name) = names.get(index(whole(value))) else { return };
            match found.iter_mut().find(|known| known.0 == slot) {
                Some(known) if !known.1.contains(name) => known.1.push(name.clone()),
                Some(_) => {}
                None => found.push((slot, vec![name.clone()])),
            }
        };
        frame.settings.iter().for_each(|setting| note(setting.0, setting.1));
        for axis in &frame.axes {
            axis.visit(&mut |_, alternative| {
                alternative.settings.iter().for_each(|setting| note(setting.slot, setting.value))
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

    /// The named expressions of a section, in the order of their names; derived values in the order of their needs.
    fn rules(
        &mut self,
        lines: &[Line],
        section: &str,
        labels: &[(usize, Vec<String>)],
        dims: &[(String, Option<usize>, usize)],
        derived: &[Rule],
        metrics: &[super::MetricWord],
    ) -> Vec<Rule> {
        let mut entries = self.entries_of(lines, section);
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        let dims: Vec<(String, Option<usize>)> = dims.iter().map(|dim| (dim.0.clone(), dim.1)).collect();
        let mut rules: Vec<Rule> = Vec::new();
        let mut open: Vec<&Entry> = entries.iter().collect();
        // Derived values may use each other: what compiles goes first, until nothing more does.
        while !open.is_empty() {
            let mut failed = Vec::new();
            let before = open.len();
            for entry in open {
                let known: Vec<Rule> = if section == "derive" { rules.clone() } else { derived.to_vec() };
                let names = Names {
                    names: &self.walker.names,
                    tiers: &self.walker.tiers,
                    zips: &self.zips,
                    dims: &dims,
                    labels,
                    derived: &known,
                    metrics,
                };
                match compile(entry, &names) {
                    Ok(rule) => rules.push(rule),
                    Err(error) => failed.push((entry, error)),
                }
            }
            if failed.len() == before || section != "derive" {
                for (entry, error) in failed {
                    let later = self.vocabulary.metrics.iter().any(|metric| {
                        error.message.contains(&format!("`{}`", metric.column))
                            || error.message.contains(&format!(
                                "`{}`",
                                metric.column.trim_end_matches(metric.unit.suffix().as_str())
                            ))
                    });
                    let error = if section == "where" && later {
                        error.help("`where` decides before evaluation: put a condition on results into `require`")
                    } else {
                        error
                    };
                    let _ = entry;
                    self.complain(error);
                }
                break;
            }
            open = failed.into_iter().map(|failed| failed.0).collect();
        }
        for rule in &rules {
            let is_condition = rule.expression.kind() == Kind::Bool;
            if section != "derive" && !is_condition {
                let message =
                    format!("`{section}.{}` is {}, not a condition", rule.name, rule.expression.kind().describe());
                self.complain(Diagnostic::error(message).at(rule.place).help("compare it with something: `tp <= 8`"));
            }
            if section == "where" && is_after(rule, derived) {
                self.complain(
                    Diagnostic::error(format!("`where.{}` needs a result", rule.name))
                        .at(rule.place)
                        .help("`where` decides before evaluation: put a condition on results into `require`"),
                );
            }
        }
        rules
    }

    /// The input columns.
    fn columns(
        &self,
        frame: &Frame,
        is_collective: bool,
        dims: &[(String, Option<usize>, usize)],
    ) -> Vec<super::InputColumn> {
        let mut swept = Vec::new();
        let mut named: Vec<usize> =
            frame.settings.iter().map(|setting| setting.0 as usize).filter(|&slot| slot >= NAMES_FROM).collect();
        for axis in &frame.axes {
            axis.visit(&mut |axis, alternative| {
                if axis.touched.len() == 1 {
                    swept.push(axis.touched[0] as usize);
                }
                named.extend(
                    alternative.settings.iter().map(|setting| setting.slot as usize).filter(|&slot| slot >= NAMES_FROM),
                );
            });
        }
        let dims = dims.iter().map(|dim| dim.2 + 1).max().unwrap_or(0);
        input_columns(&Contents { is_collective, dims, zips: &self.zips, swept: &swept, named: &named })
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a sweep that `decide` may name")]
    fn decide(
        &mut self,
        lines: &[Line],
        frame: &Frame,
        columns: &[super::InputColumn],
        derived_columns: &[(Column, usize)],
        labels: &[(usize, Vec<String>)],
        dims: &[(String, Option<usize>, usize)],
        derived: &[Rule],
        is_collective: bool,
    ) -> Decide {
        let entries = self.entries_of(lines, "decide");
        let subjects = self.subjects(frame, columns, labels);
        let dims: Vec<(String, Option<usize>)> = dims.iter().map(|dim| (dim.0.clone(), dim.1)).collect();
        let metrics = self.vocabulary.metrics.clone();
        let names = Names {
            names: &self.walker.names,
            tiers: &self.walker.tiers,
            zips: &self.zips,
            dims: &dims,
            labels,
            derived,
            metrics: &metrics,
        };
        let numbers: Vec<String> = columns
            .iter()
            .filter(|column| matches!(column.column.dtype, Dtype::Count | Dtype::Real))
            .map(|column| column.column.name.clone())
            .chain(derived_columns.iter().map(|column| column.0.name.clone()))
            .chain(metrics.iter().filter(|metric| !metric.is_text).map(|metric| metric.column.clone()))
            .collect();
        let mut complaints = Vec::new();
        let mut decide = decide::read(&entries, &subjects, &names, &numbers, &mut complaints);
        self.walker.diagnostics.append(&mut complaints);
        if decide.objectives.is_empty() {
            let time = if is_collective { "finish_time_s" } else { "iteration_time_s" };
            decide.objectives = vec![(time.to_owned(), Direction::Min), ("npus".to_owned(), Direction::Min)];
        }
        decide
    }

    /// What `decide` may name: axes, sections with axes, zips.
    fn subjects(&self, frame: &Frame, columns: &[super::InputColumn], labels: &[(usize, Vec<String>)]) -> Vec<Subject> {
        let mut subjects: Vec<Subject> = Vec::new();
        let mut add = |name: &str, column: Vec<String>, labels: Vec<String>| match subjects
            .iter_mut()
            .find(|known| known.name == name)
        {
            Some(known) => {
                for column in column {
                    if !known.columns.contains(&column) {
                        known.columns.push(column);
                    }
                }
                known.labels.extend(labels);
            }
            None => subjects.push(Subject { name: name.to_owned(), columns: column, labels }),
        };
        let of_slot = |slot: Slot| {
            let from = |column: &&super::InputColumn| {
                use super::column::From;
                matches!(column.from, From::Number(s) | From::Word(s, _) | From::Name(s) | From::Tier(s) if s == slot as usize)
            };
            columns.iter().find(from).map(|column| column.column.name.clone())
        };
        let mut visit = |axis: &Axis| {
            let path = axis.name.as_str();
            let short = path.rsplit('.').next().unwrap_or(path);
            let label_slot = axis.touched.iter().copied().find(|&slot| {
                let slot = slot as usize;
                let named = NAMED.iter().position(|named| *named == short).map(|k| NAMES_FROM + k);
                let zip = self.zips.iter().position(|zip| zip == path).map(|k| ZIPS_FROM + k);
                Some(slot) == named || Some(slot) == zip
            });
            let slot = label_slot.or_else(|| axis.touched.first().copied());
            let Some(column) = slot.and_then(of_slot) else { return };
            let names = label_slot.and_then(|slot| labels.iter().find(|label| label.0 == slot as usize)).map_or_else(
                || axis.alternatives.iter().map(|alternative| alternative.label.clone()).collect(),
                |label| label.1.clone(),
            );
            add(path, vec![column.clone()], names.clone());
            if short != path {
                add(short, vec![column.clone()], names.clone());
            }
            if let Some((section, _)) = path.split_once('.') {
                add(section, vec![column], names);
            }
        };
        let mut all = Vec::new();
        for axis in &frame.axes {
            axis.visit(&mut |axis, _| {
                if !all.iter().any(|known: &&Axis| std::ptr::eq(*known, axis)) {
                    all.push(axis);
                }
            });
        }
        all.into_iter().for_each(&mut visit);
        // A defined name that holds axes may be tuned.
        for name in &self.walker.used_define {
            if !subjects.iter().any(|known| known.name == *name) {
                subjects.push(Subject { name: name.clone(), columns: Vec::new(), labels: Vec::new() });
            }
        }
        subjects
    }

    /// `rules`, `fidelity` and `name`.
    fn words(&mut self, lines: &[Line]) {
        for (name, known) in [("rules", "ours"), ("fidelity", "closed_form")] {
            let Some((_, _, nodes)) = lines.iter().find(|line| line.0 == name) else { continue };
            let node = &nodes[nodes.len() - 1];
            let text = node.scalar().unwrap_or_default();
            if text == known {
                continue;
            }
            let later = key::LATER_VALUES.iter().find(|later| later.0 == name && later.1 == text);
            let diagnostic = match later {
                Some(later) => Diagnostic::error(format!("`{name}: {text}` is not understood yet: {}", later.2)),
                None => Diagnostic::error(format!("`{name}` has no choice `{text}`")),
            };
            self.complain(diagnostic.at(node.place).help(format!("this version takes `{name}: {known}`")));
        }
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

    /// What is worth knowing.
    fn cautions(&self, space: &Space, defined: &[Entry]) -> Vec<Diagnostic> {
        let mut cautions = Vec::new();
        for entry in defined {
            if !self.walker.used_define.contains(&entry.key) {
                let message = format!("`define.{}` is used nowhere", entry.key);
                cautions.push(
                    Diagnostic::caution(message).at(entry.place).help("name it where a mapping stands, or remove it"),
                );
            }
        }
        for axis in &space.axes {
            for (k, alternative) in axis.alternatives.iter().enumerate() {
                let content = |alternative: &Alternative| {
                    let settings = alternative.settings.iter().filter(|setting| (setting.slot as usize) < NAMES_FROM);
                    let mut settings: Vec<(Slot, u64)> =
                        settings.map(|setting: &Setting| (setting.slot, setting.value.to_bits())).collect();
                    settings.sort_unstable();
                    settings
                };
                let same =
                    |other: &&Alternative| content(other) == content(alternative) && other.axes == alternative.axes;
                if let Some(other) = axis.alternatives[..k].iter().find(same) {
                    let message = format!(
                        "`{}` and `{}` of `{}` are the same: their points have the same ids",
                        other.label, alternative.label, axis.name
                    );
                    cautions.push(Diagnostic::caution(message).at(axis.place));
                }
            }
        }
        cautions
    }
}

/// A line `name: expression`.
fn compile(entry: &Entry, names: &Names<'_>) -> Result<Rule, Diagnostic> {
    let Some(text) = entry.node.scalar() else {
        return Err(Diagnostic::error(format!("`{}` takes an expression, not {}", entry.key, entry.node.kind()))
            .at(entry.node.place)
            .help("write for example `tp <= 8`"));
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if entry.key.is_empty() || !entry.key.chars().all(valid) || entry.key.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Diagnostic::error(format!("`{}` is no name for an expression", entry.key))
            .at(entry.place)
            .help("use letters, digits and `_`, a letter first"));
    }
    match expression::compile(&text, names) {
        Ok(expression) => {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Ok(Rule { name: entry.key.clone(), text, place: entry.node.place, expression })
        }
        Err(error) => {
            let characters = |bytes: usize| narrow(text.get(..bytes).map_or(0, |part| part.chars().count()) as u64);
            let mut place = entry.node.place;
            // A text over several lines, or in quotes, has other columns than its content.
            if place.length >= narrow(text.chars().count() as u64) && !text.contains('\n') {
                place.column += characters(error.start);
                place.length = (characters(error.end) - characters(error.start)).max(1);
            }
            let diagnostic = Diagnostic::error(format!("in `{}`: {}", entry.key, error.message)).at(place);
            Err(match error.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            })
        }
    }
}

/// What holds where nothing is written.
fn defaults() -> Vec<f64> {
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

/// Keys that nobody wrote, with what is in force.
fn defaults_in_force(space: &Space, is_collective: bool) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let unwritten = defaults();
    for (slot, key) in KEYS.iter().enumerate() {
        let of_training =
            key.path.starts_with("plan.") || key.path.starts_with("model.") || key.path.starts_with("precision.");
        let touched = space.axes.iter().any(|axis| axis.touched.contains(&narrow(slot as u64)));
        let same = space.base[slot].to_bits() == unwritten[slot].to_bits();
        if touched || !same || (of_training && is_collective) {
            continue;
        }
        let text = match (key.default, key.kind) {
            (Default::Is(value), key::Kind::Choice(words)) => words[index(whole(value))].to_owned(),
            (Default::Is(value), key::Kind::Flag) => (value == 1.0).to_string(),
            (Default::Is(_), key::Kind::Tier) => "none".to_owned(),
            (Default::Is(value), key::Kind::Share) => plain(value),
            (Default::Is(value), _) => human(value, key.unit()),
            (Default::Rest, _) => "rest".to_owned(),
            (Default::Like(other), _) => format!("as {other}"),
            (Default::Required | Default::Absent, _) => continue,
        };
        found.push((key.path, text));
    }
    found
}

/// The columns of derived values.
fn derived_columns(derived: &[Rule]) -> Vec<(Column, usize)> {
    let column = |(k, rule): (usize, &Rule)| {
        let (dtype, unit) = match rule.expression.kind() {
            Kind::Number(unit) => (Dtype::Real, unit),
            Kind::Bool => (Dtype::Flag, Unit::NONE),
            Kind::Text => return None,
        };
        let meaning = format!("derived: {}", rule.text);
        Some((Column { name: with_suffix(&rule.name, unit), dtype, unit, meaning }, k))
    };
    derived.iter().enumerate().filter_map(column).collect()
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

/// A suggestion for a word among names, for those who look names up themselves.
#[must_use]
pub fn suggestion(word: &str, known: &[String]) -> Option<String> {
    suggest(word, known.iter().map(String::as_str))
}
