//! Exit codes, a sentence each.

use std::process::ExitCode;

use thiserror::Error;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Complete = 0,
    /// The world failed: a disk, a lock.
    World = 1,
    /// The file or a flag is wrong; nothing was written.
    Usage = 2,
    /// All was done, and nothing is feasible.
    NothingFeasible = 3,
    /// We made a mistake; the rest was done.
    Ours = 70,
    /// Interrupted from the keyboard; the same command goes on.
    Interrupted = 130,
    /// Told to end; the same command goes on.
    Terminated = 143,
}

/// A flag that asks for what is not there.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct WrongFlag {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Exit {
    /// How a failure ends the program.
    pub fn of(failure: &anyhow::Error) -> Self {
        if failure.is::<WrongFlag>() { Self::Usage } else { Self::World }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
