//! Files of other tools that a sweep names: who reads them hands in what they say, in the words of a sweep.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::collectives::Part;
use super::recording::Recording;
use super::walk::{Frame, Walker};
use crate::input::diagnostic::{Diagnostic, Place, Severity};
use crate::input::tree::{Entry, Node, Value};
use crate::system::collective::Collective;
use crate::workload::trace::{Graph, Trace};

/// The key that names a file of the reference simulator.
pub const ASTRA_SIM: &str = "astra_sim";
/// The key that names a model's `config.json`.
pub const HF: &str = "hf";

/// What every model's file is called.
const CONFIG: &str = "config.json";
/// Where the files are.
const RELATIVE: &str = "paths are relative to the sweep file";
/// The key that says from which folder paths go.
pub const RELATIVE_TO: &str = "relative_to";

/// Reads the files that a sweep names. A sweep reads none itself.
pub trait Loader: Debug + Send + Sync {
    /// The same files as seen from another folder: what is not absolute goes on from the folder of this one.
    fn within(&self, folder: &Path) -> Arc<dyn Loader>;

    /// The folder that paths are relative to.
    fn folder(&self) -> PathBuf;

    /// The paths that a pattern means, in their order: a path without `*` and `?` means itself, whether it is there or not.
    fn paths(&self, pattern: &str) -> Vec<String>;

    /// A network file of the reference simulator as the lines of a network.
    fn network(&self, path: &str) -> Said;

    /// A system file of the reference simulator as the keys of `collectives`, without their algorithms.
    fn system(&self, path: &str) -> SystemFile;

    /// A model's `config.json` as the keys of `model`; what it lacks is no mistake where a key is written beside it.
    fn model(&self, path: &str, beside: &[&str]) -> Said;

    /// A hash of all that the files of a trace hold, and that of its groups.
    fn content(&self, prefix: &str, groups: Option<&str>) -> u64;

    /// The trace of so many ranks; what is wrong with it if there is none. It is read once for many points.
    ///
    /// # Errors
    /// Everything that is wrong in its files.
    fn trace(&self, recording: &Recording, ranks: u32) -> Result<Arc<Trace>, Arc<[Diagnostic]>>;

    /// The graphs of a collective of so many members that is a trace of its own. It is read once for many points.
    ///
    /// # Errors
    /// Everything that is wrong in its files.
    fn own(&self, prefix: &str, members: u32) -> Result<Arc<[Graph]>, Arc<[Diagnostic]>>;
}

/// What a system file says.
#[derive(Debug, Clone, Default)]
pub struct SystemFile {
    /// Its keys.
    pub said: Said,
    /// The algorithms of each collective, one for each dimension.
    pub algorithms: [Vec<Part>; Collective::ALL.len()],
    /// The paths of traces that collectives are in place of an algorithm.
    pub own: [Option<String>; Collective::ALL.len()],
    /// Bytes a second of the memory that reductions use, if they cost anything.
    pub memory_bandwidth: Option<f64>,
}

/// What a file says.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// As a mapping that could stand in its place; none if something is wrong, which is remarked.
    pub node: Option<Node>,
    /// What is wrong in it, or worth knowing.
    pub found: Vec<Diagnostic>,
}

/// A key that names files, and the names by which their mappings are known in the frozen sweep.
#[derive(Debug, Clone)]
pub struct Named {
    /// What is written.
    pub pattern: String,
    /// The names.
    pub names: Vec<String>,
}

/// The key of a mapping that says what the others go over: a preset, or a file where one may stand.
pub(super) fn base<'a>(path: &str, entries: &'a [Entry]) -> Option<&'a Entry> {
    entries
        .iter()
        .find(|entry| entry.key == "preset" || (names_files(&entry.key) && file_key(path) == Some(&entry.key)))
}

/// Whether a key names files.
pub(super) fn names_files(key: &str) -> bool {
    matches!(key, ASTRA_SIM | HF)
}

/// The key of the files that may stand at a path.
fn file_key(path: &str) -> Option<&'static str> {
    match path {
        "cluster.network" | "collectives" => Some(ASTRA_SIM),
        "model" => Some(HF),
        _ => None,
    }
}

