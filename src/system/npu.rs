//! The NPU: how long a kernel takes, by its shape.

use super::kernel::{Attention, Kernel, Product, Scores};
use super::software::Software;
use crate::units::{Bandwidth, Bytes, Delay, FlopRate, real, whole};

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
    /// 4 bits, with a scale for each block of elements.
    Fp4,
}

impl Format {
    /// Every format, in the order of the keys `npu.bf16`, `npu.fp16`, ...
    pub const ALL: [Self; 5] = [Self::Bf16, Self::Fp16, Self::Fp8, Self::Fp32, Self::Fp4];
    /// The names that people write.
    pub const NAMES: [&'static str; 5] = ["bf16", "fp16", "fp8", "fp32", "fp4"];

    /// Whether linear layers are cast to it and all else keeps 16 bits.
    #[must_use]
    pub const fn is_cast(self) -> bool {
        matches!(self, Self::Fp8 | Self::Fp4)
    }
}

/// The device that computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Npu {
    /// Peak rate of dense matrix products in the format of the job's linear layers.
    pub peak: FlopRate,
    /// Peak rate of what stays in 16 bits where linear layers have fewer: attention, the output head.
    pub half_peak: FlopRate,
    /// Share of the peak that large matrix products reach.
    pub gemm_efficiency: f64,
    /// Share of the peak that fused attention reaches, forward, causal, with heads of 128.
    pub attention_efficiency: f64,
    /// Units that compute a tile of a matrix product each; none where tiles are not known to matter.
    pub units: Option<u64>,
    /// Depth of a matrix product at which filling and draining a tile takes as long as the products in it.
    pub half_depth: f64,
    /// Bandwidth of the local memory.
    pub memory_bandwidth: Bandwidth,
    /// Share of the memory bandwidth that large streams reach.
    pub memory_efficiency: f64,
    /// From the end of a kernel until the next one computes.
    pub kernel_latency: Delay,
}

/// Tiles of matrix products, rows by columns, and the share of the best rate that each reaches [StepFit].
const TILES: [(u64, u64, f64); 4] = [(128, 256, 1.0), (256, 128, 1.0), (128, 128, 0.93), (64, 128, 0.86)];
/// Sizes that are no multiple of this many elements are padded by the kernel.
const ALIGNED: u64 = 64;
/// What products cost more whose columns or depth are not aligned [StepFit].
const MISALIGNED: f64 = 1.1;
/// Head size for which `attention_efficiency` holds.
const HEAD: f64 = 128.0;
/// Fused attention fills its tiles along a head as products do along their depth, in a share of it: heads of 64 take 1.25
/// times as long as those of 128 on A100 and 1.6 to 1.8 times later [StepFit].
const HEAD_SHARE: f64 = 0.43;
/// Share of the rate of single products that batches of small ones reach: scores of unfused attention [StepFit].
const BATCHED: f64 = 0.65;
/// Heads whose size is no multiple of 8 elements cannot be loaded in whole vectors.
const VECTOR: u64 = 8;

/// What bounds a kernel: what takes most of its time [Williams09].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Arithmetic.
    Arithmetic,
    /// The bandwidth of the local memory.
    Memory,
}

impl Bound {
    fn longer(computing: f64, moving: f64) -> Self {
        if moving > computing { Self::Memory } else { Self::Arithmetic }
    }
}

impl Npu {
    /// The depth at which filling a tile takes as long as its products: 100 on A100, and more where a unit is faster.
    ///
    /// ```text
    /// K = 100 (r / r0)^1.5      r = peak / units of 16 bits, r0 = 312e12 / 108 on A100                       [StepFit]
    /// ```
    ///
    /// H100: 989.4e12 / 132 is 2.59 times A100's, so K = 418.
    #[must_use]
    pub fn half_depth_of(half_peak: FlopRate, units: Option<u64>) -> f64 {
        const A100: f64 = 312e12 / 108.0;
        const DEPTH: f64 = 100.0;
        let Some(units) = units else { return DEPTH };
        let ratio = half_peak.get() / real(units) / A100;
        DEPTH * ratio * ratio.sqrt()
    }

