//! A measured run as a question: the text of a sweep of one point, resolved as a user's file is.

use itertools::Itertools as _;

use super::assume::ASSUMPTIONS;
use super::columns::{COLUMNS, Column};
use super::known::{Known, Machine, links};
use super::measurement::Measurement;
use crate::input::{Diagnostic, Severity};
use crate::run::vocabulary;
use crate::sweep::key::KEYS;
use crate::sweep::{Inputs, preset, resolve};

/// A capacity that nothing fills: a run was measured, so it fits, and its time is asked for whatever our account says.
const BOUNDLESS: &str = "1000000000 TB";
/// NPUs that the inner link joins where nothing is said.
const JOINED: u64 = 8;
/// Keys without which a run is predicted all the same, as long as the language does not have them.
const DISPENSABLE: &[&str] = &["plan.overlap_tp"];

/// Why a run cannot be asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Unasked {
    /// The source leaves something out, or this version of the language has no word for something.
    Reason(String),
    /// Its cells say what no sweep may.
    Mistakes(Vec<Diagnostic>),
}

/// A run as a point.
#[derive(Debug, Clone)]
pub struct Question {
    /// The inputs of the point.
    pub inputs: Inputs,
    /// The presets that it uses: the section that takes each, and its name.
    pub presets: Vec<(String, String)>,
}

/// A line of the text: a key, its value, and the column that says it, if one does.
type Line = (String, String, Option<&'static str>);

/// The point of a run.
///
/// # Errors
/// Why there is no such point.
pub fn question(run: &Measurement, known: &Known) -> Result<Question, Unasked> {
    let missing = run.missing();
    if !missing.is_empty() {
        return Err(Unasked::Reason(format!("not published: {}", missing.join(", "))));
    }
    if let Some(family) = run.other_family() {
        says_no_more(run, &family)?;
    }
    let machine = machine(run, known)?;
    let lines = lines(run, &machine);
    if let Some((key, value, _)) = lines.iter().find(|line| !has_word(&line.0)) {
        return Err(Unasked::Reason(format!("`{key}: {value}` is not in the language")));
    }
    let text = lines.iter().map(|(key, value, _)| format!("{key}: {value}")).join("\n");
    let sweep = resolve(&text, &[], &vocabulary()).map_err(|found| mistakes(&found, &lines, run))?;
    let mut cursor = sweep.space.cursor(0);
    if cursor.next_point(sweep.space.len()).is_none() {
        let remover = sweep.space.remover(&cursor.inputs).map_or("no point", |remover| sweep.space.name(remover));
        return Err(Unasked::Reason(format!("no such point: {remover}")));
    }
    Ok(Question { presets: presets(&lines, &machine, &cursor.inputs), inputs: cursor.inputs })
}

/// Whether a row of another family of models leaves to transformers what is theirs.
fn says_no_more(run: &Measurement, family: &str) -> Result<(), Unasked> {
    let says = |column: &&Column| column.neutral.is_some_and(|it| run.text(column.name).is_some_and(|text| text != it));
    let mistake = |column: &Column| {
        let (name, model) = (column.name, run.text("model").unwrap_or_default());
        let message = format!("`{name}` is a column of transformers, and `{model}` is a `{family}`");
        Diagnostic::error(message).at(run.place(name)).help("leave it empty: the preset says what the model is")
    };
    let mistakes: Vec<Diagnostic> = COLUMNS.iter().filter(says).map(mistake).collect();
    if mistakes.is_empty() { Ok(()) } else { Err(Unasked::Mistakes(mistakes)) }
}

/// The presets of a point: of its sections, and of the dimensions of its network.
fn presets(lines: &[Line], machine: &Machine, inputs: &Inputs) -> Vec<(String, String)> {
    let of_section = |line: &Line| preset::at(&line.0).is_some_and(|kind| kind.get(&line.1).is_some());
    let sections = lines.iter().filter(|line| of_section(line)).map(|line| (line.0.clone(), line.1.clone()));
    let dims = machine.links.iter().take(inputs.dim_count()).enumerate();
    sections.chain(dims.map(|(k, link)| (format!("{NETWORK}.{k}"), link.clone()))).collect()
}

const NETWORK: &str = "cluster.network";
/// The column, and the section, of the model.
const MODEL: &str = "model";

/// Whether the language has a key, or a section that takes presets.
pub(super) fn has_word(key: &str) -> bool {
    key == NETWORK || KEYS.iter().any(|known| known.path == key) || preset::at(key).is_some()
}

/// The text of the question: columns, then what is assumed, then what is known of the kind and of the row itself. The last wins.
fn lines(run: &Measurement, machine: &Machine) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut set = |key: &str, value: String, column: Option<&'static str>| {
        lines.retain(|line| line.0 != key);
        lines.push((key.to_owned(), value, column));
    };
    let is_other = run.other_family().is_some();
    if let Some(model) = run.text(MODEL).filter(|_| is_other) {
        set(MODEL, model.to_owned(), Some(MODEL));
    }
    for column in COLUMNS.iter().filter(|column| !is_other || column.neutral.is_none()) {
        if let (Some((key, unit)), Some(text)) = (column.key, run.text(column.name))
            && !is_neutral(key, text)
            && (has_word(key) || !DISPENSABLE.contains(&key))
        {
            set(key, format!("{text} {unit}").trim_end().to_owned(), Some(column.name));
        }
    }
    if let Some(schedule) = run.text("schedule").filter(|&schedule| schedule != "interleaved") {
        set("plan.schedule", schedule.to_owned(), Some("schedule"));
    }
    for assumption in ASSUMPTIONS.iter().filter(|assumption| !is_other || assumption.is_of_all()) {
        if let Some(value) = (assumption.value)(run) {
            set(assumption.key, value, None);
        }
    }
    set("cluster.npu", machine.npu.clone(), Some("gpu_type"));
    set(NETWORK, network(run, machine), Some("interconnect"));
    let is_split = run.count("cp").is_some_and(|ranks| ranks > 1);
    for (key, value) in run.keys.iter().filter(|(key, _)| key != "plan.cp_kind" || is_split) {
        set(key, value.clone(), None);
    }
    set("memory.local.capacity", BOUNDLESS.to_owned(), None);
    lines
}

