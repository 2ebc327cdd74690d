//! Every family of figures once: name, kind, what it tells.
//!
//! Owns: the tables. Those of the engine's counters follow from the table of counters.
//! Does not own: the values.
//! Invariants: names follow Prometheus' conventions: base units (seconds, bytes), the unit last, `_total` after that of a
//! counter. docs/live.md has all of them, and the example dashboard only these (tests).

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

families! { PROCESS "What every program tells":
    PROCESS_CPU Counter "process_cpu_seconds_total" "Time that this process took of the CPUs, its own and the kernel's for it.";
    PROCESS_MEMORY Gauge "process_resident_memory_bytes" "Memory that this process has.";
    PROCESS_FILES Gauge "process_open_fds" "Descriptors that this process has open.";
    PROCESS_START Gauge "process_start_time_seconds" "When this process began, since 1970.";
    BUILD Gauge "afflux_build_info" "1, with the version as a label.";
}

families! { SERVER "What `serve` tells beside the engine's counters":
    CACHE_SIZE Gauge "afflux_cache_size_bytes" "The cache, all of it.";
    CACHE_FREE Gauge "afflux_cache_free_bytes" "Of the cache, what holds nothing.";
    CACHE_DIRTY Gauge "afflux_cache_dirty_bytes" "Of the cache, what is not written yet, on its way included.";
    CACHE_WRITEBACK Gauge "afflux_cache_writeback_bytes" "Of that, what is on its way to a device.";
    CACHE_LIMIT Gauge "afflux_cache_dirty_limit_bytes" "What all devices together may have dirty.";
    CACHE_PINNED Gauge "afflux_cache_pinned_bytes" "Of the cache, what replies on their way to clients hold.";
    CACHE_METADATA Gauge "afflux_cache_metadata_bytes" "What describes the cache.";
    CACHE_FILES Gauge "afflux_cache_files" "Files that the cache knows.";
    DIRTY Gauge "afflux_device_dirty_bytes" "What is not written to the device yet, on its way included.";
    DIRTY_RUNS Gauge "afflux_device_dirty_runs" "In how many runs that is.";
    WRITEBACK Gauge "afflux_device_writeback_bytes" "What is on its way to the device.";
    DIRTY_LIMIT Gauge "afflux_device_dirty_limit_bytes" "Where the device's writers are made to wait.";
    BACKGROUND Gauge "afflux_device_background_threshold_bytes" "Where the device's flusher starts to write.";
    BANDWIDTH Gauge "afflux_device_write_bandwidth_bytes_per_second" "How fast the device writes while it has something to write, once that is known.";
    DIRTIED Counter "afflux_device_dirtied_bytes_total" "What was dirtied.";
    WRITTEN Counter "afflux_device_written_bytes_total" "What the device has written.";
    READ Counter "afflux_device_read_bytes_total" "What the device has read.";
    BUSY Counter "afflux_device_busy_seconds_total" "Time that the device had something to do.";
    REQUESTS Gauge "afflux_device_in_flight_requests" "Requests that the device has.";
    WRITERS Gauge "afflux_device_waiting_writers" "Writers that wait for the device.";
    FILES_DIRTY Gauge "afflux_device_dirty_files" "Files with bytes that are not written.";
    FILES_FAILED Gauge "afflux_device_failed_files" "Files whose last write failed.";
    FILES_LISTED Gauge "afflux_device_listed_files" "Files in the flusher's lists: those without a turn so far (b_dirty), of the round under way (b_io), with more after it (b_more_io).";
    STALLED Gauge "afflux_device_stalled_seconds" "For how long the device has completed nothing, if it counts as hung; else 0.";
    OWED Gauge "afflux_device_owed_seconds" "What the device owes: its time for all that is dirty or on its way. Under the policy afflux alone, as the next three.";
    BUDGET Gauge "afflux_device_budget_seconds" "What the device may owe, as was asked for.";
    BUDGET_IN_FORCE Gauge "afflux_device_budget_in_force_seconds" "What it may owe now.";
    UNPAUSED Gauge "afflux_device_unpaused_seconds" "Up to what it owes nobody is paused.";
    PAUSED Counter "afflux_device_pauses_by_cause_total" "Pauses of writers that have ended, by cause.";
    PAUSED_TIME Counter "afflux_device_pauses_by_cause_seconds_total" "How long these took together.";
    PAUSE Histogram "afflux_device_pause_seconds" "Single pauses of writers.";
    WAIT_THROTTLE Histogram "afflux_device_throttle_wait_seconds" "What write calls waited for the device: all pauses of a call together, and what it wrote itself.";
    WAIT_RECLAIM Histogram "afflux_device_reclaim_wait_seconds" "What calls waited for a frame.";
    WAIT_READ Histogram "afflux_device_read_wait_seconds" "What calls waited for bytes that were not in the cache.";
    WAIT_SYNC Histogram "afflux_device_sync_wait_seconds" "What syncs waited for bytes to be durable.";
    COMMIT Histogram "afflux_device_commit_seconds" "How long COMMITs took.";
    NFS_CONNECTIONS Gauge "afflux_nfs_connections" "Open connections.";
    NFS_CONNECTIONS_MAX Gauge "afflux_nfs_connections_max" "How many there may be.";
    NFS_ACCEPTED Counter "afflux_nfs_accepted_connections_total" "Connections accepted.";
    NFS_REFUSED Counter "afflux_nfs_refused_connections_total" "Connections refused: all that could have made room for them were at work.";
    NFS_CLOSED Counter "afflux_nfs_closed_connections_total" "Connections that the server closed, by why: silent, room (for others), stalled, unread, nonsense.";
    NFS_IN Counter "afflux_nfs_received_bytes_total" "Bytes received.";
    NFS_OUT Counter "afflux_nfs_sent_bytes_total" "Bytes sent.";
    NFS_CALLS Counter "afflux_nfs_calls_total" "Calls answered, by procedure.";
    NFS_ERRORS Counter "afflux_nfs_errors_total" "Calls answered with another status than OK, by status.";
    NFS_REFUSALS Counter "afflux_nfs_refused_records_total" "Records that were not carried out as calls, by why.";
    NFS_HELD Gauge "afflux_nfs_request_bytes" "What connections hold: requests in progress or on their way in, replies not sent yet.";
    NFS_WAITING Gauge "afflux_nfs_waiting_connections" "Connections that wait until others hold less.";
    NFS_IN_PROGRESS Gauge "afflux_nfs_calls_in_progress" "Calls received and not answered yet.";
}

families! { GOVERNOR "What `govern` tells":
    GOVERN_SPEED Gauge "afflux_govern_write_bandwidth_bytes_per_second" "How fast the disk writes, once that is known.";
    GOVERN_BUDGET Gauge "afflux_govern_budget_seconds" "Time that the disk may owe.";
    GOVERN_LIMIT Gauge "afflux_govern_limit_bytes" "What may be dirty of the disk, while a limit is set.";
    GOVERN_DIRTY Gauge "afflux_govern_dirty_bytes" "What is dirty of the disk, where the kernel says so.";
    GOVERN_DRAIN Gauge "afflux_govern_drain_seconds" "How long the disk takes to write that.";
    GOVERN_EVENTS Counter "afflux_govern_events_total" "What happened to disks, by what: limited, released, put_back, set_by_others, left_alone, gone, refused.";
}

/// Families of the engine's counters, in the order of [`COUNTERS`].
pub(crate) static OF_COUNTERS: LazyLock<Vec<Family>> = LazyLock::new(|| COUNTERS.iter().map(of_counter).collect());

/// The kernel's name, as far as it is one, and the unit behind it.
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
