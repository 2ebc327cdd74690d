//! Figures of a cache, and its users' waits.
//!
//! Owns: the library's selection of the engine's figures, in its own types.
//! Does not own: the figures.
//! Invariants: a call waits for no device and takes time in proportion to the devices.

use std::path::PathBuf;

use afflux_engine::counters::COUNTERS;
use afflux_engine::{AccountOwner, Delay, DelayTimes, Platform};
use afflux_linux_device::HostFile;

use crate::core::Core;

/// The current figures of a cache.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Memory for pages.
    pub memory_bytes: u64,
    /// Free memory for pages.
    pub free_bytes: u64,
    /// Dirty bytes on all devices, writeback included.
    pub dirty_bytes: u64,
    /// Bytes under writeback.
    pub writeback_bytes: u64,
    /// Limit of dirty bytes, on all devices together.
    pub dirty_limit_bytes: u64,
    /// Memory held by [`Pages`](crate::Pages).
    pub pinned_bytes: u64,
    /// Tables and indexes that describe the pages.
    pub metadata_bytes: u64,
    /// Files that have pages or a handle.
    pub files: u64,
    /// Descriptors of files.
    pub descriptors: u64,
    /// The figures of each device.
    pub devices: Vec<DeviceStats>,
    /// Every counter of the engine: its name and its value since the cache began.
    pub counters: Vec<(&'static str, u64)>,
}

/// A device of a cache.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceStats {
    /// Its number on the host, as in `/proc/self/mountinfo`.
    pub name: String,
    /// How its files are read and written.
    pub access: String,
    /// Dirty bytes, writeback included.
    pub dirty_bytes: u64,
    /// Its dirty limit; above it, its writers wait.
    pub dirty_limit_bytes: u64,
    /// Bytes written since the cache began.
    pub written_bytes: u64,
    /// Its write speed in bytes a second, as the policy in force estimates it.
    pub write_bandwidth_bytes_per_s: Option<u64>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Writers that wait for its dirty limit.
    pub writers_waiting: u32,
    /// Files with unwritten bytes.
    pub files_dirty: u32,
    /// Files whose last write or flush failed.
    pub files_failed: u32,
    /// The last error of a write or flush.
    pub last_error: Option<String>,
    /// Time since its last completion, if it counts as hung.
    pub stalled_ns: Option<u64>,
}

impl Stats {
    /// The value of a counter by its name; none if the name is unknown.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
    /// assert_eq!(cache.stats().counter("read_hit_pages"), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// All zero in a forked child, which must not read the cache.
    pub(crate) fn of(core: &Core) -> Self {
        if core.gate.is_forked() {
            return Self::default();
        }
        let status = core.engine.status();
        let hosts = core.devices.all();
        let devices = status.devices.into_iter().map(|device| DeviceStats {
            access: hosts.iter().find(|host| host.id == device.id).map(|host| host.host.describe()).unwrap_or_default(),
            name: device.name,
            dirty_bytes: device.dirty_bytes,
            dirty_limit_bytes: device.dirty_limit_bytes,
            written_bytes: device.written_bytes,
            write_bandwidth_bytes_per_s: device.write_bandwidth_bytes_per_s,
            in_flight: device.in_flight,
            writers_waiting: device.writers_waiting,
            files_dirty: device.files_dirty,
            files_failed: device.files_failed,
            last_error: device.last_error.map(|error| error.to_string()),
            stalled_ns: device.stalled_ns,
        });
        let sums = core.platform().counters().sum();
        Self {
            memory_bytes: status.cache_bytes,
            free_bytes: status.free_bytes,
            dirty_bytes: status.dirty_bytes,
            writeback_bytes: status.writeback_bytes,
            dirty_limit_bytes: status.dirty_limit_bytes,
            pinned_bytes: status.pinned_bytes,
            metadata_bytes: status.metadata_bytes,
            files: status.files,
            descriptors: core.files.descriptors() as u64,
            devices: devices.collect(),
            counters: COUNTERS.iter().map(|info| info.name).zip(sums).collect(),
        }
    }
}

/// How long the calls to one file waited for its device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delays {
    /// The device, by the name that [`DeviceStats`] has.
    pub device: String,
    /// The file; none for the sum of files that are too many to be listed one by one.
    pub path: Option<PathBuf>,
    times: DelayTimes,
}

impl Delays {
    /// Durations of the waits of one kind.
    pub fn of_kind(&self, delay: Delay) -> afflux_engine::WaitTimes {
        self.times.of(delay)
    }

    pub(crate) fn of(core: &Core) -> Vec<Self> {
        let mut all = Vec::new();
        if core.gate.is_forked() {
            return all;
        }
        for device in core.devices.all() {
            let told = core.engine.waits(device.id).unwrap_or_default().delays;
            let others = (told.others_count > 0).then_some((None, told.others));
            let of_files = told.accounts.into_iter().map(|account| {
                let path = match account.whose {
                    AccountOwner::File(backing) => backing.get::<HostFile>().and_then(HostFile::host_path),
                    AccountOwner::Client(client) => Some(client.name().into()),
                };
                (path, account.times)
            });
            let name = &device.name;
            all.extend(of_files.chain(others).map(|(path, times)| Self { device: name.clone(), path, times }));
        }
        all
    }
}
