//! The answer of a run, within one screen: counts, what is compared, the front; or what was nearest.

use std::cmp::Reverse;
use std::time::Instant;

use itertools::Itertools;
use polars::prelude::{AnyValue, DataFrame};

use super::anchor::{self, Measured};
use super::render::{self, count, estimate};
use crate::results::folder::Folder;
use crate::results::store::Store;
use crate::results::summary::{Compared, Summary, numbers};
use crate::run::Done;
use crate::run::compare::{candidates, remover};
use crate::run::preview::preview;
use crate::run::refine::Refined;
use crate::sweep::{Refine, Rule, Sweep};
use crate::units::{Unit, human, plain, real};
use crate::workload::{Model, Reason};

/// How many rows of the front are shown.
const SHOWN: usize = 12;
/// How many compared alternatives are shown.
const COMPARED: usize = 24;

/// The answer: counts, what is compared, the front.
pub fn answer(
    sweep: &Sweep,
    store: &Store,
    (results, summary): (&Folder, &Summary),
    done: &Done,
    refined: Option<&Refined>,
    started: Instant,
) -> anyhow::Result<()> {
    let seconds = human(started.elapsed().as_secs_f64(), Unit::SECOND);
    let feasible = summary.with_status("feasible");
    let fresh = if done.stretches.0 == 0 { "nothing was left to run".to_owned() } else { seconds };
    anstream::println!("{} points, {fresh}: {} feasible", count(summary.rows()), count(feasible));
    if let Some(identity) = &done.found.moved {
        let whose = if *identity == store.identity { "an earlier run" } else { "another version of this sweep" };
        anstream::println!("  the points of {whose} are kept in earlier/{identity}");
    }
    if done.found.damaged > 0 {
        let parts = if done.found.damaged == 1 { "part was" } else { "parts were" };
        let damaged = count(done.found.damaged as u64);
        anstream::println!("  {damaged} damaged {parts} found, done again, and kept as they are in earlier/damaged");
    }
    if done.found.restored {
        anstream::println!("  points of this version were there from an earlier run and are used again");
    }
    if done.known > 0 {
        let points = if done.known == 1 { "point was" } else { "points were" };
        anstream::println!(
            "  {} event-driven {points} known from an earlier version and not run again",
            count(done.known)
        );
    }
    let mut reasons: Vec<_> = summary.counts.iter().filter(|count| count.0.0 != "feasible").collect();
    reasons.sort_by_key(|count| std::cmp::Reverse(*count.1));
    for ((status, reason), rows) in reasons {
        anstream::println!("  {status:<10}  {:>12}  {reason}", count(*rows));
    }
    if let Some(found) = &sweep.anchor {
        anstream::println!("  {}", anchor::line(found));
    }
    if feasible == 0 {
        nearest(sweep, results, summary)?;
    } else {
        let measured = Measured::of(sweep)?;
        compared(sweep, results, summary, measured.as_ref())?;
        front(sweep, results, summary, measured.as_ref())?;
        if let Some(refined) = refined {
            twice(sweep, results, refined)?;
        }
    }
    anstream::println!("\nresults in {}", results.path.display());
    Ok(())
}

/// What is nearest to feasible, and what would help: what exists and fails a requirement, else what lacks least memory.
fn nearest(sweep: &Sweep, results: &Folder, summary: &Summary) -> anyhow::Result<()> {
    anstream::println!("\nnothing is feasible");
    if summary.rows() == 0 {
        let found = preview(sweep);
        anstream::println!("no combination is tried; what removes how many of {}:", count(sweep.space.len()));
        for (rule, removed) in found.removed.iter().sorted_by_key(|removed| Reverse(removed.1)) {
            anstream::println!(
                "  {:>12}  {}",
                estimate(found.estimate(*removed)),
                explained(rule, &sweep.space.filters)
            );
        }
    } else if !summary.unmet.is_empty() {
        let (objective, direction) = &sweep.decide.objectives[0];
        let best = summary.unmet.values().sorted_by(|a, b| a.1.total_cmp(&b.1)).map(|best| best.0).collect_vec();
        let rows = results.rows(&best)?;
        let mut columns = vec!["reason".to_owned(), "id".to_owned(), objective.clone()];
        columns.extend(sweep.decide.objectives.iter().map(|objective| objective.0.clone()));
        columns.extend(telling(sweep, &rows));
        columns.extend(present(&rows, &NEAREST));
        let columns = columns.into_iter().unique().collect_vec();
        anstream::println!(
            "nearest: what exists, the best by {} {objective} that fails a requirement:",
            direction.name()
        );
        anstream::println!("{}", render::frame(&rows, &columns)?);
        for rule in summary.unmet.keys() {
            anstream::println!("required: {}", explained(rule, &sweep.require));
        }
    } else if let Some((place, lacks)) = summary.nearest {
        let row = results.rows(&[place])?;
        anstream::println!("nearest: this point lacks {}", human(lacks, Unit::BYTE));
        anstream::println!("{}", render::frame(&row, &present(&row, &NEAREST))?);
        let families = Model::NAMES.iter().zip(Model::LEVERS).filter(|family| sweep.has_family(family.0)).collect_vec();
        for (name, levers) in &families {
            let whose = if families.len() > 1 { format!(" a `{name}`") } else { String::new() };
            anstream::println!("what would help{whose}: {}", levers.join(", "));
        }
    } else {
        let most = summary.counts.iter().max_by_key(|count| count.1);
        let reason = most.and_then(|most| Reason::ALL.iter().find(|reason| reason.name() == most.0.1));
        if let Some(reason) = reason {
            anstream::println!(
                "most often: {} ({}); look at {}",
                reason.name(),
                reason.meaning(),
                reason.levers().join(", ")
            );
        }
    }
    Ok(())
}

