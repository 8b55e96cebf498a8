//! The best again: the front and the best points of a closed-form sweep, evaluated event-driven, in files of their own.
//!
//! Files are ranges of the chosen points in the order of their numbers, so bytes depend on the choice alone. Rows that are
//! there already, in this folder or in what it was earlier, are found by id and used again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use itertools::Itertools as _;
use polars::prelude::{AnyValue, DataFrame};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{Layout, Origin};
use super::worker::Worker;
use super::{Order, Progress, RunError};
use crate::results::best::best;
use crate::results::folder::{Folder, RowPlace};
use crate::results::segment::{self, Segment};
use crate::results::store::{Store, StoreError};
use crate::results::summary::Summary;
use crate::sweep::column::From;
use crate::sweep::{Inputs, Refine, Sweep, point};
use crate::units::{index, signed};

/// What became of the points that were chosen.
#[derive(Debug)]
pub struct Refined {
    /// The chosen points, in the order of their numbers.
    pub places: Vec<RowPlace>,
    /// How many of their rows were there already.
    pub kept: u64,
    /// How many were evaluated by this run.
    pub done: u64,
    /// Whether the run was stopped before all were.
    pub is_stopped: bool,
    /// How many hit a mistake of ours.
    pub errors: u64,
}

/// Rows that were evaluated before, by id.
#[derive(Debug, Default)]
struct Known {
    frames: Vec<DataFrame>,
    places: HashMap<String, RowPlace>,
}

/// A point that is evaluated again.
struct Candidate {
    id: String,
    inputs: Inputs,
}

