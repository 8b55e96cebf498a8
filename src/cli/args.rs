//! The arguments, as typed.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args as ClapArgs, FromArgMatches, Parser, Subcommand};
use itertools::Itertools;

use crate::column::Direction;

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
    /// Count the points, what each rule removes, what cannot exist; nothing is evaluated
    Preview(PreviewArgs),
    /// The best points of a folder of results
    Top(RankArgs),
    /// The front of a folder of results
    Pareto(RankArgs),
    /// SQL over a folder of results; the table is `points`
    Query(QueryArgs),
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

/// Arguments of `list`.
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    /// One of models, npus, links, clusters, precisions, tiers, topologies, algorithms, strategies, metrics, keys
    #[arg(value_name = "KIND")]
    pub what: Option<String>,
}