/// What is shown of a point that is nearest to feasible.
const NEAREST: [&str; 9] =
    ["id", "model", "tp", "pp", "dp", "zero", "recompute", "peak_memory_bytes", "memory_margin_bytes"];

/// The name of a rule and, if it is one of the file's, its text.
fn explained(name: &str, rules: &[Rule]) -> String {
    let rule = rules.iter().find(|rule| rule.name == name);
    rule.map_or_else(|| name.to_owned(), |rule| format!("{name}: {}", rule.text))
}

/// Those of some columns that a frame has.
fn present(frame: &DataFrame, columns: &[&str]) -> Vec<String> {
    columns.iter().filter(|column| frame.column(column).is_ok()).map(|&column| column.to_owned()).collect()
}

/// The axes in which rows of a frame differ.
fn telling(sweep: &Sweep, frame: &DataFrame) -> Vec<String> {
    let differs =
        |name: &&str| frame.column(name).and_then(polars::prelude::Column::n_unique).is_ok_and(|unique| unique > 1);
    sweep.axis_columns().into_iter().filter(differs).map(str::to_owned).collect()
}

/// One line for each compared alternative: its best point, or what removed it; before them the measured run, if there is one.
fn compared(sweep: &Sweep, results: &Folder, summary: &Summary, measured: Option<&Measured<'_>>) -> anyhow::Result<()> {
    if sweep.decide.compare.is_empty() {
        return Ok(());
    }
    let candidates = candidates(sweep);
    let candidate = |alternative: &Compared| candidates.iter().find(|candidate| candidate.values == alternative.name);
    let cost = |alternative: &&Compared| alternative.best.as_ref().map_or(f64::INFINITY, |best| best.1[0]);
    let sorted = summary.compared.iter().sorted_by(|a, b| cost(a).total_cmp(&cost(b))).collect_vec();
    let shown = &sorted[..sorted.len().min(COMPARED)];
    let places = shown.iter().filter_map(|alternative| Some(alternative.best.as_ref()?.0)).collect_vec();
    let rows = results.rows(&places)?;
    let (objective, direction) = &sweep.decide.objectives[0];
    let columns = sweep.decide.columns();
    let baseline = sweep.decide.baseline.as_ref();
    let is_baseline = |alternative: &&&Compared| {
        let called = candidate(alternative).map_or_else(|| cells(&columns, &alternative.name), |it| it.labels.clone());
        baseline.is_some_and(|name| called.contains(name))
    };
    // A line is measured against the baseline, or the best, that agrees with it in all else: in the job at least.
    let compare = &sweep.decide.compare;
    let of_baseline = baseline.and_then(|name| compare.iter().position(|shown| shown.labels.contains(name)));
    let sets_apart = |k: usize| of_baseline.map_or_else(|| sweep.is_of_job(&compare[k]), |baseline| k != baseline);
    let apart = columns
        .iter()
        .positions(|&column| {
            (0..compare.len()).any(|k| sets_apart(k) && compare[k].columns.iter().any(|it| it == column))
        })
        .collect_vec();
    let measured_cost = |measured: &Measured<'_>, line: &Compared| {
        let same =
            |&k: &usize| measured.row.column(columns[k]).and_then(|it| it.get(0)).is_ok_and(|it| it == line.name[k]);
        let cost = numbers(measured.row.column(objective).ok()?).first().map(|&value| direction.cost(value));
        cost.filter(|_| apart.iter().all(same))
    };
    let reference = |line: &Compared| {
        if let Some(measured) = measured.filter(|measured| baseline.is_some_and(|name| name == measured.name)) {
            return measured_cost(measured, line);
        }
        let mut peers = sorted.iter().filter(|other| apart.iter().all(|&k| other.name[k] == line.name[k]));
        let found = if baseline.is_some() { peers.find(is_baseline) } else { peers.next() };
        found.map(cost).filter(|cost| cost.is_finite())
    };
    let others = sweep.decide.objectives.iter().skip(1).map(|objective| objective.0.clone());
    let fixed = columns.iter().copied().chain([objective.as_str()]).collect_vec();
    let more = others
        .chain(telling(sweep, &Measured::before(measured, rows.clone())?))
        .filter(|name| !fixed.contains(&name.as_str()))
        .unique()
        .collect_vec();
    let mut header = fixed.iter().map(|&name| name.to_owned()).collect_vec();
    header.push(format!("vs {}", baseline.map_or("best", String::as_str)));
    header.extend(more.iter().cloned());
    header.push("feasible".to_owned());
    let mut lines = Vec::new();
    if let Some(Measured { name, row }) = measured {
        header.insert(0, "id".to_owned());
        let cell = |column: &str| anyhow::Ok(render::cell(column, &row.column(column)?.get(0)?));
        let mut line = vec![(*name).to_owned()];
        for column in &fixed {
            line.push(cell(column)?);
        }
        line.push(if baseline.is_some_and(|baseline| baseline == name) { "1" } else { "-" }.to_owned());
        for column in &more {
            line.push(cell(column)?);
        }
        line.push("measured".to_owned());
        lines.push(line);
    }
    for (row, alternative) in shown.iter().enumerate() {
        let mut line = Vec::new();
        if measured.is_some() {
            line.push(if alternative.best.is_some() {
                render::cell("id", &rows.column("id")?.get(row)?)
            } else {
                "-".to_owned()
            });
        }
        line.extend(cells(&columns, &alternative.name));
        // Those with a best point come first, so the k-th of them is the k-th row.
        if let Some((_, costs)) = &alternative.best {
            line.push(human(direction.cost(costs[0]), render::unit_of(objective)));
            line.push(reference(alternative).map_or_else(|| "-".to_owned(), |reference| plain(costs[0] / reference)));
            for name in &more {
                line.push(render::cell(name, &rows.column(name)?.get(row)?));
            }
        } else {
            line.extend(std::iter::repeat_n("-".to_owned(), 2 + more.len()));
        }
        line.push(if alternative.points > 0 {
            format!("{} %", plain((100.0 * real(alternative.feasible) / real(alternative.points)).round()))
        } else {
            let rule = candidate(alternative).and_then(|candidate| remover(sweep, candidate));
            rule.map_or_else(|| "none tried".to_owned(), |rule| format!("none tried ({rule})"))
        });
        lines.push(line);
    }
    anstream::println!("\ncompared, each at its best by {} {objective}:", direction.name());
    anstream::println!("{}", render::table(&header, &lines));
    if sorted.len() > shown.len() {
        anstream::println!("  ... {} more", count((sorted.len() - shown.len()) as u64));
    }
    same(sweep, &rows, &header);
    Ok(())
}