    /// How long a kernel takes, with the latency of each launch, as the software has it done.
    #[must_use]
    pub fn time(&self, kernel: &Kernel, software: &Software) -> Delay {
        self.cost(kernel, software).0
    }

    /// The same, and what bounds it.
    #[must_use]
    pub fn cost(&self, kernel: &Kernel, software: &Software) -> (Delay, Bound) {
        let ((busy, bound), launches) = match kernel {
            Kernel::Product(product) => (self.product(product), 1.0),
            Kernel::Attention(attention) => {
                let busy = self.attention(attention) * (1.0 / software.attention);
                ((busy, Bound::Arithmetic), attention.launches)
            }
            Kernel::Scores(scores) => (self.scores(scores, software.odd_heads), scores.launches),
            Kernel::ElementWise { moved, launches } => {
                ((self.stream(*moved) * software.element_wise, Bound::Memory), *launches)
            }
            Kernel::Accumulation { parameters } => {
                ((self.stream(Bytes::from_real(software.accumulation * parameters)), Bound::Memory), 0.0)
            }
            Kernel::Stream { moved } => ((self.stream(*moved), Bound::Memory), 1.0),
        };
        (busy * software.kernel_factor + self.kernel_latency * launches, bound)
    }

    /// A batch of matrix products: bound by arithmetic, in whole waves of tiles, or by the local memory.
    ///
    /// ```text
    /// t = max(2 W U r c K / (peak * e * p) * (K + K2) / K, w (R K + K C + R C) b / (bw * e_m))      [StepFit, Williams09]
    /// ```
    ///
    /// R rows, C columns, K depth, b products; tiles of r x c that reach a share p of the best rate, the best of four; U units;
    /// W = ceil(ceil(R / r) ceil(C / c) b / U) waves; K2 the half depth; w bytes an element. Worked, on A100 with e = 0.83:
    /// 8192 x 6144 x 12288 has 64 x 24 tiles of 128 x 256 in 15 waves of 108, 15 * 108 / 1536 = 1.055 times what they need, and
    /// 1 + 100 / 12288: 4.777 ms * 1.055 * 1.008 = 5.08 ms.
    fn product(&self, product: &Product) -> (Delay, Bound) {
        let Product { rows, columns, depth, count, .. } = *product;
        let flops = 2.0 * rows * columns * depth * count;
        let (peak, element) = if product.is_cast { (self.peak, 1.5) } else { (self.half_peak, 2.0) };
        let fill = (depth + self.half_depth) / depth;
        let is_aligned = |size: f64| whole(size).is_multiple_of(ALIGNED);
        let padded = if is_aligned(columns) && is_aligned(depth) { 1.0 } else { MISALIGNED };
        let efficiency = self.gemm_efficiency * product.efficiency;
        let computing = flops / (peak.get() * efficiency) * self.waves(rows, columns, count) * fill * padded;
        let touched = element * (rows * depth + depth * columns + rows * columns) * count;
        let moving = touched / (self.memory_bandwidth.get() * self.memory_efficiency);
        (Delay::seconds(computing.max(moving)), Bound::longer(computing, moving))
    }

    /// How much longer products take in whole waves of tiles than if every unit were busy throughout.
    fn waves(&self, rows: f64, columns: f64, count: f64) -> f64 {
        let Some(units) = self.units else { return 1.0 };
        let [whole_rows, whole_columns, batch] = [rows, columns, count].map(|size| whole(size).max(1));
        let of = |&(height, width, share): &(u64, u64, f64)| {
            let tiles = whole_rows.div_ceil(height) * whole_columns.div_ceil(width) * batch;
            real(tiles.div_ceil(units) * units * height * width) / share
        };
        TILES.iter().map(of).fold(f64::INFINITY, f64::min) / (rows * columns * count).max(1.0)
    }

