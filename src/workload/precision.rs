//! Precision: the bytes of a weight, a gradient, an optimizer state, an activation.

use crate::system::Format;

/// Bytes of each kind of number that training keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// The format of matrix products.
    pub compute: Format,
    /// Share of the NPU's efficiency that matrix products in this format reach.
    pub product_efficiency: f64,
    /// Bytes of a parameter as the forward pass reads it.
    pub weight: f64,
    /// Bytes of a gradient as it is accumulated and reduced.
    pub gradient: f64,
    /// Bytes of optimizer state a parameter: master copy and moments.
    pub optimizer: f64,
    /// Bytes of an element of an activation.
    pub activation: f64,
}

impl Precision {
    /// Bytes of an element that is gathered for a linear layer: it is cast before, so one byte where formats have 8 bits or fewer
    /// [Micikevicius22].
    #[must_use]
    pub const fn gathered(&self) -> f64 {
        if self.compute.is_cast() { 1.0 } else { self.activation }
    }

    /// Bytes that an optimizer step reads and writes a parameter: all states both ways, the gradient in, the weight out.
    #[must_use]
    pub fn update_traffic(&self) -> f64 {
        2.0 * self.optimizer + self.gradient + self.weight
    }
}
