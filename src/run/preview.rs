//! The preview: what a sweep is before anything is evaluated: how many points, what each rule removes, what cannot exist.

use crate::sweep::{Removal, Remover, Sweep, point};
use crate::units::real;
use crate::workload::{Placement, Reason, check, place};

/// The largest product that is counted number by number.
pub const COUNTED: u64 = 10_000_000;
/// How many numbers stand for a larger one.
pub const SAMPLE: u64 = 200_000;

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
            let (job, system) = (point::job(inputs), point::system(inputs));
            let fits = check(&job, &system).and_then(|_| place(&job, &system.network, &mut placement));
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

/// The same sample each time: a number in each of as many equal parts of the product; all numbers if they are few.
pub(super) fn sample(raw: u64, wanted: u64) -> impl Iterator<Item = u64> {
    let parts = raw.min(wanted);
    let part = raw / parts.max(1);
    (0..parts).map(move |k| k * part + xxhash_rust::xxh3::xxh3_64(&k.to_le_bytes()) % part)
}
