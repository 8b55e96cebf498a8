//! `anchor:`: one measured run as a point of the sweep, through which every prediction goes.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use xxhash_rust::xxh3::xxh3_64;

use super::fidelity::Fidelity;
use super::foreign::{FOREIGN, known_keys};
use super::inputs::Inputs;
use super::key::{Default, Id, KEYS, Key, Kind};
use super::leaf::scalar;
use super::point;
use super::resolve::{SHORT, TOP};
use super::scope::Vocabulary;
use super::walk::{Line, merge};
use super::{Space, Sweep};
use crate::input::diagnostic::{Diagnostic, Place, nearest, quoted, suggest};
use crate::input::tree::{Entry, Node, Value};
use crate::units::{Bytes, Quantity, Unit, human};
use crate::workload::Infeasible;

/// The section.
pub const ANCHOR: &str = "anchor";
/// What was measured of a step.
const TIME: Key = measured("anchor.iteration_time", Unit::SECOND, "one optimizer step, as measured");
/// What was measured of the fullest NPU.
const MEMORY: Key = measured("anchor.peak_memory", Unit::BYTE, "memory of the fullest NPU at its peak, as measured");
/// Sections of a sweep that say nothing of a single run.
const OF_MANY: [&str; 8] = ["name", ANCHOR, "where", "require", "derive", "decide", "refine", "expect"];
/// By how many times a measured memory may differ from the account's before it is worth a word: more than any measured plan's that
/// the account was held against (a third, tests/VALIDATION.md).
const FAR: f64 = 1.5;
/// How many points of an anchor are looked at for the axes that it leaves open.
const LOOKED_AT: usize = 1000;

const fn measured(path: &'static str, unit: Unit, doc: &'static str) -> Key {
    Key { path, kind: Kind::Quantity { unit, strict: true }, default: Default::Required, column: None, doc }
}

/// What a point is predicted to take and to fill, however much room there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// Seconds of a step.
    pub seconds: f64,
    /// On the NPU whose memory is fullest.
    pub memory: Bytes,
    /// What a job may fill there.
    pub room: Bytes,
}

/// Who predicts: what a point takes by an evaluator, or why it cannot be, for another reason than its memory.
pub type Predict = fn(&Inputs, Fidelity) -> Result<Predicted, Infeasible>;

/// A measured run, and what we predict of it.
#[derive(Debug, Clone)]
pub struct Anchor {
    /// What it is called.
    pub name: String,
    /// Its point.
    pub inputs: Inputs,
    /// Seconds of a step, as measured.
    pub seconds: f64,
    /// Bytes on the fullest NPU, if they were measured.
    pub memory: Option<f64>,
    /// What each evaluator that the sweep uses predicts, in the order of [`Fidelity::ALL`].
    pub predicted: [Option<Predicted>; Fidelity::ALL.len()],
}

impl Anchor {
    /// By what every time of an evaluator is multiplied: measured over predicted.
    ///
    /// Worked: 3.31 s measured, 2.94 s predicted: all times x 1.126.
    #[must_use]
    pub fn factor(&self, fidelity: Fidelity) -> f64 {
        self.predicted[fidelity as usize].map_or(1.0, |predicted| self.seconds / predicted.seconds)
    }

    /// What is added to the memory of every point, in bytes: measured less predicted; nothing if it was not measured.
    #[must_use]
    pub fn offset(&self) -> f64 {
        let predicted = self.predicted.iter().flatten().next();
        self.memory.zip(predicted).map_or(0.0, |(measured, predicted)| measured - predicted.memory.as_real())
    }

    /// Hash of what makes it what it is: its point and what was measured, whatever it is called.
    #[must_use]
    pub fn content(&self) -> u64 {
        let measured = [Some(self.seconds), self.memory].map(|value| value.unwrap_or(f64::NAN).to_bits());
        let id = point::id(&self.inputs, &mut Vec::new());
        xxh3_64(&[id, measured[0], measured[1]].map(u64::to_le_bytes).concat())
    }
}

