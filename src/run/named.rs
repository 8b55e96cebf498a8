//! A point of a folder of results by its name: an id or its beginning, `best`, values of columns (`tp=8,pp=4`), alternatives (`rack/moe`).

use std::path::Path;
use std::sync::Arc;

use itertools::Itertools as _;
use polars::prelude::DataFrame;
use thiserror::Error;

use super::refine::inputs;
use super::{Files, vocabulary};
use crate::input::diagnostic::suggest;
use crate::results::best::best_with;
use crate::results::folder::{Folder, RowPlace};
use crate::results::sink::csv::text;
use crate::results::store::StoreError;
use crate::sweep::{Inputs, Sweep, Vocabulary, point, resolve};

/// The name of the point that is best by the sweep's own objectives.
pub const BEST: &str = "best";
/// How many points are named where a name is not of one alone.
const SHOWN: usize = 4;

/// A point with the sweep that it is of.
#[derive(Debug)]
pub struct Named {
    /// The sweep, as it was asked.
    pub sweep: Sweep,
    /// The point's inputs.
    pub inputs: Inputs,
    /// Its id.
    pub id: String,
    /// Its row.
    pub row: DataFrame,
    /// Whether others have the same name, and this is the best of them.
    pub is_best_of_several: bool,
}

/// Why no point is found.
#[derive(Debug, Error)]
pub enum Lost {
    /// The folder cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name is not that of a point.
    #[error("{message}")]
    Name {
        /// What is wrong.
        message: String,
        /// What to write instead.
        help: Option<String>,
    },
}

impl Lost {
    fn name(message: String, help: impl Into<Option<String>>) -> Self {
        Self::Name { message, help: help.into() }
    }
}

/// The value of a column as text; nothing where there is none.
#[must_use]
pub fn cell(row: &DataFrame, column: &str) -> String {
    row.column(column).and_then(|column| column.get(0)).map_or_else(|_| String::new(), |value| text(&value))
}

impl Named {
    /// Finds a point of a folder of results.
    ///
    /// # Errors
    /// If the folder cannot be read, or no point has the name, or several have.
    pub fn find(results: &Path, name: &str) -> Result<Self, Lost> {
        let folder = Folder::open(results)?;
        let sweep = sweep_of(results)?;
        let with = if name == BEST || name.contains('=') {
            Some(conditions(name, &folder.columns()?)?)
        } else {
            alternatives(name, &sweep, &folder)?
        };
        let places = match with {
            Some(with) => best_with(&folder, &sweep.decide.objectives, 2, &with)?,
            None => vec![by_id(&folder, name)?],
        };
        let Some(&place) = places.first() else {
            let help = "`starsweep top` has feasible points; a value is written as the table has it: `zero=1`";
            return Err(Lost::name(format!("no feasible point is `{name}`"), help.to_owned()));
        };
        let row = folder.rows(&[place])?;
        let id = cell(&row, "id");
        let point = inputs(&sweep, &folder, &[place])?.pop();
        let is_same = |point: &(u64, Inputs)| id.as_bytes() == point::id_text(point.0);
        let Some((_, inputs)) = point.filter(is_same) else {
            let message = format!("the sweep in `{}` is not the one of its points", results.display());
            return Err(Lost::name(message, "run it again: what is there is put aside, not lost".to_owned()));
        };
        Ok(Self { sweep, inputs, id, row, is_best_of_several: name != BEST && places.len() > 1 })
    }

    /// What the point is: what the sweep's axes are there.
    #[must_use]
    pub fn values(&self) -> Vec<(String, String)> {
        let columns = self.sweep.axis_columns().into_iter().map(|column| (column.to_owned(), cell(&self.row, column)));
        columns.filter(|column| !column.1.is_empty()).collect()
    }
}

/// The sweep of a folder of results.
fn sweep_of(results: &Path) -> Result<Sweep, Lost> {
    let path = results.join("sweep.yaml");
    let text = std::fs::read_to_string(&path).map_err(crate::results::store::at("read", &path))?;
    let vocabulary = Vocabulary { loader: Some(Arc::new(Files::beside(&path))), ..vocabulary() };
    resolve(&text, &[], &vocabulary).map_err(|found| {
        let first = found.first().map_or_else(String::new, |first| format!(": {}", first.message));
        let message = format!("`{}` is not understood any more{first}", path.display());
        Lost::name(message, "the version that made it understands it; or run the sweep again".to_owned())
    })
}

/// The columns that a name gives a value, and the values.
fn conditions(name: &str, columns: &[String]) -> Result<Vec<(String, String)>, Lost> {
    let parts = name.split(',').filter(|part| *part != BEST);
    let condition = |part: &str| {
        let Some((key, value)) = part.split_once('=') else {
            return Err(Lost::name(format!("`{part}` is no value of a column"), "write `tp=8,pp=4`".to_owned()));
        };
        let key = key.trim();
        let is_column = |column: &&String| *column == key || column.strip_prefix(key).is_some_and(is_unit);
        let Some(column) = columns.iter().find(is_column) else {
            let help = suggest(key, columns.iter().map(String::as_str));
            return Err(Lost::name(format!("the table has no column `{key}`"), help));
        };
        Ok((column.clone(), value.trim().to_owned()))
    };
    parts.map(condition).collect()
}

/// The columns of which a name has alternatives, and these; none if it is no such name.
fn alternatives(name: &str, sweep: &Sweep, folder: &Folder) -> Result<Option<Vec<(String, String)>>, Lost> {
    let numbers = folder.numbers()?;
    let is_text = |column: &&str| !numbers.iter().any(|number| number == column);
    let columns: Vec<&str> = sweep.axis_columns().into_iter().filter(is_text).collect();
    let mut with = Vec::new();
    for part in name.split('/') {
        let mut found = None;
        for &column in &columns {
            let condition = (column.to_owned(), part.to_owned());
            if !best_with(folder, &sweep.decide.objectives, 1, std::slice::from_ref(&condition))?.is_empty() {
                found = Some(condition);
                break;
            }
        }
        let Some(condition) = found else { return Ok(None) };
        with.push(condition);
    }
    Ok(Some(with))
}

/// Whether the end of a column's name is its unit.
fn is_unit(end: &str) -> bool {
    matches!(end, "_s" | "_bytes" | "_bytes_per_s" | "_flops_per_s" | "_seq" | "_tok")
}

/// The point whose id begins so.
fn by_id(folder: &Folder, name: &str) -> Result<RowPlace, Lost> {
    let mut found = Vec::new();
    for file in 0..folder.files.len() {
        let frame = folder.read(file, Some(&["id".to_owned()]))?;
        let ids = frame.column("id").and_then(|column| column.str()).map_err(StoreError::from)?;
        let of_file = ids.iter().enumerate().filter_map(|(row, id)| Some((id?, RowPlace { file, row })));
        found.extend(of_file.filter(|it| it.0.starts_with(name)).map(|(id, place)| (id.to_owned(), place)));
    }
    match found.as_slice() {
        [(_, place)] => Ok(*place),
        [] => {
            let help =
                format!("the id of a point as `starsweep top` shows it, its beginning, `{BEST}`, or `tp=8,pp=4`");
            Err(Lost::name(format!("no point is called `{name}`"), help))
        }
        several => {
            let more = if several.len() > SHOWN { ", ..." } else { "" };
            let ids = several.iter().take(SHOWN).map(|it| &it.0).join(", ");
            Err(Lost::name(format!("{} points begin with `{name}`", several.len()), format!("one of {ids}{more}")))
        }
    }
}
