//! A running server's figures.
//!
//! Owns: asking the engine, the devices and the connections; figures with labels of their own.
//! Does not own: the records; the families, and their values in a record (`metrics`).
//! Invariants: nothing here waits for a device; no figure is for a single client or file.

use std::sync::Arc;

use afflux_engine::counters::COUNTERS;
use afflux_engine::{DeviceStatus, PerWait, Platform, WaitHistogram};
use afflux_frontend::{CountedRow, RowKind};
use afflux_linux_server::ServeCounts;
use afflux_metrics::{Exposition, Value};

use crate::metrics::{ProcessFigures, *};
use crate::serve::front::{MountFront, NfsFront};
use crate::serve::live::Running;

/// Exponents of a histogram's first and last bound: powers of two of nanoseconds, 4 µs to 69 s.
const POWERS: std::ops::RangeInclusive<usize> = 12..=36;

/// Returns the function that makes the text.
pub(crate) fn source(running: &Arc<Running>) -> impl Fn() -> String + Send + 'static {
    let (running, process) = (Arc::clone(running), ProcessFigures::begins());
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
    add_status(all, &CACHE, &status, &[]);
    for device in &status.devices {
        add_status(all, &DEVICE, device, &[("device", &device.name)]);
        add_budget(all, device);
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
    if let Some(nfs) = &running.front.nfs {
        add_status(all, &CONNECTIONS, &running.nfs_gauges(), &[]);
        closed_connections(&nfs.handle.counts(), all);
        calls(nfs, all);
    }
    if let Some(disk) = running.store.as_ref().and_then(|store| store().disk_cache) {
        add(all, DISK_CACHE, &disk, &[]);
    }
    if let Some(mount) = &running.front.mount {
        add(all, MOUNT, &*mount.mount, &[]);
        calls_of_mount(mount, all);
    }
}

/// Operations, and the count of errors behind them.
fn calls_of_mount(mount: &MountFront, all: &mut Exposition) {
    for CountedRow { name, kind, count, .. } in mount.mount.calls() {
        let operation = name.strip_prefix("fuse_").unwrap_or(name);
        match kind {
            RowKind::Failure => all.add(&FUSE_ERRORS, &[], Value::Count(count)),
            _ => all.add(&FUSE_CALLS, &[("operation", operation)], Value::Count(count)),
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

fn waits(device: &str, waits: &PerWait<WaitHistogram>, all: &mut Exposition) {
    for (family, histogram) in [
        (&PAUSE, &waits.pause),
        (&WAIT_THROTTLE, &waits.calls.throttle),
        (&WAIT_RECLAIM, &waits.calls.reclaim),
        (&WAIT_READ, &waits.calls.read),
        (&WAIT_SYNC, &waits.calls.sync),
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

fn closed_connections(counts: &ServeCounts, all: &mut Exposition) {
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

/// A family for each kind of rows.
fn calls(nfs: &NfsFront, all: &mut Exposition) {
    for CountedRow { name, kind, count, .. } in nfs.server.calls() {
        let (family, label) = match kind {
            // Connections have figures of their own.
            RowKind::Connection => continue,
            RowKind::Call => (&NFS_CALLS, "procedure"),
            RowKind::Operation => (&NFS_OPERATIONS, "operation"),
            RowKind::Refusal | RowKind::Unauthorized => (&NFS_REFUSALS, "reason"),
            RowKind::Failure => (&NFS_ERRORS, "status"),
        };
        all.add(family, &[(label, name)], Value::Count(count));
    }
}

#[cfg(test)]
mod tests;