/// Evaluates the front and the best points again, those that are not there yet; none if the sweep asks for nothing.
///
/// # Errors
/// If the disk fails.
pub fn refine(
    sweep: &Sweep,
    (store, results, summary): (&Store, &Folder, &Summary),
    order: &Order,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Option<Refined>, RunError> {
    let Some(refine) = &sweep.decide.refine else { return Ok(None) };
    let places = chosen(refine, results, summary)?;
    let candidates = candidates(sweep, results, &places)?;
    let layout = Layout::of(sweep);
    let judged = judged_by(sweep);
    let before = store.refined_before(&judged, !order.fresh)?;
    let parts: Vec<(Segment, &[Candidate])> = Segment::of(candidates.len() as u64, segment::REFINED)
        .map(|part| (part, &candidates[index(part.start)..index(part.end)]))
        .collect();
    let whole: Vec<_> =
        before.iter().map(|(path, frame)| (path.clone(), is_one_of(&parts, store, path, frame))).collect();
    let known = Known::of(sweep, &layout, &candidates, before)?;
    // What is there for another choice is put aside, and used from here.
    let folder = store.refined();
    for (path, is_whole) in &whole {
        if !is_whole && path.parent() == Some(folder.as_path()) {
            store.put_aside(path, &store.identity)?;
        }
    }
    let is_there =
        |part: &Segment| whole.iter().any(|(path, is_whole)| *is_whole && *path == folder.join(part.file_name()));
    let missing: Vec<_> = parts.into_iter().filter(|part| !is_there(&part.0)).collect();
    let is_new = |candidate: &&Candidate| !known.places.contains_key(&candidate.id);
    let to_do = missing.iter().flat_map(|part| part.1).filter(is_new).count() as u64;
    progress.start(to_do, to_do);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(order.threads).build()?;
    let row = |candidate: &Candidate| {
        if let Some(row) = known.row(&candidate.id) {
            Ok(Some(row))
        } else if stop.load(Ordering::Relaxed) {
            Ok(None)
        } else {
            Worker::new(sweep, &layout).refine(&candidate.inputs, progress).map(Some)
        }
    };
    pool.install(|| {
        missing.par_iter().with_max_len(1).try_for_each(|(part, candidates)| {
            let rows: Vec<DataFrame> =
                candidates.par_iter().with_max_len(1).map(row).collect::<Result<Option<_>, _>>()?.unwrap_or_default();
            let mut rows = rows.into_iter();
            let Some(mut frame) = rows.next() else { return Ok(()) };
            rows.try_for_each(|row| frame.vstack_mut(&row).map(|_| ()))?;
            store.write_refined(*part, &judged, frame.rechunk_mut())
        })
    })?;
    let done = progress.stretches();
    let is_stopped = done < to_do;
    let kept = candidates.len() as u64 - to_do;
    Ok(Some(Refined { places, kept, done, is_stopped, errors: progress.errors() }))
}

/// The front and the best points, in the order of their numbers.
fn chosen(refine: &Refine, results: &Folder, summary: &Summary) -> Result<Vec<RowPlace>, StoreError> {
    let mut places = best(results, std::slice::from_ref(&refine.by), index(refine.top))?;
    places.extend(summary.front.iter().map(|member| member.place));
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// The inputs of rows. A row has no number of its own: it is the so many-th point of its segment.
fn candidates(sweep: &Sweep, results: &Folder, places: &[RowPlace]) -> Result<Vec<Candidate>, StoreError> {
    let mut found = Vec::with_capacity(places.len());
    let mut canonical = Vec::new();
    for of_file in places.chunk_by(|a, b| a.file == b.file) {
        let path = &results.files[of_file[0].file];
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(segment) = Segment::from_file_name(&name) else {
            return Err(StoreError::NoResults(results.path.clone()));
        };
        let mut cursor = sweep.space.cursor(segment.start);
        let mut row = 0;
        for place in of_file {
            while cursor.next_point(segment.end).is_some() && row < place.row {
                cursor.step();
                row += 1;
            }
            let id = point::id_text(point::id(&cursor.inputs, &mut canonical));
            let id = id.iter().map(|&letter| char::from(letter)).collect();
            found.push(Candidate { id, inputs: cursor.inputs.clone() });
        }
    }
    Ok(found)
}

/// By what a row is judged besides its own inputs: the texts of `derive` and `require`.
fn judged_by(sweep: &Sweep) -> String {
    let rules = sweep.space.derived.iter().chain(&sweep.require);
    let text = rules.map(|rule| format!("{}={}", rule.name, rule.expression)).join(";");
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// Whether a file holds just the rows of its part of the choice.
fn is_one_of(parts: &[(Segment, &[Candidate])], store: &Store, path: &std::path::Path, frame: &DataFrame) -> bool {
    let part = parts.iter().find(|part| store.refined().join(part.0.file_name()) == path);
    let ids = frame.column("id").and_then(|ids| ids.str());
    let (Some((_, candidates)), Ok(ids)) = (part, ids) else { return false };
    ids.iter().eq(candidates.iter().map(|candidate| Some(candidate.id.as_str())))
}

impl Known {
    /// The rows of the candidates that were evaluated before, with the same columns and the same inputs, names included.
    fn of(
        sweep: &Sweep,
        layout: &Layout,
        candidates: &[Candidate],
        before: Vec<(std::path::PathBuf, DataFrame)>,
    ) -> Result<Self, StoreError> {
        let wanted: HashMap<&str, &Inputs> =
            candidates.iter().map(|candidate| (candidate.id.as_str(), &candidate.inputs)).collect();
        let columns = || std::iter::once("id").chain(layout.columns.iter().map(|column| column.column.name.as_str()));
        let mut known = Self::default();
        for (_, frame) in before {
            if !frame.get_column_names().iter().map(|name| name.as_str()).eq(columns()) {
                continue;
            }
            let file = known.frames.len();
            for (row, id) in frame.column("id")?.str()?.iter().enumerate() {
                let Some((id, inputs)) = id.and_then(|id| wanted.get_key_value(id)) else { continue };
                if !known.places.contains_key(*id) && says_the_same(sweep, layout, inputs, (&frame, row))? {
                    known.places.insert((*id).to_owned(), RowPlace { file, row });
                }
            }
            known.frames.push(frame);
        }
        Ok(known)
    }

    /// The row of an id.
    fn row(&self, id: &str) -> Option<DataFrame> {
        let place = self.places.get(id)?;
        Some(self.frames[place.file].slice(signed(crate::units::real(place.row as u64)), 1))
    }
}

/// Whether a row says of a point's inputs what its own row would say.
fn says_the_same(
    sweep: &Sweep,
    layout: &Layout,
    inputs: &Inputs,
    (frame, row): (&DataFrame, usize),
) -> Result<bool, StoreError> {
    let mut refined = inputs.clone();
    point::refine(&mut refined);
    for (spec, origin) in layout.columns.iter().zip(&layout.origins) {
        let Origin::Input(k) = *origin else { continue };
        let input = &sweep.columns[k];
        let number = input.number(&refined);
        let is_same = match (frame.column(&spec.column.name)?.get(row)?, input.from) {
            (AnyValue::String(text), From::Shape) => text == point::system(&refined).network.shape(),
            (AnyValue::String(text), _) => input.text(number, &sweep.names, &sweep.tiers) == Some(text),
            (AnyValue::Null, _) => number.is_nan(),
            (AnyValue::Float64(found), _) => found.to_bits() == number.to_bits(),
            (AnyValue::Int64(found), _) => !number.is_nan() && found == signed(number),
            (AnyValue::Boolean(found), _) => !number.is_nan() && found == (number != 0.0),
            _ => false,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}