/// Resolves the lines of a file once more, with known names and tiers.
pub(super) type Walk<'a> = dyn Fn(&[Line], Vec<String>, Vec<String>) -> Result<Sweep, Vec<Diagnostic>> + 'a;

/// The name of a file's anchor.
pub(super) fn name_of(lines: &[Line]) -> Option<&str> {
    let node = lines.iter().find(|line| line.0 == ANCHOR)?.2.first()?;
    let Value::Map(entries) = &node.value else { return None };
    entries.first()?.key.split('.').next()
}

/// A sweep with the anchor of its file, if there is one.
///
/// # Errors
/// What is wrong with the anchor: its words, axes that it leaves open, a point that cannot be.
pub(super) fn join(
    mut sweep: Sweep,
    lines: &[Line],
    vocabulary: &Vocabulary,
    walk: &Walk<'_>,
) -> Result<Sweep, Vec<Diagnostic>> {
    let Some((_, place, nodes)) = lines.iter().find(|line| line.0 == ANCHOR) else { return Ok(sweep) };
    let run = the_run(nodes, *place, &sweep).map_err(|error| vec![error])?;
    let Written { seconds, memory, lines } = written(&run, lines)?;
    let found = walk(&lines, sweep.names.clone(), sweep.tiers.clone())?;
    let inputs = only_point(&run, &found.space).map_err(|error| vec![error])?;
    let mut anchor = Anchor { name: run.key.clone(), inputs, seconds, memory, predicted: [None; _] };
    anchor.predict(&sweep, &run, vocabulary).map_err(|error| vec![error])?;
    sweep.cautions.extend(anchor.cautions(&sweep.space, run.place));
    sweep.identity = xxh3_64(&[sweep.identity, anchor.content()].map(u64::to_le_bytes).concat());
    // Names of its own stand behind those of the sweep.
    sweep.names = found.names;
    sweep.anchor = Some(anchor);
    Ok(sweep)
}

/// The one run of an anchor.
fn the_run(nodes: &[Node], place: Place, sweep: &Sweep) -> Result<Entry, Diagnostic> {
    let help = "write `anchor: {today: {tp: 4, pp: 8, iteration_time: 3.31 s, peak_memory: 61.4 GB}}`";
    let runs = merge(ANCHOR, &[], &nodes.iter().collect::<Vec<_>>());
    let is_run = |line: &Line| line.2.iter().all(|node| matches!(node.value, Value::Map(_)));
    let wrong = |message: &str| Err(Diagnostic::error(message).at(place).help(help));
    let run = match runs.as_slice() {
        [run] if is_run(run) => run,
        runs if runs.len() < 2 || !runs.iter().any(is_run) => {
            return wrong("an anchor is a name with what was measured behind it");
        }
        _ => return wrong("an anchor is one measured run: it has more than one name"),
    };
    if sweep.is_collective {
        return wrong("an anchor is a step of training, and there is none in this sweep");
    }
    if sweep.decide.compare.iter().any(|shown| shown.labels.contains(&run.0)) {
        let message = format!("the anchor `{}` is called like an alternative that is compared", run.0);
        return Err(Diagnostic::error(message).at(run.1).help("give the measured run a name of its own"));
    }
    let entries =
        run.2.iter().filter_map(|node| if let Value::Map(entries) = &node.value { Some(entries) } else { None });
    let node = Node { value: Value::Map(entries.flatten().cloned().collect()), place: run.2[0].place };
    Ok(Entry { key: run.0.clone(), place: run.1, node })
}

/// What is written of a run: what was measured, and the lines of the sweep with its keys over them.
struct Written {
    seconds: f64,
    memory: Option<f64>,
    lines: Vec<Line>,
}

