//! Two runs of the same jobs side by side: figures of each, and their distance.
//!
//! Owns: the compared figures, and their goals.
//! Does not own: the runs.
//! Invariants: a deviation is that of the simulated figure from the measured one.

use afflux_report::Fields;
use afflux_workloads::simulation::{JobOutcome, OperationOutcome};
use serde_json::Value;

/// Largest deviation of throughputs.
pub(super) const THROUGHPUT_GOAL: f64 = 0.05;
/// Largest deviation of sync latencies.
pub(super) const SYNC_GOAL: f64 = 0.15;
/// Largest distance of dirty bytes, as a share of the limit.
pub(super) const DIRTY_GOAL: f64 = 0.10;
/// Seconds between the instants at which dirty bytes are compared.
const GRID_S: f64 = 0.1;

/// The state of the engine at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) at_s: f64,
    /// Dirty bytes, those under writeback included.
    pub(super) dirty_bytes: u64,
    /// Bytes accepted from writers since the start.
    pub(super) accepted_bytes: u64,
}

/// The last look before an instant.
pub(super) fn last_before(looks: &[Look], at_s: f64) -> Option<&Look> {
    looks[..looks.partition_point(|look| look.at_s <= at_s)].last()
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) jobs: Vec<JobOutcome>,
    pub(super) looks: Vec<Look>,
    pub(super) limit_bytes: u64,
    /// Bytes that the disk wrote; a measured run includes the file system's own.
    pub(super) disk_bytes: u64,
    /// The waits of each job.
    pub(super) delays: Value,
}

fn percentile_ms(operations: &OperationOutcome, wanted: f64) -> f64 {
    let found = operations.latency.percentiles_ns.iter().find(|(percentile, _)| *percentile >= wanted);
    found.map_or(0.0, |(_, ns)| *ns as f64 / 1e6)
}

impl Side {
    /// The compared figures. Throughput: bytes moved, over the time until all were durable.
    pub(super) fn figures(&self) -> Fields {
        let sum = |part: &dyn Fn(&JobOutcome) -> u64| self.jobs.iter().map(part).sum::<u64>() as f64;
        let seconds = self.jobs.iter().map(|job| job.elapsed_ns).max().unwrap_or(0) as f64 / 1e9;
        let synced = |job: &&JobOutcome| job.sync.ops + job.closing_sync.ops > 0;
        // Of several jobs, takes the first that syncs, since their latencies must not be mixed.
        let syncs = self.jobs.iter().find(synced).map(|job| match job.sync.ops {
            0 => &job.closing_sync,
            _ => &job.sync,
        });
        let of = |get: &dyn Fn(&OperationOutcome) -> f64| syncs.map_or(0.0, get);
        let read_ns = self.jobs.iter().map(|job| job.read.latency.mean_ns).max().unwrap_or(0);
        Fields::new()
            .with("throughput_mb_per_s", sum(&|job| job.read.bytes + job.write.bytes) / 1e6 / seconds.max(1e-9))
            .with("elapsed_s", seconds)
            .with("syncs", syncs.map_or(0, |syncs| syncs.ops))
            .with("sync_mean_ms", of(&|syncs| syncs.latency.mean_ns as f64 / 1e6))
            .with("sync_p50_ms", of(&|syncs| percentile_ms(syncs, 50.0)))
            .with("sync_p99_ms", of(&|syncs| percentile_ms(syncs, 99.0)))
            .with("sync_max_ms", of(&|syncs| syncs.latency.max_ns as f64 / 1e6))
            .with("read_mean_ms", read_ns as f64 / 1e6)
            .with("written_mb", self.disk_bytes as f64 / 1e6)
    }

    /// Dirty MiB at each whole second.
    pub(super) fn dirty_mib_by_second(&self) -> Vec<f64> {
        let end_s = self.looks.last().map_or(0, |look| look.at_s as u64);
        (0..=end_s).map(|second| (self.dirty_at(second as f64) / (1 << 20) as f64 * 10.0).round() / 10.0).collect()
    }

    fn dirty_at(&self, at_s: f64) -> f64 {
        last_before(&self.looks, at_s).map_or(0.0, |look| look.dirty_bytes as f64)
    }
}

/// The deviation of the simulated figure from the measured one, as a share of the latter.
pub(super) fn deviation(simulated: f64, measured: f64) -> f64 {
    if measured == 0.0 { 0.0 } else { simulated / measured - 1.0 }
}

/// The distance of dirty bytes over time, as shares of the limit: the mean, and the value that 95 % of the instants
/// stay below.
pub(super) fn dirty_deviation(simulated: &Side, measured: &Side) -> (f64, f64) {
    let end_s = [simulated, measured].map(|side| side.looks.last().map_or(0.0, |look| look.at_s));
    let steps = (end_s[0].max(end_s[1]) / GRID_S) as u64;
    let limit = (measured.limit_bytes.max(1)) as f64;
    let apart = |step: u64| {
        let at_s = step as f64 * GRID_S;
        (simulated.dirty_at(at_s) - measured.dirty_at(at_s)).abs() / limit
    };
    let mut all: Vec<f64> = (0..=steps).map(apart).collect();
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    (mean, all[(all.len() * 95 / 100).min(all.len() - 1)])
}

#[cfg(test)]
mod tests;
