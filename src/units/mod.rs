//! Time, bytes, bandwidth, work: newtypes over one base unit, and the text that people write for them.
//!
//! `GB` is 10^9 bytes, `GiB` 2^30, `Gb` 10^9 bits, everywhere. Casts between number types live in this file alone.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the one file where number types are converted; each conversion says what it keeps"
)]

mod quantity;

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

pub use quantity::{Quantity, QuantityError, Unit, count, human, parse_unit, plain, split_number, unit_words};

/// Picoseconds in a nanosecond.
const PS_PER_NS: f64 = 1e3;
/// Picoseconds in a second.
const PS_PER_S: f64 = 1e12;
/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

/// A count as `f64`: exact below 2^53, the nearest value above.
#[inline]
#[must_use]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// A non-negative whole `f64` as a count; fractions are cut off, negative values and NaN give 0, huge ones `u64::MAX`.
#[inline]
#[must_use]
pub fn whole(value: f64) -> u64 {
    value as u64
}

/// The nearest whole number, halves away from zero; what does not fit stops at the ends, and what is no number is 0.
///
/// `f64::round` does the same, but is a call where processors may lack the instruction. Numbers below 2^51 are rounded by adding
/// 2^52, whose neighbours are whole numbers: its last bits are then the nearest of these, of two the even one.
#[inline]
#[must_use]
pub fn nearest(value: f64) -> u64 {
    const LARGEST: f64 = (1_u64 << 51) as f64;
    const WHOLE: f64 = (1_u64 << 52) as f64;
    if (0.0..LARGEST).contains(&value) {
        let sum = value + WHOLE;
        // A half that went down to the even number.
        let is_half = value - (sum - WHOLE) == 0.5;
        sum.to_bits() - WHOLE.to_bits() + u64::from(is_half)
    } else {
        value.round() as u64
    }
}

/// A whole `f64` as a signed number; fractions are cut off, what does not fit stops at the ends.
#[inline]
#[must_use]
pub fn signed(value: f64) -> i64 {
    value as i64
}

/// A signed whole number as `f64`: exact below 2^53.
#[must_use]
pub fn from_signed(value: i64) -> f64 {
    value as f64
}

/// A number as it is when 32 bits hold it: the nearest of those that they can.
#[must_use]
pub fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

