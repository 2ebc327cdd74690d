//! Samples the devices over virtual time.
//!
//! Owns: the time of the next sample, the samples, the worst moment.
//! Does not own: the counters of devices and the engine.
//! Invariants: at most [`SAMPLES_MAX`] evenly spaced samples per device. At that number every second one is merged into
//! the next, and the interval doubles.

use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::{EngineStatus, Platform};

use crate::outcome::DeviceSample;
use crate::simulated::SimulatedSite;

/// Most samples of a device.
const SAMPLES_MAX: usize = 2000;
/// The first interval, in virtual nanoseconds.
const INTERVAL_NS: u64 = 100_000;

/// The figures of a device and its writers so far.
#[derive(Clone, Copy, Default)]
struct Totals {
    read_bytes: u64,
    written_bytes: u64,
    accepted_bytes: u64,
    pauses: (u64, u64),
    busy_ns: u64,
    queue_depth: u32,
}

#[derive(Default)]
struct Series {
    samples: Vec<DeviceSample>,
    last: Totals,
}

pub(super) struct Sampler {
    interval_ns: u64,
    next_ns: u64,
    last_ns: u64,
    series: Vec<Series>,
    pub(super) at_risk_bytes_max: u64,
}

impl Sampler {
    pub(super) fn new(devices: usize) -> Self {
        Self {
            interval_ns: INTERVAL_NS,
            next_ns: INTERVAL_NS,
            last_ns: 0,
            series: (0..devices).map(|_| Series::default()).collect(),
            at_risk_bytes_max: 0,
        }
    }

    /// The time of the next sample.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The samples of a device.
    pub(super) fn samples(&mut self, device: usize) -> Vec<DeviceSample> {
        std::mem::take(&mut self.series[device].samples)
    }

    pub(super) fn look(&mut self, machine: &SimulatedSite) {
        let now_ns = machine.now_ns();
        let status = machine.engine.status();
        let since_ns = now_ns.saturating_sub(self.last_ns);
        let mut at_risk = 0;
        for at in 0..self.series.len() {
            at_risk += self.look_at(machine, at, &status, now_ns, since_ns);
        }
        self.at_risk_bytes_max = self.at_risk_bytes_max.max(at_risk);
        self.last_ns = now_ns;
        if self.series.iter().any(|series| series.samples.len() >= SAMPLES_MAX) {
            self.series.iter_mut().for_each(Series::halve);
            self.interval_ns *= 2;
        }
        self.next_ns = now_ns.saturating_add(self.interval_ns);
    }

    /// Adds a sample; returns the bytes that a power loss might take now.
    fn look_at(
        &mut self,
        machine: &SimulatedSite,
        at: usize,
        status: &EngineStatus,
        now_ns: u64,
        since_ns: u64,
    ) -> u64 {
        let totals = totals(machine, at);
        let device = &status.devices[at];
        let series = &mut self.series[at];
        let last = std::mem::replace(&mut series.last, totals);
        let busy_per_mille = (totals.busy_ns - last.busy_ns).saturating_mul(1000).checked_div(since_ns).unwrap_or(0);
        series.samples.push(DeviceSample {
            at_ns: now_ns,
            dirty_bytes: device.dirty_bytes - device.writeback_bytes.min(device.dirty_bytes),
            writeback_bytes: device.writeback_bytes,
            dirty_limit_bytes: device.dirty_limit_bytes,
            queue_depth: totals.queue_depth,
            moved_bytes: (totals.read_bytes - last.read_bytes, totals.written_bytes - last.written_bytes),
            accepted_bytes: totals.accepted_bytes - last.accepted_bytes,
            pauses: (totals.pauses.0 - last.pauses.0, totals.pauses.1 - last.pauses.1),
            busy_per_mille: busy_per_mille.min(1000) as u32,
        });
        device.dirty_bytes + machine.volumes[at].disk.volatile_bytes()
    }
}

impl Series {
    /// Merges each pair of samples into one.
    fn halve(&mut self) {
        let merged = self.samples.chunks(2).map(|pair| match pair {
            [first, second] => {
                let ns = |sample: &DeviceSample| u64::from(sample.busy_per_mille);
                DeviceSample {
                    moved_bytes: (
                        first.moved_bytes.0 + second.moved_bytes.0,
                        first.moved_bytes.1 + second.moved_bytes.1,
                    ),
                    accepted_bytes: first.accepted_bytes + second.accepted_bytes,
                    pauses: (first.pauses.0 + second.pauses.0, first.pauses.1 + second.pauses.1),
                    busy_per_mille: ((ns(first) + ns(second)) / 2) as u32,
                    ..*second
                }
            }
            single => single[0],
        });
        self.samples = merged.collect();
    }
}

fn totals(machine: &SimulatedSite, at: usize) -> Totals {
    let volume = &machine.volumes[at];
    let figures = volume.disk.figures();
    let counters = machine.platform.counters();
    Totals {
        read_bytes: figures.bytes.0,
        written_bytes: figures.bytes.1,
        accepted_bytes: volume.accepted_bytes.load(Ordering::Relaxed),
        pauses: (counters.get(Counter::ThrottlePauses), counters.get(Counter::ThrottleNs)),
        busy_ns: figures.busy_ns,
        queue_depth: figures.depth as u32,
    }
}
