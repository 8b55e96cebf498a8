//! The NPU: how long arithmetic takes, by roofline.

use crate::units::{Bandwidth, Bytes, Delay, FlopRate, Flops};

/// A number format that an NPU multiplies matrices in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// 16 bits, 8 of exponent.
    Bf16,
    /// 16 bits, 5 of exponent.
    Fp16,
    /// 8 bits.
    Fp8,
    /// 32 bits.
    Fp32,
}

impl Format {
    /// Every format, in the order of the keys `npu.bf16`, `npu.fp16`, ...
    pub const ALL: [Self; 4] = [Self::Bf16, Self::Fp16, Self::Fp8, Self::Fp32];
    /// The names that people write.
    pub const NAMES: [&'static str; 4] = ["bf16", "fp16", "fp8", "fp32"];
}

/// The device that computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Npu {
    /// Peak rate of dense matrix arithmetic in the format of the job.
    pub peak: FlopRate,
    /// Share of the peak that large matrix products reach.
    pub gemm_efficiency: f64,
    /// Bandwidth of the local memory.
    pub memory_bandwidth: Bandwidth,
    /// Share of the memory bandwidth that large streams reach.
    pub memory_efficiency: f64,
}

impl Npu {
    /// Time of an operation by roofline: it is bound by arithmetic or by memory, whichever is slower.
    ///
    /// ```text
    /// t = max(F / (peak * e_c), Q / (bw * e_m))                                [Williams09]
    /// ```
    ///
    /// F operations, Q bytes moved between the NPU and its local memory; e_c and e_m the efficiencies.
    #[must_use]
    pub fn time(&self, work: Flops, moved: Bytes) -> Delay {
        (work / (self.peak * self.gemm_efficiency)).max(self.stream(moved))
    }

    /// Time to move bytes between the NPU and its local memory.
    #[must_use]
    pub fn stream(&self, moved: Bytes) -> Delay {
        moved / (self.memory_bandwidth * self.memory_efficiency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NPU: Npu = Npu {
        peak: FlopRate::flops_per_second(100e12),
        gemm_efficiency: 0.5,
        memory_bandwidth: Bandwidth::bytes_per_second(1e12),
        memory_efficiency: 1.0,
    };

    #[test]
    fn the_slower_of_arithmetic_and_memory_binds() {
        // 1e12 / 50e12 = 20 ms of arithmetic; 1e9 / 1e12 = 1 ms of memory.
        assert_eq!(NPU.time(Flops::new(1e12), Bytes::new(1_000_000_000)), Delay::seconds(0.02));
        // 1e9 / 50e12 = 20 us of arithmetic; 1 ms of memory.
        assert_eq!(NPU.time(Flops::new(1e9), Bytes::new(1_000_000_000)), Delay::seconds(0.001));
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(NPU.time(Flops::ZERO, Bytes::ZERO), Delay::ZERO);
    }
}
