//! Every family of figures once: name, kind, help.
//!
//! Owns: the tables. Those of the engine's counters follow from the table of counters.
//! Does not own: the values.
//! Invariants: names follow Prometheus' conventions: base units (seconds, bytes), the unit last, `_total` after the
//! unit of a counter. The page docs/live.md lists all names, and the example dashboard uses no other name (tests).

use std::borrow::Cow;
use std::sync::LazyLock;

use afflux_engine::counters::{COUNTERS, CounterInfo};
use afflux_metrics::{Family, Kind};

macro_rules! families {
    ($table:ident $about:literal: $($name:ident $kind:ident $text:literal $help:literal;)*) => {
        $(pub(crate) static $name: Family = Family::new($text, Kind::$kind, $help);)*

        #[doc = $about]
        #[cfg(test)]
        pub(crate) static $table: &[&Family] = &[$(&$name),*];
    };
}

families! { PROCESS "Figures of every program":
    PROCESS_CPU Counter "process_cpu_seconds_total" "CPU time of this process, in user mode and in the kernel.";
    PROCESS_MEMORY Gauge "process_resident_memory_bytes" "Resident memory of this process.";
    PROCESS_FILES Gauge "process_open_fds" "Open descriptors of this process.";
    PROCESS_START Gauge "process_start_time_seconds" "Start of this process, since 1970.";
    BUILD Gauge "afflux_build_info" "1, with the version as a label.";
}

