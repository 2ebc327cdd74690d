//! From values to places along an axis.
//!
//! Owns: the ends of an axis, the places of its ticks, linear and logarithmic.
//! Does not own: units and the labels of ticks (`axis`); pixels (`sheet`).
//! Invariants: ticks ascend, lie between the ends, and are at most [`TICKS_MAX`].

#[cfg(test)]
mod tests;

/// Most ticks of an axis.
const TICKS_MAX: usize = 40;

/// An axis without its unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

/// Distances of ticks, times a power of ten (or of 1,024, for memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// 1, 2, 5, 10: decimal.
    Decimal,
    /// 1, 2, 4, 8, ...: for memory.
    Binary,
    /// Decimal, and at least 1: for things without halves.
    Whole,
}

impl Scale {
    /// From `low` to `high`; both finite. An empty range is widened.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, log: false }
    }

    /// From `low` to `high`, widened to whole decades if that adds less than half of one.
    pub(crate) fn log(low: f64, high: f64) -> Self {
        let low = if low > 0.0 && low.is_finite() { low } else { 1.0 };
        let high = if high > low { high } else { low * 10.0 };
        let (floor, ceil) = (low.log10().floor(), high.log10().ceil());
        let low = if low.log10() - floor < 0.5 { 10f64.powf(floor) } else { low };
        let high = if ceil - high.log10() < 0.5 { 10f64.powf(ceil) } else { high };
        Self { low, high, log: true }
    }

    /// The place of a value: 0 at the low end, 1 at the high end; a value beyond them is at the end itself. None for a
    /// value that is not finite.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        let share = if self.log {
            let value = value.max(self.low);
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        Some(share.clamp(0.0, 1.0))
    }

    /// The same axis in another unit.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor, ..self }
    }

    /// The larger of its ends without their signs.
    pub(crate) fn size(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The same axis with its high end at the tick at or above it.
    pub(crate) fn rounded_up(self, steps: Steps, ticks_wanted: usize) -> Self {
        if self.log {
            return self;
        }
        let step = step(self.high - self.low, steps, ticks_wanted);
        // A value that equals a tick within rounding is that tick.
        let high = ((self.high / step) - 1e-9).ceil() * step;
        Self { high, ..self }
    }

    /// About `wanted` ticks, and their distance (0 on a logarithmic axis).
    pub(crate) fn ticks(&self, steps: Steps, wanted: usize) -> (Vec<f64>, f64) {
        if self.log {
            return (self.log_ticks(wanted), 0.0);
        }
        let step = step(self.high - self.low, steps, wanted);
        let first = (self.low / step - 1e-9).ceil();
        let ticks = (0..TICKS_MAX)
            .map(|at| (first + at as f64) * step)
            .take_while(|tick| *tick <= self.high + step * 1e-6)
            .collect();
        (ticks, step)
    }

    /// Decades; if these are few, with 2 and 5; if many, every second or third.
    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (last - first).max(1) as usize;
        let within: &[f64] = if decades * 3 <= wanted { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let stride = decades.div_ceil(wanted.max(1)).max(1);
        (first..=last)
            .step_by(stride)
            .flat_map(|decade| within.iter().map(move |factor| factor * 10f64.powi(decade)))
            .filter(|tick| *tick >= self.low * 0.999_999 && *tick <= self.high * 1.000_001)
            .take(TICKS_MAX)
            .collect()
    }
}

/// The step for about `wanted` ticks in `range`.
fn step(range: f64, steps: Steps, wanted: usize) -> f64 {
    let rough = range / wanted.max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    if steps == Steps::Binary && rough >= 1.0 {
        return 2f64.powf(rough.log2().ceil());
    }
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    let step = factor.unwrap_or(10.0) * power;
    if steps == Steps::Whole { step.max(1.0) } else { step }
}
