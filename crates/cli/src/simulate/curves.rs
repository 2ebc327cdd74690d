//! A device's samples as curves over time.
//!
//! Owns: sums of an interval as rates, seconds and bytes as floating point.
//! Does not own: samples (the simulator), drawing.
//! Invariants: a rate is what was moved since the sample before, over the time since then.

use simulator::simulation::{DeviceOutcome, DeviceSample};

/// Seconds and a value, in order of time.
pub(super) type Curve = Vec<(f64, f64)>;

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A value of each sample.
pub(super) fn level(device: &DeviceOutcome, value: impl Fn(&DeviceSample) -> u64) -> Curve {
    device.samples.iter().map(|sample| (seconds(sample.at_ns), value(sample) as f64)).collect()
}

/// What was moved between samples, per second; a point in the middle of each interval.
pub(super) fn rate(device: &DeviceOutcome, moved: impl Fn(&DeviceSample) -> u64) -> Curve {
    let mut before = 0;
    let mut curve = Curve::with_capacity(device.samples.len());
    for sample in &device.samples {
        let interval = sample.at_ns.saturating_sub(before);
        if interval > 0 {
            let middle = seconds(before) + seconds(interval) / 2.0;
            curve.push((middle, moved(sample) as f64 / seconds(interval)));
        }
        before = sample.at_ns;
    }
    curve
}

/// Whether anything of it is above zero.
pub(super) fn lives(curve: &Curve) -> bool {
    curve.iter().any(|point| point.1 > 0.0)
}

pub(super) fn largest(curve: &Curve) -> f64 {
    curve.iter().map(|point| point.1).fold(0.0, f64::max)
}
