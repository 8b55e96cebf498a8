//! The crew: points over threads, from a resolved sweep to a folder of results.

pub mod anchor;
pub mod calibrate;
pub mod compare;
pub mod config;
pub mod deadlock;
pub mod document;
pub mod evaluate;
pub mod export;
pub mod families;
pub mod files;
pub mod known;
pub mod layout;
pub mod named;
pub mod preview;
pub mod progress;
pub mod recorded;
pub mod refine;
pub mod simulate;
pub mod stretch;
pub mod timeline;
pub mod traces;
pub mod validate;
pub mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use itertools::Itertools as _;
use rayon::prelude::*;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine::PHYSICS_VERSION;
use crate::results::folder::Folder;
use crate::results::segment::{self, Segment};
use crate::results::store::{FORMAT_VERSION, Found, POINTS, Stamp, Store, StoreError};
use crate::results::summary::{Ask, Summary};
use crate::sweep::{Sweep, freeze};
pub use files::Files;
use known::Known;
pub use layout::{Layout, vocabulary};
pub use progress::Progress;
use worker::Worker;

/// How a sweep is to be run.
#[derive(Debug, Clone)]
pub struct Order {
    /// The folder of results.
    pub folder: PathBuf,
    /// Threads.
    pub threads: usize,
    /// Whether points that are there are put aside and done again.
    pub fresh: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct Done {
    /// What was there before.
    pub found: Found,
    /// How many stretches were done, and how many there are.
    pub stretches: (u64, u64),
    /// How many stretches were whole when the run began.
    pub kept: u64,
    /// How many stretches were being done when the run was stopped; none if it was not.
    pub dropped: Option<u64>,
    /// How many points hit a mistake of ours.
    pub errors: u64,
    /// How many points were known from what the folder was earlier.
    pub known: u64,
}

/// Why a run could not be.
#[derive(Debug, Error)]
pub enum RunError {
    /// The world failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Threads could not be had.
    #[error("cannot start threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// How many rows a segment of a sweep has at most: where one point takes long, few are lost when a run ends.
#[must_use]
pub fn segment_rows(sweep: &Sweep) -> u64 {
    if sweep.has_event_driven() { segment::EVENT_DRIVEN } else { segment::CLOSED_FORM }
}

/// The identity of a sweep's results: of the question, of the physics, and of the segments' length.
#[must_use]
pub fn identity(sweep: &Sweep) -> String {
    let columns = Layout::of(sweep).columns.iter().map(|column| column.column.name.clone()).join(" ");
    let text = format!(
        "{:016x} physics {PHYSICS_VERSION} format {FORMAT_VERSION} segment {} columns {columns}",
        sweep.identity,
        segment_rows(sweep)
    );
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// By what a row is judged besides its own inputs: `derive` and `require`, as they are written, and a measured run.
fn judged_by(sweep: &Sweep) -> String {
    let rules = sweep.space.derived.iter().chain(&sweep.require);
    let rules = rules.map(|rule| format!("{}={}", rule.name, rule.text));
    let text = rules.chain(sweep.anchor.iter().map(|anchor| format!("anchor={:016x}", anchor.content()))).join(";");
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// Runs a sweep: does the segments that are missing, each whole or not at all.
///
/// # Errors
/// If the disk fails, or another run is at work in the folder.
pub fn run(sweep: &Sweep, order: &Order, progress: &Progress, stop: &AtomicBool) -> Result<(Store, Done), RunError> {
    let stamp = Stamp { identity: identity(sweep), physics: PHYSICS_VERSION, judged_by: judged_by(sweep) };
    let (store, found) = Store::open(&order.folder, &stamp, order.fresh)?;
    write_frozen(sweep, &store)?;
    let layout = Layout::of(sweep);
    let known = if sweep.has_event_driven() && !order.fresh { store.earlier(POINTS)? } else { Vec::new() };
    let known = Known::of(Folder { path: store.folder.clone(), files: known })?;
    let mut stretches = 0;
    let all = stretch::stretches(&sweep.space, segment_rows(sweep)).inspect(|_| stretches += 1);
    let missing: Vec<Segment> = all.filter_map(|stretch| stretch::left(stretch, &found.whole)).collect();
    progress.start(sweep.space.len(), missing.iter().map(|segment| segment.end - segment.start).sum());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(order.threads).build()?;
    // A worker keeps its room, and what it knows, from stretch to stretch.
    let idle = Mutex::new(Vec::new());
    let take = || idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let outcome = pool.install(|| {
        missing.par_iter().with_max_len(1).try_for_each(|&stretch| {
            let mut worker = take().unwrap_or_else(|| Worker::new(sweep, &layout, Some(&known)));
            let mut write = |segment, table: &_| store.write_segment(segment, table);
            if !stop.load(Ordering::Relaxed) && worker.evaluate(stretch, progress, stop, &mut write)? {
                progress.stretch_done();
            }
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
            Ok::<(), StoreError>(())
        })
    });
    outcome?;
    let done = progress.stretches();
    let kept = stretches - missing.len() as u64;
    let stopped = stop.load(Ordering::Relaxed) && done < missing.len() as u64;
    let dropped = stopped.then(|| progress.dropped());
    Ok((
        store,
        Done { found, stretches: (done, stretches), kept, dropped, errors: progress.errors(), known: progress.known() },
    ))
}

/// What a finished folder is asked.
#[must_use]
pub fn ask(sweep: &Sweep) -> Ask {
    Ask {
        compare: sweep.decide.columns().into_iter().map(str::to_owned).collect(),
        alternatives: compare::candidates(sweep).into_iter().map(|candidate| candidate.values).collect(),
        objectives: sweep.decide.objectives.clone(),
    }
}

/// Reads a folder and writes what is made of all points: the front, and beside it the measured run, as Parquet and CSV.
///
/// # Errors
/// If the disk fails.
pub fn finish(sweep: &Sweep, store: &Store) -> Result<(Folder, Summary), StoreError> {
    use crate::results::sink::Format;
    let folder = Folder::open(&store.folder)?;
    let summary = Summary::of(&folder, &ask(sweep))?;
    let places: Vec<_> = summary.front.iter().map(|member| member.place).collect();
    let mut front = folder.rows(&places)?;
    let mut anchor = anchor::row(sweep)?;
    let tables = [("pareto", Some(&mut front)), ("anchor", anchor.as_mut())];
    for (name, frame) in tables.into_iter().filter_map(|(name, frame)| Some((name, frame?))) {
        for format in Format::ALL {
            let path = store.folder.join(format!("{name}.{}", format.name()));
            store.write_file(&path, |out| format.part().write(frame, store.footer(), out))?;
        }
    }
    Ok((folder, summary))
}

/// The frozen sweep stands in the folder from the start: also a run that is interrupted says what was asked. Its paths go from
/// where they went.
fn write_frozen(sweep: &Sweep, store: &Store) -> Result<(), StoreError> {
    let loader = sweep.loader.as_ref().filter(|_| !sweep.templates.is_empty());
    let folder = loader.and_then(|loader| relative(&store.folder, &loader.folder()));
    store.write_file(&store.folder.join("sweep.yaml"), |out| {
        writeln!(out, "# starsweep {}, identity {}", env!("CARGO_PKG_VERSION"), store.identity)?;
        if let Some(folder) = &folder {
            out.write_all(freeze::relative_to(folder).as_bytes())?;
        }
        Ok(out.write_all(sweep.frozen.as_bytes())?)
    })
}

/// The way from one folder to another, upwards and down again; none if one of them is not there.
fn relative(from: &Path, to: &Path) -> Option<String> {
    let here = Path::new(".");
    let [from, to] = [from, to].map(|path| if path.as_os_str().is_empty() { here } else { path }.canonicalize().ok());
    let (from, to) = (from?, to?);
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..".to_owned());
    let down = to.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    let way = up.chain(down).join("/");
    Some(if way.is_empty() { ".".to_owned() } else { way })
}

/// Where the results of a sweep go if nobody says otherwise: `results/<name>/`.
#[must_use]
pub fn default_folder(sweep: &Sweep, file: &Path) -> PathBuf {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Path::new("results").join(sweep.name.clone().or(stem).unwrap_or_else(|| "sweep".to_owned()))
}
