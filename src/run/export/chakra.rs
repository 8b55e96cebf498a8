//! A step as Chakra execution traces, with the reference simulator's files of its machine: `simulate` reads them as the original does [ASTRA2].
//!
//! A trace has computations in whole microseconds only, or as operations and bytes. So the machine of the files computes a thousand
//! operations a nanosecond, and a computation has as many as take its time, and half a nanosecond more, so that rounding down
//! gives that time. Its local memory reduces as fast as the point's.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::account::{Account, account};
use super::ranks::{Price, Ranks};
use super::step::Step;
use super::{Unexported, beside, make_room};
use crate::astra_sim::{Files, options, write_common, write_machine, write_rank};
use crate::engine::event_driven::{Ask, asymmetry, computation, simulate_by};
use crate::sweep::Fidelity;
use crate::system::System;
use crate::system::machine::{Congestion, Machine, Pace};
use crate::system::rules::Quirk;
use crate::units::{Time, count};
use crate::workload::Job;
use crate::workload::trace::{Node, Work};

/// Operations of all ranks that are written without being asked twice: about two gigabytes.
pub const MOST: u64 = 20_000_000;
/// Operations of all ranks up to which they are simulated one by one where no rank stands for others.
const MOST_SIMULATED: u64 = 1_000_000;
/// Operations a nanosecond of the machine of the files, and what is rounded off.
const PACE: u64 = 1000;
/// See [`PACE`].
const HALF: u64 = PACE / 2;
/// Bytes a second of a local memory that reduces at once: a petabyte takes less than a nanosecond.
const AT_ONCE: f64 = 1e24;

/// How the files are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// How many operations there may be in all.
    pub most: u64,
    /// Whether ranks that are all alike have one file, or each its own.
    pub traces: Traces,
}

/// How many files traces are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traces {
    /// One for each rank, as the reference has them.
    OfEach,
    /// One for all, which `simulate` alone reads.
    Common,
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The folder.
    pub folder: PathBuf,
    /// How many ranks there are.
    pub ranks: u32,
    /// Operations of all files.
    pub operations: u64,
    /// How many groups there are.
    pub groups: usize,
    /// From the point's time to that of the files.
    pub account: Account,
    /// Why one rank of a stage does not stand for all there, if it does not and all are too many to be simulated here.
    pub unknown: Option<&'static str>,
    /// What simulates them.
    pub command: String,
}

/// Writes the traces of a job, and the files of its system, into a folder that is not there yet: whole or not at all.
///
/// # Errors
/// If the job cannot be or cannot be said, there is too much of it, or the folder is there or cannot be written.
pub fn chakra(
    job: &Job,
    system: &System,
    fidelity: Fidelity,
    (folder, title): (&Path, &str),
    form: Form,
) -> Result<Written, Unexported> {
    let (mut account, step, endless) =
        account(job, system, fidelity).map_err(Unexported::infeasible("the point cannot exist"))?;
    let stages = step.stages().map_err(Unexported::infeasible("the point cannot exist"))?;
    let ranks = Ranks::of(&step, &stages);
    let operations = ranks.operations();
    if ranks.count < 2 {
        return Err(Unexported::Inexpressible("the reference simulator knows no machine of one NPU".to_owned()));
    }
    let is_one = form.traces == Traces::Common;
    if is_one && !ranks.are_all_alike() {
        let why = "ranks differ in their stage or name groups of their own, so each has a file";
        return Err(Unexported::Inexpressible(why.to_owned()));
    }
    let operations = if is_one { operations / u64::from(ranks.count) } else { operations };
    if operations > form.most {
        return Err(Unexported::TooLarge(operations));
    }
    let own = step.machine();
    let machine = of_files(&own);
    machine.check().map_err(|what| Unexported::Inexpressible(what.to_string()))?;
    let priced = |node: &Node| timed(&own, node);
    let alikeness = alone(&step, (&machine, &ranks, &priced), &mut account)?;
    if let (Some(why), Alikeness::Alike | Alikeness::Unknown(_)) = (endless, alikeness) {
        return Err(Unexported::infeasible("the point cannot be under the reference's rules")(why));
    }
    let unknown = if let Alikeness::Unknown(why) = alikeness { Some(why) } else { None };
    make_room(folder)?;
    let part = beside(folder);
    if part.is_dir() {
        // What an export that was broken off has left.
        fs::remove_dir_all(&part).map_err(Unexported::file(&part))?;
    }
    fs::create_dir(&part).map_err(Unexported::file(&part))?;
    let files = write_machine(&machine, &ranks.groups, &part)?;
    if is_one {
        write_common(&ranks.graph(0, &priced), &files.workload)?;
    }
    for rank in 0..if is_one { 0 } else { ranks.count } {
        write_rank(&ranks.graph(rank, &priced), &ranks.groups, &files.workload, rank)?;
    }
    let command = |folder: &Path| command(&machine, &moved(&files, folder));
    let page = page(title, &command(Path::new("")), (&ranks, operations), (&account, unknown));
    let path = part.join("README.md");
    fs::write(&path, page).map_err(Unexported::file(&path))?;
    fs::rename(&part, folder).map_err(Unexported::file(folder))?;
    let command = command(folder);
    Ok(Written {
        folder: folder.to_owned(),
        ranks: ranks.count,
        operations,
        groups: ranks.groups.len(),
        account,
        unknown,
        command,
    })
}

