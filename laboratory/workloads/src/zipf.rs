//! Zipf-distributed ranks: rank k occurs in proportion to 1 / k^theta.
//!
//! Drawn by rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", 1996), which is exact and needs no table.
//!
//! Owns: the draw; its own logarithm and exponential, since those of the C library may differ in their last bit between
//! machines.
//! Does not own: the ranks of blocks.
//! Invariants: only additions, multiplications, divisions and roundings, which are the same everywhere.

use std::f64::consts::{LN_2, SQRT_2};

use afflux_simulator::Random;

/// Draws ranks from 0 to `count - 1`.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    count: f64,
    theta: f64,
    /// The integral of the density at the two ends.
    first: f64,
    last: f64,
    /// A point at most this far below its rank is accepted without a closer check.
    sure: f64,
}

impl Zipf {
    /// `theta` is above 0 and not 1; `count` is at least 1.
    pub(super) fn new(count: u64, theta: f64) -> Self {
        let mut zipf = Self { count: count as f64, theta, first: 0.0, last: 0.0, sure: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.count + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, at: f64) -> f64 {
        exponential(-self.theta * logarithm(at))
    }

    fn integral(&self, to: f64) -> f64 {
        let rest = 1.0 - self.theta;
        (exponential(rest * logarithm(to)) - 1.0) / rest
    }

    fn inverse(&self, integral: f64) -> f64 {
        let rest = 1.0 - self.theta;
        exponential(logarithm((1.0 + integral * rest).max(f64::MIN_POSITIVE)) / rest)
    }

    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let unit = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
            let point = self.last + unit * (self.first - self.last);
            let at = self.inverse(point);
            let rank = (at + 0.5).floor().clamp(1.0, self.count);
            // At least half of all points are accepted, so this ends.
            if rank - at <= self.sure || point >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// A rank below `count` of a Pareto distribution: this share of the ranks gets the larger part of the draws.
pub(super) fn pareto(count: u64, share: f64, random: &mut Random) -> u64 {
    let unit = ((random.bits() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    let power = logarithm(share) / logarithm(1.0 - share);
    let rank = (count.max(1) - 1) as f64 * exponential(power * logarithm(unit));
    (rank as u64).min(count.max(1) - 1)
}

/// An exponentially distributed time with this mean, as between random events.
pub(super) fn by_chance_ns(mean_ns: u64, random: &mut Random) -> u64 {
    let unit = ((random.bits() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    (-logarithm(unit) * mean_ns as f64) as u64
}

/// The natural logarithm of a positive, normal number. For the mantissa it uses the series of the area tangent, which
/// at most 0.172 needs ten terms.
fn logarithm(of: f64) -> f64 {
    let bits = of.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > SQRT_2 {
        (mantissa, exponent) = (mantissa / 2.0, exponent + 1);
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = (0..11).rev().fold(0.0, |sum, term| sum * square + 1.0 / (2.0 * f64::from(term) + 1.0));
    2.0 * t * series + exponent as f64 * LN_2
}

/// e to the power of a number: a power of two, and the series of the remainder.
fn exponential(of: f64) -> f64 {
    let power = (of / LN_2 + 0.5).floor();
    let rest = of - power * LN_2;
    let series = (1..15).rev().fold(1.0, |sum, term| 1.0 + sum * rest / f64::from(term));
    let scale = |power: f64| f64::from_bits(((power + 1023.0) as u64) << 52);
    // Beyond the range of a double: as near as possible.
    series * scale(power.clamp(-1022.0, 1023.0))
}

#[cfg(test)]
mod tests;
