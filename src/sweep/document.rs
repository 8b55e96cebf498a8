//! The manual of the language and its JSON schema, made from the list of keys.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::algorithm::{BY_DIMENSION, CHAKRA, example};
use super::foreign::{FOREIGN, LATER};
use super::framework;
use super::key::{ALGORITHMS, DIM_KEYS, Default, Id, KEYS, Key, Kind, TIER_KEYS};
use super::outside::RELATIVE_TO;
use super::preset;
use super::recompute;
use super::resolve::TOP;
use super::sizes;
use crate::units::{Unit, human, index, plain, whole};
use crate::workload::strategy::Strategy;
use crate::workload::{Optimizer, Schedule};

/// `sweeps/README.md`: every key with its meaning, unit, default and an example.
#[must_use]
pub fn manual() -> String {
    let mut text = String::from(include_str!("manual.md"));
    let _ = writeln!(text, "## Top level\n\n| key | meaning |\n| --- | --- |");
    for (name, meaning) in TOP {
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    let mut section = "";
    for key in KEYS {
        let of = key.path.rsplit_once('.').map_or("", |split| split.0);
        if of != section || (of.is_empty() && section.is_empty() && !text.contains("## Keys")) {
            section = of;
            let title = if of.is_empty() { "Keys at the top level".to_owned() } else { format!("`{of}`") };
            let _ = writeln!(text, "\n## {title}\n\n| key | takes | default | meaning |\n| --- | --- | --- | --- |");
        }
        push_key(&mut text, key);
    }
    for (title, keys) in [("A line of `cluster.network`", DIM_KEYS), ("A tier: any other name in `memory`", TIER_KEYS)]
    {
        let _ = writeln!(text, "\n## {title}\n\n| key | takes | default | meaning |\n| --- | --- | --- | --- |");
        for key in keys {
            push_key(&mut text, key);
        }
    }
    let _ = writeln!(
        text,
        "\n## Presets\n\n`starsweep list <kind>` shows every number with its source.\n\n| kind | names |\n| --- | --- |"
    );
    for kind in preset::kinds() {
        let names: Vec<_> = kind.presets.iter().map(|preset| format!("`{}`", preset.key)).collect();
        let _ = writeln!(text, "| {} | {} |", kind.name, names.join(", "));
    }
    parts(&mut text);
    let later: Vec<_> = LATER.iter().map(|later| format!("`{}` ({})", later.0, later.1)).collect();
    let _ = writeln!(text, "\n## Not understood yet\n\nRefused by name, with their place: {}.", later.join(", "));
    let foreign: Vec<_> = FOREIGN.iter().map(|foreign| format!("`{}`", foreign.0)).collect();
    let _ = writeln!(text, "\nWords of other tools, answered with ours: {}.", foreign.join(", "));
    text
}

/// What a plan is made of: strategies, in the order in which they divide a job, and schedules, each with a small case.
fn parts(text: &mut String) {
    let strategies = Strategy::ALL.iter().map(|one| (one.name(), one.part().summary(), one.part().example()));
    let schedules = Schedule::ALL.iter().map(|one| (one.name(), one.part().summary(), one.part().example()));
    let optimizers = Optimizer::ALL.iter().map(|one| (one.name(), one.part().summary(), one.part().example()));
    let head = "| what it does, by which keys | for example |\n| --- | --- | --- |";
    let order = "In the order in which they divide a job. What does not go together is infeasible, with its reason (`results/README.md`).";
    let _ = writeln!(text, "\n## Strategies\n\n{order}\n\n| strategy {head}");
    for (name, summary, example) in strategies {
        let _ = writeln!(text, "| {name} | {summary} | {example} |");
    }
    let _ = writeln!(text, "\n## Schedules of a pipeline\n\n| `schedule` {head}");
    for (name, summary, example) in schedules {
        let _ = writeln!(text, "| `{name}` | {summary} | {example} |");
    }
    let _ = writeln!(text, "\n## Optimizers\n\n| `optimizer` | what it keeps | for example |\n| --- | --- | --- |");
    for (name, summary, example) in optimizers {
        let _ = writeln!(text, "| `{name}` | {summary} | {example} |");
    }
}

fn push_key(text: &mut String, key: &Key) {
    let takes = match key.kind {
        Kind::Quantity { unit, .. } => format!("{}, `{}`", unit.describe(), key.example()),
        Kind::Count { unit, .. } if unit != Unit::NONE => format!("{}, `{}`", unit.describe(), key.example()),
        Kind::Count { least, .. } => format!("a whole number from {least}"),
        Kind::Share => "a share, `0.7` or `70 %`".to_owned(),
        Kind::Ratio => "a number from 1".to_owned(),
        Kind::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Algorithm => {
            let words = ALGORITHMS.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            if key.path == KEYS[Id::Algorithm as usize].path {
                format!("{words}, `direct(4)`, {}, `{{{CHAKRA}: PATH}}`", example())
            } else {
                format!("{words}, `{{{CHAKRA}: PATH}}`")
            }
        }
        Kind::Recompute => recompute::words().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Flag => "`true`, `false`".to_owned(),
        Kind::Tier => "`none` or the name of a tier".to_owned(),
        Kind::Path => format!("a path, `{}`", key.example()),
        Kind::Sizes { most } => format!("up to {most} sizes of at most {}, `{}`", sizes::MOST, key.example()),
    };
    let _ = writeln!(text, "| `{}` | {takes} | {} | {} |", key.name(), default_text(key), key.doc);
}

/// What is in force if a key is not written.
#[must_use]
pub fn default_text(key: &Key) -> String {
    match (key.default, key.kind) {
        (Default::Required, _) => "must be written".to_owned(),
        (Default::Rest, _) => "`rest`".to_owned(),
        (Default::Like(other), _) => format!("as `{other}`"),
        (Default::Absent, _) => "nothing".to_owned(),
        (Default::Is(value), Kind::Choice(words)) => format!("`{}`", words[index(whole(value))]),
        (Default::Is(value), Kind::Algorithm) => format!("`{}`", ALGORITHMS[index(whole(value))]),
        (Default::Is(value), Kind::Recompute) => format!("`{}`", recompute::text(value).unwrap_or_default()),
        (Default::Is(value), Kind::Flag) => format!("`{}`", value == 1.0),
        (Default::Is(_), Kind::Tier) => "`none`".to_owned(),
        (Default::Is(value), Kind::Share) => plain(value),
        (Default::Is(value), _) => format!("`{}`", human(value, key.unit())),
    }
}

/// `sweeps/sweep.schema.json`: what an editor may complete and check. Names of `define` are open, so mappings may be texts.
#[must_use]
pub fn schema() -> Value {
    let mut root = Map::new();
    for (name, meaning) in TOP {
        let kind = match *name {
            "name" | RELATIVE_TO => json!({"type": "string"}),
            "refine" => json!({
                "type": "object",
                "properties": {"top": {"type": "integer", "minimum": 0}, "by": {"type": ["string", "object"]}},
                "additionalProperties": false,
            }),
            "npu" | "network" | "npus" | "memory_reserve" => json!({}),
            _ => json!({"type": "object"}),
        };
        root.insert((*name).to_owned(), with(kind, meaning));
    }
    for key in KEYS {
        insert(&mut root, &key.path.split('.').collect::<Vec<_>>(), key);
    }
    let lines = |keys: &[Key]| {
        let mut fields = Map::new();
        for key in keys {
            insert(&mut fields, &[key.path], key);
        }
        section(&fields)
    };
    if let Some(cluster) = fields(&mut root, "cluster") {
        cluster.insert("network".into(), any_of(&json!({"type": "object", "additionalProperties": lines(DIM_KEYS)})));
        cluster.insert("each_dimension".into(), lines(DIM_KEYS));
    }
    if let Some(model) = fields(&mut root, "model") {
        model.insert("hf".into(), json!({"type": ["string", "array"]}));
    }
    if let Some(plan) = fields(&mut root, "plan") {
        plan.insert(framework::NAME.into(), any_of(&json!({"type": "object"})));
    }
    if let Some(collectives) = fields(&mut root, "collectives") {
        collectives.insert("astra_sim".into(), json!({"type": ["string", "array"]}));
    }
    if let Some(memory) = root.get_mut("memory").and_then(mapping_of) {
        memory.insert("additionalProperties".into(), lines(TIER_KEYS));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "starsweep sweep",
        "type": "object",
        "properties": root,
        // A key with a dot reaches down.
        "patternProperties": {"\\.": {}},
        "additionalProperties": false,
    })
}