/// What a file is called in tables: its name without its ending; a `config.json` as the folder in which it is.
pub(super) fn stem(path: &str) -> String {
    let path_of = Path::new(path);
    let folder = path_of.parent().and_then(Path::file_name).filter(|_| path_of.ends_with(CONFIG));
    folder.or(path_of.file_stem()).map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// What is said where a file's name should stand.
fn no_path(path: &str, place: Place) -> Diagnostic {
    let (key, one, many) = match file_key(path) {
        Some(HF) => (HF, "./config.json", "models/*/config.json"),
        _ => (ASTRA_SIM, "nets/mine.yml", "nets/*.yml"),
    };
    Diagnostic::error(format!("`{key}` takes the path of a file"))
        .at(place)
        .help(format!("write `{{{key}: {one}}}`; `\"{many}\"` is an alternative for each file"))
}

impl Walker {
    /// A section whose base is a file, or several: each an alternative.
    pub(super) fn files(&mut self, path: &str, base: &Node, over: &[&Node], frame: &mut Frame, label: Option<&str>) {
        let patterns = match &base.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(base),
        };
        let mut names = Vec::new();
        let complaints = self.diagnostics.len();
        for pattern in patterns {
            names.extend(self.file(path, pattern, over));
        }
        if self.diagnostics.len() > complaints {
            self.unread.push(path.to_owned());
            return;
        }
        let mut items: Vec<Node> =
            names.into_iter().map(|name| Node { value: Value::Text(name), place: base.place }).collect();
        let one = if items.len() == 1 && !matches!(base.value, Value::List(_)) { items.pop() } else { None };
        let named = one.unwrap_or(Node { value: Value::List(items), place: base.place });
        self.section(path, &named, over, frame, label);
    }

    /// The files of one pattern as defined names; none if something is wrong, which is remarked.
    fn file(&mut self, path: &str, pattern: &Node, over: &[&Node]) -> Vec<String> {
        let (Value::Text(text), Some(loader)) = (&pattern.value, self.loader.clone()) else {
            let is_text = matches!(pattern.value, Value::Text(_));
            let unread = || Diagnostic::error("files cannot be read from here").at(pattern.place);
            self.complain(if is_text { unread() } else { no_path(path, pattern.place) });
            return Vec::new();
        };
        let paths = loader.paths(text);
        if paths.is_empty() {
            let message = format!("no file is called like `{text}`");
            self.complain(Diagnostic::error(message).at(pattern.place).help(RELATIVE));
        }
        let mut names = Vec::new();
        for file in &paths {
            let said = match path {
                "collectives" => self.system_file(file, loader.system(file), over, pattern.place),
                "model" => loader.model(file, &keys(over)),
                _ => loader.network(file),
            };
            for remark in said.found {
                let remark = match (remark.place, &remark.help) {
                    (Some(_), _) => remark,
                    (None, Some(_)) => remark.at(pattern.place),
                    (None, None) => remark.at(pattern.place).help(RELATIVE),
                };
                let list = if remark.severity == Severity::Error { &mut self.diagnostics } else { &mut self.cautions };
                // A file that is named twice has each mistake once.
                if !list.contains(&remark) {
                    list.push(remark);
                }
            }
            if let Some(node) = said.node {
                names.push(self.name(file, moved(node, pattern.place)));
            }
        }
        if names.len() == paths.len() && !self.files.iter().any(|known| known.pattern == *text) {
            self.files.push(Named { pattern: text.clone(), names: names.clone() });
        }
        names
    }

    /// The name that stands for the mapping of a file: its own, or its path if something else is called so.
    fn name(&mut self, file: &str, node: Node) -> String {
        let place = node.place;
        let is_taken =
            |name: &String| self.define.iter().any(|entry| entry.key == *name && entry.node.value != node.value);
        let name = [stem(file), file.to_owned()]
            .into_iter()
            .find(|name| !is_taken(name))
            .unwrap_or_else(|| format!("{file}#"));
        if self.define.iter().all(|entry| entry.key != name) {
            self.define.push(Entry { key: name.clone(), place, node });
        }
        name
    }
}

/// The keys of mappings.
fn keys<'a>(nodes: &[&'a Node]) -> Vec<&'a str> {
    let entries =
        nodes.iter().filter_map(|node| if let Value::Map(entries) = &node.value { Some(entries) } else { None });
    entries.flatten().map(|entry| entry.key.as_str()).collect()
}

/// A mapping as if it stood at one place.
fn moved(mut node: Node, place: Place) -> Node {
    node.place = place;
    match &mut node.value {
        Value::List(items) => {
            for item in items {
                *item = moved(item.clone(), place);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                entry.place = place;
                entry.node = moved(entry.node.clone(), place);
            }
        }
        _ => {}
    }
    node
}
