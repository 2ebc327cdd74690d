//! An axis: its quantity and unit, and the positions of values along it.
//!
//! Owns: quantities, the unit that suits a range, the ends of an axis, the positions of its ticks (linear and
//! logarithmic) and their text.
//! Does not own: pixels (`sheet`).
//! Invariants: an axis names its unit, or has a quantity without one. Rates and data are decimal, memory is binary, and
//! their units show it (MB, MiB). Ticks ascend, lie between the ends, and are at most [`TICKS_MAX`].

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::units;

/// A quantity, and the unit of its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Time in seconds.
    Time,
    /// Bytes moved or stored; shown decimal.
    Data,
    /// Bytes of memory; shown binary.
    Memory,
    /// Bytes a second; shown decimal.
    DataRate,
    /// A number of things.
    Count,
    /// Things a second.
    Frequency,
    /// A fraction, 1 for all; shown in percent.
    Fraction,
    /// A figure in a unit of its own.
    Plain(&'static str),
}

/// A unit for display: the shown number is the value divided by `each`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Unit {
    pub(crate) each: f64,
    pub(crate) name: &'static str,
}

const TIMES: &[(f64, Unit)] = &[
    (0.0, Unit { each: 1e-9, name: "ns" }),
    (1e-6, Unit { each: 1e-6, name: "µs" }),
    (1e-3, Unit { each: 1e-3, name: "ms" }),
    (1.0, Unit { each: 1.0, name: "s" }),
    (600.0, Unit { each: 60.0, name: "min" }),
    (36_000.0, Unit { each: 3_600.0, name: "h" }),
];

const DATA: &[(f64, Unit)] = &[
    (0.0, Unit { each: 1.0, name: "B" }),
    (1e3, Unit { each: 1e3, name: "kB" }),
    (1e6, Unit { each: 1e6, name: "MB" }),
    (1e9, Unit { each: 1e9, name: "GB" }),
    (1e12, Unit { each: 1e12, name: "TB" }),
];

const RATES: &[(f64, Unit)] = &[
    (0.0, Unit { each: 1.0, name: "B/s" }),
    (1e3, Unit { each: 1e3, name: "kB/s" }),
    (1e6, Unit { each: 1e6, name: "MB/s" }),
    (1e9, Unit { each: 1e9, name: "GB/s" }),
];

const MEMORIES: &[(f64, Unit)] = &[
    (0.0, Unit { each: 1.0, name: "B" }),
    (1024.0, Unit { each: 1024.0, name: "KiB" }),
    (1_048_576.0, Unit { each: 1_048_576.0, name: "MiB" }),
    (1_073_741_824.0, Unit { each: 1_073_741_824.0, name: "GiB" }),
    (1_099_511_627_776.0, Unit { each: 1_099_511_627_776.0, name: "TiB" }),
];

const COUNTS: &[(f64, Unit)] = &[
    (0.0, Unit { each: 1.0, name: "" }),
    (1e5, Unit { each: 1e3, name: "thousands" }),
    (1e7, Unit { each: 1e6, name: "millions" }),
    (1e10, Unit { each: 1e9, name: "thousand millions" }),
];

const FREQUENCIES: &[(f64, Unit)] = &[
    (0.0, Unit { each: 1.0, name: "per second" }),
    (1e5, Unit { each: 1e3, name: "thousands per second" }),
    (1e7, Unit { each: 1e6, name: "millions per second" }),
];

impl Quantity {
    /// The unit in which values up to `largest` are short.
    pub(crate) fn unit(self, largest: f64) -> Unit {
        let table = match self {
            Self::Time => TIMES,
            Self::Data => DATA,
            Self::Memory => MEMORIES,
            Self::DataRate => RATES,
            Self::Count => COUNTS,
            Self::Frequency => FREQUENCIES,
            Self::Fraction => return Unit { each: 0.01, name: "%" },
            Self::Plain(name) => return Unit { each: 1.0, name },
        };
        let suits = table.iter().rev().find(|(from, _)| largest >= *from);
        suits.unwrap_or(&table[0]).1
    }

    /// One value with its unit: `24.8 MB/s`.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "-".to_owned();
        }
        let whole = value.max(0.0).round() as u64;
        match self {
            // These hold in any unit.
            Self::Time if value == 0.0 => "0 s".to_owned(),
            Self::Time if value > 0.0 && value < 0.999_5e-6 => format!("{} ns", plain(value * 1e9)),
            Self::Time => units::latency((value.max(0.0) * 1e9).round() as u64),
            Self::Data => units::data(whole),
            Self::Memory => units::memory(whole),
            Self::DataRate => units::rate(whole, Duration::from_secs(1)),
            Self::Count if value.fract() == 0.0 || value >= 999.5 => units::count(whole),
            Self::Count => format!("{value:.2}"),
            Self::Frequency if value >= 9.95 => format!("{}/s", units::count(whole)),
            Self::Frequency => format!("{value:.2}/s"),
            Self::Fraction => format!("{:.1} %", value * 100.0),
            Self::Plain("") => plain(value),
            Self::Plain(unit) => format!("{} {unit}", plain(value)),
        }
    }
}

fn plain(value: f64) -> String {
    match value.abs() {
        size if size >= 999.5 => units::count(size.round() as u64),
        0.0 => "0".to_owned(),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) quantity: Quantity,
    log: bool,
    /// Begins at the smallest value if that is more than this fraction of the largest.
    from_data: Option<f64>,
    whole: bool,
    range: Option<(f64, f64)>,
}

