//! Ascending: innermost first; outermost first for an all-gather [ASTRA2].

use super::{Ask, Memory, Order, Ordering};

/// See the module.
pub struct Ascending;

impl Ordering for Ascending {
    fn order(&self, ask: &Ask<'_>, _memory: Memory<'_>) -> (Order, u64) {
        (ask.plain(), ask.bytes)
    }

    fn summary(&self) -> &'static str {
        "innermost first; outermost first for an all-gather [ASTRA2]"
    }
}
