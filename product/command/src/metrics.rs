//! Figures for Prometheus: every family once, and the source of each.
//!
//! Owns: the addresses that `--metrics` takes, the rate at which figures are read; the name, the kind and the help of
//! each family; the figures of this process and the rows that the governor's loop publishes.
//! Does not own: the text and the HTTP (crate `metrics`), the figures of a server (`serve::live::figures`), the
//! governor, which never waits for a scraper; status records. Families of the engine's counters, of status records and
//! of the policy follow from their owners' tables.
//! Invariants: a request reads figures that the server maintains anyway: a client's call does no extra work for them.
//! No label is a client's or a file's name, since their number has no bound. `afflux top` shows those. Names follow
//! Prometheus' conventions: base units (seconds, bytes), the unit last, `_total` after the unit of a counter. The page
//! docs/reference/counters.md lists all names, and the example dashboard uses no other name (tests). Figures that the
//! host does not give are omitted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use afflux_engine::counters::{COUNTERS, CounterInfo};
use afflux_engine::gauges::{Gauge, GaugeKind};
use afflux_engine::policy::{FigureInfo, FigureValue};
use afflux_engine::{DEVICE_FIGURES, DeviceStatus, ENGINE_FIGURES, EngineStatus, lock};
use afflux_fuse::Mount;
use afflux_govern::{GovernorRow, Host};
use afflux_linux_device::LinuxPlatform;
use afflux_metrics::{Exposition, Family, FamilyKind, MetricsListener, Value};
use afflux_report::failure::{OrFailed, Outcome};
use rustix::time::{ClockId, clock_gettime};

use crate::control::messages::{DiskCacheGauges, NFS_FIGURES, NfsGauges};
use crate::processes;

/// Listens at the address of `--metrics`, without answering yet.
pub(crate) fn bind(address: Option<SocketAddr>) -> Outcome<Option<MetricsListener>> {
    let Some(address) = address else { return Ok(None) };
    MetricsListener::bind(address).map(Some).map_err(|error| processes::cannot_listen("--metrics", address, &error))
}

/// Answers requests for figures, and returns the address.
pub(crate) fn start(listener: MetricsListener, figures: impl Fn() -> String + Send + 'static) -> Outcome<SocketAddr> {
    let started = listener.address().and_then(|address| listener.start(figures).map(|()| address));
    started.or_failed("--metrics")
}

#[cfg(test)]
pub(crate) mod tests;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessFigures {
    began: SystemTime,
}

impl ProcessFigures {
    /// Takes the present as its start.
    pub(crate) fn begins() -> Self {
        Self { began: SystemTime::now() }
    }

