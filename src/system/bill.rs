//! The bill: what an NPU draws and costs while it runs, as far as that is said.

/// What one NPU, with its part of the network and of the memories beyond it, draws and costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bill {
    /// Watts.
    pub power: Option<f64>,
    /// US dollars a second, if it is rented.
    pub rent: Option<f64>,
    /// US dollars for which it was bought.
    pub price: Option<f64>,
    /// Seconds in which that is paid off.
    pub lifetime: Option<f64>,
    /// US dollars a joule.
    pub energy_price: Option<f64>,
}

impl Bill {
    /// Joules of so many NPUs in so many seconds: `E = N P T`; none without a power.
    ///
    /// Worked: 8 NPUs of 700 W for 2 s: 11,200 J.
    #[must_use]
    pub fn energy(&self, npus: f64, seconds: f64) -> Option<f64> {
        Some(npus * self.power? * seconds)
    }

    /// US dollars of so many NPUs in so many seconds: the sum of what is said; none if nothing is.
    ///
    /// ```text
    /// C = N T r + N T K / L + E e
    /// ```
    ///
    /// r rent, K price and L the time in which it is paid off, E the energy and e its price. Worked: 8 NPUs for an hour at 2.5 $/h
    /// are 20 $; bought at 35,040 $ for 4 years, 1 $/h each, 8 $; their 5.6 kWh at 100 $/MWh 0.56 $.
    #[must_use]
    pub fn cost(&self, npus: f64, seconds: f64) -> Option<f64> {
        let rent = self.rent.map(|rent| npus * seconds * rent);
        let bought = self.price.zip(self.lifetime).map(|(price, lifetime)| npus * seconds * price / lifetime);
        let energy = self.energy(npus, seconds).zip(self.energy_price).map(|(energy, price)| energy * price);
        [rent, bought, energy].into_iter().flatten().reduce(|sum, part| sum + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: f64 = 3600.0;
    const YEAR: f64 = 365.0 * 24.0 * HOUR;

    fn near(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found / wanted - 1.0).abs() < 1e-12)
    }

    #[test]
    fn what_is_said_adds_up() {
        let rented = Bill { rent: Some(2.5 / HOUR), ..Bill::default() };
        assert!(near(rented.cost(8.0, HOUR), 20.0));
        let bought = Bill { price: Some(35_040.0), lifetime: Some(4.0 * YEAR), ..Bill::default() };
        assert!(near(bought.cost(8.0, HOUR), 8.0));
        let drawing = Bill { power: Some(700.0), energy_price: Some(100.0 / 3.6e9), ..Bill::default() };
        assert!(near(drawing.energy(8.0, 2.0), 11_200.0));
        assert!(near(drawing.cost(8.0, HOUR), 0.56));
        let all = Bill { rent: rented.rent, ..Bill { price: bought.price, lifetime: bought.lifetime, ..drawing } };
        assert!(near(all.cost(8.0, HOUR), 28.56));
    }

    #[test]
    fn what_is_not_said_is_not_counted() {
        assert_eq!(Bill::default().energy(8.0, 2.0), None);
        assert_eq!(Bill { price: Some(3e4), ..Bill::default() }.cost(8.0, 2.0), None);
        assert_eq!(Bill { energy_price: Some(1e-8), ..Bill::default() }.cost(8.0, 2.0), None);
    }
}
