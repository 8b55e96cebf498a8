//! A set of slots: a bit for each.

/// A set of up to 384 slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits([u64; WORDS]);

const WORDS: usize = 6;

impl Bits {
    /// None.
    pub const NONE: Self = Self([0; WORDS]);
    /// All.
    pub const ALL: Self = Self([u64::MAX; WORDS]);
    /// How many slots there may be.
    pub const CAPACITY: usize = WORDS * 64;

    /// These slots.
    #[must_use]
    pub const fn of(slots: &[usize]) -> Self {
        let mut set = Self::NONE;
        let mut k = 0;
        while k < slots.len() {
            set = set.with(slots[k]);
            k += 1;
        }
        set
    }

    /// With a slot.
    #[must_use]
    pub const fn with(mut self, slot: usize) -> Self {
        self.0[slot / 64] |= 1 << (slot % 64);
        self
    }

    /// Puts a slot in, or takes it out, in its place: the other words are not touched.
    pub const fn put(&mut self, slot: usize, is_in: bool) {
        let (word, bit) = (&mut self.0[slot / 64], 1 << (slot % 64));
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// Whether a slot is in it.
    #[must_use]
    pub const fn has(self, slot: usize) -> bool {
        self.0[slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Whether one of `others` is neither in this nor in that.
    #[must_use]
    pub const fn lack_one(self, that: Self, others: Self) -> bool {
        let mut k = 0;
        while k < WORDS {
            if others.0[k] & !self.0[k] & !that.0[k] != 0 {
                return true;
            }
            k += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_and_go() {
        let set = Bits::of(&[3, 64, 255]);
        assert!(set.has(64) && !set.has(4));
        let mut other = set;
        other.put(64, false);
        other.put(4, true);
        assert_eq!(other, Bits::of(&[3, 4, 255]));
        assert!(Bits::of(&[3]).lack_one(Bits::of(&[64]), set));
        assert!(!Bits::of(&[3]).lack_one(Bits::of(&[64, 255]), set));
    }
}