    pub(crate) fn add_to(self, all: &mut Exposition) {
        all.add(&BUILD, &[("version", env!("CARGO_PKG_VERSION"))], Value::Count(1));
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        all.add(&PROCESS_CPU, &[], Value::Number(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9));
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        all.add(&PROCESS_START, &[], Value::Number(began.as_secs_f64()));
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The descriptor of this listing itself is not counted.
            all.add(&PROCESS_FILES, &[], Value::Count(open.count().saturating_sub(1) as u64));
        }
        if let Some(bytes) = resident_bytes() {
            all.add(&PROCESS_MEMORY, &[], Value::Count(bytes));
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// The state that the loop publishes.
#[derive(Debug, Default)]
struct Published {
    rows: Vec<GovernorRow>,
    events: BTreeMap<&'static str, u64>,
}

/// The handle through which the loop publishes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Publisher(Arc<Mutex<Published>>);

impl Publisher {
    pub(crate) fn rows(&self, rows: Vec<GovernorRow>) {
        lock(&self.0).rows = rows;
    }

    /// Counts an event of this kind.
    pub(crate) fn happened(&self, what: &'static str) {
        *lock(&self.0).events.entry(what).or_default() += 1;
    }

    /// Returns the function that makes the text.
    pub(crate) fn source(&self, root: &Path) -> impl Fn() -> String + Send + 'static {
        let (told, host, process) = (self.clone(), Host::new(root), ProcessFigures::begins());
        move || {
            let mut all = Exposition::default();
            process.add_to(&mut all);
            let (rows, events) = {
                let told = lock(&told.0);
                (told.rows.clone(), told.events.clone())
            };
            for row in rows {
                let disk = (row.clone(), host.dirty_bytes(&row.bdi));
                let model = row.disk.model.as_deref().unwrap_or_default();
                add(&mut all, GOVERNED, &disk, &[("device", &row.disk.name), ("model", model)]);
            }
            for (what, count) in events {
                all.add(&GOVERN_EVENTS, &[("event", what)], Value::Count(count));
            }
            all.text()
        }
    }
}

macro_rules! families {
    ($table:ident $about:literal: $($name:ident $kind:ident $text:literal $help:literal;)*) => {
        $(pub(crate) static $name: Family = Family::new($text, FamilyKind::$kind, $help);)*

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
        pub(crate) static $table: Figures<$of> = &[$((Family::new($text, FamilyKind::$kind, $help), $value)),*];
    };
}

families! { PROCESS "Figures of every program":
    PROCESS_CPU Counter "process_cpu_seconds_total" "CPU time of this process, in user mode and in the kernel.";
    PROCESS_MEMORY Gauge "process_resident_memory_bytes" "Resident memory of this process.";
    PROCESS_FILES Gauge "process_open_fds" "Open descriptors of this process.";
    PROCESS_START Gauge "process_start_time_seconds" "Start of this process, since 1970.";
    BUILD Gauge "afflux_build_info" "1, with the version as a label.";
}

/// A family for each figure of a status record that Prometheus gets.
pub(crate) type OfStatus<T> = LazyLock<Vec<(Family, &'static Gauge<T>)>>;

pub(crate) static CACHE: OfStatus<EngineStatus> = LazyLock::new(|| of_status("cache", ENGINE_FIGURES));
pub(crate) static DEVICE: OfStatus<DeviceStatus> = LazyLock::new(|| of_status("device", DEVICE_FIGURES));
pub(crate) static CONNECTIONS: OfStatus<NfsGauges> = LazyLock::new(|| of_status("nfs", NFS_FIGURES));

/// Figures of the policy `afflux` about a device, all of them times.
const OF_POLICY: [&str; 4] = ["owed_ns", "budget_ns", "budget_in_force_ns", "unpaused_ns"];

pub(crate) static BUDGET: LazyLock<Vec<(Family, &'static FigureInfo)>> = LazyLock::new(|| {
    let shown = afflux_budget::FIGURES.iter().filter(|info| OF_POLICY.contains(&info.name));
    shown
        .map(|info| (family("device", info.name.trim_end_matches("_ns"), "ns", FamilyKind::Gauge, info.doc), info))
        .collect()
});

fn of_status<T>(prefix: &str, figures: &'static [Gauge<T>]) -> Vec<(Family, &'static Gauge<T>)> {
    let shown = figures.iter().filter(|figure| !figure.metric.is_empty());
    shown.map(|figure| (family(prefix, figure.metric, figure.unit, kind(figure.kind), figure.doc), figure)).collect()
}

fn kind(kind: GaugeKind) -> FamilyKind {
    if kind == GaugeKind::Total { FamilyKind::Counter } else { FamilyKind::Gauge }
}

/// A family by Prometheus' conventions.
fn family(prefix: &str, name: &str, unit: &str, kind: FamilyKind, help: &'static str) -> Family {
    let time = if unit == "ns" { "_seconds" } else { "" };
    let total = if kind == FamilyKind::Counter { "_total" } else { "" };
    Family { name: Cow::Owned(format!("afflux_{prefix}_{name}{time}{total}")), kind, help: Cow::Borrowed(help) }
}

/// Adds the figures of a status record. A time that does not apply is 0, another figure is absent while it is not
/// known.
pub(crate) fn add_status<T>(all: &mut Exposition, of: &OfStatus<T>, record: &T, labels: &[(&'static str, &str)]) {
    for (family, figure) in of.iter() {
        let number = (figure.value)(record);
        let value = match figure.unit {
            "ns" => Some(seconds(number.unwrap_or(0))),
            _ => number.map(Value::Count),
        };
        if let Some(value) = value {
            all.add(family, labels, value);
        }
    }
}

/// Adds the policy's figures about a device, as far as it has them.
pub(crate) fn add_budget(all: &mut Exposition, device: &DeviceStatus) {
    for (family, info) in BUDGET.iter() {
        let known = device.figures.iter().find(|figure| figure.info.name == info.name);
        if let Some(FigureValue::Number(ns)) = known.map(|figure| figure.value) {
            all.add(family, &[("device", &device.name)], seconds(ns));
        }
    }
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
    NFS_CLOSED Counter "afflux_nfs_closed_connections_total" "Connections that the server closed, by reason: silent, room (for others), stalled, unread, nonsense.";
    NFS_CALLS Counter "afflux_nfs_calls_total" "Calls answered, by procedure; those of version 4 are compounds.";
    NFS_OPERATIONS Counter "afflux_nfs_operations_total" "Operations in compounds of version 4, by operation.";
    NFS_ERRORS Counter "afflux_nfs_errors_total" "Calls answered with a status other than OK, by status.";
    NFS_REFUSALS Counter "afflux_nfs_refused_records_total" "Records that were not carried out as calls, by reason.";
}

figures! { DISK_CACHE of DiskCacheGauges, "A disk cache's figures":
    Gauge "afflux_disk_cache_size_bytes" "Space of the disk cache."
        |it| Some(Value::Count(it.size_bytes));
    Counter "afflux_disk_cache_written_bytes_total" "Bytes written to its disk."
        |it| Some(Value::Count(it.written_bytes));
    Counter "afflux_disk_cache_read_bytes_total" "Bytes read from its disk."
        |it| Some(Value::Count(it.read_bytes));
    Counter "afflux_disk_cache_hits_total" "Parts found there."
        |it| Some(Value::Count(it.hits));
    Counter "afflux_disk_cache_misses_total" "Parts fetched from the store."
        |it| Some(Value::Count(it.misses));
    Counter "afflux_disk_cache_dropped_total" "Damaged parts."
        |it| Some(Value::Count(it.dropped));
    Counter "afflux_disk_cache_rests_total" "How often the disk was too slow."
        |it| Some(Value::Count(it.rests));
}

figures! { MOUNT of Mount<LinuxPlatform>, "A mount's figures":
    Gauge "afflux_fuse_nodes" "Files and directories that the kernel knows."
        |it| count(it.nodes());
    Gauge "afflux_fuse_open_files" "Files and directories that programs have open."
        |it| count(it.open_files());
    Gauge "afflux_fuse_calls_waiting" "Calls that wait."
        |it| count(it.calls_waiting());
    Gauge "afflux_fuse_waiting_bytes" "Memory of messages that wait, but for short ones and the kernel's own."
        |it| count(it.waiting_bytes());
}

families! { MOUNTED "Figures of a mount with labels of their own":
    FUSE_CALLS Counter "afflux_fuse_calls_total" "Calls of the kernel, by operation.";
    FUSE_ERRORS Counter "afflux_fuse_errors_total" "Calls of the kernel that were answered with an error.";
}

figures! { GOVERNED of (GovernorRow, Option<u64>), "A governed disk's figures, from its row and its dirty bytes":
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

fn count(number: usize) -> Option<Value> {
    Some(Value::Count(number as u64))
}

/// A time in Prometheus' unit.
pub(crate) fn seconds(ns: u64) -> Value {
    Value::Number(ns as f64 / 1e9)
}

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
    Family { name, kind: FamilyKind::Counter, help: Cow::Borrowed(info.doc) }
}

/// Adds all figures of a record.
pub(crate) fn add<T>(all: &mut Exposition, figures: Figures<T>, of: &T, labels: &[(&'static str, &str)]) {
    for (family, value) in figures {
        if let Some(value) = value(of) {
            all.add(family, labels, value);
        }
    }
}
