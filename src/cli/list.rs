//! `list`: the kinds of presets and parts; of one kind its entries, a preset's with their sources.

use super::args::ListArgs;
use super::exit::Exit;
use super::render;
use crate::input::diagnostic::suggest;
use crate::input::tree::Value;
use crate::results::MetricPart;
use crate::run::layout::metric_column;
use crate::sweep::key::KEYS;
use crate::sweep::preset;
use crate::system::collective::Algorithm;
use crate::system::dimension_order::DimensionOrder;
use crate::system::queue_order::QueueOrder;
use crate::system::rules::Quirk;
use crate::system::topology::Topology;
use crate::workload::strategy::Strategy;
use crate::workload::{Optimizer, Schedule};

/// What can be listed besides presets: each kind with its entries, a name and what it is.
fn parts() -> [(&'static str, Vec<Vec<String>>); 10] {
    macro_rules! registered {
        ($registry:ident) => {
            $registry::ALL.iter().map(|part| vec![part.name().into(), part.part().summary().into()]).collect()
        };
    }
    let metric = |&part: &MetricPart| vec![metric_column(part, 0).name, part.part().meaning().into()];
    [
        ("topologies", registered!(Topology)),
        ("algorithms", registered!(Algorithm)),
        ("dimension_orders", registered!(DimensionOrder)),
        ("chunk_orders", registered!(QueueOrder)),
        ("strategies", registered!(Strategy)),
        ("schedules", registered!(Schedule)),
        ("optimizers", registered!(Optimizer)),
        ("metrics", MetricPart::ALL.iter().map(metric).collect()),
        ("keys", KEYS.iter().map(|key| vec![key.path.into(), key.doc.into()]).collect()),
        ("quirks", Quirk::ALL.iter().map(|quirk| vec![quirk.name().into(), quirk.summary().into()]).collect()),
    ]
}

/// Lists one kind of thing, or says which kinds there are.
#[expect(clippy::unnecessary_wraps, reason = "every subcommand has this shape")]
pub fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    let kinds = preset::kinds();
    let parts = parts();
    let Some(what) = &args.what else {
        let mut rows: Vec<Vec<String>> =
            kinds.iter().map(|kind| vec![format!("{}s", kind.name), kind.presets.len().to_string()]).collect();
        rows.extend(parts.iter().map(|(name, entries)| vec![(*name).to_owned(), entries.len().to_string()]));
        anstream::println!("{}", render::table(&["list".into(), "entries".into()], &rows));
        return Ok(Exit::Complete);
    };
    if let Some(kind) = kinds.iter().find(|kind| kind.name == what || format!("{}s", kind.name) == *what) {
        presets(kind);
        return Ok(Exit::Complete);
    }
    let Some((_, rows)) = parts.iter().find(|part| part.0 == what) else {
        let names: Vec<String> = kinds.iter().map(|kind| format!("{}s", kind.name)).collect();
        let known = names.iter().map(String::as_str).chain(parts.iter().map(|part| part.0));
        anstream::eprintln!("error: there is no list `{what}`");
        anstream::eprintln!("help: {}", suggest(what, known).unwrap_or_default());
        return Ok(Exit::Usage);
    };
    anstream::println!("{}", render::table(&["name".into(), "what it is".into()], rows));
    Ok(Exit::Complete)
}

/// Presets with their values and sources.
fn presets(kind: &preset::Kind) {
    for (entry, sources) in kind.presets.iter().zip(&kind.sources) {
        anstream::println!("{}", entry.key);
        let Value::Map(lines) = &entry.node.value else { continue };
        for line in lines {
            let value = line.node.scalar().unwrap_or_else(|| inner(&line.node.value));
            let source = sources.iter().find(|source| source.0 == line.key).map_or("", |source| source.1.as_str());
            anstream::println!("  {:<18} {value:<18} {source}", line.key);
        }
    }
}

/// A mapping in one line.
fn inner(value: &Value) -> String {
    match value {
        Value::Map(lines) => lines
            .iter()
            .map(|line| format!("{}: {}", line.key, line.node.scalar().unwrap_or_else(|| inner(&line.node.value))))
            .collect::<Vec<_>>()
            .join(", "),
        _ => String::new(),
    }
}
