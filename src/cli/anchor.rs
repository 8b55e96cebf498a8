//! The measured run in an answer: what it does to every prediction, and its row beside those of points.

use itertools::Itertools as _;
use polars::prelude::{DataFrame, NamedFrom as _, Series};

use crate::run::anchor::row;
use crate::sweep::{Anchor, Fidelity, Sweep};
use crate::units::{Unit, human, plain};

/// What an anchor does, in a line.
pub fn line(anchor: &Anchor) -> String {
    let found = Fidelity::ALL.into_iter().filter_map(|fidelity| Some((fidelity, anchor.predicted[fidelity as usize]?)));
    let by = |(k, fidelity): (usize, Fidelity), text: String| match k {
        0 => text,
        _ => format!("{text} {}", fidelity.name()),
    };
    let found = found.enumerate().collect_vec();
    let predicted =
        found.iter().map(|&(k, (fidelity, predicted))| by((k, fidelity), human(predicted.seconds, Unit::SECOND)));
    let factors = found.iter().map(|&(k, (fidelity, _))| by((k, fidelity), plain(anchor.factor(fidelity))));
    let offset = anchor.offset();
    let sign = if offset < 0.0 { '-' } else { '+' };
    let memory = anchor.memory.map(|_| format!("; memory {sign} {}", human(offset.abs(), Unit::BYTE)));
    format!(
        "anchor {}: predicted {}, measured {}: all times x {}{}",
        anchor.name,
        predicted.format(", "),
        human(anchor.seconds, Unit::SECOND),
        factors.format(", "),
        memory.unwrap_or_default()
    )
}

/// The measured run as a row of the table, its name in place of an id.
pub struct Measured<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its row.
    pub row: DataFrame,
}

impl<'a> Measured<'a> {
    /// That of a sweep, if it has one.
    pub fn of(sweep: &'a Sweep) -> anyhow::Result<Option<Self>> {
        let (Some(anchor), Some(mut row)) = (&sweep.anchor, row(sweep)?) else { return Ok(None) };
        let name = anchor.name.as_str();
        row.replace("id", Series::new("id".into(), [name]).into())?;
        Ok(Some(Self { name, row }))
    }

    /// Rows with its own before them.
    pub fn before(this: Option<&Self>, rows: DataFrame) -> anyhow::Result<DataFrame> {
        let Some(measured) = this else { return Ok(rows) };
        let names = rows.get_column_names_owned();
        Ok(measured.row.select(names)?.vstack(&rows)?)
    }
}
