//! Every family of figures once: name, kind, help, and its value in a status record.
//!
//! Owns: the tables. Those of the engine's counters follow from the table of counters.
//! Does not own: the records; values with labels of their own.
//! Invariants: names follow Prometheus' conventions: base units (seconds, bytes), the unit last, `_total` after the
//! unit of a counter. The page docs/reference/metrics.md lists all names, and the example dashboard uses no other name (tests).

use std::borrow::Cow;
use std::sync::LazyLock;

use afflux_engine::counters::{COUNTERS, CounterInfo};
use afflux_engine::policy::FigureValue;
use afflux_engine::{DeviceStatus, EngineStatus};
use afflux_govern::Row;
use afflux_linux::ServeCounts;
use afflux_metrics::{Exposition, Family, Kind, Value};

use crate::serve::front::MountHolds;

macro_rules! families {
    ($table:ident $about:literal: $($name:ident $kind:ident $text:literal $help:literal;)*) => {
        $(pub(crate) static $name: Family = Family::new($text, Kind::$kind, $help);)*

        #[doc = $about]
        #[cfg(test)]
        pub(crate) static $table: &[&Family] = &[$(&$name),*];
    };
}

/// Families with one figure of a `T` each, and that figure; none while it is unknown.
pub(crate) type Figures<T> = &'static [(Family, fn(&T) -> Option<Value>)];

macro_rules! figures {
    ($table:ident of $of:ty, $about:literal: $($kind:ident $text:literal $help:literal $value:expr;)*) => {
        #[doc = $about]
        pub(crate) static $table: Figures<$of> = &[$((Family::new($text, Kind::$kind, $help), $value)),*];
    };
}

families! { PROCESS "Figures of every program":
    PROCESS_CPU Counter "process_cpu_seconds_total" "CPU time of this process, in user mode and in the kernel.";
    PROCESS_MEMORY Gauge "process_resident_memory_bytes" "Resident memory of this process.";
    PROCESS_FILES Gauge "process_open_fds" "Open descriptors of this process.";
    PROCESS_START Gauge "process_start_time_seconds" "Start of this process, since 1970.";
    BUILD Gauge "afflux_build_info" "1, with the version as a label.";
}

figures! { CACHE of EngineStatus, "The cache's figures":
    Gauge "afflux_cache_size_bytes" "Size of the cache."
        |it| count(it.cache_bytes);
    Gauge "afflux_cache_free_bytes" "Free memory of the cache."
        |it| count(it.free_bytes);
    Gauge "afflux_cache_dirty_bytes" "Dirty bytes of the cache, writeback included."
        |it| count(it.dirty_bytes);
    Gauge "afflux_cache_writeback_bytes" "Bytes of the cache under writeback."
        |it| count(it.writeback_bytes);
    Gauge "afflux_cache_dirty_limit_bytes" "Limit of dirty bytes of all devices together."
        |it| count(it.dirty_limit_bytes);
    Gauge "afflux_cache_pinned_bytes" "Memory of the cache held by replies that are being sent."
        |it| count(it.pinned_bytes);
    Gauge "afflux_cache_metadata_bytes" "Memory of the cache's own metadata."
        |it| count(it.metadata_bytes);
    Gauge "afflux_cache_files" "Files that the cache knows."
        |it| count(it.files);
}

