//! Stretches: the numbers that one worker walks at a time, long where few of them are points.
//!
//! A dense sweep has stretches as long as a segment. Where `where`, world sizes and knobs leave one number in a thousand,
//! a stretch is a thousand times as long, so that files do not come by the ten thousand with seven rows each.

use xxhash_rust::xxh3::xxh3_64;

use crate::results::segment::Segment;
use crate::sweep::Space;

/// How many numbers are looked at to see how many are points.
const SAMPLE: u64 = 4096;
/// The fewest stretches that a long sweep is cut into, so that every thread has many: but a file is worth its footer.
const FEWEST: u64 = 256;
/// The part of a segment's rows that a stretch has at least, about, where points are few.
const LEAST: u64 = 4;

/// The stretches of a space, in order: the same each time. A segment has at most `rows` rows.
pub fn stretches(space: &Space, rows: u64) -> impl Iterator<Item = Segment> + use<> {
    Segment::of(space.len(), rows * factor(space, rows))
}

/// How many times as long as a segment a stretch is: a power of two, so that it is about one segment's rows.
fn factor(space: &Space, rows: u64) -> u64 {
    let longest = floor_power(space.len() / rows / FEWEST);
    if space.len() / rows < FEWEST {
        return 1;
    }
    let part = space.len() / SAMPLE;
    let is_point = |k: &u64| {
        let number = k * part + xxh3_64(&k.to_le_bytes()) % part;
        space.remover(&space.cursor(number).inputs).is_none()
    };
    let points = (0..SAMPLE).filter(is_point).count() as u64;
    let full = floor_power(SAMPLE / points.max(1));
    full.min(longest.max(full / LEAST))
}

/// The largest power of two that is not above a number.
const fn floor_power(number: u64) -> u64 {
    if number == 0 { 1 } else { 1 << number.ilog2() }
}

/// What of a stretch is still to be done, behind the segments of it that are whole.
pub fn left(stretch: Segment, whole: &[Segment]) -> Option<Segment> {
    let mut start = stretch.start;
    while let Ok(k) = whole.binary_search_by_key(&start, |segment| segment.start) {
        start = whole[k].end;
    }
    (start < stretch.end).then_some(Segment { start, end: stretch.end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_is_not_done_again() {
        let of = |start, end| Segment { start, end };
        let whole = [of(0, 10), of(10, 30), of(64, 70)];
        assert_eq!(left(of(0, 64), &whole), Some(of(30, 64)));
        assert_eq!(left(of(64, 128), &whole), Some(of(70, 128)));
        assert_eq!(left(of(128, 192), &whole), Some(of(128, 192)));
        assert_eq!(left(of(0, 64), &[of(0, 10), of(10, 64)]), None);
    }

    #[test]
    fn powers_are_not_above() {
        assert_eq!([0, 1, 2, 3, 1000].map(floor_power), [1, 1, 2, 2, 512]);
    }
}
