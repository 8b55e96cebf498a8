//! What moves from one point to the next, and so what of the question before stands.

use super::key::{Id, KEYS};

/// How much of a question moved at most; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moved {
    /// Which NPUs are neighbours.
    Order,
    /// The plan.
    Plan,
    /// All of it: the model, the machine.
    All,
}

impl Moved {
    /// What moves with a slot. What follows from a key of the plan is of the plan, too.
    #[must_use]
    pub fn with(slot: usize) -> Self {
        match KEYS.get(slot) {
            Some(_) if slot == Id::Order as usize => Self::Order,
            Some(key) if key.path.starts_with("plan.") => Self::Plan,
            _ => Self::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::key::{DIMS_FROM, NAMES_FROM};

    #[test]
    fn a_key_moves_what_it_is_of() {
        let of = |id: Id| Moved::with(id as usize);
        assert_eq!([Id::Order, Id::Tp, Id::OffloadOptimizer].map(of), [Moved::Order, Moved::Plan, Moved::Plan]);
        assert_eq!([Id::Layers, Id::GlobalBatch, Id::Compute, Id::Capacity].map(of), [Moved::All; 4]);
        assert_eq!([DIMS_FROM, NAMES_FROM].map(Moved::with), [Moved::All; 2]);
    }
}
