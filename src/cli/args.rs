//! The arguments, as typed.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, Args as ClapArgs, FromArgMatches, Parser, Subcommand};
use itertools::Itertools;

use crate::column::Direction;
use crate::engine::event_driven::Path;
use crate::input::diagnostic::nearest;
use crate::run::validate::Half;
use crate::system::machine::Congestion;
use crate::system::rules::{Quirk, Rules};

/// Which network, which parallel plan, which memory? Sweeps of design points for systems that train large models.
#[derive(Debug, Parser)]
#[command(name = "starsweep", version, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Evaluate every point of a sweep, or what is missing of it, and answer
    Run(RunArgs),
    /// Count the points, what each rule removes, what cannot exist, what it will cost; nothing is written
    Preview(PreviewArgs),
    /// The best points of a folder of results
    Top(RankArgs),
    /// The front of a folder of results
    Pareto(RankArgs),
    /// SQL over a folder of results; the tables are `points` and, after a `refine`, `refined`
    Query(QueryArgs),
    /// Simulate execution traces as ASTRA-sim 2.0 does, from its own files: every message, to the cycle
    Simulate(Box<SimulateArgs>),
    /// Predictions against measured runs: the errors of each source; without a table the published runs that are part of the program
    Validate(ValidateArgs),
    /// Constants of machines and software fitted to measured runs, with the errors before and after
    Calibrate(CalibrateArgs),
    /// A point of a folder of results as files of other tools
    Export(ExportArgs),
    /// What kinds of presets and parts there are; of one kind its entries, a preset's with their sources
    List(ListArgs),
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    /// The sweep file
    pub sweep: PathBuf,
    /// The folder of results [default: results/<name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads [default: SLURM_CPUS_PER_TASK, else the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Also write points.csv
    #[arg(long)]
    pub csv: bool,
    /// Put the points that are there aside and evaluate all again
    #[arg(long)]
    pub fresh: bool,
    /// No progress and no answer, only errors
    #[arg(long)]
    pub quiet: bool,
    /// Set a key over what the file says: `-s plan.tp=8`
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of `preview`.
#[derive(Debug, ClapArgs)]
pub struct PreviewArgs {
    /// The sweep file
    pub sweep: PathBuf,
    /// List the defaults in force
    #[arg(long)]
    pub defaults: bool,
    /// Set a key over what the file says
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of `top` and `pareto`.
#[derive(Debug, ClapArgs)]
pub struct RankArgs {
    /// The folder of results
    pub results: PathBuf,
    /// How many rows
    #[arg(short = 'n', value_name = "ROWS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,
    /// What is best
    #[command(flatten)]
    pub objectives: Objectives,
    /// Among the points that `refine` evaluated again, event-driven
    #[arg(long)]
    pub refined: bool,
    /// Columns to show
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    pub columns: Vec<String>,
}

/// `--min COLUMN` and `--max COLUMN`, in the order in which they are typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Objectives(pub Vec<(String, Direction)>);

impl clap::Args for Objectives {
    fn augment_args(command: clap::Command) -> clap::Command {
        let arg = |direction: Direction| {
            Arg::new(direction.name()).long(direction.name()).value_name("COLUMN").action(ArgAction::Append)
        };
        command
            .arg(
                arg(Direction::Min)
                    .help("A column that should be small; the first named counts most [default: the sweep's]"),
            )
            .arg(arg(Direction::Max).help("A column that should be large"))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Objectives {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |direction: Direction| {
            let places = matches.indices_of(direction.name()).into_iter().flatten();
            let columns = matches.get_many::<String>(direction.name()).into_iter().flatten();
            places.zip(columns).map(move |(place, column)| (place, (column.clone(), direction)))
        };
        let all = typed(Direction::Min).chain(typed(Direction::Max)).sorted_by_key(|typed| typed.0);
        Ok(Self(all.map(|typed| typed.1).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Arguments of `query`.
#[derive(Debug, ClapArgs)]
pub struct QueryArgs {
    /// The folder of results
    pub results: PathBuf,
    /// The question: `SELECT model, min(iteration_time_s) FROM points GROUP BY model`
    pub sql: String,
    /// As CSV instead of a table
    #[arg(long)]
    pub csv: bool,
}

/// Arguments of `simulate`: the reference's own, then ours.
#[derive(Debug, ClapArgs)]
#[command(after_help = SIMULATE)]
pub struct SimulateArgs {
    /// Execution traces: PREFIX stands for PREFIX.0.et, PREFIX.1.et, ..., one for each rank
    #[arg(long, value_name = "PREFIX", help_heading = INPUTS)]
    pub workload_configuration: PathBuf,
    /// The system: how collectives run (JSON)
    #[arg(long, value_name = "FILE", help_heading = INPUTS)]
    pub system_configuration: PathBuf,
    /// The network: its dimensions (YAML)
    #[arg(long, value_name = "FILE", help_heading = INPUTS)]
    pub network_configuration: PathBuf,
    /// The memory beyond the NPUs' own (JSON) [default: there is none]
    #[arg(long, value_name = "FILE", help_heading = INPUTS)]
    pub remote_memory_configuration: Option<PathBuf>,
    /// Communicator groups (JSON); a path that holds the word `empty` means none
    #[arg(long, value_name = "FILE", default_value = "empty", help_heading = INPUTS)]
    pub comm_group_configuration: PathBuf,
    /// Queues of each dimension
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = SETTINGS)]
    pub num_queues_per_dim: u32,
    /// Multiplies the endpoint delay of the system file
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, help_heading = SETTINGS)]
    pub injection_scale: f64,
    /// Whether a receiver asks for a message before it is sent
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        value_parser = flag, action = ArgAction::Set, help_heading = SETTINGS)]
    pub rendezvous_protocol: bool,
    /// Whether a link carries one message at a time; if so, the network has one dimension
    #[arg(long, value_name = "BACKEND", default_value = BACKENDS[0],
        value_parser = PossibleValuesParser::new(BACKENDS).map(congestion), help_heading = SETTINGS)]
    pub backend: Congestion,
    /// Whose rules hold: ASTRA-sim's to the cycle, or ours, without its quirks
    #[arg(long, value_name = "RULES", default_value = Rules::NAMES[1],
        value_parser = PossibleValuesParser::new(Rules::NAMES).map(rules), help_heading = SETTINGS)]
    pub rules: Rules,
    /// The rules with this quirk of ASTRA-sim; may be given several times (`starsweep list quirks` has all)
    #[arg(long, value_name = "QUIRK", value_parser = quirk, help_heading = SETTINGS)]
    pub with: Vec<Quirk>,
    /// The rules without this quirk; may be given several times
    #[arg(long, value_name = "QUIRK", value_parser = quirk, help_heading = SETTINGS)]
    pub without: Vec<Quirk>,
    /// The same as `--without scheduling_keys_ignored`
    #[arg(long, help_heading = SETTINGS)]
    pub heed_scheduling_keys: bool,
    /// Whether one rank stands for all that do the same, or every message is simulated
    #[arg(long, value_name = "PATH", default_value = PATHS[0],
        value_parser = PossibleValuesParser::new(PATHS).map(path), help_heading = SETTINGS)]
    pub path: Path,
    /// No effect, as in ASTRA-sim
    #[arg(long, value_name = "FACTOR", help_heading = IGNORED)]
    pub comm_scale: Option<String>,
    /// No effect, as in ASTRA-sim
    #[arg(long, value_name = "FACTOR", help_heading = IGNORED)]
    pub compute_scale: Option<String>,
    /// No effect: there is no log
    #[arg(long, value_name = "FILE", help_heading = IGNORED)]
    pub logging_configuration: Option<PathBuf>,
    /// No effect: there is no log
    #[arg(long, value_name = "DIR", help_heading = IGNORED)]
    pub logging_folder: Option<PathBuf>,
    /// One JSON object instead of tables
    #[arg(long, help_heading = OUTPUTS)]
    pub json: bool,
    /// Also write every operation's start and end, as trace events that Perfetto opens
    #[arg(long, value_name = "FILE", help_heading = OUTPUTS)]
    pub timeline: Option<PathBuf>,
}