figures! { DEVICE of DeviceStatus, "A device's figures":
    Gauge "afflux_device_dirty_bytes" "Dirty bytes of the device, writeback included."
        |it| count(it.dirty_bytes);
    Gauge "afflux_device_dirty_runs" "Runs of dirty pages of the device."
        |it| count(it.dirty_runs);
    Gauge "afflux_device_writeback_bytes" "Bytes under writeback to the device."
        |it| count(it.writeback_bytes);
    Gauge "afflux_device_dirty_limit_bytes" "Dirty limit of the device, at which its writers are throttled."
        |it| count(it.dirty_limit_bytes);
    Gauge "afflux_device_background_threshold_bytes" "Background threshold, at which the device's flusher starts to write."
        |it| count(it.background_threshold_bytes);
    Gauge "afflux_device_write_bandwidth_bytes_per_second" "Write speed of the device while it has dirty data to write, once that is known."
        |it| it.write_bandwidth_bytes_per_s.map(Value::Count);
    Counter "afflux_device_dirtied_bytes_total" "What was dirtied."
        |it| count(it.dirtied_bytes);
    Counter "afflux_device_written_bytes_total" "Bytes written to the device."
        |it| count(it.written_bytes);
    Counter "afflux_device_read_bytes_total" "Bytes read from the device."
        |it| count(it.read_bytes);
    Counter "afflux_device_busy_seconds_total" "Time during which the device had requests."
        |it| Some(seconds(it.busy_ns));
    Gauge "afflux_device_in_flight_requests" "Requests in flight to the device."
        |it| count(it.in_flight);
    Gauge "afflux_device_waiting_writers" "Writers that wait for the device."
        |it| count(it.writers_waiting);
    Gauge "afflux_device_dirty_files" "Files with unwritten bytes."
        |it| count(it.files_dirty);
    Gauge "afflux_device_failed_files" "Files whose last write failed."
        |it| count(it.files_failed);
    Gauge "afflux_device_stalled_seconds" "Time since the device's last completion, if it counts as hung; else 0."
        |it| Some(seconds(it.stalled_ns.unwrap_or(0)));
    Gauge "afflux_device_names_stalled_seconds" "Age of the oldest call for names or attributes, if a disk that works would have ended it; else 0."
        |it| Some(seconds(it.names_stalled_ns.unwrap_or(0)));
    Gauge "afflux_device_away_seconds" "Time for which the object store behind the device has not answered, if it counts as away; else 0."
        |it| Some(seconds(it.away_ns.unwrap_or(0)));
    Gauge "afflux_device_owed_seconds" "Time that the device needs for all dirty bytes, writeback included. Only under the policy afflux, like the next three."
        |it| policy_seconds(it, "owed_ns");
    Gauge "afflux_device_budget_seconds" "Configured limit of the time that the device may owe."
        |it| policy_seconds(it, "budget_ns");
    Gauge "afflux_device_budget_in_force_seconds" "Limit in force of the time that the device may owe."
        |it| policy_seconds(it, "budget_in_force_ns");
    Gauge "afflux_device_unpaused_seconds" "Owed time up to which no writer is paused."
        |it| policy_seconds(it, "unpaused_ns");
}

figures! { CONNECTIONS of ServeCounts, "The connections' figures":
    Gauge "afflux_nfs_connections" "Open connections."
        |it| count(it.connections as u64);
    Counter "afflux_nfs_accepted_connections_total" "Connections accepted."
        |it| count(it.accepted);
    Counter "afflux_nfs_refused_connections_total" "Connections refused since every connection that could have made room had calls in progress."
        |it| count(it.refused);
    Counter "afflux_nfs_received_bytes_total" "Bytes received."
        |it| count(it.bytes_in);
    Counter "afflux_nfs_sent_bytes_total" "Bytes sent."
        |it| count(it.bytes_out);
    Gauge "afflux_nfs_request_bytes" "Memory that connections hold: requests in progress or being received, replies not sent yet, empty buffers."
        |it| count(it.request_bytes);
    Gauge "afflux_nfs_connections_at_work" "Connections with a part of a request, a call in progress or an unsent reply."
        |it| count(it.connections_at_work as u64);
    Gauge "afflux_nfs_waiting_connections" "Connections that wait until others hold less memory."
        |it| count(it.waiting_for_room as u64);
    Gauge "afflux_nfs_calls_in_progress" "Calls received and not answered yet."
        |it| count(it.calls_in_progress as u64);
}

families! { SERVER "Figures of `serve` with labels of their own":
    FILES_LISTED Gauge "afflux_device_listed_files" "Files in the flusher's lists: waiting for their first turn (b_dirty), in the current round (b_io), with more to write after it (b_more_io).";
    PAUSED Counter "afflux_device_pauses_by_cause_total" "Finished pauses of writers, by cause.";
    PAUSED_TIME Counter "afflux_device_pauses_by_cause_seconds_total" "Total duration of finished pauses, by cause.";
    PAUSE Histogram "afflux_device_pause_seconds" "Single pauses of writers.";
    WAIT_THROTTLE Histogram "afflux_device_throttle_wait_seconds" "Waits of write calls for the device: all pauses of a call together, and its own writeback.";
    WAIT_RECLAIM Histogram "afflux_device_reclaim_wait_seconds" "Waits of calls for a frame.";
    WAIT_READ Histogram "afflux_device_read_wait_seconds" "Waits of calls for reads from the device.";
    WAIT_SYNC Histogram "afflux_device_sync_wait_seconds" "Waits of syncs until bytes are durable.";
    COMMIT Histogram "afflux_device_commit_seconds" "How long COMMITs took.";
    NFS_CONNECTIONS_MAX Gauge "afflux_nfs_connections_max" "Most connections at a time.";
    NFS_CLOSED Counter "afflux_nfs_closed_connections_total" "Connections that the server closed, by reason: silent, room (for others), stalled, unread, nonsense.";
    NFS_CALLS Counter "afflux_nfs_calls_total" "Calls answered, by procedure.";
    NFS_ERRORS Counter "afflux_nfs_errors_total" "Calls answered with a status other than OK, by status.";
    NFS_REFUSALS Counter "afflux_nfs_refused_records_total" "Records that were not carried out as calls, by reason.";
}

