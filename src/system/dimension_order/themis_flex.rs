//! Themis with chunks as large as the difference in load [ASTRA2].

use super::{Ask, Memory, Order, Ordering};

/// See the module.
pub struct ThemisFlex;

impl Ordering for ThemisFlex {
    fn order(&self, ask: &Ask<'_>, memory: Memory<'_>) -> (Order, u64) {
        memory.loads.order(ask, true)
    }

    fn is_by_load(&self) -> bool {
        true
    }

    fn is_flexible(&self) -> bool {
        true
    }

    fn summary(&self) -> &'static str {
        "by load, with chunks as large as the difference in load [ASTRA2]"
    }
}
