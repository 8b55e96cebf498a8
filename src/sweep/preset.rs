//! Presets: names that we defined, each number with its source, read from YAML files that are part of the program.

use std::sync::OnceLock;

use crate::input::diagnostic::Source;
use crate::input::tree::{Entry, Node, Value, parse};

/// The sections that have presets, with their files. A new preset is an entry of a file.
const FILES: &[(&str, &str)] = &[
    ("cluster", include_str!("presets/cluster.yaml")),
    ("framework", include_str!("presets/framework.yaml")),
    ("link", include_str!("presets/link.yaml")),
    ("model", include_str!("presets/model.yaml")),
    ("npu", include_str!("presets/npu.yaml")),
    ("precision", include_str!("presets/precision.yaml")),
    ("software", include_str!("presets/software.yaml")),
    ("tier", include_str!("presets/tier.yaml")),
];

/// All presets of one kind.
#[derive(Debug)]
pub struct Kind {
    /// What they are: `model`, `npu`, ...
    pub name: &'static str,
    /// The presets by name, each a mapping without its sources.
    pub presets: Vec<Entry>,
    /// The sources of each preset, in the same order: key and text.
    pub sources: Vec<Vec<(String, String)>>,
}

/// Every kind of preset. Read once, when first asked for.
pub fn kinds() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| FILES.iter().map(|&(name, text)| read(name, text)).collect())
}

/// The presets that may stand at a path; none if the path has none.
#[must_use]
pub fn at(path: &str) -> Option<&'static Kind> {
    let name = match path {
        "model" | "cluster" | "precision" | "software" => path,
        "cluster.npu" => "npu",
        super::framework::PATH => super::framework::NAME,
        _ if path.starts_with("cluster.network.") => "link",
        _ if path.starts_with("memory.") => "tier",
        _ => return None,
    };
    kinds().iter().find(|kind| kind.name == name)
}

impl Kind {
    /// A preset by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.presets.iter().find(|entry| entry.key == name).map(|entry| &entry.node)
    }
}

fn read(name: &'static str, text: &str) -> Kind {
    let node = parse(text, Source::Preset).unwrap_or_else(|error| panic!("presets of {name}: {}", error.message));
    let Value::Map(entries) = node.value else { panic!("presets of {name} are a mapping") };
    let mut kind = Kind { name, presets: Vec::new(), sources: Vec::new() };
    for mut entry in entries {
        let mut sources = Vec::new();
        if let Value::Map(lines) = &mut entry.node.value {
            lines.retain(|line| {
                if line.key != "source" {
                    return true;
                }
                if let Value::Map(texts) = &line.node.value {
                    sources.extend(texts.iter().map(|text| (text.key.clone(), text.node.scalar().unwrap_or_default())));
                }
                false
            });
        }
        kind.presets.push(entry);
        kind.sources.push(sources);
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_preset_has_a_source() {
        for kind in kinds() {
            for (preset, sources) in kind.presets.iter().zip(&kind.sources) {
                let Value::Map(lines) = &preset.node.value else { panic!("{} is a mapping", preset.key) };
                for line in lines {
                    let found = sources.iter().any(|source| source.0 == line.key && !source.1.is_empty());
                    assert!(found, "{} {}: `{}` has no source", kind.name, preset.key, line.key);
                }
            }
        }
    }
}
