//! The face: the only place that prints.

mod anchor;
mod answer;
mod args;
mod calibrate;
mod exit;
mod export;
mod list;
mod meter;
mod preview;
mod query;
mod rank;
mod render;
mod run;
mod simulate;
mod validate;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

pub use args::{Args, Command};
pub use exit::Exit;

use crate::input::{Diagnostic, Place, Severity, Source, tree::MAX_BYTES};
use crate::run::{Files, vocabulary};
use crate::sweep::{Sweep, Vocabulary, resolve};
use crate::units::narrow;

/// Reads the arguments and does what they say.
#[must_use]
pub fn main() -> ExitCode {
    // A reader that has seen enough (`| head`) is no failure of ours.
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Complete.into() };
        }
    };
    let done = match args.command {
        Command::Run(args) => run::run(&args),
        Command::Preview(args) => preview::preview(&args),
        Command::Top(args) => rank::top(&args),
        Command::Pareto(args) => rank::pareto(&args),
        Command::Query(args) => query::query(&args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Export(args) => export::export(&args),
        Command::List(args) => list::list(&args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            render::failure(&error);
            Exit::of(&error).into()
        }
    }
}

/// Reads and resolves a sweep file; prints everything that is wrong with it, or its cautions.
fn load(file: &Path, overrides: &[String]) -> Result<Sweep, Exit> {
    let files = Arc::new(Files::beside(file));
    let vocabulary = Vocabulary { loader: Some(files.clone()), ..vocabulary() };
    let (text, found) = match read(file) {
        Ok(text) => match resolve(&text, overrides, &vocabulary) {
            Ok(sweep) => {
                render::diagnostics(&sweep.cautions, file, &text, overrides, &files.texts());
                return Ok(sweep);
            }
            Err(found) => (text, found),
        },
        Err((beginning, mistake)) => (beginning, vec![mistake]),
    };
    render::diagnostics(&found, file, &text, overrides, &files.texts());
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let mistakes = if errors == 1 { "mistake" } else { "mistakes" };
    anstream::eprintln!("{errors} {mistakes} in `{}`; nothing was run or written", file.display());
    Err(Exit::Usage)
}

/// The text of a sweep file; or why there is none, with what could be read of it.
fn read(file: &Path) -> Result<String, (String, Diagnostic)> {
    let unread = |source: std::io::Error| {
        let error = Diagnostic::error(format!("cannot read `{}`: {source}", file.display()));
        (String::new(), error.help(near_file(file)))
    };
    let metadata = std::fs::metadata(file).map_err(unread)?;
    if metadata.is_dir() {
        let error = Diagnostic::error(format!("`{}` is a folder", file.display()));
        return Err((String::new(), error.help("name a sweep file: `sweeps/quickstart.yaml`")));
    }
    if metadata.len() > MAX_BYTES as u64 {
        let size = metadata.len();
        let error = Diagnostic::error(format!("the file has {size} bytes; a sweep file has at most {MAX_BYTES}"))
            .at(Place { source: Source::File, line: 1, column: 1, length: 1 })
            .help("give the name of a sweep file, not of a result or a trace");
        return Err((first_line(file), error));
    }
    String::from_utf8(std::fs::read(file).map_err(unread)?).map_err(|error| {
        let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let line = narrow(valid.matches('\n').count() as u64 + 1);
        let column = narrow(valid.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u64 + 1);
        let error = Diagnostic::error("the file is no UTF-8 text")
            .at(Place { source: Source::File, line, column, length: 1 })
            .help("a sweep file is YAML in UTF-8");
        (valid, error)
    })
}

/// The sweep files beside a file that is not there.
fn near_file(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut known: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "yaml" || end == "yml"))
        .collect();
    known.sort();
    crate::sweep::resolve::suggestion(&name, &known)
        .unwrap_or_else(|| "name a sweep file: `sweeps/quickstart.yaml`".to_owned())
}

/// The beginning of a file that is too large to be read whole.
fn first_line(file: &Path) -> String {
    use std::io::Read;
    let mut start = [0; 120];
    let read = std::fs::File::open(file).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    String::from_utf8_lossy(&start[..read]).lines().next().unwrap_or_default().to_owned()
}