/// A tick: its position (0 to 1) and its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) position: f64,
    pub(crate) text: String,
}

impl Axis {
    /// A linear axis from zero (or from a lower value, if there is one) to the largest value.
    #[must_use]
    pub fn new(label: impl Into<String>, quantity: Quantity) -> Self {
        Self { label: label.into(), quantity, log: false, from_data: None, whole: false, range: None }
    }

    /// On a logarithmic scale. Values without a logarithm are shown at its low end.
    #[must_use]
    pub fn log(self) -> Self {
        Self { log: true, ..self }
    }

    /// Begins at the smallest value, not at zero, if most of the axis would be empty otherwise.
    #[must_use]
    pub fn near_data(self) -> Self {
        Self { from_data: Some(0.5), ..self }
    }

    /// Begins at the smallest value. For an axis on which readers look up positions instead of comparing lengths.
    pub(crate) fn across(self) -> Self {
        Self { from_data: Some(0.15), ..self }
    }

    /// With ticks only at whole numbers, if the values are counts and all whole.
    pub(crate) fn whole_if(self, mut values: impl Iterator<Item = f64>) -> Self {
        let whole = self.quantity == Quantity::Count && values.all(|value| value.fract() == 0.0);
        Self { whole, ..self }
    }

    fn steps(&self) -> Steps {
        match self.quantity {
            Quantity::Memory => Steps::Binary,
            _ if self.whole => Steps::Whole,
            _ => Steps::Decimal,
        }
    }

    /// From `low` to `high` whatever the values, so that plots above each other line up.
    #[must_use]
    pub fn range(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    pub(crate) fn is_log(&self) -> bool {
        self.log
    }

    pub(crate) fn has_range(&self) -> bool {
        self.range.is_some()
    }

    /// Whether a value has a position of its own on the axis.
    pub(crate) fn has(&self, value: f64) -> bool {
        !self.log || value > 0.0
    }

    /// The scale for finite values from `low` to `high`.
    pub(crate) fn scale(&self, low: f64, high: f64, ticks_wanted: usize) -> Scale {
        if self.log {
            let (low, high) = self.range.unwrap_or((low, high));
            return Scale::log(low, high);
        }
        if let Some((low, high)) = self.range {
            return Scale::linear(low, high);
        }
        let begins = self.from_data.is_some_and(|share| low > share * high);
        let floor = if begins { low } else { low.min(0.0) };
        // Rounded in the displayed unit, since memory would otherwise end at odd numbers.
        let each = self.quantity.unit(high.abs().max(low.abs())).each;
        let rounded = Scale::linear(floor / each, high / each).rounded_up(self.steps(), ticks_wanted);
        rounded.times(each)
    }

    /// The ticks of a scale, and the axis's own text with its unit.
    pub(crate) fn ticks(&self, scale: &Scale, wanted: usize) -> (Vec<Tick>, String) {
        if self.log {
            let (values, _) = scale.ticks(Steps::Decimal, wanted);
            let tick =
                |value: f64| Tick { position: scale.position(value).unwrap_or(0.0), text: self.round_text(value) };
            return (values.into_iter().map(tick).collect(), self.label.clone());
        }
        let unit = self.quantity.unit(scale.size());
        let shown = scale.clone().times(1.0 / unit.each);
        let (values, step) = shown.ticks(self.steps(), wanted);
        let decimals = if step > 0.0 { (-step.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
        let tick = |value: f64| {
            // A rounding error around zero must not show a minus sign.
            let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
            Tick { position: shown.position(value).unwrap_or(0.0), text: grouped(value, decimals) }
        };
        let text = match unit.name {
            "" => self.label.clone(),
            name => format!("{} ({name})", self.label),
        };
        (values.into_iter().map(tick).collect(), text)
    }

    /// The text of a value beside the axis: in the axis's unit, to be read together with the ticks, unless that would
    /// leave no digits.
    pub(crate) fn value_text(&self, scale: &Scale, value: f64) -> String {
        let (unit, own) = (self.quantity.unit(scale.size()), self.quantity.unit(value.abs()));
        let shown = value / unit.each;
        // A time of minutes and seconds is in no one unit.
        let is_decimal = matches!(self.quantity, Quantity::Data | Quantity::DataRate | Quantity::Memory)
            || (self.quantity == Quantity::Time && unit.each <= 1.0);
        if !is_decimal || unit == own || !value.is_finite() || shown < 0.001 {
            return self.quantity.text(value);
        }
        let decimals = match shown {
            shown if shown >= 99.95 => 0,
            shown if shown >= 9.995 => 1,
            shown if shown >= 0.999_5 => 2,
            _ => 3,
        };
        format!("{} {}", grouped(shown, decimals), unit.name)
    }

    /// A power of ten (or 2 or 5 of them) with its unit, without superfluous digits: `1 ms`.
    fn round_text(&self, value: f64) -> String {
        let unit = self.quantity.unit(value * 1.000_001);
        let shown = value / unit.each;
        let number = if shown >= 0.999_999 { grouped(shown, 0) } else { format!("{shown:.0e}") };
        match unit.name {
            "" => number,
            name => format!("{number} {name}"),
        }
    }
}

/// With commas between groups of three digits.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if value < 0.0 { "−" } else { "" };
    match whole.parse::<u64>() {
        Ok(whole) => format!("{sign}{}{rest}", units::count(whole)),
        Err(_) => format!("{value:.0e}"),
    }
}

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

    /// The position of a value: 0 at the low end, 1 at the high end; a value beyond them is at the end itself. None for
    /// a value that is not finite.
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
