//! The figure of one run.
//!
//! Owns: rates, CPU times and times of calls of a run.
//! Does not own: the cases, their comparison (`report`); the measurement (`afflux_rig`).

use std::time::Duration;

use afflux_nfs_client::Report;
use afflux_rig::Measurement;

/// One run of one case on one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    /// Of the case's unit, per second.
    pub(super) rate: f64,
    /// The server's CPU time for one call.
    pub(super) cpu_us: f64,
    /// The client's CPU time for one call. If it fills the rest of the time that the rate leaves for a call, the client
    /// is the limit.
    pub(super) client_us: f64,
    /// The median; below, percentile 99 and percentile 99.9. 0 if single calls were not measured.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    /// Throughput of a stream of writes beside the calls; 0 if there was none.
    pub(super) stream_mib: f64,
}

impl Figure {
    /// A figure with only a rate.
    pub(super) fn of_rate(rate: f64) -> Self {
        Self { rate, cpu_us: 0.0, client_us: 0.0, p50_us: 0.0, p99_us: 0.0, p999_us: 0.0, stream_mib: 0.0 }
    }

    /// The figure of a measurement for `count` of the case's unit, done by `calls` calls.
    pub(super) fn of(measured: Measurement, count: u64, calls: u64) -> Self {
        let (elapsed, used) = measured.end();
        let [client_us, cpu_us] = used.map(|used| used.cpu_ns as f64 / 1e3 / calls.max(1) as f64);
        Self { cpu_us, client_us, ..Self::of_rate(rate(count, elapsed)) }
    }

    /// The figure with the times of single calls.
    pub(super) fn timed(self, report: &Report) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self { p50_us: us(report.p50_ns), p99_us: us(report.p99_ns), p999_us: us(report.p999_ns), ..self }
    }
}

pub(super) fn rate(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64().max(1e-9)
}
