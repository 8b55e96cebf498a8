//! Members: which ranks are in a group with a rank, and at which place each stands.

use crate::system::{Network, Span, Spans};

/// The groups of one kind: like parts of a network, one beside the other.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    spans: &'a Spans,
    /// NPUs below each dimension of the network.
    below: Vec<u32>,
}

impl<'a> Members<'a> {
    /// Groups that take these parts of a network's dimensions.
    #[must_use]
    pub fn of(spans: &'a Spans, network: &Network) -> Self {
        let below = network.dims.iter().scan(1, |below, dim| Some(std::mem::replace(below, *below * dim.size)));
        Self { spans, below: below.collect() }
    }

    /// How many members a group has.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.spans.iter().map(|span| span.members).product()
    }

    /// The member at a place, of the group whose first member is known.
    ///
    /// ```text
    /// rank = first + sum of p_s * stride_s * below_s      p_s: digits of the place, innermost part first
    /// ```
    ///
    /// Place 5 of a group of 4 that are 2 apart in a dimension of 8, and 2 in the next: 5 = 1 + 1 * 4, so rank 1 * 2 + 1 * 8 = 10.
    #[must_use]
    pub fn at(&self, first: u32, place: u32) -> u32 {
        let step = |(rank, place): (u32, u32), span: &Span| {
            (rank + place % span.members * span.stride * self.below[span.dim], place / span.members)
        };
        self.spans.iter().fold((first, place), step).0
    }

    /// The place of a rank in its group.
    #[must_use]
    pub fn place(&self, rank: u32) -> u32 {
        let digit = |span: &Span| rank / self.below[span.dim] % span.size / span.stride % span.members;
        self.spans.iter().rev().fold(0, |place, span| place * span.members + digit(span))
    }

    /// The first member of a rank's group.
    #[must_use]
    pub fn first(&self, rank: u32) -> u32 {
        rank - self.at(0, self.place(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::placement::tests::network;

    #[test]
    fn every_rank_stands_at_its_place_behind_its_first() {
        let network = network(&[8, 4]);
        let spans: Spans =
            [Span { dim: 0, size: 8, members: 4, stride: 2 }, Span { dim: 1, size: 4, members: 2, stride: 1 }]
                .into_iter()
                .collect();
        let members = Members::of(&spans, &network);
        assert_eq!((members.count(), members.at(0, 5)), (8, 10));
        for rank in 0..32 {
            assert_eq!(members.at(members.first(rank), members.place(rank)), rank);
            assert_eq!(members.place(members.first(rank)), 0);
        }
        // Rank 27 is at 3 in dimension 0 and 3 in dimension 1: behind rank 17, one place on in each.
        assert_eq!((members.first(27), members.place(27)), (17, 5));
    }

    #[test]
    fn a_group_of_one_is_its_rank() {
        let (network, spans) = (network(&[4]), Spans::new());
        let members = Members::of(&spans, &network);
        assert_eq!((members.count(), members.first(3), members.place(3), members.at(3, 0)), (1, 3, 0, 3));
    }
}