/// The machine of the files: computations take the time that they are written with, and all else is as it was.
fn of_files(own: &Machine) -> Machine {
    let memory = if own.memory_bandwidth.is_finite() { own.memory_bandwidth } else { AT_ONCE };
    let peak = 1e9 * crate::units::real(PACE);
    let endpoint_delay =
        if own.rules.has(Quirk::WholeNanoseconds) { own.endpoint_delay.trunc() } else { own.endpoint_delay };
    Machine { pace: Pace::Roofline { peak, memory }, memory_bandwidth: memory, endpoint_delay, ..own.clone() }
}

/// A computation that takes its time on the machine of the files.
///
/// ```text
/// F = 1000 T + 500, S = 1      T = 1,234 ns: 1,234,500 operations, at 1e12 a second 1,234.5 ns, rounded down
/// ```
fn timed(own: &Machine, node: &Node) -> Work {
    let nanoseconds = own.time(computation(own, node)).as_picoseconds() / 1000;
    Work::Compute { operations: Some(nanoseconds.saturating_mul(PACE).saturating_add(HALF)), bytes: Some(1) }
}

/// Whether one rank of each stage stands for all under the reference's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alikeness {
    /// It does.
    Alike,
    /// It does not, and all were simulated.
    Simulated,
    /// It does not, and they are too many to be simulated here.
    Unknown(&'static str),
}

/// Where no rank stands for others, all are simulated one by one, if they are not too many.
fn alone(
    step: &Step,
    (machine, ranks, priced): (&Machine, &Ranks<'_>, Price<'_>),
    account: &mut Account,
) -> Result<Alikeness, Unexported> {
    let asymmetry = asymmetry(&step.program, &step.placement, &step.system);
    let Some(why) = asymmetry.map_err(Unexported::infeasible("the point cannot be simulated"))? else {
        return Ok(Alikeness::Alike);
    };
    if ranks.operations() > MOST_SIMULATED {
        return Ok(Alikeness::Unknown(why));
    }
    let outcome = simulate_by(machine, &ranks.trace(priced), Ask::default())?;
    let finish = outcome.ranks.iter().map(|rank| rank.finish).collect::<Option<Vec<Time>>>();
    let Some(end) = finish.and_then(|finish| finish.into_iter().max()) else {
        return Err(Unexported::Inexpressible(format!(
            "under the reference's rules ranks wait for each other for ever: {why}"
        )));
    };
    account.add("every_rank", why, end);
    Ok(Alikeness::Simulated)
}

/// Files where their folder will be.
fn moved(files: &Files, folder: &Path) -> Files {
    let moved = |path: &PathBuf| path.file_name().map_or_else(|| path.clone(), |name| folder.join(name));
    Files {
        workload: moved(&files.workload),
        system: moved(&files.system),
        network: moved(&files.network),
        memory: files.memory.as_ref().map(moved),
        groups: files.groups.as_ref().map(moved),
    }
}

/// What simulates the files.
fn command(machine: &Machine, files: &Files) -> String {
    let options = options(machine);
    let mut command = String::from("starsweep simulate");
    let mut option = |name: &str, value: String| {
        let _ = write!(command, " --{name}={value}");
    };
    option("workload-configuration", files.workload.display().to_string());
    option("system-configuration", files.system.display().to_string());
    option("network-configuration", files.network.display().to_string());
    if let Some(memory) = &files.memory {
        option("remote-memory-configuration", memory.display().to_string());
    }
    if let Some(groups) = &files.groups {
        option("comm-group-configuration", groups.display().to_string());
    }
    if options.queues_per_dim != 1 {
        option("num-queues-per-dim", options.queues_per_dim.to_string());
    }
    if options.rendezvous {
        option("rendezvous-protocol", "true".to_owned());
    }
    if options.congestion == Congestion::Aware {
        option("backend", "congestion_aware".to_owned());
    }
    command
}

/// The page that lies beside the files.
fn page(
    title: &str,
    command: &str,
    (ranks, operations): (&Ranks<'_>, u64),
    (account, unknown): (&Account, Option<&str>),
) -> String {
    let nanoseconds = |time: Time| count(time.as_picoseconds() / 1000);
    let end = match unknown {
        Some(why) => {
            format!("One rank of each stage would end at {} ns; ranks differ, as {why}.", nanoseconds(account.end))
        }
        None => format!("It ends at {} ns.", nanoseconds(account.end)),
    };
    format!(
        "# {title}

One training step as Chakra execution traces, and its machine as the files of ASTRA-sim 2.0.

```
{command}
```

{end} ASTRA-sim's analytical simulator takes the same options.

| file | what it is |
| --- | --- |
| `trace.RANK.et`, or `trace.et` for all | what each of {} ranks does: {} operations in all; the number of an operation is its place in its stage's step |
| `network.yml` | the dimensions, innermost first |
| `system.json` | how collectives run. `peak-perf` is 1 TFLOP/s: a computation has a thousand operations for each nanosecond that it takes, and half a nanosecond more, which is rounded off |
| `memory.json` | the memory beyond the NPUs' own |
| `groups.json` | {} communicator groups; where there is none the file is not written |
",
        count(ranks.count.into()),
        count(operations),
        count(ranks.groups.len() as u64),
    )
}