fn written(run: &Entry, lines: &[Line]) -> Result<Written, Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    let mut read = |entry: &Entry, key: &Key| match scalar(key, &entry.node, &[]) {
        Ok((value, _)) => value,
        Err(mistake) => {
            // A step takes seconds, not the nanoseconds of a link.
            let seconds = if let Value::Number(seconds) = entry.node.value { Some(seconds) } else { None };
            mistakes.push(match seconds.filter(|_| key.path == TIME.path) {
                Some(seconds) => mistake.help(format!("write `{}: {seconds} s` if that is what you mean", key.name())),
                None => mistake,
            });
            f64::NAN
        }
    };
    let (mut seconds, mut memory, mut over) = (None, None, Vec::new());
    let entries = if let Value::Map(entries) = &run.node.value { entries.as_slice() } else { &[] };
    for entry in entries {
        match entry.key.as_str() {
            key if key == TIME.name() => seconds = Some(read(entry, &TIME)),
            key if key == MEMORY.name() => memory = Some(read(entry, &MEMORY)),
            _ => over.push(entry),
        }
    }
    let mut rest: Vec<Entry> =
        lines.iter().filter(|line| !OF_MANY.contains(&line.0.as_str())).flat_map(entries_of).collect();
    let keys = over.into_iter().filter_map(|entry| match set(entry, &mut rest) {
        Ok(key) => key,
        Err(mistake) => {
            mistakes.push(mistake);
            None
        }
    });
    let keys = Node { value: Value::Map(keys.collect()), place: run.node.place };
    let Some(seconds) = seconds else {
        let meant = entries.iter().find(|entry| means_time(&entry.key));
        let mistake = Diagnostic::error(format!("the anchor `{}` has no `{}`", run.key, TIME.name()));
        mistakes.push(match meant {
            Some(entry) => mistake.at(entry.place).help(format!("did you mean `{}`?", TIME.name())),
            None => mistake.at(run.place).help("write what a step took: `iteration_time: 3.31 s`"),
        });
        return Err(mistakes);
    };
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    first_of_both(&mut rest);
    Ok(Written { seconds, memory, lines: merge("", &rest, &[&keys]) })
}

/// Whether a key that is none means the time of a step.
fn means_time(key: &str) -> bool {
    key.contains("time") || nearest(key, [TIME.name()]).is_some()
}

/// A line of a mapping as entries.
fn entries_of((key, place, nodes): &Line) -> impl Iterator<Item = Entry> + '_ {
    nodes.iter().map(|node| Entry { key: key.clone(), place: *place, node: node.clone() })
}

/// A key of a run as one of the sweep: keys of the plan by their names, sections as they are; none if it names a row of a zip, which
/// is left as the only one.
fn set(entry: &Entry, rest: &mut [Entry]) -> Result<Option<Entry>, Diagnostic> {
    let head = entry.key.split('.').next().unwrap_or_default();
    if SHORT.contains(&head) {
        return Ok(Some(Entry { key: format!("cluster.{}", entry.key), ..entry.clone() }));
    }
    if TOP.iter().any(|top| top.0 == head) {
        let diagnostic = Diagnostic::error(format!("`{head}` cannot stand in an anchor")).at(entry.place);
        return Err(diagnostic
            .help("an anchor has keys of its plan, of other sections if they have axes, and what was measured"));
    }
    if head == "memory" && entry.node.scalar().is_some_and(|text| Quantity::parse(&text).is_ok()) {
        let diagnostic = Diagnostic::error("`memory` is what the machine has, not what was measured").at(entry.place);
        return Err(diagnostic.help(format!("did you mean `{}`?", MEMORY.name())));
    }
    if KEYS.iter().any(|key| key.path.split('.').next() == Some(head)) {
        return Ok(Some(entry.clone()));
    }
    let zips = rest.iter_mut().filter(|line| line.key == "zip").filter_map(|line| map_of(&mut line.node));
    if let Some(zip) = zips.flatten().find(|zip| zip.key == entry.key) {
        let row = entry.node.scalar().unwrap_or_default();
        let Some(rows) = map_of(&mut zip.node) else { return Ok(None) };
        if !rows.iter().any(|known| known.key == row) {
            let diagnostic = Diagnostic::error(format!("`{}` has no row `{row}`", entry.key)).at(entry.node.place);
            let known = rows.iter().map(|known| known.key.as_str());
            return Err(diagnostic.help(suggest(&row, known).unwrap_or_else(|| "name one of its rows".to_owned())));
        }
        rows.retain(|known| known.key == row);
        return Ok(None);
    }
    let known = known_keys("plan");
    let is_foreign = FOREIGN.iter().any(|foreign| foreign.0 == head);
    // What is near a key of the plan is answered where plans are read, and another name of the time where there is none.
    if !is_foreign && !means_time(head) && nearest(head, known.iter().map(String::as_str)).is_none() {
        let help = match nearest(head, [MEMORY.name()]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("what was measured is `{}` and `{}`, all else keys of its plan", TIME.name(), MEMORY.name())
            }
        };
        return Err(Diagnostic::error(format!("an anchor has no key `{head}`")).at(entry.place).help(help));
    }
    Ok(Some(Entry { key: format!("plan.{}", entry.key), ..entry.clone() }))
}

