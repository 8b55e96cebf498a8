//! What tests share: running the program, resolving a text, evaluating a point.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use starsweep::run::evaluate::{Evaluation, Evaluator};
use starsweep::run::vocabulary;
use starsweep::sweep::{Inputs, Sweep, point, resolve};
use starsweep::system::System;
use starsweep::workload::{Infeasible, Job, Model, transformer};

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program with arguments, not yet started, in the root of the project.
pub fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starsweep"));
    command.args(args).current_dir(root()).env("NO_COLOR", "1").env_remove("SLURM_CPUS_PER_TASK");
    command
}

/// The program, run to its end.
pub fn run(args: &[&str]) -> Output {
    program(args).output().expect("the program starts")
}

/// The exit code of a program that was not killed.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

/// What a program printed as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Resolves a sweep that is right.
pub fn sweep(yaml: &str) -> Sweep {
    resolve(yaml, &[], &vocabulary()).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// The inputs of every point of a sweep.
pub fn points(sweep: &Sweep) -> Vec<Inputs> {
    let mut cursor = sweep.space.cursor(0);
    let mut found = Vec::new();
    while cursor.next_point(sweep.space.len()).is_some() {
        found.push(cursor.inputs.clone());
        cursor.step();
    }
    found
}

/// The job and system of a point, and what became of it.
pub fn evaluate(inputs: &Inputs) -> (Job, System, Result<Evaluation, Infeasible>) {
    let (job, system) = Evaluator::question(inputs);
    let result = Evaluator::default().evaluate(&job, &system, point::fidelity(inputs));
    (job, system, result)
}

/// The training step of a transformer.
pub fn transformer(job: &Job) -> transformer::Training {
    let Job::Training(training) = job else { panic!("{job:?} is no training") };
    let Model::Transformer(model) = training.model else { panic!("{job:?} is no transformer") };
    training.of(model)
}

/// The evaluations of every point of a sweep, all feasible.
pub fn evaluations(yaml: &str) -> Vec<Evaluation> {
    let sweep = sweep(yaml);
    points(&sweep).iter().map(|inputs| evaluate(inputs).2.expect("a feasible point")).collect()
}

/// A file of the sweep folder as a text.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the project")
}

/// The segment files of a folder of results, by name.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder.join("points"))
        .expect("a folder of points")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    found.sort();
    found
}
