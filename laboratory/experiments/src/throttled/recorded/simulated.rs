//! The simulated machine that stands for the guest of a recorded run.
//!
//! Owns: its limits, its figures at whole seconds.
//! Does not own: the policy, its disks (`disk`), the jobs (`load`), the recorded figures (`recording`).
//! Invariants: both sides have the same disk, limits, ticks, positions, and times of a call and of a written page; only
//! the law is compared.

use afflux_engine::counters::Counter;
use afflux_simulator::{Cost, CostOf, CostTable};
use afflux_workloads::Workload;
use afflux_workloads::simulation::{DeviceOutcome, DeviceSample, Simulation};

use super::super::simulated::SEED;
use super::disk;
use super::load::{FASTER, Load};
use super::recording::Recording;
use super::second::{PAGE_BYTES, Second, Side};
use crate::experiment::LabError;

const SECOND_NS: u64 = 1_000_000_000;
/// Least time before the writer: more than the second after which the kernel forgets idle time.
const BEFORE_S: u64 = 2;
/// Pages of new blocks whose writeback ext4 ends at once.
pub(super) const EXTENT_PAGES: u64 = 2048;
/// The kernel's timers of seconds fire at multiples of this many ticks.
const TIMER_TICKS: u64 = 64;
/// How much faster the disk of bursts is.
const FASTER_BY: u64 = 8;
/// Pages of a request.
const REQUEST_PAGES: f64 = 32.0;
/// Memory of the simulated machine. Its limits are in bytes.
const MEMORY_BYTES: u64 = 4 << 30;
pub(super) fn simulate(real: &Recording) -> Result<Side, LabError> {
    let request_ns = (REQUEST_PAGES / real.disk_pages_per_s * 1e9) as u64;
    let mut simulation = Simulation::new(SEED, disk::device(request_ns, None, &real.positions)?);
    if real.load == Load::Burst {
        // The guest's own part of a request's time is the same.
        let faster_ns = request_ns - real.request_ns * (FASTER_BY - 1) / FASTER_BY;
        simulation.devices.push(disk::device(faster_ns, Some(FASTER), &[])?);
    }
    (simulation.cpus, simulation.call_ns, simulation.memory_bytes) = (1, real.call_ns, MEMORY_BYTES);
    simulation.costs = costs(real);
    simulation.policy = format!("linux-6.1@{}", real.hz);
    simulation.knobs = vec![
        "nr_requests=64".to_owned(),
        format!("dirty_bytes={}", real.limit_pages * PAGE_BYTES),
        format!("dirty_background_bytes={}", real.background_pages * PAGE_BYTES),
        format!("inodes_in_use={}", real.inodes),
        format!("extent_pages={EXTENT_PAGES}"),
    ];
    let before_ns = before_ns(real);
    let jobs = real.load.jobs(real.seconds, before_ns);
    simulation.workloads = jobs.into_iter().map(Workload::Job).collect();
    let outcome = simulation.run(&mut |_| {}).map_err(LabError::failed)?;
    let (Some(job), Some(device)) = (outcome.jobs.first(), outcome.devices.first()) else {
        return Err(LabError::failed("a run without a job"));
    };
    let logged = outcome.logs.iter().flat_map(|log| &log.calls);
    let mut rows = by_second(device, before_ns);
    for other in outcome.devices.iter().skip(1) {
        for (row, other) in rows.iter_mut().zip(by_second(other, before_ns)) {
            (row.dirty, row.accepted) = (row.dirty + other.dirty, row.accepted + other.accepted);
        }
    }
    let bursts = outcome.jobs.iter().filter(|job| job.name.starts_with("burst"));
    let parts = bursts.flat_map(|job| [job.write.elapsed_ns, job.closing_sync.latency.max_ns]);
    Ok(Side {
        rows,
        sync_s: job.closing_sync.latency.max_ns as f64 / 1e9,
        small_syncs_s: logged.map(|call| call.took_ns as f64 / 1e9).collect(),
        bursts_s: parts.map(|ns| ns as f64 / 1e9).collect(),
    })
}

/// The flushers' processor time. All other work of the kernel is in the time of a call.
fn costs(real: &Recording) -> CostTable {
    let ps = real.worker_ns_per_page * 1000 / PAGE_BYTES;
    let source = "the recorded time of the kernel's workers".to_owned();
    CostTable::new("the guest", vec![Cost { of: CostOf::Counter(Counter::PageOut), ps, source }])
}

/// The writer's start. It is as far from a timer's tick as in the guest.
pub(super) fn before_ns(real: &Recording) -> u64 {
    let least = BEFORE_S * real.hz;
    let ticks = least + (real.ticks_at_begin % TIMER_TICKS + TIMER_TICKS - least % TIMER_TICKS) % TIMER_TICKS;
    ticks * SECOND_NS / real.hz
}

/// The device at each second since the writer's start.
fn by_second(device: &DeviceOutcome, before_ns: u64) -> Vec<Second> {
    let mut sum = Second::default();
    let mut points = vec![(0.0, sum)];
    for sample in &device.samples {
        sum = sum.with(sample);
        points.push(((sample.at_ns as f64 - before_ns as f64) / 1e9, sum));
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
        let written = self.written + pages(sample.moved_bytes.1);
        // As in the kernel's counters, a page counts until its extent ends. Extents are full while there is enough to
        // write.
        let full = sample.writeback_bytes > 0 && sample.dirty_bytes >= EXTENT_PAGES * PAGE_BYTES;
        let unended = if full { written % EXTENT_PAGES as f64 } else { 0.0 };
        Self {
            dirty: pages(sample.dirty_bytes + sample.writeback_bytes) + unended,
            accepted: self.accepted + pages(sample.accepted_bytes),
            written,
            pauses: self.pauses + sample.pauses.0 as f64,
        }
    }
}
