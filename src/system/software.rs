//! The software: how a training framework drives the machine, as the few constants in which frameworks differ.

use crate::units::Delay;

/// How a training framework drives the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Software {
    /// How much longer kernels take than those of the best tuned frameworks, gaps between them included.
    pub kernel_factor: f64,
    /// Local memory traffic of element-wise operations against that of fused kernels.
    pub element_wise: f64,
    /// Share of an NPU's `attention_efficiency` that its fused attention reaches.
    pub attention: f64,
    /// What unfused attention costs more for heads of a size that is no multiple of 8.
    pub odd_heads: f64,
    /// Time in which the host sends one operation to the NPU.
    pub dispatch: Delay,
    /// What a collective costs before its first step.
    pub collective_latency: Delay,
    /// Local memory traffic that a byte sent beside computations is worth, the units included that it takes from them.
    pub overlap_traffic: f64,
    /// Bytes a parameter that adding a microbatch's gradients to those before moves.
    pub accumulation: f64,
    /// What it keeps in memory.
    pub keeping: Keeping,
}

/// What a framework keeps in memory beside what a plan asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keeping {
    /// Bytes of a logit and of its gradient while the loss is computed.
    pub logit: f64,
    /// Whether a microbatch's gradients lie beside those that they are added to, in the weights' format.
    pub gradient_copy: bool,
    /// Whether sharded weights are kept as the optimizer's master copy alone, and cast when they are gathered.
    pub master_only: bool,
    /// Whether a stage keeps what it sent to the next until its backward pass.
    pub sent: bool,
    /// Parameters of a bucket, in which sharded weights are gathered and gradients reduced; none if that is done layer by layer.
    pub bucket: Option<f64>,
    /// Memory that its allocator holds and nothing lies in, as a share of what something does.
    pub cached: f64,
}

impl Default for Keeping {
    /// No more than is needed; logits in 4 bytes, and a copy in 2.
    fn default() -> Self {
        Self { logit: 6.0, gradient_copy: false, master_only: false, sent: false, bucket: None, cached: 0.0 }
    }
}

impl Default for Software {
    /// An ideal: nothing but the machine takes time.
    fn default() -> Self {
        Self {
            kernel_factor: 1.0,
            element_wise: 1.0,
            attention: 1.0,
            odd_heads: 1.0,
            dispatch: Delay::ZERO,
            collective_latency: Delay::ZERO,
            overlap_traffic: 0.0,
            accumulation: 0.0,
            keeping: Keeping::default(),
        }
    }
}

impl Software {
    /// How much longer a block takes than `busy`, as the host has to send its operations while the NPU is busy with them.
    ///
    /// ```text
    /// wait = (busy^4 + host^4)^(1/4) - busy                                                                  [StepFit]
    /// ```
    ///
    /// between the longer of the two and their sum: neither waits for the other all the time. 1 ms and 1 ms: 0.189 ms.
    #[must_use]
    pub fn host_wait(&self, busy: Delay, operations: f64) -> Delay {
        let host = (self.dispatch * operations).as_nanoseconds();
        let busy = busy.as_nanoseconds();
        if host * 16.0 < busy || host <= 0.0 {
            return Delay::ZERO;
        }
        let square = |x: f64| x * x;
        let both = (square(square(busy)) + square(square(host))).sqrt().sqrt();
        Delay::nanoseconds(both - busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_npu_wait_for_each_other_a_little() {
        let software = Software { dispatch: Delay::nanoseconds(40_000.0), ..Software::default() };
        // 25 operations of 40 us are 1 ms, as long as the NPU is busy: 2^(1/4) ms.
        let wait = software.host_wait(Delay::nanoseconds(1e6), 25.0).as_nanoseconds();
        assert!((wait - 189_207.0).abs() < 1.0, "{wait}");
        assert_eq!(software.host_wait(Delay::nanoseconds(1e9), 25.0), Delay::ZERO);
    }
}
