//! A device's samples as curves over time.
//!
//! Owns: sums of an interval as rates, seconds and bytes as floating point.
//! Does not own: samples (the simulator), drawing.
//! Invariants: rates times their intervals add up to the moved bytes.

#[cfg(test)]
mod tests;

use afflux_workloads::simulation::{DeviceOutcome, DeviceSample};

/// Number of intervals of a run for rates.
const PARTS: u64 = 120;

/// Seconds and a value, in order of time.
pub(super) type Curve = Vec<(f64, f64)>;

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A value of each sample.
pub(super) fn level(device: &DeviceOutcome, value: impl Fn(&DeviceSample) -> u64) -> Curve {
    device.samples.iter().map(|sample| (seconds(sample.at_ns), value(sample) as f64)).collect()
}

/// Bytes moved per second, over at least a [`PARTS`]th of the run at a time. Samples are closer together than requests,
/// and would show single requests. Each interval has a point in its middle.
pub(super) fn rate(device: &DeviceOutcome, moved: impl Fn(&DeviceSample) -> u64) -> Curve {
    let end_ns = device.samples.last().map_or(0, |sample| sample.at_ns);
    let (mut before_ns, mut sum) = (0, 0);
    let mut curve = Curve::new();
    for sample in &device.samples {
        sum += moved(sample);
        let interval_ns = sample.at_ns.saturating_sub(before_ns);
        if interval_ns > 0 && (interval_ns >= end_ns / PARTS || sample.at_ns == end_ns) {
            curve.push((seconds(before_ns) + seconds(interval_ns) / 2.0, sum as f64 / seconds(interval_ns)));
            (before_ns, sum) = (sample.at_ns, 0);
        }
    }
    curve
}

/// Whether any point of the curve is above zero.
pub(super) fn lives(curve: &Curve) -> bool {
    curve.iter().any(|point| point.1 > 0.0)
}

/// The value that a fiftieth of the points that live exceed: the largest without short peaks.
pub(super) fn high(curve: &Curve) -> f64 {
    let mut values: Vec<f64> = curve.iter().map(|point| point.1).filter(|value| *value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    let at = values.len().saturating_sub(1) * 49 / 50;
    values.get(at).copied().unwrap_or(0.0)
}

pub(super) fn largest(curve: &Curve) -> f64 {
    curve.iter().map(|point| point.1).fold(0.0, f64::max)
}