/// A count as `u32`; what does not fit becomes `u32::MAX`.
#[inline]
#[must_use]
pub fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A small number as `u8`; what does not fit becomes `u8::MAX`.
#[inline]
#[must_use]
pub fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// A count as `usize`; what does not fit becomes `usize::MAX`.
#[inline]
#[must_use]
pub fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A duration before it is rounded: nanoseconds as `f64`. Becomes a [`Time`] once, by [`Delay::round`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Delay(f64);

impl Delay {
    /// No delay.
    pub const ZERO: Self = Self(0.0);

    /// So many nanoseconds.
    #[must_use]
    pub const fn nanoseconds(value: f64) -> Self {
        Self(value)
    }

    /// So many seconds.
    #[must_use]
    pub fn seconds(value: f64) -> Self {
        Self(value * NS_PER_S)
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn as_nanoseconds(self) -> f64 {
        self.0
    }

    /// The larger of two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The nearest whole picosecond. A delay beyond [`Time::MAX`] (213 days), and NaN, becomes [`Time::MAX`],
    /// which the engine reports as an infeasible point.
    #[must_use]
    pub fn round(self) -> Time {
        let picoseconds = self.0 * PS_PER_NS;
        if picoseconds.is_nan() { Time::MAX } else { Time(nearest(picoseconds)) }
    }
}

impl Add for Delay {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Delay {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<f64> for Delay {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

/// A point in, or a span of, simulated time: whole picoseconds. Sums and products stop at [`Time::MAX`] instead of wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Time(u64);

impl Time {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest time: 213.5 days. A result of this length means "does not fit" and is reported as infeasible.
    pub const MAX: Self = Self(u64::MAX);

    /// So many picoseconds.
    #[must_use]
    pub const fn picoseconds(value: u64) -> Self {
        Self(value)
    }

    /// In picoseconds.
    #[must_use]
    pub const fn as_picoseconds(self) -> u64 {
        self.0
    }

    /// In whole nanoseconds, rounded down.
    #[must_use]
    pub const fn whole_nanoseconds(self) -> u64 {
        self.0 / 1000
    }

    /// In seconds, to the precision of `f64`.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / PS_PER_S
    }

    /// As a delay, to go on computing with.
    #[must_use]
    pub fn as_delay(self) -> Delay {
        Delay(self.0 as f64 / PS_PER_NS)
    }

    /// This time less another, and never below zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Time {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl Div<u64> for Time {
    type Output = Self;
    /// Rounded down to a whole picosecond.
    fn div(self, count: u64) -> Self {
        Self(self.0 / count)
    }
}

impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

/// An amount of data: whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many bytes.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// A real number of bytes, to the nearest whole one.
    #[must_use]
    pub fn from_real(value: f64) -> Self {
        Self(nearest(value))
    }

    /// In bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In bytes, as `f64`.
    #[must_use]
    pub fn as_real(self) -> f64 {
        self.0 as f64
    }

    /// A part of it, to the nearest whole byte.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self::from_real(self.0 as f64 * factor)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, Add::add)
    }
}

/// Bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// So many bytes a second.
    #[must_use]
    pub const fn bytes_per_second(value: f64) -> Self {
        Self(value)
    }

    /// In bytes a second.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Mul<f64> for Bandwidth {
    type Output = Self;
    fn mul(self, share: f64) -> Self {
        Self(self.0 * share)
    }
}

impl Div<Bandwidth> for Bytes {
    type Output = Delay;
    /// How long the bytes take. A bandwidth is in bytes a second, so the quotient is taken in seconds and then scaled.
    fn div(self, bandwidth: Bandwidth) -> Delay {
        if self.0 == 0 { Delay::ZERO } else { Delay::seconds(self.0 as f64 / bandwidth.0) }
    }
}

/// An amount of arithmetic: floating-point operations, a multiply-add counted as two.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Flops(f64);

impl Flops {
    /// None.
    pub const ZERO: Self = Self(0.0);

    /// So many operations.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        Self(value)
    }

    /// In operations.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Add for Flops {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Flops {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<f64> for Flops {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

/// Floating-point operations a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct FlopRate(f64);

impl FlopRate {
    /// So many operations a second.
    #[must_use]
    pub const fn flops_per_second(value: f64) -> Self {
        Self(value)
    }

    /// In operations a second.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Mul<f64> for FlopRate {
    type Output = Self;
    fn mul(self, share: f64) -> Self {
        Self(self.0 * share)
    }
}

impl Div<FlopRate> for Flops {
    type Output = Delay;
    fn div(self, rate: FlopRate) -> Delay {
        if self.0 == 0.0 { Delay::ZERO } else { Delay::seconds(self.0 / rate.0) }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&human(self.as_seconds(), Unit::SECOND))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&human(self.as_real(), Unit::BYTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_whole_number_is_that_of_round() {
        let ends = [0.0, -0.4, -0.5, -7.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE];
        let powers = (0..66).flat_map(|k| {
            let power = (0..k).fold(1.0, |power: f64, _| power * 2.0);
            [-1.0, -0.5, 0.0, 0.5, 1.0].map(|more| power + more)
        });
        for middle in ends.into_iter().chain(powers).chain((0..1000).map(|k| f64::from(k) / 8.0)) {
            for value in [middle.next_down(), middle, middle.next_up()] {
                assert_eq!(nearest(value), value.round() as u64, "{value:e}");
            }
        }
    }

    #[test]
    fn a_delay_is_rounded_once_and_never_wraps() {
        assert_eq!(Delay::nanoseconds(0.0004).round(), Time::ZERO);
        assert_eq!(Delay::nanoseconds(0.0005).round(), Time::picoseconds(1));
        assert_eq!(Delay::seconds(1e10).round(), Time::MAX);
        assert_eq!(Time::MAX + Time::picoseconds(1), Time::MAX);
        assert_eq!(Delay::nanoseconds(f64::NAN).round(), Time::MAX);
    }

    #[test]
    fn a_gibibyte_at_one_gigabyte_a_second_takes_1_0737_seconds() {
        let time = (Bytes::new(1 << 30) / Bandwidth::bytes_per_second(1e9)).round();
        assert_eq!(time, Time::picoseconds(1_073_741_824_000));
    }
}
