//! What a point's machine draws and costs: keys of power and money as the bill of one NPU.

use super::inputs::Inputs;
use super::key::{DimId, Id, TierId};
use crate::system::bill::Bill;
use crate::system::memory::MAX_TIERS;

/// A number, if there is one.
fn written(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// The bill of one NPU of a point.
#[must_use]
pub fn bill(inputs: &Inputs) -> Bill {
    let lifetime = written(inputs.key(Id::Lifetime));
    Bill {
        power: written(inputs.key(Id::Power)),
        rent: written(inputs.key(Id::Rent)),
        // What nobody pays off need not be added up.
        price: lifetime.and_then(|_| price(inputs)),
        lifetime,
        energy_price: written(inputs.key(Id::EnergyPrice)),
    }
}

/// The price of an NPU with its bandwidth in each dimension and its share of each tier; none if none of them has one.
fn price(inputs: &Inputs) -> Option<f64> {
    let in_dim = |dim| written(inputs.dim(dim, DimId::Price)).map(|price| price * inputs.dim(dim, DimId::Bandwidth));
    let dims = (0..inputs.dim_count()).map(in_dim);
    let tiers = (0..MAX_TIERS).map(|tier| written(inputs.tier(tier, TierId::Price)));
    let all = dims.chain(tiers).chain([written(inputs.key(Id::Price))]);
    all.flatten().reduce(|sum, part| sum + part)
}
