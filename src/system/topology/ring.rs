//! A ring: a link to each neighbour, both ways. Part of a ring is a line; groups that are interleaved share links [ASTRA2].

use super::{BuildingBlock, Carry, Pattern};
use crate::system::collective::Algorithm;
use crate::system::network::Span;

/// See the module.
pub struct Ring;

/// A member's two links carry half of its bandwidth each.
const LINKS: f64 = 2.0;

impl BuildingBlock for Ring {
    fn symbol(&self) -> &'static str {
        "R"
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Ring
    }

    /// Share of an NPU's bandwidth B = 2b (b one link, one way) that the busiest link leaves for each byte sent.
    ///
    /// With k members, s apart, in closed rings (k * s = n):
    ///
    /// ```text
    /// shift      1 / s           half of the bytes each way round, every link crossed by s interleaved groups
    /// exchange   1 / (2 d s)     d messages cross the link in the middle of each block of 2d; 1 / (d s) if d = k / 2,
    ///                            where half of the messages go the other way round
    /// spread     (k - 1) / (s * floor(k^2 / 4))    the sum of the shortest distances to all others
    /// send       1 / (2 s)       one link of two, over d s links
    /// meet       1 / (2 s)       as a send: the two come in over different links
    /// part       1 / s           both links
    /// ```
    ///
    /// and half of that on a line, where the way back from the last member to the first takes the links of the other
    /// direction. A line's messages cannot choose their way; its farthest members are k - 1 apart.
    fn carry(&self, pattern: Pattern, span: &Span) -> Carry {
        let (members, stride) = (f64::from(span.members), f64::from(span.stride));
        let pairs = (span.members / 2) * span.members.div_ceil(2);
        let closed = span.closes();
        let ways = if closed { LINKS } else { 1.0 };
        let half = |share: f64| Carry { hops: stride, share: share * ways / LINKS };
        match pattern {
            Pattern::Shift if closed => half(1.0 / stride),
            // k - 1 steps cover k - 2 neighbours and one way back over k - 1 links, or that way alone: 2k - 3 in all.
            Pattern::Shift => Carry { hops: stride * (2.0 * members - 3.0) / (members - 1.0), ..half(1.0 / stride) },
            // The two links of a ring of two lead to the same neighbour.
            Pattern::Send { .. } if span.size == 2 => Carry { hops: 1.0, share: 1.0 },
            Pattern::Send { distance } | Pattern::Meet { distance } | Pattern::Part { distance } => {
                let near = if closed { distance.min(span.members - distance) } else { distance };
                let links = if matches!(pattern, Pattern::Part { .. }) { 1.0 } else { 1.0 / LINKS };
                Carry { hops: f64::from(near) * stride, share: links / stride }
            }
            Pattern::Exchange { distance } => {
                let far = f64::from(distance);
                let opposite = closed && 2 * distance == span.members;
                let share = if opposite { 1.0 / (far * stride) } else { 1.0 / (LINKS * far * stride) };
                let near = if closed { distance.min(span.members - distance) } else { distance };
                Carry { hops: f64::from(near) * stride, share }
            }
            Pattern::Spread => {
                let farthest = if closed { span.members / 2 } else { span.members - 1 };
                let share = (members - 1.0) / (stride * f64::from(pairs));
                Carry { hops: f64::from(farthest) * stride, ..half(share) }
            }
        }
    }

    fn summary(&self) -> &'static str {
        "a link to each neighbour, both ways; part of it is a line, interleaved groups share links [ASTRA2]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carry(pattern: Pattern, size: u32, members: u32, stride: u32) -> Carry {
        Ring.carry(pattern, &Span { dim: 0, size, members, stride })
    }

    #[test]
    fn a_whole_ring_gives_its_full_bandwidth_to_neighbours() {
        assert_eq!(carry(Pattern::Shift, 8, 8, 1), Carry { hops: 1.0, share: 1.0 });
        assert_eq!(carry(Pattern::Shift, 2, 2, 1), Carry { hops: 1.0, share: 1.0 });
    }

    #[test]
    fn part_of_a_ring_is_a_line_with_half_the_bandwidth() {
        // 4 of 8: three steps cross 1 + 1 + 3 = 5 links.
        assert_eq!(carry(Pattern::Shift, 8, 4, 1), Carry { hops: 5.0 / 3.0, share: 0.5 });
    }

    #[test]
    fn a_stride_of_two_shares_each_link_with_one_other_group() {
        assert_eq!(carry(Pattern::Shift, 8, 4, 2), Carry { hops: 2.0, share: 0.5 });
    }

    #[test]
    fn a_spread_on_eight_crosses_sixteen_links_a_member() {
        // Distances 1 1 2 2 3 3 4: sum 16; 7 messages: share 7/16.
        assert_eq!(carry(Pattern::Spread, 8, 8, 1), Carry { hops: 4.0, share: 7.0 / 16.0 });
    }

    #[test]
    fn opposite_partners_use_both_ways_round() {
        assert_eq!(carry(Pattern::Exchange { distance: 4 }, 8, 8, 1), Carry { hops: 4.0, share: 0.25 });
        assert_eq!(carry(Pattern::Exchange { distance: 2 }, 8, 8, 1), Carry { hops: 2.0, share: 0.25 });
        assert_eq!(carry(Pattern::Exchange { distance: 1 }, 2, 2, 1), Carry { hops: 1.0, share: 1.0 });
    }
}
