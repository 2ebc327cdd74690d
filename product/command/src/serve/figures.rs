//! A running server's figures.
//!
//! Owns: the family of each figure of the engine, the devices and the connections.
//! Does not own: the figures; the names (`metrics::names`).
//! Invariants: nothing here waits for a device; no figure is for a single client or file.

use std::sync::Arc;

use afflux_engine::counters::COUNTERS;
use afflux_engine::policy::FigureValue;
use afflux_engine::{DeviceStatus, EngineStatus, Platform, WaitHistogram, WaitHistograms};
use afflux_linux::ServeCounts;
use afflux_metrics::{Exposition, Family, Value};

use super::running::Running;
use crate::metrics::names::*;
use crate::metrics::process::Process;

/// Exponents of a histogram's first and last bound: powers of two of nanoseconds, 4 µs to 69 s.
const POWERS: std::ops::RangeInclusive<usize> = 12..=36;

/// Returns the function that makes the text.
pub(super) fn source(running: &Arc<Running>) -> impl Fn() -> String + Send + 'static {
    let (running, process) = (Arc::clone(running), Process::begins());
    move || {
        let mut all = Exposition::default();
        process.add_to(&mut all);
        figures(&running, &mut all);
        all.text()
    }
}

fn figures(running: &Running, all: &mut Exposition) {
    let engine = &running.engine;
    let status = engine.status();
    cache(&status, all);
    for device in &status.devices {
        of_device(device, all);
        pauses(device, all);
        let listed = engine.listed_files(device.id).unwrap_or_default();
        for (list, files) in [("b_dirty", listed.dirty), ("b_io", listed.round), ("b_more_io", listed.more)] {
            all.add(&FILES_LISTED, &[("device", &device.name), ("list", list)], Value::Count(files));
        }
        waits(&device.name, &engine.wait_histograms(device.id).unwrap_or_default(), all);
    }
    for ((family, info), value) in OF_COUNTERS.iter().zip(COUNTERS).zip(engine.platform().counters().sum()) {
        let value = if info.unit == "ns" { seconds(value) } else { Value::Count(value) };
        all.add(family, &[], value);
    }
    connections(&running.handle.counts(), running.connections_max, all);
    calls(running, all);
}

fn seconds(ns: u64) -> Value {
    Value::Number(ns as f64 / 1e9)
}

fn cache(status: &EngineStatus, all: &mut Exposition) {
    for (family, value) in [
        (&CACHE_SIZE, status.cache_bytes),
        (&CACHE_FREE, status.free_bytes),
        (&CACHE_DIRTY, status.dirty_bytes),
        (&CACHE_WRITEBACK, status.writeback_bytes),
        (&CACHE_LIMIT, status.dirty_limit_bytes),
        (&CACHE_PINNED, status.pinned_bytes),
        (&CACHE_METADATA, status.metadata_bytes),
        (&CACHE_FILES, status.files),
    ] {
        all.add(family, &[], Value::Count(value));
    }
}

fn of_device(device: &DeviceStatus, all: &mut Exposition) {
    let mut add = |family: &Family, value| all.add(family, &[("device", &device.name)], value);
    for (family, value) in [
        (&DIRTY, device.dirty_bytes),
        (&DIRTY_RUNS, device.dirty_runs),
        (&WRITEBACK, device.writeback_bytes),
        (&DIRTY_LIMIT, device.dirty_limit_bytes),
        (&BACKGROUND, device.background_threshold_bytes),
        (&DIRTIED, device.dirtied_bytes),
        (&WRITTEN, device.written_bytes),
        (&READ, device.read_bytes),
        (&REQUESTS, device.in_flight.into()),
        (&WRITERS, device.writers_waiting.into()),
        (&FILES_DIRTY, device.files_dirty.into()),
        (&FILES_FAILED, device.files_failed.into()),
    ] {
        add(family, Value::Count(value));
    }
    add(&BUSY, seconds(device.busy_ns));
    add(&STALLED, seconds(device.stalled_ns.unwrap_or(0)));
    if let Some(speed) = device.write_bandwidth_bytes_per_s {
        add(&BANDWIDTH, Value::Count(speed));
    }
    let figures = [
        ("owed_ns", &OWED),
        ("budget_ns", &BUDGET),
        ("budget_in_force_ns", &BUDGET_IN_FORCE),
        ("unpaused_ns", &UNPAUSED),
    ];
    for (name, family) in figures {
        let found = device.figures.iter().find(|figure| figure.info.name == name);
        if let Some(FigureValue::Number(ns)) = found.map(|figure| figure.value) {
            add(family, seconds(ns));
        }
    }
}