/// A degree of 1, and an overlap that is not there, need no word.
fn is_neutral(key: &str, text: &str) -> bool {
    matches!((key, text), ("plan.cp" | "plan.ep", "1") | ("plan.overlap_tp", "false"))
        || key == "model.experts" && text == "0"
}

/// The machine: presets by name, or what sources call them.
fn machine(run: &Measurement, known: &Known) -> Result<Machine, Unasked> {
    let (npu, interconnect) = (run.text("gpu_type").unwrap_or_default(), run.text("interconnect").unwrap_or_default());
    let presets = |kind: &str, name: &str| preset::at(kind).is_some_and(|kind| kind.get(name).is_some());
    let named = links(interconnect);
    let are_named = !named.is_empty() && named.iter().all(|link| presets("cluster.network.0", link));
    match known.machine(npu, interconnect) {
        Some(machine) if machine.npu.is_empty() => {
            Err(Unasked::Reason(format!("`{npu}` with `{interconnect}` is not in the language")))
        }
        Some(machine) if are_named => Ok(Machine { links: named, ..machine }),
        Some(machine) => Ok(machine),
        None if are_named => Ok(Machine { npu: npu.to_owned(), links: named }),
        None => {
            let message = format!("`interconnect` names no links, and `{npu}` is no NPU whose links are known");
            let help = "write presets, innermost first: `NVLink4 + IB-NDR400` (`starsweep list links`)";
            Err(Unasked::Mistakes(vec![Diagnostic::error(message).at(run.place("interconnect")).help(help)]))
        }
    }
}

/// The lines of the network: as many NPUs as a node has, and all that are left.
fn network(run: &Measurement, machine: &Machine) -> String {
    let npus = run.count("gpus").unwrap_or(1);
    let inner = run.inner_size(run.count("gpus_per_node").unwrap_or(JOINED));
    let line = |name: &str, link: &str, size: u64| format!("{name}: {{preset: {link}, size: {size}}}");
    match machine.links.as_slice() {
        [link] => format!("{{{}}}", line("node", link, npus)),
        [link, ..] if inner == npus => format!("{{{}}}", line("node", link, npus)),
        [inside, outside, ..] => {
            format!("{{{}, {}}}", line("node", inside, inner), line("fabric", outside, npus / inner))
        }
        [] => "{}".to_owned(),
    }
}

/// What a resolution found, at the cells that say it.
fn mistakes(found: &[Diagnostic], lines: &[Line], run: &Measurement) -> Unasked {
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let at_cell = |diagnostic: &Diagnostic| {
        let line = diagnostic.place.and_then(|place| lines.get((place.line as usize).checked_sub(1)?));
        let place = line.map_or_else(|| run.place(""), |line| run.place(line.2.unwrap_or(&line.0)));
        diagnostic.clone().at(place)
    };
    Unasked::Mistakes(errors.map(at_cell).collect())
}
