//! Exports: a point of a sweep as files of other tools.

pub mod account;
pub mod chakra;
pub mod ranks;
pub mod step;
pub mod timeline;

use std::path::{Path, PathBuf};

use thiserror::Error;

pub use account::{Account, Cause};
pub use chakra::chakra;
pub use step::Step;
pub use timeline::timeline;

use crate::astra_sim::Failure;
use crate::engine::event_driven::Refused;
use crate::workload::{Infeasible, Reason};

/// Why a point cannot be exported.
#[derive(Debug, Error)]
pub enum Unexported {
    /// The point cannot exist, or not under these rules.
    #[error("{what}: {}", .why.meaning())]
    Infeasible {
        /// What cannot be.
        what: &'static str,
        /// Why not.
        why: Reason,
    },
    /// There are no files for such a thing.
    #[error("{0}")]
    Inexpressible(String),
    /// There is too much of it.
    #[error("the files would hold {0} operations")]
    TooLarge(u64),
    /// What was to be written is there.
    #[error("`{}` is there already", .0.display())]
    Taken(PathBuf),
    /// A file could not be written.
    #[error("cannot write `{}`", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

impl From<Failure> for Unexported {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::File { path, source } => Self::File { path, source },
            Failure::Inexpressible(what) => Self::Inexpressible(what),
        }
    }
}

impl From<Refused> for Unexported {
    fn from(refused: Refused) -> Self {
        Self::Inexpressible(refused.to_string())
    }
}

impl Unexported {
    /// A point that cannot be, under some rules.
    fn infeasible(what: &'static str) -> impl Fn(Infeasible) -> Self {
        move |why| Self::Infeasible { what, why: why.reason }
    }

    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }
}

/// Makes the folders above a path at which nothing is yet.
///
/// # Errors
/// If something is there, or a folder cannot be made.
fn make_room(path: &Path) -> Result<(), Unexported> {
    if path.exists() {
        return Err(Unexported::Taken(path.to_owned()));
    }
    match path.parent() {
        Some(above) => std::fs::create_dir_all(above).map_err(Unexported::file(above)),
        None => Ok(()),
    }
}

/// The path of what is being written, beside where it will be.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