/// Says what rows of a frame agree in, of what the sweep varies.
fn same(sweep: &Sweep, rows: &DataFrame, header: &[String]) {
    let telling = telling(sweep, rows);
    let agree = sweep.axis_columns().into_iter().filter(|name| !telling.iter().any(|it| it == name));
    let mut found = Vec::new();
    for name in agree.filter(|name| !header.iter().any(|it| it == name)).unique() {
        if let Ok(column) = rows.column(name)
            && let Ok(value) = column.get(0)
            && !value.is_null()
        {
            found.push(format!("{name} {}", render::cell(name, &value)));
        }
    }
    if !found.is_empty() {
        anstream::println!("  the same in all: {}", found.join(", "));
    }
}

/// Values of some columns for people.
fn cells(columns: &[&str], values: &[AnyValue<'_>]) -> Vec<String> {
    columns.iter().zip(values).map(|(column, value)| render::cell(column, value)).collect()
}

/// The front, behind the measured run if there is one.
fn front(sweep: &Sweep, results: &Folder, summary: &Summary, measured: Option<&Measured<'_>>) -> anyhow::Result<()> {
    let names: Vec<String> =
        sweep.decide.objectives.iter().map(|(column, direction)| format!("{} {column}", direction.name())).collect();
    let places: Vec<_> = summary.front.iter().map(|member| member.place).take(SHOWN).collect();
    let rows = Measured::before(measured, results.rows(&places)?)?;
    let mut columns = vec!["id".to_owned()];
    columns.extend(sweep.decide.objectives.iter().map(|objective| objective.0.clone()));
    columns.extend(telling(sweep, &rows));
    columns.extend(present(&rows, &["mfu", "peak_memory_bytes", "busiest_dim"]));
    let columns = columns.into_iter().unique().collect_vec();
    let points = if summary.front.len() == 1 { "point" } else { "points" };
    anstream::println!("\nthe front ({}), {} {points}:", names.join(", "), summary.front.len());
    anstream::println!("{}", render::frame(&rows, &columns)?);
    if summary.front.len() > SHOWN {
        anstream::println!("  ... all in pareto.csv");
    }
    same(sweep, &rows, &columns);
    let ties: u64 = summary.front.iter().map(|member| member.ties - 1).sum();
    if ties > 0 {
        let points = if ties == 1 { "point ties" } else { "points tie" };
        anstream::println!("  {} more {points} with one of these; the first of each is shown", count(ties));
    }
    Ok(())
}

/// What was evaluated twice: both numbers and how far they are apart, the best event-driven one first.
fn twice(sweep: &Sweep, results: &Folder, refined: &Refined) -> anyhow::Result<()> {
    let Some(Refine { top, by: (objective, direction) }) = &sweep.decide.refine else { return Ok(()) };
    if refined.places.is_empty() {
        return Ok(());
    }
    let closed = results.rows(&refined.places)?;
    let again = Folder::open_refined(&results.path)?;
    let again = again.rows(&again.places()?)?;
    let [first, second] = [&closed, &again].map(|frame| frame.column(objective).map(numbers));
    let (first, second, statuses) = (first?, second?, again.column("status")?.str()?);
    let cost = |values: &[f64], row: usize| {
        let cost = direction.cost(values[row]);
        if cost.is_nan() || statuses.get(row) == Some("error") { f64::INFINITY } else { cost }
    };
    let sorted = |values: &[f64]| (0..values.len()).sorted_by(|&a, &b| cost(values, a).total_cmp(&cost(values, b)));
    let order = sorted(&second).collect_vec();
    let more = telling(sweep, &closed);
    let more = more.into_iter().filter(|name| name != objective).collect_vec();
    let mut header = ["id", objective, "event_driven", "difference"].map(str::to_owned).to_vec();
    header.extend(more.iter().cloned());
    let mut lines = Vec::new();
    for &row in order.iter().take(SHOWN) {
        let unit = render::unit_of(objective);
        let mut line = vec![render::cell("id", &closed.column("id")?.get(row)?), human(first[row], unit)];
        match statuses.get(row) {
            Some("feasible") => {
                line.push(human(second[row], unit));
                line.push(percent(second[row] / first[row] - 1.0));
            }
            status => line.extend([status.unwrap_or_default().to_owned(), "-".to_owned()]),
        }
        for name in &more {
            line.push(render::cell(name, &closed.column(name)?.get(row)?));
        }
        lines.push(line);
    }
    let points = if order.len() == 1 { "point" } else { "points" };
    anstream::println!(
        "\nevaluated again, event-driven: the front and the best {top} by {} {objective}, {} {points}:",
        direction.name(),
        order.len()
    );
    anstream::println!("{}", render::table(&header, &lines));
    if order.len() > SHOWN {
        anstream::println!("  ... all in refined/ (`starsweep top {} --refined`)", results.path.display());
    }
    let winner = sorted(&first).next().unwrap_or_default();
    match order.iter().position(|&row| row == winner) {
        Some(0) => anstream::println!("  the best is the same in both"),
        Some(place) => anstream::println!(
            "  the best in closed form, {}, is number {} of {} event-driven",
            render::cell("id", &closed.column("id")?.get(winner)?),
            place + 1,
            order.len()
        ),
        None => {}
    }
    Ok(())
}

/// A ratio less one as a percentage with its sign; nothing has none.
fn percent(ratio: f64) -> String {
    let hundredths = (1e4 * ratio).round();
    match hundredths {
        0.0 => "0.00 %".to_owned(),
        _ if hundredths.is_finite() => format!("{:+.2} %", hundredths / 100.0),
        _ => "-".to_owned(),
    }
}