figures! { MOUNT of MountHolds, "A mount's figures":
    Gauge "afflux_fuse_nodes" "Files and directories that the kernel knows."
        |it| count(it.nodes as u64);
    Gauge "afflux_fuse_open_files" "Files and directories that programs have open."
        |it| count(it.open_files as u64);
    Gauge "afflux_fuse_calls_waiting" "Calls that wait."
        |it| count(it.calls_waiting as u64);
    Gauge "afflux_fuse_waiting_bytes" "Memory of messages that wait, but for short ones and the kernel's own."
        |it| count(it.waiting_bytes as u64);
}

families! { MOUNTED "Figures of a mount with labels of their own":
    FUSE_CALLS Counter "afflux_fuse_calls_total" "Calls of the kernel, by operation.";
    FUSE_ERRORS Counter "afflux_fuse_errors_total" "Calls of the kernel that were answered with an error.";
}

figures! { GOVERNED of (Row, Option<u64>), "A governed disk's figures, from its row and its dirty bytes":
    Gauge "afflux_govern_write_bandwidth_bytes_per_second" "Write speed of the disk, once that is known."
        |(row, _)| row.bytes_per_second.map(Value::Count);
    Gauge "afflux_govern_budget_seconds" "Time that the disk may owe."
        |(row, _)| Some(seconds(row.budget_ns));
    Gauge "afflux_govern_limit_bytes" "Limit of the disk's dirty bytes, while one is set."
        |(row, _)| row.limit_bytes.map(Value::Count);
    Gauge "afflux_govern_dirty_bytes" "Dirty bytes of the disk, if the kernel reports them."
        |(_, dirty)| dirty.map(Value::Count);
    Gauge "afflux_govern_drain_seconds" "Time that the disk takes to write its dirty bytes."
        |(row, dirty)| drain(row.bytes_per_second, *dirty);
}

families! { GOVERNOR "Figures of `govern` with labels of their own":
    GOVERN_EVENTS Counter "afflux_govern_events_total" "Events of disks, by kind: limited, released, put_back, set_by_others, left_alone, gone, refused.";
}

/// A whole number.
fn count(number: impl Into<u64>) -> Option<Value> {
    Some(Value::Count(number.into()))
}

/// A time in Prometheus' unit.
pub(crate) fn seconds(ns: u64) -> Value {
    Value::Number(ns as f64 / 1e9)
}

/// A time among the figures of the policy in force.
fn policy_seconds(device: &DeviceStatus, name: &str) -> Option<Value> {
    match device.figures.iter().find(|figure| figure.info.name == name)?.value {
        FigureValue::Number(ns) => Some(seconds(ns)),
        _ => None,
    }
}

/// Time to write dirty bytes.
fn drain(bytes_per_second: Option<u64>, dirty_bytes: Option<u64>) -> Option<Value> {
    let speed = bytes_per_second.filter(|speed| *speed > 0)?;
    Some(Value::Number(dirty_bytes? as f64 / speed as f64))
}

/// Families of the engine's counters, in the order of [`COUNTERS`].
pub(crate) static OF_COUNTERS: LazyLock<Vec<Family>> = LazyLock::new(|| COUNTERS.iter().map(of_counter).collect());

/// The kernel's name, if it has one, followed by the unit.
fn of_counter(info: &CounterInfo) -> Family {
    let (stem, unit) = match info.unit {
        "ns" => (info.name.trim_end_matches("_ns"), "_seconds"),
        "pages" if !info.name.ends_with("_pages") => (info.name, "_pages"),
        "bytes" if !info.name.ends_with("_bytes") => (info.name, "_bytes"),
        _ => (info.name, ""),
    };
    let name = Cow::Owned(format!("afflux_{stem}{unit}_total"));
    Family { name, kind: Kind::Counter, help: Cow::Borrowed(info.doc) }
}

/// Adds all figures of a record.
pub(crate) fn add<T>(all: &mut Exposition, figures: Figures<T>, of: &T, labels: &[(&'static str, &str)]) {
    for (family, value) in figures {
        if let Some(value) = value(of) {
            all.add(family, labels, value);
        }
    }
}

#[cfg(test)]
pub(crate) fn all() -> Vec<&'static Family> {
    fn of<T>(figures: Figures<T>) -> impl Iterator<Item = &'static Family> {
        figures.iter().map(|(family, _)| family)
    }
    let plain = of(CACHE).chain(of(DEVICE)).chain(of(CONNECTIONS)).chain(of(MOUNT)).chain(of(GOVERNED));
    [PROCESS, SERVER, MOUNTED, GOVERNOR].into_iter().flatten().copied().chain(plain).chain(OF_COUNTERS.iter()).collect()
}
