//! Memories: the local one of each NPU and the tiers beyond it, with their capacity and the time of a transfer.

use arrayvec::ArrayVec;

use crate::units::{Bandwidth, Bytes, Delay};

/// How many tiers beyond the local memory a machine may have.
pub const MAX_TIERS: usize = 4;

/// The memories around one NPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Capacity of the local memory.
    pub capacity: Bytes,
    /// What is kept free of the local memory: context, communication buffers, fragmentation.
    pub reserve: Bytes,
    /// The tiers beyond, in the order in which they are written.
    pub tiers: ArrayVec<Tier, MAX_TIERS>,
}

impl Memory {
    /// What a job may fill of the local memory.
    #[must_use]
    pub fn usable(&self) -> Bytes {
        Bytes::new(self.capacity.get().saturating_sub(self.reserve.get()))
    }
}

/// A memory beyond the local one: of a host, a drive, a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// Capacity of the whole tier.
    pub capacity: Bytes,
    /// Bandwidth of the whole tier, each way.
    pub bandwidth: Bandwidth,
    /// What a transfer costs before its first byte.
    pub latency: Delay,
    /// How many NPUs share capacity and bandwidth.
    pub shared_by: u64,
}

impl Tier {
    /// An NPU's share of the capacity.
    #[must_use]
    pub fn share(&self) -> Bytes {
        Bytes::new(self.capacity.get() / self.shared_by.max(1))
    }

    /// Time to move bytes one way while all sharers do the same.
    ///
    /// ```text
    /// t = l + Q * k / B                                                         [ASTRA2]
    /// ```
    ///
    /// l latency, Q bytes of each of the k sharers, B the tier's bandwidth. The sharers' requests are served side by
    /// side, so each sees B / k: the last of k served one after the other ends at the same time.
    #[must_use]
    pub fn transfer(&self, size: Bytes) -> Delay {
        if size == Bytes::ZERO {
            return Delay::ZERO;
        }
        self.latency + (size * self.shared_by.max(1)) / self.bandwidth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharers_divide_bandwidth_and_capacity() {
        let tier = Tier {
            capacity: Bytes::new(1_000),
            bandwidth: Bandwidth::bytes_per_second(1e9),
            latency: Delay::nanoseconds(100.0),
            shared_by: 4,
        };
        // 100 ns + 4 * 10,005 B / (1 B/ns) = 40,120 ns.
        assert_eq!(tier.transfer(Bytes::new(10_005)).round(), Delay::nanoseconds(40_120.0).round());
        assert_eq!(tier.share(), Bytes::new(250));
        assert_eq!(tier.transfer(Bytes::ZERO), Delay::ZERO);
    }
}
