//! Precision: the bytes of a weight, a gradient, a master copy, a moment, an activation.

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
    /// Bytes of the master copy of a parameter; 0 where the weight is its own.
    pub master: f64,
    /// Bytes of an element of an optimizer's moment.
    pub moment: f64,
    /// Bytes of optimizer state a parameter, master copy and moments, if it is said and does not follow from the optimizer.
    pub optimizer: Option<f64>,
    /// Bytes of an element of an activation.
    pub activation: f64,
    /// Bytes of an element of an embedding table that is spread over NPUs.
    pub table: f64,
}

impl Precision {
    /// Bytes of an element that is gathered for a linear layer: it is cast before, so one byte where formats have 8 bits or fewer
    /// [Micikevicius22].
    #[must_use]
    pub const fn gathered(&self) -> f64 {
        if self.compute.is_cast() { 1.0 } else { self.activation }
    }
}
