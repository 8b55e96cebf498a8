//! `top` and `pareto`: the best points of a folder, whatever sweep it is of.

use anyhow::{Context, bail};

use super::args::RankArgs;
use super::exit::Exit;
use super::render;
use crate::column::Direction;
use crate::results::folder::{Folder, RowPlace};
use crate::results::summary::{Ask, Summary, numbers};
use crate::sweep::diagnostic::suggest;

/// The objectives of the command line, or those of the folder.
fn objectives(args: &RankArgs, columns: &[String]) -> anyhow::Result<Vec<(String, Direction)>> {
    let told = args
        .min
        .iter()
        .map(|column| (column, Direction::Min))
        .chain(args.max.iter().map(|column| (column, Direction::Max)));
    let mut found = Vec::new();
    for (column, direction) in told {
        found.push((known(column, columns)?, direction));
    }
    if found.is_empty() {
        let time =
            ["iteration_time_s", "finish_time_s"].into_iter().find(|time| columns.iter().any(|column| column == time));
        let time = time.context("the table has no time: name a column with --min or --max")?;
        found = vec![(time.to_owned(), Direction::Min), ("npus".to_owned(), Direction::Min)];
    }
    Ok(found)
}

/// A column by its name, with or without its unit.
fn known(name: &str, columns: &[String]) -> anyhow::Result<String> {
    let suffixes = ["_s", "_bytes", "_bytes_per_s", "_tok_per_s", "_flops_per_s", "_usd", "_watts", "_seq", "_tok"];
    let found = columns
        .iter()
        .find(|column| *column == name || suffixes.iter().any(|suffix| column.strip_suffix(suffix) == Some(name)));
    if let Some(column) = found {
        Ok(column.clone())
    } else {
        let help = suggest(name, columns.iter().map(String::as_str)).unwrap_or_default();
        bail!("the table has no column `{name}`; {help}")
    }
}

/// The columns to show: those told, else the objectives and what tells rows apart.
fn shown(args: &RankArgs, columns: &[String], objectives: &[(String, Direction)]) -> anyhow::Result<Vec<String>> {
    if !args.columns.is_empty() {
        return args.columns.iter().map(|column| known(column, columns)).collect();
    }
    let usual = [
        "id",
        "cluster",
        "network",
        "memory",
        "model",
        "npus",
        "tp",
        "pp",
        "dp",
        "ep",
        "vpp",
        "micro_batch_size_seq",
        "zero",
        "recompute",
        "collective",
        "network_shape",
        "mfu",
        "peak_memory_bytes",
    ];
    let mut found: Vec<String> = objectives.iter().map(|objective| objective.0.clone()).collect();
    found.extend(usual.iter().filter(|name| columns.iter().any(|column| column == *name)).map(|&name| name.to_owned()));
    let mut seen = Vec::new();
    found.retain(|column| {
        if seen.contains(column) {
            false
        } else {
            seen.push(column.clone());
            true
        }
    });
    Ok(found)
}

/// The best points by the first objective.
pub fn top(args: &RankArgs) -> anyhow::Result<Exit> {
    let folder = Folder::open(&args.results)?;
    let columns = folder.columns()?;
    let objectives = objectives(args, &columns)?;
    let names: Vec<String> =
        objectives.iter().map(|objective| objective.0.clone()).chain(["status".to_owned()]).collect();
    let mut best: Vec<(Vec<f64>, RowPlace)> = Vec::new();
    for file in 0..folder.files.len() {
        let frame = folder.read(file, Some(&names))?;
        let values: Vec<Vec<f64>> = objectives
            .iter()
            .map(|objective| Ok(numbers(frame.column(&objective.0)?)))
            .collect::<anyhow::Result<_>>()?;
        for (row, status) in frame.column("status")?.str()?.iter().enumerate() {
            let costs: Vec<f64> =
                objectives.iter().zip(&values).map(|(objective, values)| objective.1.cost(values[row])).collect();
            if status == Some("feasible") && !costs.iter().any(|cost| cost.is_nan()) {
                best.push((costs, RowPlace { file, row }));
            }
        }
        best.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal).then(a.1.cmp(&b.1)));
        best.truncate(args.rows);
    }
    if best.is_empty() {
        anstream::eprintln!("nothing is feasible");
        return Ok(Exit::NothingFeasible);
    }
    let rows = folder.rows(&best.iter().map(|best| best.1).collect::<Vec<_>>())?;
    anstream::println!("{}", render::frame(&rows, &shown(args, &columns, &objectives)?)?);
    Ok(Exit::Complete)
}

/// The front.
pub fn pareto(args: &RankArgs) -> anyhow::Result<Exit> {
    let folder = Folder::open(&args.results)?;
    let columns = folder.columns()?;
    let objectives = objectives(args, &columns)?;
    let summary = Summary::of(&folder, &Ask { objectives: objectives.clone(), ..Ask::default() })?;
    if summary.front.is_empty() {
        anstream::eprintln!("nothing is feasible");
        return Ok(Exit::NothingFeasible);
    }
    let places: Vec<_> = summary.front.iter().map(|member| member.place).take(args.rows.max(1)).collect();
    let rows = folder.rows(&places)?;
    anstream::println!("{}", render::frame(&rows, &shown(args, &columns, &objectives)?)?);
    if summary.front.len() > places.len() {
        anstream::println!("  ... {} in all (-n shows more)", summary.front.len());
    }
    Ok(Exit::Complete)
}
