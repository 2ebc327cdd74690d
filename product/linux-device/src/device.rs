//! Devices over host files: requests become io_uring operations, or calls on worker threads.
//!
//! Owns: a device as the engine sees it.
//! Does not own: names (the volume), the choice of writes (the engine), the path of a request to a ring or a thread
//! (`launch`), its steps (`flight`).
//! Invariants: `submit` never blocks. A device and its requests share one core.

mod blocks;
mod core;
mod file;
mod flight;
mod here;
mod hidden_limits;
mod launch;
mod probe;
mod write_gate;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use afflux_engine::{Backing, Device, DeviceError, DeviceReport, Limits, Nanos, Operation, Request, TransferHere};
use rustix::fs::fstatvfs;

use self::core::{DeviceCore, HostObject};
pub use self::file::{HostFile, LentDescriptor, RevokedDescriptors, SpareDescriptors};
use self::flight::{DeviceFlights, RequestFlight};
use self::hidden_limits::HiddenLimits;
use self::launch::launch;
use self::probe::Access;
use crate::clock;
use crate::platform::LinuxPlatform;
use crate::pool::WorkerPool;

/// A call for names on a disk that works takes less, also behind a journal's flush. A disk that spins up may take more.
const NAMES_NS_MAX: u64 = 5 * Nanos::SECOND;
/// The greatest age of the free-space guess, but for the time of a question to the host.
const HINT_AGE_NS: u64 = 100 * Nanos::MILLISECOND;

/// With less free space than this, accepted bytes may find none.
const NEARLY_FULL_BYTES: u64 = 1 << 30;

/// Whether a device uses the host's page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Caching {
    /// O_DIRECT where the file system takes it.
    #[default]
    Auto,
    /// Always through the host's page cache.
    Buffered,
}

/// A file system of the host, by one directory of it.
pub struct HostDevice {
    flights: Arc<DeviceFlights>,
}

impl HostDevice {
    /// The file system of `directory` (a descriptor of any kind, O_PATH too). Probes the file system, which may block;
    /// where possible, the probe uses a file without a name in it.
    pub fn new(platform: &LinuxPlatform, directory: OwnedFd, caching: Caching) -> std::io::Result<Arc<Self>> {
        Self::beside_names(platform, directory, caching, None)
    }

    /// As [`HostDevice::new`], for a file system whose calls for names, in this pool, are reported, too.
    pub fn beside_names(
        platform: &LinuxPlatform,
        directory: OwnedFd,
        caching: Caching,
        names: Option<&WorkerPool>,
    ) -> std::io::Result<Arc<Self>> {
        let free_bytes = core::free_bytes(directory.as_fd())?;
        let access = match caching {
            Caching::Auto => probe::access(directory.as_fd()),
            Caching::Buffered => Access::Buffered { reason: "as asked for".to_owned() },
        };
        let place = HostObject {
            names: names.map(|pool| Arc::clone(pool.underway())),
            file_bytes_max: probe::file_bytes_max(directory.as_fd()),
            free_bytes,
            grows_files: probe::may_grow_files(directory.as_fd()),
            takes_uncached: probe::may_write_uncached(directory.as_fd()),
            unshares: probe::may_unshare(directory.as_fd()),
            writes_in_place: probe::is_written_in_place(directory.as_fd()),
            frees_reserved: probe::does_free_reserved(directory.as_fd()),
            hidden_limits: HiddenLimits::on(directory.as_fd()),
            directory: Some(directory),
        };
        Ok(Self::over(DeviceCore::new(platform, place, access)))
    }

    /// A block device, which is one file of `bytes` bytes. Probes the device.
    pub fn of_block_device(platform: &LinuxPlatform, device: OwnedFd, bytes: u64) -> Arc<Self> {
        let access = probe::block_device_access(device.as_fd());
        // A block device allocates nothing, and its end stays in place.
        let place = HostObject {
            names: None,
            directory: None,
            file_bytes_max: bytes,
            free_bytes: u64::MAX,
            grows_files: false,
            takes_uncached: false,
            unshares: false,
            writes_in_place: false,
            frees_reserved: false,
            hidden_limits: HiddenLimits::None,
        };
        Self::over(DeviceCore::new(platform, place, access))
    }

    fn over(core: DeviceCore) -> Arc<Self> {
        Arc::new(Self { flights: Arc::new(DeviceFlights::new(core)) })
    }

    fn core(&self) -> &DeviceCore {
        &self.flights.core
    }

    /// As if quotas of users were enforced: for tests on kernels that have none.
    pub fn assume_quotas(&self) {
        self.core().note_hidden_limits(HiddenLimits::Reservable);
    }

