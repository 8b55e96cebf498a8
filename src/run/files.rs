//! The files that a sweep names, the reference simulator's and models', in the words of a sweep: each is read once [ASTRA2].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use super::config;
use super::traces::{Found, Traces};
use crate::astra_sim::{
    Options, algorithm_word, contents, inverse, read_network, read_own, read_recorded, read_system,
};
use crate::input::tree::{Entry, Node, Value};
use crate::input::{Diagnostic, Place, Remarks, Severity};
use crate::sweep::collectives::Part;
use crate::sweep::recording::{self, Recording};
use crate::sweep::{Loader, Said, SystemFile};
use crate::system::hierarchy::MultiDim;
use crate::system::machine::{self, Dimension, Hierarchy, Machine, Own, Pace};
use crate::units::{Delay, real};
use crate::workload::trace::Graph;

/// Reads the files that one sweep names.
#[derive(Debug, Default)]
pub struct Files {
    /// The folder that paths are relative to.
    folder: PathBuf,
    read: Arc<Mutex<Read>>,
}

/// What was read.
#[derive(Debug, Default)]
struct Read {
    /// The texts of all files.
    texts: Remarks,
    networks: BTreeMap<String, Said>,
    systems: BTreeMap<String, SystemFile>,
    /// Models, by path and the keys that are written beside it.
    models: BTreeMap<(String, Vec<String>), Said>,
    contents: BTreeMap<(String, Option<String>), u64>,
    /// Collectives that are traces of their own, by path and number of members.
    own: BTreeMap<(String, u32), OwnCell>,
    traces: Traces,
}

impl Files {
    /// The files of a sweep file: paths are relative to its folder.
    #[must_use]
    pub fn beside(sweep: &Path) -> Self {
        Self { folder: sweep.parent().map_or_else(PathBuf::new, Path::to_path_buf), read: Arc::default() }
    }

