//! The account: how a point's time becomes that of its files, by cause.

use super::step::Step;
use crate::sweep::Fidelity;
use crate::system::dimension_order::DimensionOrder;
use crate::system::queue_order::QueueOrder;
use crate::system::rules::{Quirk, Rules};
use crate::system::{Network, System};
use crate::units::Time;
use crate::workload::{Infeasible, Job};

/// A time, and that in which it ends, by cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// The point's own time.
    pub own: Time,
    /// What changes it, one on top of the other.
    pub causes: Vec<Cause>,
    /// What becomes of it.
    pub end: Time,
}

/// A cause, and the time with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// Its name: a quirk's, or one of ours.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The time before it.
    pub before: Time,
    /// The time with it.
    pub after: Time,
}

impl Account {
    /// An account that begins with a time.
    #[must_use]
    pub const fn of(own: Time) -> Self {
        Self { own, causes: Vec::new(), end: own }
    }

    /// Adds a cause, if it changes anything.
    pub fn add(&mut self, name: &'static str, what: &'static str, after: Time) {
        if after != self.end {
            self.causes.push(Cause { name, what, before: self.end, after });
        }
        self.end = after;
    }
}

/// How the time of a job becomes that under the reference's rules: event by event, then with one quirk after the other. What
/// cannot be simulated with some of them alone is left out: its cause is then part of the next. Also why one rank of each stage
/// does not come to an end with all of them, if it does not.
///
/// # Errors
/// Why the job cannot be.
pub fn account(
    job: &Job,
    system: &System,
    fidelity: Fidelity,
) -> Result<(Account, Step, Option<Infeasible>), Infeasible> {
    let mut account = Account::of(Step::of(job, system)?.time(fidelity)?);
    if fidelity == Fidelity::ClosedForm {
        let whole = Step::of(job, system)?.time(Fidelity::EventDriven)?;
        account.add("event_driven", "the whole graph event by event; the row is in closed form", whole);
    }
    let mut asked = Rules::OURS;
    let mut last = system.clone();
    for &quirk in Quirk::ALL {
        asked = asked.with(quirk);
        let next = restated(system, asked);
        if next == last {
            continue;
        }
        if let Ok(time) = Step::of(job, &next).and_then(|step| step.time(Fidelity::EventDriven)) {
            account.add(quirk.name(), quirk.summary(), time);
        }
        last = next;
    }
    let step = Step::of(job, &last)?;
    let end = step.time(Fidelity::EventDriven);
    account.end = end.unwrap_or(account.end);
    Ok((account, step, end.err()))
}

/// A system with more quirks, as the reference's files can say it: dimensions of one member are not there, and what its files
/// cannot say is as it is where nothing is said.
fn restated(system: &System, asked: Rules) -> System {
    let mut next = system.clone();
    next.rules = asked.quirks().fold(system.rules, Rules::with);
    let dims = system.network.dims.iter().filter(|dim| dim.size > 1).copied();
    next.network = Network { dims: dims.collect(), ..system.network.clone() };
    if asked.has(Quirk::SchedulingKeysIgnored) {
        next.collectives.dimension_order = DimensionOrder::Ascending;
        next.collectives.queue_order = QueueOrder::Fifo;
    }
    next
}
