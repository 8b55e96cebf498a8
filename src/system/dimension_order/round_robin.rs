//! Round robin: each chunk of an NPU begins one dimension further [ASTRA2].

use super::{Ask, Memory, Order, Ordering};

/// See the module.
pub struct RoundRobin;

impl Ordering for RoundRobin {
    fn order(&self, ask: &Ask<'_>, memory: Memory<'_>) -> (Order, u64) {
        let mut order = ask.plain();
        let count = order.len();
        order.rotate_left(*memory.turn % count);
        *memory.turn = (*memory.turn + 1) % count;
        (order, ask.bytes)
    }

    fn summary(&self) -> &'static str {
        "each chunk begins one dimension further [ASTRA2]"
    }
}