const INPUTS: &str = "Input";
const SETTINGS: &str = "Settings";
const OUTPUTS: &str = "Output";
const IGNORED: &str = "Accepted, without effect";

/// What stands below the help of `simulate`.
const SIMULATE: &str = "\
A command line of ASTRA-sim's analytical simulators works as it is, whether `--option=value` or `--option value`. \
Times are whole nanoseconds, which ASTRA-sim calls cycles. As exposed communication it counts the end of a rank \
less its computation: waiting and memory are in it too.

Exit codes: 0 all ranks came to their end, 2 a file or an option is wrong or ranks wait for each other for ever.";

/// The two simulators of the reference.
pub const BACKENDS: [&str; 2] = ["congestion_unaware", "congestion_aware"];

/// What a backend means.
#[expect(clippy::needless_pass_by_value, reason = "a parser hands over what it has read")]
fn congestion(backend: String) -> Congestion {
    if backend == BACKENDS[1] { Congestion::Aware } else { Congestion::Unaware }
}

/// The ways to an outcome.
pub const PATHS: [&str; 3] = ["automatic", "symmetric", "messages"];

/// What a way is.
#[expect(clippy::needless_pass_by_value, reason = "a parser hands over what it has read")]
fn path(path: String) -> Path {
    match PATHS.iter().position(|name| *name == path) {
        Some(1) => Path::Symmetric,
        Some(2) => Path::Messages,
        _ => Path::Automatic,
    }
}

