//! The preview: what a sweep is before anything is evaluated: how many points, what each rule removes, what cannot exist.

use std::time::{Duration, Instant};

use super::anchor;
use super::evaluate::Evaluator;
use super::recorded;
use crate::sweep::{Fidelity, Inputs, Removal, Remover, Sweep, point};
use crate::units::real;
use crate::workload::{Placement, Reason, check, place};

/// The largest product that is counted number by number.
pub const COUNTED: u64 = 10_000_000;
/// How many numbers stand for a larger one.
pub const SAMPLE: u64 = 200_000;

/// How many points are timed at most.
const TIMED: u64 = 64;
/// How long points are timed; the first one is whatever it takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a sweep is before anything is evaluated.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// Numbers of the product.
    pub raw: u64,
    /// Numbers looked at: all, or a sample.
    pub looked_at: u64,
    /// What each remover takes of those looked at, in the order in which they are counted.
    pub removed: Vec<(String, u64)>,
    /// What is left of those looked at.
    pub left: u64,
    /// How many of them are event-driven.
    pub event_driven: u64,
    /// Why how many of what is left cannot exist.
    pub infeasible: Vec<(Reason, u64)>,
}

impl Preview {
    /// Whether counts are exact.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.looked_at == self.raw
    }

    /// A count of those looked at as an estimate for the whole, with its standard error.
    ///
    /// ```text
    /// N k / n  +-  N sqrt(p (1 - p) / n),  p = k / n;  below 3 N / n at 95 % if k = 0 (the rule of three)
    /// ```
    #[must_use]
    pub fn estimate(&self, count: u64) -> Estimate {
        let (raw, looked_at) = (real(self.raw), real(self.looked_at.max(1)));
        let share = real(count) / looked_at;
        if self.is_exact() {
            Estimate::Exact(count)
        } else if count == 0 {
            Estimate::Below(3.0 * raw / looked_at)
        } else {
            Estimate::About(raw * share, raw * (share * (1.0 - share) / looked_at).sqrt())
        }
    }
}

/// A count, as well as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    /// Counted one by one.
    Exact(u64),
    /// From a sample, with its standard error.
    About(f64, f64),
    /// None in a sample, so most likely fewer than this.
    Below(f64),
}

impl Estimate {
    /// The most likely count.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::Exact(count) => real(count),
            Self::About(value, _) => value,
            Self::Below(_) => 0.0,
        }
    }
}

/// Looks at a sweep without evaluating it: every number of its product up to ten million, beyond a sample.
///
/// The sample is every k-th number with an odd part mixed in, so that no axis falls in step with it; it is the same each time.
#[must_use]
pub fn preview(sweep: &Sweep) -> Preview {
    let raw = sweep.space.len();
    let looked_at = if raw <= COUNTED { raw } else { SAMPLE };
    let mut counts = vec![0_u64; Removal::ALL.len() + sweep.space.filters.len()];
    let mut found = Preview { raw, looked_at, ..Preview::default() };
    let mut infeasible = vec![0_u64; Reason::ALL.len()];
    let mut placement = Placement::default();
    let mut consider = |inputs: &crate::sweep::Inputs| match sweep.space.remover(inputs) {
        Some(Remover::Rule(removal)) => counts[removal as usize] += 1,
        Some(Remover::Filter(k)) => counts[Removal::ALL.len() + k] += 1,
        None => {
            found.left += 1;
            found.event_driven += u64::from(point::fidelity(inputs) == Fidelity::EventDriven);
            let (job, mut system) = (point::job(inputs), point::system(inputs));
            system.memory.capacity = anchor::capacity(sweep.anchor.as_ref(), system.memory.capacity);
            let fits = point::fits(inputs)
                .and_then(|()| check(&job, &system))
                .and_then(|_| place(&job, &system.network, &mut placement));
            if let Err(refused) = fits {
                infeasible[refused.reason as usize] += 1;
            }
        }
    };
    if raw <= COUNTED {
        let mut cursor = sweep.space.cursor(0);
        for _ in 0..raw {
            consider(&cursor.inputs);
            cursor.step();
        }
    } else {
        for number in sample(raw, SAMPLE) {
            consider(&sweep.space.cursor(number).inputs);
        }
    }
    let filters = sweep.space.filters.iter().map(|filter| filter.name.clone());
    let (first, last) = Removal::ALL.split_at(3);
    let name = |removal: &Removal| (removal.name().to_owned(), counts[*removal as usize]);
    found.removed.extend(first.iter().map(name));
    found.removed.extend(filters.zip(counts[Removal::ALL.len()..].iter().copied()));
    found.removed.extend(last.iter().map(name));
    found.removed.retain(|removed| removed.1 > 0);
    found.infeasible =
        Reason::ALL.iter().map(|&reason| (reason, infeasible[reason as usize])).filter(|count| count.1 > 0).collect();
    found
}

/// What event-driven points take on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How many points were timed.
    pub points: u32,
    /// All of them together.
    pub total: Duration,
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl Timing {
    /// Of one point, in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.total.as_secs_f64() / f64::from(self.points.max(1))
    }
}

/// Times points from all over a sweep, event-driven: those that are, or those that `refine` might choose. What a point costs
/// differs by orders of magnitude between sweeps, so no constant would be true. None if the sweep has no such point.
#[must_use]
pub fn time_event_driven(sweep: &Sweep) -> Option<Timing> {
    let is_refined = sweep.decide.refine.is_some();
    let raw = sweep.space.len();
    let part = raw / raw.clamp(1, TIMED);
    let mut starts: Vec<u64> = sample(raw, TIMED).collect();
    // In no order: what is seen before patience ends is from all over the sweep too.
    starts.sort_by_key(|start| xxhash_rust::xxh3::xxh3_64(&start.to_le_bytes()));
    let mut timing: Option<Timing> = None;
    let mut evaluator = Evaluator::default();
    let began = Instant::now();
    for start in starts {
        if timing.is_some() && began.elapsed() > PATIENCE {
            break;
        }
        let Some(inputs) = timed(sweep, start, (start + part).min(raw), is_refined) else { continue };
        let (job, system) = Evaluator::question(&inputs);
        let before = Instant::now();
        let outcome = recorded::evaluate(sweep, &inputs, &job, &system)
            .unwrap_or_else(|| evaluator.evaluate(&job, &system, Fidelity::EventDriven));
        let took = before.elapsed();
        // Only what is feasible is refined.
        if is_refined && outcome.is_err() {
            continue;
        }
        let so_far = timing.unwrap_or(Timing { points: 0, total: Duration::ZERO, least: took, most: took });
        timing = Some(Timing {
            points: so_far.points + 1,
            total: so_far.total + took,
            least: so_far.least.min(took),
            most: so_far.most.max(took),
        });
    }
    timing
}

/// The next point of a range that is event-driven, or that may be refined.
fn timed(sweep: &Sweep, start: u64, end: u64, is_refined: bool) -> Option<Inputs> {
    let mut cursor = sweep.space.cursor(start);
    while cursor.next_point(end).is_some() {
        if is_refined || point::fidelity(&cursor.inputs) == Fidelity::EventDriven {
            return Some(cursor.inputs.clone());
        }
        cursor.step();
    }
    None
}

/// The same sample each time: a number in each of as many equal parts of the product; all numbers if they are few.
pub(super) fn sample(raw: u64, wanted: u64) -> impl Iterator<Item = u64> {
    let parts = raw.min(wanted);
    let part = raw / parts.max(1);
    (0..parts).map(move |k| k * part + xxhash_rust::xxh3::xxh3_64(&k.to_le_bytes()) % part)
}
