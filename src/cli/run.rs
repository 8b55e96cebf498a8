//! `run`: evaluate, or go on, and answer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;

use super::answer::answer;
use super::args::RunArgs;
use super::exit::Exit;
use super::meter::Meter;
use crate::engine::PHYSICS_VERSION;
use crate::results::folder::Folder;
use crate::results::sink::csv;
use crate::results::store::{FORMAT_VERSION, Store, StoreError};
use crate::results::summary::Summary;
use crate::run::refine::{Refined, refine};
use crate::run::{self, Done, Order, Progress, RunError};

/// Runs a sweep.
pub fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let sweep = match super::load(&args.sweep, &args.set) {
        Ok(sweep) => sweep,
        Err(exit) => return Ok(exit),
    };
    let folder = args.out.clone().unwrap_or_else(|| run::default_folder(&sweep, &args.sweep));
    let order = Order { folder, threads: threads(args.threads)?, fresh: args.fresh };
    let signals = Signals::listen()?;
    let progress = Arc::new(Progress::default());
    let meter = Meter::start(progress.clone(), args.quiet);
    let started = (Instant::now(), SystemTime::now());
    let watch = signals.watch();
    let outcome = run::run(&sweep, &order, &progress, &signals.stop);
    watch.end();
    meter.stop();
    let (store, done) = match outcome {
        // Nothing was begun: there is nothing to go on with.
        Err(RunError::Store(
            refused @ (StoreError::Locked(_)
            | StoreError::NotOurs(_)
            | StoreError::File { action: "make" | "lock", .. }),
        )) => return Err(refused.into()),
        outcome => outcome.with_context(|| advice(&order.folder))?,
    };
    if let Some(dropped) = done.dropped {
        let (now, all) = done.stretches;
        let kept = done.kept + now;
        anstream::eprintln!(
            "stopped: {kept} of {all} parts are kept, {dropped} half-done dropped; the same command goes on"
        );
        return Ok(signals.exit());
    }
    let (results, summary) = run::finish(&sweep, &store)?;
    let progress = Arc::new(Progress::default());
    let meter = Meter::start(progress.clone(), args.quiet);
    let watch = signals.watch();
    let refined = refine(&sweep, (&store, &results, &summary), &order, &progress, &signals.stop);
    watch.end();
    meter.stop();
    let refined = refined.with_context(|| advice(&order.folder))?;
    if let Some(stopped) = refined.as_ref().filter(|refined| refined.is_stopped) {
        anstream::eprintln!(
            "stopped: all points are kept, {} of {} are refined; the same command goes on",
            stopped.kept + stopped.done,
            stopped.places.len()
        );
        return Ok(signals.exit());
    }
    store.finished()?;
    if args.csv {
        write_csv(&results, &store)?;
    }
    write_manifest(&store, &done, &summary, refined.as_ref(), &order, started.1)?;
    if !args.quiet {
        answer(&sweep, &store, (&results, &summary), &done, refined.as_ref(), started.0)?;
    }
    let refined_errors = refined.map_or(0, |refined| refined.errors);
    Ok(match (done.errors + refined_errors + summary.with_status("error") > 0, summary.with_status("feasible")) {
        (true, _) => Exit::Ours,
        (false, 0) => Exit::NothingFeasible,
        (false, _) => Exit::Complete,
    })
}

/// How often it is looked whether a run is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long a run that was told to stop may take to do so.
const GRACE: Duration = Duration::from_millis(700);

/// A thread that watches an evaluation.
struct Watch {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// The evaluation is over.
    fn end(self) {
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

/// How a run is told to stop.
struct Signals {
    /// Set by Ctrl-C and by being told to end.
    stop: Arc<AtomicBool>,
    /// Set by being told to end alone.
    end: Arc<AtomicBool>,
}

impl Signals {
    /// Listens: the first signal asks for a stop, a second one ends at once.
    fn listen() -> anyhow::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag::{register, register_conditional_shutdown};
        let signals = Self { stop: Arc::default(), end: Arc::default() };
        for (signal, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)] {
            register_conditional_shutdown(signal, i32::from(exit as u8), signals.stop.clone())?;
            register(signal, signals.stop.clone())?;
        }
        register(SIGTERM, signals.end.clone())?;
        Ok(signals)
    }