/// The rules of a name.
#[expect(clippy::needless_pass_by_value, reason = "a parser hands over what it has read")]
fn rules(name: String) -> Rules {
    let known = Rules::NAMES.iter().zip(Rules::NAMED).find(|known| *known.0 == name);
    known.map_or(Rules::ASTRA_SIM, |known| known.1)
}

/// The quirk of a name.
fn quirk(name: &str) -> Result<Quirk, String> {
    let names = Quirk::ALL.iter().map(|quirk| quirk.name());
    Quirk::named(name).ok_or_else(|| {
        let help = nearest(name, names).map(|near| format!("; did you mean `{near}`?"));
        format!("there is no such quirk{}", help.unwrap_or_else(|| "; `starsweep list quirks` has all".to_owned()))
    })
}

/// A factor: not negative, and finite.
fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.trim().parse().map_err(|_| "not a number".to_owned())?;
    if factor.is_finite() && factor >= 0.0 { Ok(factor) } else { Err("a factor is 0 or more".to_owned()) }
}

/// Yes or no, in the reference's words.
fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "False" => Ok(false),
        _ => Err("`true` or `false`".to_owned()),
    }
}

/// Arguments of `validate`.
#[derive(Debug, ClapArgs)]
pub struct ValidateArgs {
    /// Measured runs as comma-separated values: see `tests/data/measured/README.md` for the columns
    #[arg(value_name = "MEASUREMENTS.csv")]
    pub measurements: Option<PathBuf>,
    /// Every row too: measured, predicted, error, and why there is none
    #[arg(long)]
    pub rows: bool,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `calibrate`.
#[derive(Debug, ClapArgs)]
pub struct CalibrateArgs {
    /// Measured runs, as `validate` takes them [default: the published runs that are part of the program]
    #[arg(value_name = "MEASUREMENTS.csv")]
    pub measurements: Option<PathBuf>,
    /// The constants to move [default: of one's own runs those of their NPUs, software and links, one for every three runs]
    #[arg(long, value_name = "FILE")]
    pub constants: Option<PathBuf>,
    /// Of the published runs one half of each group
    #[arg(long, value_name = "HALF", value_parser = PossibleValuesParser::new(Half::NAMES.map(|half| half.1)).map(half))]
    pub half: Option<Half>,
    /// A group that takes no part in the fit; may be given several times
    #[arg(long, value_name = "GROUP")]
    pub leave_out: Vec<String>,
    /// Also the error of each group when it takes no part
    #[arg(long)]
    pub leave_one_source_out: bool,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The half of a name.
#[expect(clippy::needless_pass_by_value, reason = "a parser hands over what it has read")]
fn half(name: String) -> Half {
    Half::NAMES.iter().find(|half| half.1 == name).map_or(Half::Fitted, |half| half.0)
}

/// Arguments of `export`.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXPORT)]
pub struct ExportArgs {
    /// The folder of results
    pub results: PathBuf,
    /// The point: its id or how that begins, `best`, values of columns (`tp=8,pp=4`), or names of alternatives (`rack/moe`)
    pub point: String,
    /// As what
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(TARGETS).map(target))]
    pub to: Target,
    /// The folder, or the file, that is written; never one that is there [default: RESULTS/export/ID/WHAT]
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Also more than 20 million operations, some gigabytes
    #[arg(long)]
    pub large: bool,
    /// One trace for all ranks, PREFIX.et, if all do the same; ASTRA-sim does not know it
    #[arg(long)]
    pub one_file: bool,
}

/// What stands below the help of `export`.
const EXPORT: &str = "\
chakra: an execution trace for every rank and the files of ASTRA-sim for their machine; `starsweep simulate` and ASTRA-sim \
read them, and the answer says cause by cause how the point's time becomes theirs. timeline: when each pipeline stage does \
what, by the point's own rules, event by event, as trace events that Perfetto opens.

Exit codes: 0 written, 1 the disk failed, 2 there is no such point, it cannot be exported, or something is there already.";

/// What a point is exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Chakra traces with the reference simulator's files.
    Chakra,
    /// Trace events of one step.
    Timeline,
}

/// The names that people write.
const TARGETS: [&str; 2] = ["chakra", "timeline"];

/// What a name means.
#[expect(clippy::needless_pass_by_value, reason = "a parser hands over what it has read")]
fn target(name: String) -> Target {
    if name == TARGETS[1] { Target::Timeline } else { Target::Chakra }
}

/// Arguments of `list`.
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    /// One of models, npus, links, clusters, precisions, tiers, topologies, algorithms, dimension_orders, chunk_orders, strategies, schedules, optimizers, metrics, keys, quirks
    #[arg(value_name = "KIND")]
    pub what: Option<String>,
}