    /// Fused attention: bound by arithmetic in 16 bits.
    fn attention(&self, attention: &Attention) -> Delay {
        let fill = |head: f64| head / (head + HEAD_SHARE * self.half_depth);
        // Larger heads come nearer to single products, and no nearer.
        let efficiency = self.attention_efficiency * fill(attention.head) / fill(HEAD);
        let most = self.gemm_efficiency.max(self.attention_efficiency);
        Delay::seconds(attention.flops / (self.half_peak.get() * efficiency.min(most)))
    }

    /// Unfused attention: a batch of small products, and scores that go through the local memory.
    fn scores(&self, scores: &Scores, odd_heads: f64) -> (Delay, Bound) {
        let fill = (scores.head + self.half_depth) / scores.head;
        let odd = if whole(scores.head).is_multiple_of(VECTOR) { 1.0 } else { odd_heads };
        let computing = scores.flops / (self.half_peak.get() * self.gemm_efficiency * BATCHED) * fill * odd;
        let (computing, moving) = (Delay::seconds(computing), self.stream(Bytes::from_real(scores.moved)));
        (computing + moving, Bound::longer(computing.as_nanoseconds(), moving.as_nanoseconds()))
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

    /// A100 with round constants.
    const A100: Npu = Npu {
        peak: FlopRate::flops_per_second(312e12),
        half_peak: FlopRate::flops_per_second(312e12),
        gemm_efficiency: 0.83,
        attention_efficiency: 0.4,
        units: Some(108),
        half_depth: 100.0,
        memory_bandwidth: Bandwidth::bytes_per_second(2039e9),
        memory_efficiency: 0.8,
        kernel_latency: Delay::ZERO,
    };

    fn product(rows: f64, columns: f64, depth: f64) -> Kernel {
        Kernel::Product(Product { rows, columns, depth, count: 1.0, is_cast: false, efficiency: 1.0 })
    }

    fn milliseconds(kernel: &Kernel) -> f64 {
        A100.time(kernel, &Software::default()).as_nanoseconds() / 1e6
    }

    #[test]
    fn a_large_product_runs_in_whole_waves_of_tiles() {
        let expected =
            2.0 * 8192.0 * 6144.0 * 12288.0 / (312e12 * 0.83) * 1e3 * (15.0 * 108.0 / 1536.0) * (1.0 + 100.0 / 12288.0);
        assert!((milliseconds(&product(8192.0, 6144.0, 12288.0)) / expected - 1.0).abs() < 1e-12);
        assert!((expected - 5.08).abs() < 0.005, "{expected}");
    }

    #[test]
    fn one_tile_more_than_a_wave_takes_another_wave() {
        // 108 tiles of 128 x 256 are one wave; 8 rows more begin another, of the smallest tiles that are best then.
        let one = milliseconds(&product(128.0 * 108.0, 256.0, 4096.0));
        let more = milliseconds(&product(128.0 * 108.0 + 8.0, 256.0, 4096.0));
        assert!(more / one > 1.15, "{one} {more}");
    }

    #[test]
    fn a_flat_product_is_bound_by_memory() {
        // 1 x 8192 by 8192 x 8192: 134 MB of weights at 1,631 GB/s take 82 us; arithmetic would take less.
        assert!((milliseconds(&product(1.0, 8192.0, 8192.0)) - 0.0823).abs() < 1e-4);
    }

    #[test]
    fn sizes_that_are_no_multiple_of_64_cost_a_tenth() {
        let (even, odd) = (product(4096.0, 4096.0, 4096.0), product(4096.0, 4096.0, 4095.0));
        let ratio = milliseconds(&odd) / milliseconds(&even) * 4096.0 / 4095.0;
        assert!((ratio - 1.1).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn h100_fills_a_tile_in_the_time_of_418_products() {
        let depth = Npu::half_depth_of(FlopRate::flops_per_second(989.4e12), Some(132));
        assert!((depth - 418.0).abs() < 1.0, "{depth}");
        assert_eq!(Npu::half_depth_of(FlopRate::flops_per_second(275e12), None), 100.0);
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(A100.time(&Kernel::Stream { moved: Bytes::ZERO }, &Software::default()), Delay::ZERO);
    }
}