families! { SERVER "Figures of `serve` beside the engine's counters":
    CACHE_SIZE Gauge "afflux_cache_size_bytes" "Size of the cache.";
    CACHE_FREE Gauge "afflux_cache_free_bytes" "Free memory of the cache.";
    CACHE_DIRTY Gauge "afflux_cache_dirty_bytes" "Dirty bytes of the cache, writeback included.";
    CACHE_WRITEBACK Gauge "afflux_cache_writeback_bytes" "Bytes of the cache under writeback.";
    CACHE_LIMIT Gauge "afflux_cache_dirty_limit_bytes" "Limit of dirty bytes of all devices together.";
    CACHE_PINNED Gauge "afflux_cache_pinned_bytes" "Memory of the cache held by replies that are being sent.";
    CACHE_METADATA Gauge "afflux_cache_metadata_bytes" "Memory of the cache's own metadata.";
    CACHE_FILES Gauge "afflux_cache_files" "Files that the cache knows.";
    DIRTY Gauge "afflux_device_dirty_bytes" "Dirty bytes of the device, writeback included.";
    DIRTY_RUNS Gauge "afflux_device_dirty_runs" "Runs of dirty pages of the device.";
    WRITEBACK Gauge "afflux_device_writeback_bytes" "Bytes under writeback to the device.";
    DIRTY_LIMIT Gauge "afflux_device_dirty_limit_bytes" "Dirty limit of the device, at which its writers are throttled.";
    BACKGROUND Gauge "afflux_device_background_threshold_bytes" "Background threshold, at which the device's flusher starts to write.";
    BANDWIDTH Gauge "afflux_device_write_bandwidth_bytes_per_second" "Write speed of the device while it has dirty data to write, once that is known.";
    DIRTIED Counter "afflux_device_dirtied_bytes_total" "What was dirtied.";
    WRITTEN Counter "afflux_device_written_bytes_total" "Bytes written to the device.";
    READ Counter "afflux_device_read_bytes_total" "Bytes read from the device.";
    BUSY Counter "afflux_device_busy_seconds_total" "Time during which the device had requests.";
    REQUESTS Gauge "afflux_device_in_flight_requests" "Requests in flight to the device.";
    WRITERS Gauge "afflux_device_waiting_writers" "Writers that wait for the device.";
    FILES_DIRTY Gauge "afflux_device_dirty_files" "Files with unwritten bytes.";
    FILES_FAILED Gauge "afflux_device_failed_files" "Files whose last write failed.";
    FILES_LISTED Gauge "afflux_device_listed_files" "Files in the flusher's lists: waiting for their first turn (b_dirty), in the current round (b_io), with more to write after it (b_more_io).";
    STALLED Gauge "afflux_device_stalled_seconds" "Time since the device's last completion, if it counts as hung; else 0.";
    OWED Gauge "afflux_device_owed_seconds" "Time that the device needs for all dirty bytes, writeback included. Only under the policy afflux, like the next three.";
    BUDGET Gauge "afflux_device_budget_seconds" "Configured limit of the time that the device may owe.";
    BUDGET_IN_FORCE Gauge "afflux_device_budget_in_force_seconds" "Limit in force of the time that the device may owe.";
    UNPAUSED Gauge "afflux_device_unpaused_seconds" "Owed time up to which no writer is paused.";
    PAUSED Counter "afflux_device_pauses_by_cause_total" "Finished pauses of writers, by cause.";
    PAUSED_TIME Counter "afflux_device_pauses_by_cause_seconds_total" "Total duration of finished pauses, by cause.";
    PAUSE Histogram "afflux_device_pause_seconds" "Single pauses of writers.";
    WAIT_THROTTLE Histogram "afflux_device_throttle_wait_seconds" "Waits of write calls for the device: all pauses of a call together, and its own writeback.";
    WAIT_RECLAIM Histogram "afflux_device_reclaim_wait_seconds" "Waits of calls for a frame.";
    WAIT_READ Histogram "afflux_device_read_wait_seconds" "Waits of calls for reads from the device.";
    WAIT_SYNC Histogram "afflux_device_sync_wait_seconds" "Waits of syncs until bytes are durable.";
    COMMIT Histogram "afflux_device_commit_seconds" "How long COMMITs took.";
    NFS_CONNECTIONS Gauge "afflux_nfs_connections" "Open connections.";
    NFS_CONNECTIONS_MAX Gauge "afflux_nfs_connections_max" "Most connections at a time.";
    NFS_ACCEPTED Counter "afflux_nfs_accepted_connections_total" "Connections accepted.";
    NFS_REFUSED Counter "afflux_nfs_refused_connections_total" "Connections refused since every connection that could have made room had calls in progress.";
    NFS_CLOSED Counter "afflux_nfs_closed_connections_total" "Connections that the server closed, by reason: silent, room (for others), stalled, unread, nonsense.";
    NFS_IN Counter "afflux_nfs_received_bytes_total" "Bytes received.";
    NFS_OUT Counter "afflux_nfs_sent_bytes_total" "Bytes sent.";
    NFS_CALLS Counter "afflux_nfs_calls_total" "Calls answered, by procedure.";
    NFS_ERRORS Counter "afflux_nfs_errors_total" "Calls answered with a status other than OK, by status.";
    NFS_REFUSALS Counter "afflux_nfs_refused_records_total" "Records that were not carried out as calls, by reason.";
    NFS_HELD Gauge "afflux_nfs_request_bytes" "Memory that connections hold: requests in progress or being received, replies not sent yet.";
    NFS_WAITING Gauge "afflux_nfs_waiting_connections" "Connections that wait until others hold less memory.";
    NFS_IN_PROGRESS Gauge "afflux_nfs_calls_in_progress" "Calls received and not answered yet.";
}

families! { GOVERNOR "What `govern` tells":
    GOVERN_SPEED Gauge "afflux_govern_write_bandwidth_bytes_per_second" "Write speed of the disk, once that is known.";
    GOVERN_BUDGET Gauge "afflux_govern_budget_seconds" "Time that the disk may owe.";
    GOVERN_LIMIT Gauge "afflux_govern_limit_bytes" "Limit of the disk's dirty bytes, while one is set.";
    GOVERN_DIRTY Gauge "afflux_govern_dirty_bytes" "Dirty bytes of the disk, if the kernel reports them.";
    GOVERN_DRAIN Gauge "afflux_govern_drain_seconds" "Time that the disk takes to write its dirty bytes.";
    GOVERN_EVENTS Counter "afflux_govern_events_total" "Events of disks, by kind: limited, released, put_back, set_by_others, left_alone, gone, refused.";
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

/// Every family.
#[cfg(test)]
pub(crate) fn all() -> Vec<&'static Family> {
    [PROCESS, SERVER, GOVERNOR].into_iter().flatten().copied().chain(OF_COUNTERS.iter()).collect()
}
