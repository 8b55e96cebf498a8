//! Fully connected: a link between every two NPUs, so a group of k uses k - 1 of an NPU's n - 1 links [ASTRA2].

use super::{BuildingBlock, Carry, Pattern};
use crate::system::collective::Algorithm;
use crate::system::network::Span;

/// See the module.
pub struct FullyConnected;

impl BuildingBlock for FullyConnected {
    fn symbol(&self) -> &'static str {
        "FC"
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Direct
    }

    fn carry(&self, pattern: Pattern, span: &Span) -> Carry {
        let links = f64::from(span.size - 1);
        let used = match pattern {
            Pattern::Spread => span.members - 1,
            // Both ways round the members; two members have one link between them.
            Pattern::Shift => (span.members - 1).min(2),
            Pattern::Part { .. } => 2,
            Pattern::Exchange { .. } | Pattern::Send { .. } | Pattern::Meet { .. } => 1,
        };
        Carry { hops: 1.0, share: f64::from(used) / links }
    }

    fn summary(&self) -> &'static str {
        "a link between every two NPUs; a group of k uses k - 1 of an NPU's n - 1 links [ASTRA2]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_eight_use_three_of_seven_links() {
        let span = Span { dim: 0, size: 8, members: 4, stride: 2 };
        assert_eq!(FullyConnected.carry(Pattern::Spread, &span), Carry { hops: 1.0, share: 3.0 / 7.0 });
        assert_eq!(FullyConnected.carry(Pattern::Exchange { distance: 2 }, &span).share, 1.0 / 7.0);
    }
}
