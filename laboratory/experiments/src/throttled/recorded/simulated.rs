//! The simulated machine that stands for the guest of a recorded run.
//!
//! Owns: its disk, limits and writer; its figures at whole seconds.
//! Does not own: the policy, the recorded figures (`recording`).
//! Invariants: both sides have the same disk, limits, ticks and time of a call; only the law is compared.

use std::sync::Arc;

use afflux_simulator::catalogue;
use afflux_workloads::Workload;
use afflux_workloads::simulation::{DeviceChoice, DeviceOutcome, DeviceSample, Simulation};

use super::super::kernel::writer;
use super::super::plan::{Rate, model};
use super::super::simulated::SEED;
use super::recording::Recording;
use super::second::{PAGE_BYTES, Second};
use crate::experiment::LabError;

const SECOND_NS: u64 = 1_000_000_000;
/// Time before the writer: more than the second after which the kernel forgets idle time.
const BEFORE_S: u64 = 2;
/// Memory of the simulated machine. Its limits are in bytes.
const MEMORY_BYTES: u64 = 4 << 30;
/// The guest's disk: requests of 128 KiB, one after the other, and nothing else. The smallest slices make the rate even.
const DISK: [(&str, &str); 9] = [
    ("request_bytes_max", "128 KiB"),
    ("tick_ns", "1000 ns"),
    ("slice_ns", "1000 ns"),
    ("latency_ns", "0 ns"),
    ("journal_bytes", "0"),
    ("commit_bytes", "0"),
    ("volatile", "0"),
    ("longer_alone", "0"),
    ("capacity_bytes", "64 GiB"),
];

/// A simulated run.
pub(super) struct Simulated {
    pub(super) rows: Vec<Second>,
    pub(super) sync_s: f64,
}

pub(super) fn simulate(real: &Recording) -> Result<Simulated, LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
    let bytes_per_s = (real.disk_pages_per_s * PAGE_BYTES as f64) as u64;
    let mut model = model(&Rate { text: String::new(), bytes_per_s })?;
    for (key, value) in DISK {
        model.set(key, value).map_err(|error| failed(&error))?;
    }
    let make = Arc::new(move |world: &_, number| Ok(catalogue::make(world, number, &model)));
    let device = DeviceChoice { directory: None, model: "the guest's disk".to_owned(), make };
    let mut simulation = Simulation::new(SEED, device);
    (simulation.cpus, simulation.call_ns, simulation.memory_bytes) = (1, real.call_ns, MEMORY_BYTES);
    simulation.policy = format!("linux-6.1@{}", real.hz);
    simulation.knobs = vec![
        "nr_requests=64".to_owned(),
        format!("dirty_bytes={}", real.limit_pages * PAGE_BYTES),
        format!("dirty_background_bytes={}", real.background_pages * PAGE_BYTES),
    ];
    let mut job = writer("writer", real.seconds);
    (job.end_fsync, job.start_delay_ns) = (true, BEFORE_S * SECOND_NS);
    simulation.workloads = vec![Workload::Job(job)];
    let outcome = simulation.run(&mut |_| {}).map_err(|error| failed(&error))?;
    let (Some(job), Some(device)) = (outcome.jobs.first(), outcome.devices.first()) else {
        return Err(LabError::Failed("a run without a job".to_owned()));
    };
    Ok(Simulated { rows: by_second(device), sync_s: job.closing_sync.latency.max_ns as f64 / 1e9 })
}

/// The device at each second since the writer's start.
fn by_second(device: &DeviceOutcome) -> Vec<Second> {
    let mut sum = Second::default();
    let mut points = vec![(0.0, sum)];
    for sample in &device.samples {
        sum = sum.with(sample);
        points.push((sample.at_ns as f64 / 1e9 - BEFORE_S as f64, sum));
    }
    let end_s = points.last().map_or(0.0, |point| point.0) as u64;
    let sums: Vec<Second> = (0..=end_s).map(|second| at(&points, second as f64)).collect();
    let pauses = |pair: &[Second]| Second { pauses: pair[1].pauses - pair[0].pauses, ..pair[0] };
    sums.windows(2).map(pauses).collect()
}

/// The sums at an instant, between two samples.
pub(super) fn at(points: &[(f64, Second)], at_s: f64) -> Second {
    let after = points.partition_point(|point| point.0 <= at_s).clamp(1, points.len() - 1);
    let ((from_s, from), (until_s, until)) = (points[after - 1], points[after]);
    let share = (at_s - from_s) / (until_s - from_s);
    let between = |of: fn(&Second) -> f64| of(&from) + share * (of(&until) - of(&from));
    Second {
        dirty: between(|second| second.dirty),
        accepted: between(|second| second.accepted),
        written: between(|second| second.written),
        pauses: between(|second| second.pauses),
    }
}

impl Second {
    fn with(self, sample: &DeviceSample) -> Self {
        let pages = |bytes: u64| bytes as f64 / PAGE_BYTES as f64;
        Self {
            dirty: pages(sample.dirty_bytes + sample.writeback_bytes),
            accepted: self.accepted + pages(sample.accepted_bytes),
            written: self.written + pages(sample.moved_bytes.1),
            pauses: self.pauses + sample.pauses.0 as f64,
        }
    }
}