fn pauses(device: &DeviceStatus, all: &mut Exposition) {
    for pause in &device.pauses {
        let labels = [("device", device.name.as_str()), ("cause", pause.cause.name())];
        all.add(&PAUSED, &labels, Value::Count(pause.count));
        all.add(&PAUSED_TIME, &labels, seconds(pause.ns));
    }
}

fn waits(device: &str, waits: &WaitHistograms, all: &mut Exposition) {
    for (family, histogram) in [
        (&PAUSE, &waits.pause),
        (&WAIT_THROTTLE, &waits.throttle),
        (&WAIT_RECLAIM, &waits.reclaim),
        (&WAIT_READ, &waits.read),
        (&WAIT_SYNC, &waits.sync),
        (&COMMIT, &waits.commit),
    ] {
        all.add(family, &[("device", device)], in_seconds(histogram));
    }
}

/// Bounds are powers of two of nanoseconds, at which the engine's counts are exact.
fn in_seconds(of: &WaitHistogram) -> Value {
    let (first, last) = (*POWERS.start(), *POWERS.end());
    let bound = |power: usize| (1_u64 << power) as f64 / 1e9;
    let below = (bound(first), of.by_power[..first].iter().sum());
    let between = (first..last).map(|power| (bound(power + 1), of.by_power[power]));
    let above = (f64::INFINITY, of.by_power[last..].iter().sum());
    let buckets = [below].into_iter().chain(between).chain([above]).collect();
    Value::Histogram { buckets, sum: of.ns as f64 / 1e9 }
}

fn connections(counts: &ServeCounts, connections_max: usize, all: &mut Exposition) {
    for (family, value) in [
        (&NFS_CONNECTIONS, counts.connections as u64),
        (&NFS_CONNECTIONS_MAX, connections_max as u64),
        (&NFS_ACCEPTED, counts.accepted),
        (&NFS_REFUSED, counts.refused),
        (&NFS_IN, counts.bytes_in),
        (&NFS_OUT, counts.bytes_out),
        (&NFS_HELD, counts.request_bytes),
        (&NFS_WAITING, counts.waiting_for_room as u64),
        (&NFS_IN_PROGRESS, counts.calls_in_progress as u64),
    ] {
        all.add(family, &[], Value::Count(value));
    }
    for (why, closed) in [
        ("silent", counts.closed_silent),
        ("room", counts.closed_for_room),
        ("stalled", counts.closed_stalled),
        ("unread", counts.closed_unread),
        ("nonsense", counts.protocol_errors),
    ] {
        all.add(&NFS_CLOSED, &[("reason", why)], Value::Count(closed));
    }
}

/// Splits the rows of calls into three kinds by their names: procedures, refused records, statuses.
fn calls(running: &Running, all: &mut Exposition) {
    for (name, count) in running.server.calls() {
        let (family, label) = match name {
            // A connection is no call; connections have their own family.
            "rpc_connections" => continue,
            _ if name.starts_with("nfs_") || name.starts_with("mount_") => (&NFS_CALLS, "procedure"),
            _ if name.starts_with("rpc_") => (&NFS_REFUSALS, "reason"),
            _ => (&NFS_ERRORS, "status"),
        };
        all.add(family, &[(label, name)], Value::Count(count));
    }
}

#[cfg(test)]
mod tests;
