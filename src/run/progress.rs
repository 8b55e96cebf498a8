//! Progress: counts that workers add to and one observer reads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::units::real;

/// What has been done so far. Workers add to it every thousand points, not at every one.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    to_do: AtomicU64,
    passed: AtomicU64,
    feasible: AtomicU64,
    infeasible: AtomicU64,
    stretches: AtomicU64,
    open: AtomicU64,
    errors: AtomicU64,
    known: AtomicU64,
    best: Mutex<Option<f64>>,
}

/// Counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Snapshot {
    /// Numbers of the whole product.
    pub total: u64,
    /// Numbers that this run has to pass.
    pub to_do: u64,
    /// Numbers that it has passed.
    pub passed: u64,
    /// Feasible points found.
    pub feasible: u64,
    /// Other points found.
    pub infeasible: u64,
    /// The shortest time found, in seconds.
    pub best: Option<f64>,
}

impl Snapshot {
    /// Points evaluated so far.
    #[must_use]
    pub const fn points(&self) -> u64 {
        self.feasible + self.infeasible
    }

    /// Seconds left after some seconds, if what is to do goes as what is done; none before anything is.
    ///
    /// Numbers that are no points are passed at once, so only numbers say how far a run is, and only points how fast.
    #[must_use]
    pub fn left(&self, seconds: f64) -> Option<f64> {
        let to_do = real(self.to_do.saturating_sub(self.passed));
        (self.passed > 0).then(|| seconds * to_do / real(self.passed))
    }
}

impl Progress {
    pub(super) fn start(&self, total: u64, to_do: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.to_do.store(to_do, Ordering::Relaxed);
    }

    pub(super) fn add(&self, passed: u64, feasible: u64, infeasible: u64) {
        self.passed.fetch_add(passed, Ordering::Relaxed);
        self.feasible.fetch_add(feasible, Ordering::Relaxed);
        self.infeasible.fetch_add(infeasible, Ordering::Relaxed);
    }

    pub(super) fn best(&self, seconds: f64) {
        if let Ok(mut best) = self.best.lock()
            && best.is_none_or(|best| seconds < best)
        {
            *best = Some(seconds);
        }
    }

    pub(super) fn open(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stretch_done(&self) {
        self.stretches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_known(&self) {
        self.known.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    pub(super) fn stretches(&self) -> u64 {
        self.stretches.load(Ordering::Relaxed)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.open.load(Ordering::Relaxed) - self.stretches()
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// The counts as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            total: self.total.load(Ordering::Relaxed),
            to_do: self.to_do.load(Ordering::Relaxed),
            passed: self.passed.load(Ordering::Relaxed),
            feasible: self.feasible.load(Ordering::Relaxed),
            infeasible: self.infeasible.load(Ordering::Relaxed),
            best: self.best.lock().ok().and_then(|best| *best),
        }
    }
}