fn map_of(node: &mut Node) -> Option<&mut Vec<Entry>> {
    if let Value::Map(entries) = &mut node.value { Some(entries) } else { None }
}

/// A run has no fidelity: where the sweep has both, either stands for it.
fn first_of_both(rest: &mut [Entry]) {
    for entry in rest.iter_mut().filter(|entry| entry.key == KEYS[Id::Fidelity as usize].path) {
        if let Value::List(items) = &entry.node.value
            && let Some(first) = items.first()
        {
            entry.node = first.clone();
        }
    }
}

/// The only point of a space.
fn only_point(run: &Entry, space: &Space) -> Result<Inputs, Diagnostic> {
    let mut cursor = space.cursor(0);
    let mut found: Option<(Inputs, Vec<u64>)> = None;
    let mut open = BTreeSet::new();
    for _ in 0..LOOKED_AT {
        let Some(number) = cursor.next_point(space.len()) else { break };
        let digits = space.digits(number);
        match &found {
            Some((_, first)) => open.extend(digits.iter().zip(first).positions(|(digit, first)| digit != first)),
            None => found = Some((cursor.inputs.clone(), digits)),
        }
        cursor.step();
    }
    let error = |message: String| Diagnostic::error(message).at(run.place);
    let Some((inputs, _)) = found else {
        let remover = space.remover(&space.cursor(0).inputs).map_or("no point", |remover| space.name(remover));
        return Err(error(format!("the anchor `{}` is no point of this sweep: {remover}", run.key))
            .help("its plan must make `npus` come out: tp x cp x pp x dp"));
    };
    if open.is_empty() {
        return Ok(inputs);
    }
    let names = open.iter().map(|&axis| space.axes[axis].name.as_str()).collect_vec();
    let first = names[0].strip_prefix("plan.").unwrap_or(names[0]);
    Err(error(format!("the anchor `{}` leaves open {}", run.key, quoted(&names)))
        .help(format!("a measured run is one point: write `{first}: ...` behind `{}`", run.key)))
}

impl Anchor {
    /// Asks for what the evaluators of a sweep predict.
    fn predict(&mut self, sweep: &Sweep, run: &Entry, vocabulary: &Vocabulary) -> Result<(), Diagnostic> {
        let error = |message: String| Diagnostic::error(message).at(run.place);
        let Some(predict) = vocabulary.predict else {
            return Err(error("nothing predicts here what an anchor was measured at".to_owned()));
        };
        for fidelity in Fidelity::ALL.into_iter().filter(|&fidelity| is_used(sweep, fidelity)) {
            let predicted = predict(&self.inputs, fidelity).map_err(|infeasible| {
                let reason = infeasible.reason;
                error(format!("the anchor `{}` cannot be by our account: {}", self.name, reason.meaning()))
                    .help(format!("what would help: {}", reason.levers().join(", ")))
            })?;
            self.predicted[fidelity as usize] = Some(predicted);
        }
        Ok(())
    }