fn with(mut kind: Value, meaning: &str) -> Value {
    if let Value::Object(kind) = &mut kind {
        kind.insert("description".into(), meaning.into());
    }
    kind
}

/// A mapping, a name, or a list of them.
fn any_of(mapping: &Value) -> Value {
    json!({"anyOf": [mapping, {"type": "string"}, {"type": "array", "minItems": 1}]})
}

fn section(fields: &Map<String, Value>) -> Value {
    any_of(&json!({
        "type": "object",
        "properties": fields,
        "patternProperties": {"\\.": {}, "^preset$": {}},
        "additionalProperties": false,
    }))
}

/// The mapping of a section.
fn mapping_of(section: &mut Value) -> Option<&mut Map<String, Value>> {
    section.get_mut("anyOf")?.get_mut(0)?.as_object_mut()
}

/// The fields of a section.
fn fields<'a>(fields: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    fields.get_mut(name).and_then(mapping_of)?.get_mut("properties")?.as_object_mut()
}

fn insert(into: &mut Map<String, Value>, path: &[&str], key: &Key) {
    match path {
        [name] => {
            into.insert((*name).to_owned(), value(key));
        }
        [head, rest @ ..] => {
            let found = into.entry((*head).to_owned()).or_insert_with(|| section(&Map::new()));
            let inner =
                mapping_of(found).and_then(|mapping| mapping.get_mut("properties")).and_then(Value::as_object_mut);
            if let Some(inner) = inner {
                insert(inner, rest, key);
            }
        }
        [] => {}
    }
}

/// A value, a list of values, a range, `all`.
fn value(key: &Key) -> Value {
    let one = match key.kind {
        Kind::Quantity { .. } | Kind::Count { .. } | Kind::Share | Kind::Ratio => json!({"type": ["string", "number"]}),
        Kind::Choice(words) => {
            let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
            let words: Vec<Value> =
                words.iter().map(|&word| word.into()).chain(numbers.into_iter().map(Value::from)).collect();
            json!({"enum": words})
        }
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Algorithm | Kind::Recompute | Kind::Tier | Kind::Path => json!({"type": "string"}),
        Kind::Sizes { .. } => json!({"type": ["string", "integer"]}),
    };
    let range = match key.kind {
        Kind::Algorithm => {
            let list = json!({"type": "array", "minItems": 1});
            let fields = json!({BY_DIMENSION: list, CHAKRA: {"type": "string"}});
            json!({"type": "object", "properties": fields, "additionalProperties": false})
        }
        _ => json!({"type": "object", "required": ["from", "to"]}),
    };
    let shape = json!({"anyOf": [one, {"type": "array", "minItems": 1}, range, {"const": "all"}, {"const": "rest"}]});
    with(shape, key.doc)
}