    /// The texts that were read, which places name.
    #[must_use]
    pub fn texts(&self) -> Remarks {
        self.lock().texts.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read {
    /// What files say, with the places of their texts among all texts.
    fn said(&mut self, node: Option<Node>, remarks: Remarks) -> Said {
        let before = self.texts.found.len();
        self.texts.append(remarks);
        Said { node, found: self.texts.found.split_off(before) }
    }
}

impl Loader for Files {
    fn within(&self, folder: &Path) -> Arc<dyn Loader> {
        Arc::new(Self { folder: self.folder.join(folder), read: self.read.clone() })
    }

    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    fn paths(&self, pattern: &str) -> Vec<String> {
        if !pattern.contains(['*', '?']) {
            return vec![pattern.to_owned()];
        }
        let mut found = vec![PathBuf::new()];
        for part in Path::new(pattern) {
            let part_text = part.to_string_lossy();
            found = found
                .iter()
                .flat_map(|path| {
                    if part_text.contains(['*', '?']) { self.like(path, &part_text) } else { vec![path.join(part)] }
                })
                .collect();
        }
        let is_there = |path: &PathBuf| self.folder.join(path).is_file();
        let mut found: Vec<String> =
            found.iter().filter(|path| is_there(path)).map(|path| path.display().to_string()).collect();
        found.sort();
        found
    }

    fn network(&self, path: &str) -> Said {
        let mut read = self.lock();
        if let Some(said) = read.networks.get(path) {
            return said.clone();
        }
        let mut remarks = Remarks::default();
        let dimensions = read_network(&self.folder.join(path), &mut remarks);
        let node = dimensions.map(|dimensions| network(&dimensions));
        let said = read.said(node, remarks);
        read.networks.insert(path.to_owned(), said.clone());
        said
    }

    fn system(&self, path: &str) -> SystemFile {
        let mut read = self.lock();
        if let Some(file) = read.systems.get(path) {
            return file.clone();
        }
        let mut remarks = Remarks::default();
        let machine = read_system(&self.folder.join(path), &Options::default(), &mut remarks);
        let mut file = machine.map_or_else(SystemFile::default, |(machine, own)| {
            system((&self.folder, path), &machine, &own, &mut remarks)
        });
        file.said = read.said(file.said.node, remarks);
        read.systems.insert(path.to_owned(), file.clone());
        file
    }

    fn model(&self, path: &str, beside: &[&str]) -> Said {
        let key = (path.to_owned(), beside.iter().map(|&key| key.to_owned()).collect());
        let mut read = self.lock();
        if let Some(said) = read.models.get(&key) {
            return said.clone();
        }
        let mut remarks = Remarks::default();
        let node = config::read(&self.folder.join(path), beside, &mut remarks);
        let said = read.said(node, remarks);
        read.models.insert(key, said.clone());
        said
    }

    fn content(&self, prefix: &str, groups: Option<&str>) -> u64 {
        let key = (prefix.to_owned(), groups.map(str::to_owned));
        if let Some(&known) = self.lock().contents.get(&key) {
            return known;
        }
        let found = content(&self.folder, prefix, groups);
        self.lock().contents.insert(key, found);
        found
    }

    fn trace(&self, recording: &Recording, ranks: u32) -> Found {
        let key = (recording.clone(), ranks);
        let cell = self.lock().traces.get(&key);
        // Others wait here for whom reads it first, and for nobody else.
        let found = cell.get_or_init(|| {
            let mut remarks = Remarks::default();
            let prefix = self.folder.join(&recording.prefix);
            let groups = recording.groups.as_ref().map(|groups| self.folder.join(groups));
            let own: Vec<PathBuf> = recording.own.iter().map(|own| self.folder.join(&own.prefix)).collect();
            let trace =
                read_recorded(&prefix, groups.as_deref(), ranks, (&of_collectives(&recording.own), &own), &mut remarks);
            let found = self.lock().said(None, remarks).found;
            trace
                .map(Arc::new)
                .ok_or_else(|| found.into_iter().filter(|found| found.severity == Severity::Error).collect())
        });
        self.lock().traces.weigh(&key, found);
        found.clone()
    }

    fn own(&self, prefix: &str, members: u32) -> Result<Arc<[Graph]>, Arc<[Diagnostic]>> {
        let cell = self.lock().own.entry((prefix.to_owned(), members)).or_default().clone();
        cell.get_or_init(|| {
            let mut remarks = Remarks::default();
            let graphs = read_own(&self.folder.join(prefix), members, &mut remarks);
            let found = self.lock().said(None, remarks).found;
            graphs
                .map(Into::into)
                .ok_or_else(|| found.into_iter().filter(|found| found.severity == Severity::Error).collect())
        })
        .clone()
    }
}

/// Which collectives are traces of their own, by their places.
#[must_use]
pub fn of_collectives(own: &[recording::Own]) -> Own {
    let mut found = Own::default();
    for (own, place) in own.iter().zip(0..) {
        found.of_collective[own.collective as usize] = Some(place);
    }
    found
}

/// A hash of what stands in all files of a trace: of its ranks, as they follow each other, and of its groups.
fn content(folder: &Path, prefix: &str, groups: Option<&str>) -> u64 {
    let mut hash = Xxh3::new();
    let mut add = |bytes: Option<Vec<u8>>| {
        hash.update(&bytes.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hash.update(bytes.as_deref().unwrap_or_default());
    };
    if let Some(groups) = groups {
        add(std::fs::read(folder.join(groups)).ok());
    }
    contents(&folder.join(prefix)).for_each(add);
    hash.digest()
}

/// A collective that is a trace of its own, read by whoever asks first.
type OwnCell = Arc<OnceLock<Result<Arc<[Graph]>, Arc<[Diagnostic]>>>>;

/// A machine of a system file in the words of a sweep; what has no word is said.
fn system((folder, path): (&Path, &str), machine: &Machine, own: &[PathBuf], remarks: &mut Remarks) -> SystemFile {
    const SIMULATE: &str = "`starsweep simulate` takes it";
    let refused = [
        (machine.bus.is_some(), "`model-shared-bus`"),
        (!machine.own.of_operation.is_empty(), "`per-node-custom-implementation`"),
    ];
    for (_, what) in refused.iter().filter(|refused| refused.0) {
        let message = format!("`{path}` has {what}, and a sweep has no word for it");
        remarks.say(Diagnostic::error(message).help(SIMULATE));
    }
    if machine.pace != Pace::Recorded {
        let key = if machine.pace == Pace::Replayed { "replay-only" } else { "roofline-enabled" };
        let message = format!("`{key}` of `{path}` counts for nothing: the sweep's `npu` says how fast it computes");
        let help = "a collective computes nothing; `starsweep simulate` takes the file as a whole";
        remarks.say(Diagnostic::caution(message).help(help));
    }
    let reduces = machine.memory_bandwidth.is_finite();
    let lines = [
        ("chunks", Value::Number(real(machine.chunks))),
        ("active_chunks", Value::Number(f64::from(machine.active_chunks))),
        ("endpoint_delay", Value::Text(format!("{} s", seconds(machine.endpoint_delay)))),
        ("local_reduction", Value::Bool(reduces)),
    ];
    let each = (machine.hierarchy == Hierarchy::PerDimension).then(|| MultiDim::NAMES[MultiDim::PerDimension as usize]);
    let each = each.map(|word| ("multi_dim", Value::Text(word.to_owned())));
    let lines = lines.into_iter().chain(each).map(|(key, value)| (key.to_owned(), value));
    let node = Node { value: mapping(lines), place: Place::default() };
    let part = |entry: &machine::Entry| Part {
        word: entry.algorithm.name(),
        window: entry.window,
        written: algorithm_word(*entry),
        whole: entry.whole,
    };
    SystemFile {
        said: Said { node: Some(node), found: Vec::new() },
        algorithms: machine.algorithms.each_ref().map(|list| list.iter().map(part).collect()),
        own: machine.own.of_collective.map(|place| {
            let path = own.get(place? as usize)?;
            // As seen from the folder of the sweep.
            let seen = path.strip_prefix(folder).map(Path::to_path_buf);
            Some(seen.or_else(|_| std::path::absolute(path)).ok()?.display().to_string())
        }),
        memory_bandwidth: reduces.then_some(machine.memory_bandwidth),
    }
}

impl Files {
    /// What in a folder is called like a pattern.
    fn like(&self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| matches(pattern, name)).map(|name| folder.join(name)).collect()
    }
}

/// Whether a name is like a pattern: `*` stands for any characters, `?` for one; what begins with a dot is hidden from them.
fn matches(pattern: &str, name: &str) -> bool {
    fn rest(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', after @ ..] => (0..=name.len()).any(|k| rest(after, &name[k..])),
            ['?', after @ ..] => !name.is_empty() && rest(after, &name[1..]),
            [first, after @ ..] => name.first() == Some(first) && rest(after, &name[1..]),
        }
    }
    let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
    let [pattern, name] = [pattern, name].map(|text| text.chars().collect::<Vec<_>>());
    !is_hidden && rest(&pattern, &name)
}

/// A mapping of values as they are written.
pub(super) fn mapping(lines: impl IntoIterator<Item = (String, Value)>) -> Value {
    let place = Place::default();
    let entry = |(key, value)| Entry { key, place, node: Node { value, place } };
    Value::Map(lines.into_iter().map(entry).collect())
}

/// The lines of a network: `d1`, `d2`, ..., innermost first.
fn network(dimensions: &[Dimension]) -> Node {
    let line = |(k, dimension): (usize, &Dimension)| {
        let fields = [
            ("block", Value::Text(dimension.block.name().to_owned())),
            ("size", Value::Number(f64::from(dimension.size))),
            ("bandwidth", Value::Text(format!("{} B/s", npu_bandwidth(dimension)))),
            ("hop_latency", Value::Text(format!("{} s", seconds(dimension.latency)))),
        ];
        (format!("d{}", k + 1), mapping(fields.map(|(key, value)| (key.to_owned(), value))))
    };
    Node { value: mapping(dimensions.iter().enumerate().map(line)), place: Place::default() }
}

/// Bytes a second that one NPU can send in a dimension over all its links: such that each link has the file's bandwidth again,
/// to the last bit but for some of fully connected dimensions, where that takes a number between two.
fn npu_bandwidth(dimension: &Dimension) -> f64 {
    let links = Dimension { bandwidth: 1.0, ..dimension.clone() }.npu_bandwidth();
    // In the order of `Machine::of`.
    let link = |bytes_per_second: f64| bytes_per_second / 1e9 / links;
    inverse(dimension.bandwidth, dimension.npu_bandwidth() * 1e9, link)
}

/// Seconds that are so many nanoseconds, to the last bit where such seconds can be written.
fn seconds(nanoseconds: f64) -> f64 {
    inverse(nanoseconds, nanoseconds / 1e9, |seconds| Delay::seconds(seconds).as_nanoseconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_like_names() {
        for (pattern, name, is_like) in [
            ("*.yml", "a.yml", true),
            ("*.yml", ".a.yml", false),
            ("n?t*", "nets", true),
            ("n?t", "nets", false),
            ("a", "a", true),
        ] {
            assert_eq!(matches(pattern, name), is_like, "{pattern} {name}");
        }
    }
}