    /// What is worth knowing: that it does not fit by our account, and on what it was not measured.
    fn cautions(&self, space: &Space, place: Place) -> Vec<Diagnostic> {
        let mut cautions = Vec::new();
        let bytes = |bytes: Bytes| human(bytes.as_real(), Unit::BYTE);
        let larger = self.predicted.iter().flatten().find(|predicted| predicted.memory > predicted.room);
        if let Some(&Predicted { memory, room, .. }) = larger {
            let message =
                format!("`{}` ran, and does not fit by our account: {} of {}", self.name, bytes(memory), bytes(room));
            let help = match self.memory {
                Some(_) => "the memory of every point is corrected by what it was measured at",
                None => "write its `peak_memory`, and the memory of every point is corrected by it",
            };
            cautions.push(Diagnostic::caution(message).at(place).help(help));
        }
        let predicted = self.predicted.iter().flatten().next();
        if let Some((measured, predicted)) = self.memory.zip(predicted) {
            let share = measured / predicted.memory.as_real();
            if !(1.0 / FAR..=FAR).contains(&share) {
                let message = format!(
                    "`{}` filled {}, and by our account it fills {}: the difference is added to every point",
                    self.name,
                    human(measured, Unit::BYTE),
                    bytes(predicted.memory)
                );
                let help =
                    "is it of the fullest NPU, and of this plan? what differs may not be the same for other plans";
                cautions.push(Diagnostic::caution(message).at(place).help(help));
            }
        }
        let fidelity = KEYS[Id::Fidelity as usize].path;
        let elsewhere = space.axes.iter().map(|axis| axis.name.as_str());
        let elsewhere =
            elsewhere.filter(|name| *name != "plan" && !name.starts_with("plan.") && *name != fidelity).collect_vec();
        if !elsewhere.is_empty() {
            let message =
                format!("`{}` was measured at one value of {}, and holds for all", self.name, quoted(&elsewhere));
            cautions.push(Diagnostic::caution(message).at(place));
        }
        cautions
    }
}

/// Whether an evaluator may be asked for any point of a sweep.
fn is_used(sweep: &Sweep, fidelity: Fidelity) -> bool {
    if fidelity == Fidelity::EventDriven {
        return sweep.has_event_driven() || sweep.decide.refine.is_some();
    }
    let slot = Id::Fidelity as usize;
    let mut found = sweep.space.base[slot] == fidelity.number();
    for axis in &sweep.space.axes {
        axis.visit(&mut |_, alternative| found |= alternative.value(slot) == Some(fidelity.number()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::resolve::defaults;
    use super::*;

    #[test]
    fn times_are_multiplied_and_memory_is_added() {
        let predicted =
            Predicted { seconds: 2.94, memory: Bytes::new(59_300_000_000), room: Bytes::new(76_000_000_000) };
        let anchor = Anchor {
            name: "today".to_owned(),
            inputs: Inputs::new(&defaults()),
            seconds: 3.31,
            memory: Some(61.4e9),
            predicted: [Some(predicted), None],
        };
        assert!((anchor.factor(Fidelity::ClosedForm) - 1.126).abs() < 5e-4);
        assert_eq!(anchor.factor(Fidelity::EventDriven), 1.0);
        assert_eq!(anchor.offset(), 2.1e9);
        let other = Anchor { memory: None, ..anchor.clone() };
        assert_eq!(other.offset(), 0.0);
        assert_ne!(other.content(), anchor.content());
        assert_eq!(Anchor { name: "then".to_owned(), ..anchor.clone() }.content(), anchor.content());
    }
}
