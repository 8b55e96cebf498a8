//! The best again: the front and the best points of a closed-form sweep, evaluated event-driven, in files of their own.
//!
//! Files are ranges of the chosen points in the order of their numbers, so bytes depend on the choice alone. Rows that are
//! there already, in this folder or in what it was earlier, are found by id and used again.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use polars::prelude::DataFrame;
use rayon::prelude::*;

use super::known::Known;
use super::layout::Layout;
use super::worker::Worker;
use super::{Order, Progress, RunError};
use crate::results::best::best;
use crate::results::folder::{Folder, RowPlace};
use crate::results::segment::{self, Segment};
use crate::results::store::{REFINED, Store, StoreError, files};
use crate::results::summary::Summary;
use crate::sweep::{Inputs, Refine, Sweep, point};
use crate::units::index;

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

/// A point that is evaluated again.
struct Candidate {
    id: u64,
    inputs: Inputs,
    /// Its row, if it was evaluated before.
    known: Option<DataFrame>,
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
    let mut candidates = candidates(sweep, results, &places)?;
    let layout = Layout::of(sweep);
    let own = files(&store.refined())?;
    let earlier = if order.fresh { Vec::new() } else { store.earlier(REFINED)? };
    let known = Known::of(Folder { path: store.folder.clone(), files: own.iter().cloned().chain(earlier).collect() })?;
    let mut loaded = None;
    for candidate in &mut candidates {
        let mut inputs = candidate.inputs.clone();
        point::refine(&mut inputs);
        candidate.known = known.row((sweep, &layout), (candidate.id, &inputs), &mut loaded)?;
    }
    let parts = Segment::of(candidates.len() as u64, segment::REFINED)
        .map(|part| (part, &candidates[index(part.start)..index(part.end)]));
    let mut missing: Vec<(Segment, &[Candidate])> = Vec::new();
    let mut whole = Vec::new();
    for (part, candidates) in parts {
        let path = store.refined().join(part.file_name());
        if own.contains(&path) && holds(&path, candidates)? {
            whole.push(path);
        } else {
            missing.push((part, candidates));
        }
    }
    // What is there for another choice is put aside: its rows are known by now.
    for path in own.iter().filter(|path| !whole.contains(path)) {
        store.put_aside(path, &store.identity)?;
    }
    let is_new = |candidate: &&Candidate| candidate.known.is_none();
    let to_do = missing.iter().flat_map(|part| part.1).filter(is_new).count() as u64;
    progress.start(to_do, to_do);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(order.threads).build()?;
    let row = |candidate: &Candidate| match &candidate.known {
        Some(row) => Ok(Some(row.clone())),
        None if stop.load(Ordering::Relaxed) => Ok(None),
        None => Worker::new(sweep, &layout, None).refine(&candidate.inputs, progress).map(Some),
    };
    pool.install(|| {
        missing.par_iter().with_max_len(1).try_for_each(|(part, candidates)| {
            let rows: Option<Vec<DataFrame>> =
                candidates.par_iter().with_max_len(1).map(row).collect::<Result<_, StoreError>>()?;
            let mut rows = rows.unwrap_or_default().into_iter();
            let Some(mut frame) = rows.next() else { return Ok(()) };
            rows.try_for_each(|row| frame.vstack_mut(&row).map(|_| ()))?;
            store.write_refined(*part, frame.rechunk_mut())
        })
    })?;
    let (done, all) = (progress.stretches(), candidates.len() as u64);
    Ok(Some(Refined { places, kept: all - to_do, done, is_stopped: done < to_do, errors: progress.errors() }))
}

/// The front and the best points, in the order of their numbers.
fn chosen(refine: &Refine, results: &Folder, summary: &Summary) -> Result<Vec<RowPlace>, StoreError> {
    let mut places = best(results, std::slice::from_ref(&refine.by), index(refine.top))?;
    places.extend(summary.front.iter().map(|member| member.place));
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// The points of rows, not evaluated again yet.
fn candidates(sweep: &Sweep, results: &Folder, places: &[RowPlace]) -> Result<Vec<Candidate>, StoreError> {
    let found = inputs(sweep, results, places)?;
    Ok(found.into_iter().map(|(id, inputs)| Candidate { id, inputs, known: None }).collect())
}

/// The ids and the inputs of rows, in the order of their numbers. A row has no number of its own: it is the so many-th point of
/// its segment.
///
/// # Errors
/// If a file is no segment.
pub fn inputs(sweep: &Sweep, results: &Folder, places: &[RowPlace]) -> Result<Vec<(u64, Inputs)>, StoreError> {
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
            let id = sweep.id(&cursor.inputs, &mut canonical);
            found.push((id, cursor.inputs.clone()));
        }
    }
    Ok(found)
}

/// Whether a file holds just the rows of some candidates.
fn holds(path: &Path, candidates: &[Candidate]) -> Result<bool, StoreError> {
    let file = Folder { path: path.to_owned(), files: vec![path.to_owned()] };
    let frame = file.read(0, Some(&["id".to_owned()]))?;
    let ids = frame.column("id")?.str()?;
    let is = |(found, candidate): (Option<&str>, &Candidate)| {
        found.is_some_and(|found| found.as_bytes() == point::id_text(candidate.id))
    };
    Ok(ids.len() == candidates.len() && ids.iter().zip(candidates).all(is))
}
