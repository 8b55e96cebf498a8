//! Sizes: a few whole numbers in their order, as the widths of an MLP or the rows of tables, without an allocation.

use crate::units::narrow;

/// Up to `N` whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes<const N: usize> {
    count: usize,
    sizes: [u32; N],
}

impl<const N: usize> Sizes<N> {
    /// How many there may be.
    pub const MOST: usize = N;

    /// The first `N` of these.
    #[must_use]
    pub fn of(list: &[u64]) -> Self {
        let mut sizes = [0; N];
        for (size, &given) in sizes.iter_mut().zip(list) {
            *size = narrow(given);
        }
        Self { count: list.len().min(N), sizes }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The one of a place.
    #[must_use]
    pub fn get(&self, place: usize) -> u64 {
        self.sizes[..self.count].get(place).copied().map_or(0, u64::from)
    }

    /// The last; 0 if there is none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.iter().last().unwrap_or(0)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.sizes[..self.count].iter().copied().map(u64::from)
    }

    /// The same, the largest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.sizes[..self.count].sort_unstable_by(|a, b| b.cmp(a));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_order_until_they_are_sorted() {
        let sizes = Sizes::<4>::of(&[7, 9, 8]);
        assert_eq!((sizes.len(), sizes.last(), sizes.get(3)), (3, 8, 0));
        assert_eq!(sizes.descending().iter().collect::<Vec<_>>(), [9, 8, 7]);
    }
}
