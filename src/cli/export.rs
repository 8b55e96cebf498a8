//! `export`: a point of a folder of results as files of other tools.

use itertools::Itertools as _;

use super::args::{ExportArgs, Target};
use super::exit::{Exit, WrongFlag};
use super::render;
use crate::run::anchor;
use crate::run::evaluate::Evaluator;
use crate::run::export::chakra::{Form, MOST, Traces, Written};
use crate::run::export::{Account, Unexported, chakra, timeline};
use crate::run::named::{BEST, Lost, Named, cell};
use crate::run::simulate::nanoseconds;
use crate::sweep::point;
use crate::units::{Time, Unit, count, human, real};

/// Finds the point, writes what is asked for, and says what became of its time.
pub fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    let named = Named::find(&args.results, &args.point).map_err(lost)?;
    exportable(&named)?;
    let (job, mut system) = Evaluator::question(&named.inputs);
    let fidelity = point::fidelity(&named.inputs);
    let measured = named.sweep.anchor.as_ref();
    system.memory.capacity = anchor::capacity(measured, system.memory.capacity);
    let beside = |name: &str| args.results.join("export").join(&named.id).join(name);
    let out = args.out.clone().unwrap_or_else(|| beside(args.to.file_name()));
    say(&named, args);
    if let Some(measured) = measured {
        let (factor, name) = (measured.factor(fidelity), &measured.name);
        anstream::println!("its times are here as they are predicted; the table has them x {factor:.3}, by `{name}`");
    }
    match args.to {
        Target::Chakra => {
            let title = format!("Point {} of `{}`", named.id, args.results.display());
            let most = if args.large { u64::MAX } else { MOST };
            let form = Form { most, traces: if args.one_file { Traces::Common } else { Traces::OfEach } };
            let written = chakra(&job, &system, fidelity, (&out, &title), form).map_err(unexported)?;
            files(&written);
        }
        Target::Timeline => {
            let end = timeline(&job, &system, &out).map_err(unexported)?;
            let end = format!("{} ns ({})", nanoseconds(end), human(end.as_seconds(), Unit::SECOND));
            anstream::println!("its step, {end}, is in `{}`: https://ui.perfetto.dev opens it", out.display());
        }
    }
    Ok(Exit::Complete)
}

/// Whether the point is one that can be exported.
fn exportable(named: &Named) -> Result<(), WrongFlag> {
    let (id, status) = (&named.id, cell(&named.row, "status"));
    if status != "feasible" && status != "unmet" {
        let message = format!("point {id} is {status}: {}", cell(&named.row, "reason"));
        return Err(WrongFlag { message, help: Some(format!("`{BEST}` is the best of those that are feasible")) });
    }
    if named.sweep.recording(&named.inputs).is_some() {
        let message = format!("point {id} runs recorded traces, which are there already");
        return Err(WrongFlag { message, help: Some("its files are those that the sweep names".to_owned()) });
    }
    if !named.sweep.own(&named.inputs).is_empty() {
        let message = format!("point {id} has collectives that are traces of their own, which are not exported");
        return Err(WrongFlag { message, help: Some("choose a point whose `algorithm` is a word".to_owned()) });
    }
    Ok(())
}

fn lost(lost: Lost) -> anyhow::Error {
    match lost {
        Lost::Store(error) => error.into(),
        Lost::Name { message, help } => WrongFlag { message, help }.into(),
    }
}

fn unexported(failure: Unexported) -> anyhow::Error {
    let help = match &failure {
        Unexported::File { .. } => return failure.into(),
        Unexported::Taken(_) => Some("name another with `--out`, or remove it".to_owned()),
        Unexported::TooLarge(_) => Some(format!(
            "`--large` writes more than {} operations; fewer microbatches or layers are fewer",
            count(MOST)
        )),
        Unexported::Infeasible { .. } | Unexported::Inexpressible(_) => None,
    };
    WrongFlag { message: failure.to_string(), help }.into()
}

/// Which point it is.
fn say(named: &Named, args: &ExportArgs) {
    let values = named.values().iter().map(|(column, value)| format!("{column}={value}")).join(", ");
    let best = if named.is_best_of_several { format!(", the best with {}", args.point) } else { String::new() };
    anstream::println!("point {}{best}: {values}", named.id);
}

/// What was written, and how the point's time becomes that of the files.
fn files(written: &Written) {
    let Written { folder, ranks, operations, groups, account, unknown, command } = written;
    let (ranks, operations, groups) = (count((*ranks).into()), count(*operations), count(*groups as u64));
    anstream::println!("{ranks} ranks, {operations} operations, {groups} groups are in `{}`\n", folder.display());
    anstream::println!("{}\n", causes(account));
    if let Some(why) = unknown {
        anstream::println!("  where ranks of a stage are alike; these are not: {why}\n");
    }
    anstream::println!("{command}");
}

/// The table of an account.
fn causes(account: &Account) -> String {
    let time = |time: Time| format!("{} ns", nanoseconds(time));
    let header = ["", "time", "difference", "what it is"].map(str::to_owned);
    let line = |name: &str, cells: [String; 2], what: &str| {
        vec![name.to_owned(), cells[0].clone(), cells[1].clone(), what.to_owned()]
    };
    let own = line("the point", [time(account.own), "-".to_owned()], "by its own rules");
    let causes = account.causes.iter().map(|cause| {
        let [before, after] = [cause.before, cause.after].map(|time| real(time.as_picoseconds()));
        let share = format!("{:+.3} %", (after - before) / real(account.own.as_picoseconds()) * 100.0);
        let what = cause.what.split_once(';').map_or(cause.what, |parts| parts.0);
        line(cause.name, [time(cause.after), share], what)
    });
    let end = line("the files", [time(account.end), "-".to_owned()], "what `simulate` says of them");
    render::table(&header, &std::iter::once(own).chain(causes).chain([end]).collect_vec())
}

/// The default of `--out` below a folder of results.
impl Target {
    const fn file_name(self) -> &'static str {
        match self {
            Self::Chakra => "chakra",
            Self::Timeline => "timeline.json",
        }
    }
}