    /// Watches an evaluation: a single event-driven point may take longer than somebody who stops the run waits. What is
    /// being evaluated is dropped then, as when it is stopped between two points; what is whole is on the disk.
    fn watch(&self) -> Watch {
        let (end, ended) = channel();
        let (stop, told_to_end) = (self.stop.clone(), self.end.clone());
        let thread = std::thread::spawn(move || {
            let mut asked: Option<Instant> = None;
            while matches!(ended.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) {
                if stop.load(Ordering::Relaxed) && asked.get_or_insert_with(Instant::now).elapsed() > GRACE {
                    anstream::eprintln!("stopped amid long points: whole parts are kept; the same command goes on");
                    let exit = if told_to_end.load(Ordering::Relaxed) { Exit::Terminated } else { Exit::Interrupted };
                    std::process::exit(i32::from(exit as u8));
                }
            }
        });
        Watch { end, thread }
    }

    /// The exit code of a run that was stopped.
    fn exit(&self) -> Exit {
        if self.end.load(Ordering::Relaxed) { Exit::Terminated } else { Exit::Interrupted }
    }
}

/// Threads: as told, as Slurm says, as the machine has.
fn threads(told: Option<u16>) -> anyhow::Result<usize> {
    if let Some(told) = told {
        return Ok(usize::from(told));
    }
    match std::env::var("SLURM_CPUS_PER_TASK") {
        Ok(text) => text
            .parse()
            .ok()
            .filter(|&threads: &usize| threads > 0)
            .with_context(|| format!("SLURM_CPUS_PER_TASK is `{text}`")),
        Err(_) => Ok(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
    }
}

fn advice(folder: &Path) -> String {
    format!("the run into `{}` ended; whole parts are kept, and the same command goes on", folder.display())
}

/// All points as one CSV file.
fn write_csv(results: &Folder, store: &Store) -> anyhow::Result<()> {
    let path = store.folder.join("points.csv");
    store.write_file(&path, |out| {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(results.columns()?)?;
        for file in 0..results.files.len() {
            csv::append(&results.read(file, None)?, &mut writer)?;
        }
        Ok(writer.flush()?)
    })?;
    Ok(())
}

/// What may differ between two equal runs: versions, command, host, times.
fn write_manifest(
    store: &Store,
    done: &Done,
    summary: &Summary,
    refined: Option<&Refined>,
    order: &Order,
    started: SystemTime,
) -> anyhow::Result<()> {
    let unix = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let host =
        std::fs::read_to_string("/proc/sys/kernel/hostname").map(|host| host.trim().to_owned()).unwrap_or_default();
    let counts: Vec<_> = summary
        .counts
        .iter()
        .map(|((status, reason), rows)| serde_json::json!({"status": status, "reason": reason, "rows": rows}))
        .collect();
    let manifest = serde_json::json!({
        "starsweep": env!("CARGO_PKG_VERSION"),
        "physics_version": PHYSICS_VERSION,
        "format_version": FORMAT_VERSION,
        "identity": store.identity,
        "command": std::env::args().collect::<Vec<_>>(),
        "host": host,
        "threads": order.threads,
        "started_unix_s": unix(started),
        "finished_unix_s": unix(SystemTime::now()),
        "parts": done.stretches.1,
        "parts_done_by_this_run": done.stretches.0,
        "rows": summary.rows(),
        "rows_known_from_earlier": done.known,
        "counts": counts,
        "refined_rows": refined.map(|refined| refined.places.len()),
        "refined_rows_done_by_this_run": refined.map(|refined| refined.done),
    });
    let text = serde_json::to_string_pretty(&manifest)?;
    store.write_file(&store.folder.join("manifest.json"), |out| Ok(writeln!(out, "{text}")?))?;
    Ok(())
}
