//! Simulating a trace on a machine: what is checked before, and what is made of the outcome.

use std::collections::BTreeMap;

use thiserror::Error;

use super::deadlock::{Knot, knots};
use crate::engine::event_driven::{Ask, Outcome, Refused, simulate_by};
use crate::system::machine::{Dimension, Machine};
use crate::units::{Time, count, narrow, real, whole};
use crate::workload::trace::{Fault, Trace};

/// From which share of the wire's time on a dimension was too fast: whole nanoseconds may save a little of every message.
const TOO_FAST: f64 = 1.01;

/// What a simulation says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What happened.
    pub outcome: Outcome,
    /// What is wrong with the trace.
    pub faults: Vec<Fault>,
    /// How long nothing went on at each rank before its end.
    pub idle: Vec<Option<Time>>,
    /// What each dimension carried.
    pub dimensions: Vec<Carried>,
    /// What waits for ever.
    pub knots: Vec<Knot>,
}

/// What a dimension of the network carried.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Links of an NPU, each with the dimension's bandwidth.
    pub links: u32,
    /// The rank that sent most.
    pub busiest_rank: u32,
    /// Bytes that it sent.
    pub sent: u64,
    /// Bytes that all ranks sent.
    pub sent_by_all: u64,
    /// Nanoseconds that all its links together need for these.
    pub wire: f64,
    /// That time as a share of the whole; none if there is no end.
    pub utilisation: Option<f64>,
}

/// Why nothing was simulated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Impossible {
    /// Some ranks could not come to their end.
    #[error("some ranks cannot come to their end")]
    Faults(Vec<Fault>),
    /// The engine refuses.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Checks a trace and simulates it in a way that is asked for; if told so also where a fault keeps ranks from their end.
///
/// # Errors
/// If the trace cannot end, or the engine refuses it.
pub fn simulate(machine: &Machine, trace: &Trace, ask: Ask, despite_faults: bool) -> Result<Answer, Impossible> {
    let mut faults = trace.check(machine);
    if !despite_faults && faults.iter().any(Fault::is_fatal) {
        faults.sort_by_key(|fault| !fault.is_fatal());
        return Err(Impossible::Faults(faults));
    }
    let outcome = simulate_by(machine, trace, ask)?;
    let dimensions = (0..machine.dimensions.len()).map(|k| carried(&machine.dimensions[k], k, &outcome)).collect();
    let (idle, knots) = (idle(&outcome), knots(trace, &outcome));
    Ok(Answer { outcome, faults, idle, dimensions, knots })
}

impl Answer {
    /// When the last rank is done; none if one never is.
    #[must_use]
    pub fn finish(&self) -> Option<Time> {
        finish(&self.outcome)
    }

    /// The dimension whose links are used most; none if nothing was sent.
    #[must_use]
    pub fn busiest(&self) -> Option<usize> {
        let used = self.dimensions.iter().enumerate().filter(|(_, carried)| carried.sent > 0);
        used.max_by(|a, b| a.1.wire.total_cmp(&b.1.wire).then(b.0.cmp(&a.0))).map(|used| used.0)
    }

    /// What to look at in a deadlock, if no fault says it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        let is_told = self.faults.iter().any(|fault| matches!(fault, Fault::NoPower { .. }));
        self.knots.iter().filter(|_| !is_told).find_map(Knot::help)
    }

    /// Dimensions that carried more than their links can in the time, in words.
    #[must_use]
    pub fn too_fast(&self) -> Vec<String> {
        let beats = |(k, carried): (usize, &Carried)| {
            carried.utilisation.filter(|&share| share > TOO_FAST).map(|_| {
                format!(
                    "the end is at {} ns, but dimension {} alone needs {} ns to carry what rank {} sends",
                    nanoseconds(self.finish().unwrap_or_default()),
                    k + 1,
                    count(whole(carried.wire.ceil())),
                    carried.busiest_rank,
                )
            })
        };
        self.dimensions.iter().enumerate().filter_map(beats).collect()
    }
}

/// When the last rank is done; none if one never is.
fn finish(outcome: &Outcome) -> Option<Time> {
    outcome.ranks.iter().map(|rank| rank.finish).max_by_key(|finish| finish.unwrap_or(Time::MAX)).flatten()
}

/// Nanoseconds with commas, with picoseconds behind the point if there are some.
#[must_use]
pub fn nanoseconds(time: Time) -> String {
    let picoseconds = time.as_picoseconds();
    match picoseconds % 1000 {
        0 => count(picoseconds / 1000),
        rest => format!("{}.{rest:03}", count(picoseconds / 1000)),
    }
}

/// The ranks for which each rank that was simulated stands, by the number of that rank.
#[must_use]
pub fn alike(outcome: &Outcome) -> BTreeMap<u32, Vec<u32>> {
    let mut of_class: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&class, rank) in outcome.classes.iter().zip(0..) {
        of_class.entry(class).or_default().push(rank);
    }
    of_class.into_values().map(|ranks| (ranks[0], ranks)).collect()
}

/// What a dimension carried.
///
/// ```text
/// wire = S / (L * B), utilisation = wire / T      S bytes of the busiest rank over L links of bandwidth B, T until the end
/// ```
fn carried(dimension: &Dimension, k: usize, outcome: &Outcome) -> Carried {
    let sent = || outcome.ranks.iter().map(|rank| rank.sent.get(k).copied().unwrap_or(0));
    let (busiest_rank, most) = sent().enumerate().fold((0, 0), |best, next| if next.1 > best.1 { next } else { best });
    let links = dimension.links();
    let wire = if most == 0 { 0.0 } else { real(most) / (f64::from(links) * dimension.bandwidth) };
    let utilisation = finish(outcome).filter(|&end| end > Time::ZERO).map(|end| wire / end.as_delay().as_nanoseconds());
    Carried {
        links,
        busiest_rank: narrow(busiest_rank as u64),
        sent: most,
        sent_by_all: sent().fold(0, u64::saturating_add),
        wire,
        utilisation,
    }
}

/// How long nothing went on at each rank before its end.
fn idle(outcome: &Outcome) -> Vec<Option<Time>> {
    outcome.ranks.iter().map(|rank| rank.finish.map(|finish| finish.saturating_sub(rank.engaged))).collect()
}
