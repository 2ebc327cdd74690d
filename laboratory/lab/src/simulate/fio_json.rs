//! A run as JSON with fio's names (`--output-format=json`), for programs that read fio's.
//!
//! Owns: fio's nesting and units: KiB/s and bytes/s, milliseconds, nanoseconds.
//! Does not own: the figures; our own names (`json`).
//! Invariants: fio's names have fio's meaning. Submission takes no time here, so that a call's completion latency
//! (`clat_ns`) equals its total latency (`lat_ns`).

#[cfg(test)]
mod tests;

use afflux_workloads::simulation::{JobOutcome, LatencyOutcome, OperationOutcome};
use serde_json::{Map, Value, json};

use super::ended_run::Run;

pub(super) fn object(run: &Run) -> Value {
    json!({
        "fio version": format!("afflux-{}", env!("CARGO_PKG_VERSION")),
        "simulated": true,
        "policy": run.policy,
        "seed": run.figures.seed,
        "jobs": run.figures.jobs.iter().enumerate().map(|(at, one)| job(at, one)).collect::<Vec<_>>(),
    })
}

fn job(at: usize, job: &JobOutcome) -> Value {
    json!({
        "jobname": job.name,
        "groupid": at,
        "error": u64::from(!job.errors.is_empty()),
        "read": operation(&job.read),
        "write": operation(&job.write),
        "trim": operation(&job.trim),
        "sync": { "total_ios": job.sync.ops, "lat_ns": latency(&job.sync) },
        "job_runtime": job.elapsed_ns / 1_000_000,
        "numjobs": job.clones,
        "device": job.device,
    })
}

fn operation(operation: &OperationOutcome) -> Value {
    let seconds = operation.elapsed_ns as f64 / 1e9;
    let each = |count: u64| if operation.elapsed_ns > 0 { count as f64 / seconds } else { 0.0 };
    let bandwidth = each(operation.bytes);
    json!({
        "io_bytes": operation.bytes,
        "io_kbytes": operation.bytes / 1024,
        "bw_bytes": bandwidth as u64,
        "bw": (bandwidth / 1024.0) as u64,
        "iops": each(operation.ops),
        "runtime": operation.elapsed_ns / 1_000_000,
        "total_ios": operation.ops,
        "clat_ns": latency(operation),
        "lat_ns": latency(operation),
    })
}

fn latency(operation: &OperationOutcome) -> Value {
    let LatencyOutcome { min_ns, mean_ns, max_ns, percentiles_ns } = &operation.latency;
    let percentiles: Map<String, Value> =
        percentiles_ns.iter().map(|(percentile, ns)| (format!("{percentile:.6}"), (*ns).into())).collect();
    json!({"min": min_ns, "max": max_ns, "mean": mean_ns, "N": operation.ops, "percentile": percentiles})
}
