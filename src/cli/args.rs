//! The arguments, as typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

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
    /// Presets, parts and metrics, each with its source
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
    #[arg(short = 'n', default_value_t = 10)]
    pub rows: usize,
    /// A column that should be small [default: those of the sweep]
    #[arg(long, value_name = "COLUMN")]
    pub min: Vec<String>,
    /// A column that should be large
    #[arg(long, value_name = "COLUMN")]
    pub max: Vec<String>,
    /// Columns to show
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    pub columns: Vec<String>,
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
    /// models, npus, links, clusters, precisions, tiers, topologies, algorithms, strategies, metrics, keys
    pub what: Option<String>,
}