    /// Ends its threads after their current requests. Waits at most `patience`; returns whether all have ended. Call it
    /// after the engine's reactors have ended: the device carries out nothing any more.
    #[must_use]
    pub fn try_stop_within(&self, patience: Duration) -> bool {
        self.core().pool.try_stop_within(patience)
    }

    /// Whether the current thread is one of its workers.
    pub fn is_own_thread(&self) -> bool {
        self.core().pool.is_own_thread()
    }

    /// How its files are read and written, for the log.
    pub fn describe(&self) -> String {
        let by = match self.core().platform.without_ring() {
            None => "io_uring".to_owned(),
            Some(reason) => format!("preadv and pwritev on threads (io_uring: {reason})"),
        };
        match &self.core().access {
            Access::Direct { block_bytes, .. } => format!("O_DIRECT in blocks of {block_bytes} + {by}"),
            Access::Buffered { reason } => format!("the host's page cache ({reason}) + {by}"),
        }
    }

    /// The host's name for the file system (`f_fsid`): on many kinds a digest of its UUID. Nothing where the host does
    /// not say. May block shortly.
    pub fn file_system_id(&self) -> Option<u64> {
        fstatvfs(self.core().directory.as_ref()?).ok().map(|stat| stat.f_fsid).filter(|id| *id != 0)
    }

    /// A descriptor that the caller opened for reading, `writable` for writing too, and that no other code has. It gets
    /// the flags for files of this device. Such a file mostly needs no other descriptor.
    pub fn prepare(&self, fd: OwnedFd, writable: bool) -> LentDescriptor {
        LentDescriptor::prepared(fd, writable, self.core().is_direct())
    }

    /// Whether all writes to the file while it has `size` bytes are possible, whatever becomes of the process's other
    /// descriptors. On a device that goes past the host's page cache, a file whose end fills no block needs a second
    /// descriptor. Takes no lock.
    pub fn can_write(&self, file: &HostFile, size: u64) -> bool {
        let core = self.core();
        file.has_retained_writable(core.is_direct() && size.is_multiple_of(core.limits.block_bytes.into()))
    }
}

impl Device for HostDevice {
    fn limits(&self) -> &Limits {
        &self.core().limits
    }

    fn submit(&self, request: Request) {
        if !matches!(request.operation(), Operation::Read { .. } | Operation::Sync) {
            self.flights.refresh_free_bytes(HINT_AGE_NS);
        }
        let mut flight = RequestFlight::new(request, Arc::clone(&self.flights));
        match flight.sharing() {
            Some((gate, share)) => gate.enter(share, flight).into_iter().for_each(launch),
            None => launch(flight),
        }
    }

    fn read_here(&self, read: &TransferHere<'_>) -> Option<Result<(), DeviceError>> {
        self.core().is_direct().then(|| here::read(self.core(), read)).flatten()
    }

    fn write_here(&self, write: &TransferHere<'_>) -> Option<()> {
        // For a server of others' files, a reactor writes as their plain user.
        let may = self.core().is_direct() && !self.core().is_of_users;
        if !may {
            return None;
        }
        self.flights.refresh_free_bytes(HINT_AGE_NS);
        here::write(self.core(), write)
    }

    fn sync_here(&self, backing: &Backing) -> Option<Result<(), DeviceError>> {
        self.core().is_direct().then(|| here::sync(self.core(), backing)).flatten()
    }

    fn free_bytes_hint(&self) -> u64 {
        // Nothing may have been written to the device for long, but other programs write, too.
        self.flights.refresh_free_bytes(HINT_AGE_NS);
        match self.core().hidden_limits() {
            // No space is sure without a reservation.
            HiddenLimits::Reservable if !self.core().is_without_reservations() => 0,
            _ => self.core().free_bytes(),
        }
    }

    fn report(&self) -> DeviceReport {
        let oldest = self.core().names.as_ref().and_then(|names| names.oldest());
        let names_since = oldest.filter(|since| clock::monotonic().since(*since) >= NAMES_NS_MAX);
        let is_without_reservations = self.core().is_without_reservations();
        let is_nearly_full = self.core().free_bytes() < NEARLY_FULL_BYTES;
        let refuses_late = match self.core().hidden_limits() {
            HiddenLimits::None => is_without_reservations && is_nearly_full,
            HiddenLimits::AtRewriting => is_nearly_full,
            // A list of extents may need a block that no reservation covers.
            HiddenLimits::Reservable => is_without_reservations || self.core().frees_reserved,
            HiddenLimits::AtWriting => true,
        };
        DeviceReport { names_since, refuses_late, ..DeviceReport::default() }
    }
}

#[cfg(test)]
mod tests;
