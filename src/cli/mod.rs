//! The face: the only place that prints.

mod answer;
mod args;
mod exit;
mod list;
mod meter;
mod preview;
mod query;
mod rank;
mod render;
mod run;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

pub use args::{Args, Command};
pub use exit::Exit;

use crate::run::vocabulary;
use crate::sweep::{Diagnostic, Place, Severity, Source, Sweep, resolve, tree::MAX_BYTES};

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
fn load(file: &Path, overrides: &[String]) -> anyhow::Result<Result<Sweep, Exit>> {
    let size = match std::fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => {
            let error = Diagnostic::error(format!("`{}` is a folder", file.display()))
                .help("name a sweep file: `sweeps/quickstart.yaml`");
            render::diagnostics(&[error], file, "", overrides);
            return Ok(Err(Exit::Usage));
        }
        Ok(metadata) => metadata.len(),
        Err(source) => {
            let error = Diagnostic::error(format!("cannot read `{}`: {source}", file.display())).help(near_file(file));
            render::diagnostics(&[error], file, "", overrides);
            return Ok(Err(Exit::Usage));
        }
    };
    if size > MAX_BYTES as u64 {
        let place = Place { source: Source::File, line: 1, column: 1, length: 1 };
        let first = first_line(file);
        let error = Diagnostic::error(format!("the file has {size} bytes; a sweep file has at most {MAX_BYTES}"))
            .at(place)
            .help("give the name of a sweep file, not of a result or a trace");
        render::diagnostics(&[error], file, &first, overrides);
        return Ok(Err(Exit::Usage));
    }
    let bytes = std::fs::read(file)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            let line = valid.matches('\n').count() + 1;
            let column = valid.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
            let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let place = Place { source: Source::File, line: narrow(line), column: narrow(column), length: 1 };
            let error = Diagnostic::error("the file is no UTF-8 text").at(place).help("a sweep file is YAML in UTF-8");
            render::diagnostics(&[error], file, &valid, overrides);
            return Ok(Err(Exit::Usage));
        }
    };
    match resolve(&text, overrides, &vocabulary()) {
        Ok(sweep) => {
            if !sweep.cautions.is_empty() {
                render::diagnostics(&sweep.cautions, file, &text, overrides);
            }
            Ok(Ok(sweep))
        }
        Err(found) => {
            render::diagnostics(&found, file, &text, overrides);
            let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
            anstream::eprintln!(
                "{errors} mistake{} in `{}`; nothing was run or written",
                if errors == 1 { "" } else { "s" },
                file.display()
            );
            Ok(Err(Exit::Usage))
        }
    }
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
