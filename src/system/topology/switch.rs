//! A switch: every NPU has one port, any two are two hops apart, and a part of it keeps each port's bandwidth [ASTRA2].

use super::{BuildingBlock, Carry, Pattern};
use crate::system::collective::Algorithm;
use crate::system::network::Span;

/// See the module.
pub struct Switch;

/// Into the switch and out of it: the latency counts twice.
const HOPS: f64 = 2.0;

impl BuildingBlock for Switch {
    fn symbol(&self) -> &'static str {
        "SW"
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::HalvingDoubling
    }

    /// All of a port's bandwidth, which those share who send to one member.
    fn carry(&self, pattern: Pattern, _span: &Span) -> Carry {
        Carry { hops: HOPS, share: if matches!(pattern, Pattern::Meet { .. }) { 0.5 } else { 1.0 } }
    }

    fn summary(&self) -> &'static str {
        "every NPU on one switch, two hops between any two, no contention inside [ASTRA2]"
    }
}
