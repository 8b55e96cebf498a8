//! `top` and `pareto`: the best points of a folder, whatever sweep it is of.

use itertools::Itertools;
use polars::prelude::{Column as Series, DataFrame};

use super::args::RankArgs;
use super::exit::{Exit, WrongFlag};
use super::render;
use crate::column::Direction;
use crate::input::diagnostic::suggest;
use crate::results::best::best;
use crate::results::folder::Folder;
use crate::results::store::StoreError;
use crate::results::summary::{Ask, Summary};
use crate::run::vocabulary;
use crate::sweep::resolve;
use crate::units::{Unit, index};

/// The points of a folder, or those of them that were evaluated again.
fn folder(args: &RankArgs) -> anyhow::Result<Folder> {
    let points = Folder::open(&args.results)?;
    if !args.refined {
        return Ok(points);
    }
    Folder::open_refined(&args.results).map_err(|error| match error {
        StoreError::NoResults(_) => WrongFlag {
            message: format!("no point in `{}` was evaluated again", args.results.display()),
            help: Some("write `refine: {top: 10}` into the sweep file and run it".to_owned()),
        }
        .into(),
        other => other.into(),
    })
}

/// The objectives of the command line, else those of the sweep whose results they are.
fn objectives(args: &RankArgs, folder: &Folder, columns: &[String]) -> anyhow::Result<Vec<(String, Direction)>> {
    let numbers = folder.numbers()?;
    let told = &args.objectives.0;
    if told.is_empty() {
        let of_sweep = of_sweep(folder).unwrap_or_default();
        let known = of_sweep.into_iter().filter(|objective| numbers.contains(&objective.0)).collect_vec();
        if !known.is_empty() {
            return Ok(known);
        }
        let help = Some("name a column: `--min iteration_time`".to_owned());
        return Err(WrongFlag { message: "the folder does not say what is best".to_owned(), help }.into());
    }
    let number = |(name, direction): &(String, Direction)| {
        let column = known(name, columns)?;
        if numbers.contains(&column) {
            return Ok((column, *direction));
        }
        let help = suggest(name, numbers.iter().map(String::as_str));
        Err(WrongFlag { message: format!("the column `{name}` holds no numbers"), help }.into())
    };
    told.iter().map(number).collect()
}

/// The objectives of the frozen sweep in the folder, if it is one that this version understands.
fn of_sweep(folder: &Folder) -> Option<Vec<(String, Direction)>> {
    let text = std::fs::read_to_string(folder.path.join("sweep.yaml")).ok()?;
    resolve(&text, &[], &vocabulary()).ok().map(|sweep| sweep.decide.objectives)
}

/// A column by its name, with or without its unit.
fn known(name: &str, columns: &[String]) -> Result<String, WrongFlag> {
    let suffixes = Unit::NAMED.map(Unit::suffix);
    let found = columns.iter().find(|column| {
        *column == name || suffixes.iter().any(|suffix| column.strip_suffix(suffix.as_str()) == Some(name))
    });
    found.cloned().ok_or_else(|| WrongFlag {
        message: format!("the table has no column `{name}`"),
        help: suggest(name, columns.iter().map(String::as_str)),
    })
}

/// The columns to show: those told, else the objectives and what tells rows apart.
fn shown(
    args: &RankArgs,
    rows: &DataFrame,
    columns: &[String],
    objectives: &[(String, Direction)],
) -> anyhow::Result<Vec<String>> {
    if !args.columns.is_empty() {
        return Ok(args.columns.iter().map(|column| known(column, columns)).collect::<Result<_, _>>()?);
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
    let metrics = vocabulary().metrics;
    let is_input = |name: &&String| !metrics.iter().any(|metric| metric.column == **name);
    let differs = |name: &&String| rows.column(name).and_then(Series::n_unique).is_ok_and(|unique| unique > 1);
    let is_empty = |name: &str| rows.column(name).is_ok_and(|column| column.null_count() == rows.height());
    let inputs = columns.iter().take_while(is_input).filter(differs).map(String::as_str);
    let told = objectives.iter().map(|objective| objective.0.as_str());
    let known = usual.into_iter().filter(|name| columns.iter().any(|column| column == name));
    let shown = told.chain(known).chain(inputs).filter(|name| !is_empty(name)).unique();
    Ok(shown.map(str::to_owned).collect())
}

/// The best points by the first objective.
pub fn top(args: &RankArgs) -> anyhow::Result<Exit> {
    let folder = folder(args)?;
    let columns = folder.columns()?;
    let objectives = objectives(args, &folder, &columns)?;
    let best = best(&folder, &objectives, index(args.rows))?;
    if best.is_empty() {
        anstream::eprintln!("nothing is feasible");
        return Ok(Exit::NothingFeasible);
    }
    let rows = folder.rows(&best)?;
    anstream::println!("{}", render::frame(&rows, &shown(args, &rows, &columns, &objectives)?)?);
    Ok(Exit::Complete)
}

/// The front.
pub fn pareto(args: &RankArgs) -> anyhow::Result<Exit> {
    let folder = folder(args)?;
    let columns = folder.columns()?;
    let objectives = objectives(args, &folder, &columns)?;
    let summary = Summary::of(&folder, &Ask { objectives: objectives.clone(), ..Ask::default() })?;
    if summary.front.is_empty() {
        anstream::eprintln!("nothing is feasible");
        return Ok(Exit::NothingFeasible);
    }
    let places: Vec<_> = summary.front.iter().map(|member| member.place).take(index(args.rows)).collect();
    let rows = folder.rows(&places)?;
    anstream::println!("{}", render::frame(&rows, &shown(args, &rows, &columns, &objectives)?)?);
    if summary.front.len() > places.len() {
        anstream::println!("  ... {} in all (-n shows more)", summary.front.len());
    }
    Ok(Exit::Complete)
}
