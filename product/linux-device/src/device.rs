//! Devices over host files: requests become io_uring operations, or calls on worker threads.
//!
//! Owns: how a directory's files are reached (O_DIRECT or not), the way of each request to a ring or a thread, the
//! guess at the free space, the identity that takes room for the bytes of users.
//! Does not own: names (the volume), the choice of writes (the engine).
//! Invariants: `submit` never blocks. A request submitted on a reactor, or by a thread that waits in `block_on`, is
//! done by that thread. The thread uses its ring, or a system call if it has no other work. Other threads hand theirs
//! to a reactor. No reactor that others share is held by a slow disk. The device's own threads do reservations, and the
//! kernel's threads begin such a reactor's writes and those reads that the host may hold (`pace`). The thread of the
//! device's flusher begins its writes itself. The memory of a request belongs to the reactor until the kernel has
//! reported.

mod blocks;
mod file;
mod flight;
mod here;
mod hidden_limits;
mod pace;
mod probe;
mod turns;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use afflux_engine::{
    Backing, Device, DeviceError, DeviceReport, Limits, Nanos, Operation, Recycler, Request, TransferHere,
};
use rustix::fs::fstatvfs;
use rustix::io::Errno;

pub use self::file::{HostFile, LentDescriptor, RevokedDescriptors, SpareDescriptors};
use self::flight::{FlightStep, RequestFlight};
use self::hidden_limits::HiddenLimits;
use self::pace::DevicePace;
use self::probe::Access;
use crate::clock;
use crate::platform::LinuxPlatform;
use crate::pool::{Job, Underway, WorkerPool};
use crate::reactor::io::{Owner, RingOperation};
use crate::reactor::{Mail, Reactor};
use crate::watch::ReportedLook;

/// Most bytes of one request: one bio of 256 pages.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Requests in flight that keep fast disks busy; more of them only wait in the disks' queues.
const DEPTH: u32 = 64;
/// Threads for operations that no ring does. Each carries one request.
const THREADS_MAX: usize = 16;
/// A transfer of at least this size begins at once, not at the end of the reactor's turn. Until then the disk might
/// have nothing to do while a reader copies the pages that it has read ahead. Beside such a transfer, one system call
/// is cheap.
const AT_ONCE_BYTES: u32 = 64 << 10;
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
    core: Arc<Core>,
}

/// The host object under a device.
struct HostObject {
    /// The calls for names of its file system.
    names: Option<Arc<Underway>>,
    /// The directory whose free space the device asks for; none if the device allocates nothing.
    directory: Option<OwnedFd>,
    file_bytes_max: u64,
    free_bytes: u64,
    grows_files: bool,
    takes_uncached: bool,
    unshares: bool,
    writes_in_place: bool,
    frees_reserved: bool,
    /// The limits that the free bytes do not show.
    hidden_limits: HiddenLimits,
}

struct Core {
    platform: LinuxPlatform,
    names: Option<Arc<Underway>>,
    directory: Option<OwnedFd>,
    limits: Limits,
    access: Access,
    memory_align: usize,
    /// Files may be made longer ahead of the writes that need the length.
    grows_files: bool,
    /// The host may take uncached writes; the first such write finds out.
    takes_uncached: AtomicBool,
    /// A reservation gives a file blocks of its own where it shares them with another.
    unshares: bool,
    /// A write to bytes that have blocks takes no further one.
    writes_in_place: bool,
    /// A refused write beyond a file's end frees what is reserved there.
    frees_reserved: bool,
    pool: WorkerPool,
    pace: DevicePace,
    free_bytes: AtomicU64,
    free_asked: AtomicU64,
    free_asking: AtomicBool,
    /// The files are those of a server's users: blocks that a file system keeps for root are not for them.
    is_of_users: bool,
    /// A [`HiddenLimits`].
    hidden_limits: AtomicU8,
    /// The host has refused to reserve room, and not for the lack of it.
    is_without_reservations: AtomicBool,
    /// Flights that have ended, with their memory. A write that relieves a shortage of memory must not allocate.
    spare_flights: Recycler<Box<RequestFlight>>,
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
        let free_bytes = free_bytes(directory.as_fd())?;
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
        Ok(Self::over(platform, place, access))
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
        Self::over(platform, place, access)
    }

    fn over(platform: &LinuxPlatform, place: HostObject, access: Access) -> Arc<Self> {
        let (block_bytes, memory_align) = match access {
            Access::Direct { block_bytes, memory_align } => (block_bytes, memory_align),
            Access::Buffered { .. } => (512, 1),
        };
        let limits = Limits {
            block_bytes,
            request_bytes_max: REQUEST_BYTES_MAX,
            depth: DEPTH,
            file_bytes_max: place.file_bytes_max,
            volatile_cache: true,
            // The host tells an error of its page cache to one caller only.
            syncs_overlap: matches!(access, Access::Direct { .. }),
            ..Limits::default()
        };
        let core = Core {
            platform: platform.clone(),
            is_of_users: place.names.is_some(),
            hidden_limits: AtomicU8::new(place.hidden_limits as u8),
            is_without_reservations: AtomicBool::new(false),
            names: place.names,
            grows_files: place.grows_files,
            takes_uncached: AtomicBool::new(place.takes_uncached),
            unshares: place.unshares,
            writes_in_place: place.writes_in_place,
            frees_reserved: place.frees_reserved,
            directory: place.directory,
            limits,
            access,
            memory_align: memory_align as usize,
            pool: WorkerPool::new("afflux-io", THREADS_MAX, 2 * DEPTH as usize),
            pace: DevicePace::default(),
            free_bytes: AtomicU64::new(place.free_bytes),
            free_asked: AtomicU64::new(clock::monotonic().0),
            free_asking: AtomicBool::new(false),
            spare_flights: Recycler::new(DEPTH as usize),
        };
        Arc::new(Self { core: Arc::new(core) })
    }

    /// As if quotas of users were enforced: for tests on kernels that have none.
    pub fn assume_quotas(&self) {
        self.core.hidden_limits.store(HiddenLimits::Reservable as u8, Ordering::Relaxed);
    }

    /// Ends its threads after their current requests. Waits at most `patience`; returns whether all have ended. Call it
    /// after the engine's reactors have ended: the device carries out nothing any more.
    #[must_use]
    pub fn try_stop_within(&self, patience: Duration) -> bool {
        self.core.pool.try_stop_within(patience)
    }

    /// Whether the current thread is one of its workers.
    pub fn is_own_thread(&self) -> bool {
        self.core.pool.is_own_thread()
    }

    /// How its files are read and written, for the log.
    pub fn describe(&self) -> String {
        let by = match self.core.platform.without_ring() {
            None => "io_uring".to_owned(),
            Some(reason) => format!("preadv and pwritev on threads (io_uring: {reason})"),
        };
        match &self.core.access {
            Access::Direct { block_bytes, .. } => format!("O_DIRECT in blocks of {block_bytes} + {by}"),
            Access::Buffered { reason } => format!("the host's page cache ({reason}) + {by}"),
        }
    }

    /// The host's name for the file system (`f_fsid`): on many kinds a digest of its UUID. Nothing where the host does
    /// not say. May block shortly.
    pub fn file_system_id(&self) -> Option<u64> {
        fstatvfs(self.core.directory.as_ref()?).ok().map(|stat| stat.f_fsid).filter(|id| *id != 0)
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.core.is_direct()
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        self.core.limits.block_bytes
    }
}

impl Device for HostDevice {
    fn limits(&self) -> &Limits {
        &self.core.limits
    }

    fn submit(&self, request: Request) {
        if !matches!(request.operation(), Operation::Read { .. } | Operation::Sync) {
            self.core.refresh_free_bytes(HINT_AGE_NS);
        }
        let mut flight = RequestFlight::new(request, Arc::clone(&self.core));
        match flight.share() {
            Some((turns, share)) => turns.enter(share, flight).into_iter().for_each(launch),
            None => launch(flight),
        }
    }

    fn read_here(&self, read: &TransferHere<'_>) -> Option<Result<(), DeviceError>> {
        self.core.is_direct().then(|| here::read(&self.core, read)).flatten()
    }

    fn write_here(&self, write: &TransferHere<'_>) -> Option<()> {
        // For a server of others' files, a reactor writes as their plain user.
        let may = self.core.is_direct() && !self.core.is_of_users;
        if !may {
            return None;
        }
        self.core.refresh_free_bytes(HINT_AGE_NS);
        here::write(&self.core, write)
    }

    fn sync_here(&self, backing: &Backing) -> Option<Result<(), DeviceError>> {
        self.core.is_direct().then(|| here::sync(&self.core, backing)).flatten()
    }

    fn free_bytes_hint(&self) -> u64 {
        // Nothing may have been written to the device for long, but other programs write, too.
        self.core.refresh_free_bytes(HINT_AGE_NS);
        match self.core.hidden_limits() {
            // No room is sure without a reservation.
            HiddenLimits::Reservable if !self.core.is_without_reservations.load(Ordering::Relaxed) => 0,
            _ => self.core.free_bytes.load(Ordering::Relaxed),
        }
    }

    fn report(&self) -> DeviceReport {
        let oldest = self.core.names.as_ref().and_then(|names| names.oldest());
        let names_since = oldest.filter(|since| clock::monotonic().since(*since) >= NAMES_NS_MAX);
        let is_without_reservations = self.core.is_without_reservations.load(Ordering::Relaxed);
        let is_nearly_full = self.core.free_bytes.load(Ordering::Relaxed) < NEARLY_FULL_BYTES;
        let refuses_late = match self.core.hidden_limits() {
            HiddenLimits::None => is_without_reservations && is_nearly_full,
            HiddenLimits::AtRewriting => is_nearly_full,
            // A list of extents may need a block that no reservation keeps.
            HiddenLimits::Reservable => is_without_reservations || self.core.frees_reserved,
            HiddenLimits::AtWriting => true,
        };
        DeviceReport { names_since, refuses_late, ..DeviceReport::default() }
    }
}

impl Core {
    fn is_direct(&self) -> bool {
        matches!(self.access, Access::Direct { .. })
    }

    fn may_write_uncached(&self) -> bool {
        self.takes_uncached.load(Ordering::Relaxed)
    }

    fn refuse_uncached(&self) {
        self.takes_uncached.store(false, Ordering::Relaxed);
    }

    fn hidden_limits(&self) -> HiddenLimits {
        const LIMITS: [HiddenLimits; 4] =
            [HiddenLimits::None, HiddenLimits::AtRewriting, HiddenLimits::Reservable, HiddenLimits::AtWriting];
        LIMITS[usize::from(self.hidden_limits.load(Ordering::Relaxed)).min(3)]
    }

    /// Whether each write of the file has to end inside the file, so that a refused one frees no reserved room.
    fn is_kept_inside(&self, file: &HostFile) -> bool {
        // Without quotas the host has blocks of its own for lists of extents.
        self.frees_reserved && self.hidden_limits() == HiddenLimits::Reservable && file.has_reserved()
    }

    fn reserves_nothing(&self) {
        self.is_without_reservations.store(true, Ordering::Relaxed);
    }

    /// Asks the host for its free space in the background, if the last answer is older than `age_ns`.
    fn refresh_free_bytes(self: &Arc<Self>, age_ns: u64) {
        if self.directory.is_none() {
            return;
        }
        let (now, asked) = (clock::monotonic(), self.free_asked.load(Ordering::Relaxed));
        if now.since(Nanos(asked)) < age_ns || self.free_asking.swap(true, Ordering::AcqRel) {
            return;
        }
        self.pool.post_job(Arc::clone(self) as _);
    }
}

/// The device's pool runs one job for the device itself: it asks for the free space.
impl Job for Core {
    fn run(&self) {
        if let Some(Ok(free)) = self.directory.as_ref().map(|directory| free_bytes(directory.as_fd())) {
            self.free_bytes.store(free, Ordering::Relaxed);
        }
        if let Some(directory) = &self.directory {
            let limits = self.hidden_limits().again(directory.as_fd());
            self.hidden_limits.store(limits as u8, Ordering::Relaxed);
        }
        self.free_asked.store(clock::monotonic().0, Ordering::Relaxed);
        self.free_asking.store(false, Ordering::Release);
    }
}

fn free_bytes(directory: BorrowedFd<'_>) -> std::io::Result<u64> {
    let stat = fstatvfs(directory)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Takes a flight to the place of its next step: this reactor, a worker thread, or another reactor.
fn launch(mut flight: Box<RequestFlight>) {
    let core = Arc::clone(flight.core());
    if !core.platform.is_on_ring() || matches!(flight.operation(), Operation::Reserve { .. }) {
        return block(flight);
    }
    match core.platform.current_reactor() {
        Some(reactor) => go_on(&reactor, flight),
        None => {
            // An answer needs no reactor.
            if let FlightStep::Answer(result) = flight.next(false) {
                return answer(flight, result);
            }
            let mail = Mail::Run(Box::new(move |reactor| go_on(reactor, flight)));
            // A stopped platform returns the mail; dropping it answers the request as lost.
            drop(core.platform.next_reactor().send(mail));
        }
    }
}

/// Makes the next step on this thread's reactor.
fn go_on(reactor: &Reactor, mut flight: Box<RequestFlight>) {
    match flight.next(false) {
        FlightStep::Answer(result) => answer(flight, result),
        FlightStep::Block => block(flight),
        FlightStep::Do(mut io) => {
            match &mut io {
                RingOperation::ReadV { may_wait, .. } => *may_wait = reactor.is_shared() && flight.may_read_wait(),
                RingOperation::WriteV { may_wait, .. } | RingOperation::WriteUncached { may_wait, .. } => {
                    *may_wait = reactor.is_shared()
                }
                _ => {}
            }
            let is_large = flight.moves_bytes() >= AT_ONCE_BYTES;
            // SAFETY: `io` points into the flight's own vectors, they into the request's memory, and
            // its descriptor is kept by the flight.
            if let Err(flight) = unsafe { reactor.start(io, flight) } {
                block(flight);
            } else if is_large {
                reactor.submit();
            }
        }
    }
}

/// Makes all remaining steps on a worker thread.
fn block(mut flight: Box<RequestFlight>) {
    let core = Arc::clone(flight.core());
    core.pool.post_on(flight.lane(), move || {
        let result = loop {
            match flight.next(true) {
                FlightStep::Answer(result) => break result,
                FlightStep::Block => unreachable!("blocking is allowed here"),
                FlightStep::Do(io) => {
                    // SAFETY: as in `go_on`; the call ends before the flight goes on.
                    let result = unsafe { io.perform() };
                    if let Err(error) = flight.advance(result) {
                        break Err(error);
                    }
                }
            }
        };
        let _telling = ReportedLook::after(0);
        answer(flight, result);
    });
}

fn answer(flight: Box<RequestFlight>, result: Result<(), DeviceError>) {
    if result == Err(DeviceError::NoSpace) {
        flight.core().refresh_free_bytes(0);
    }
    flight.answer(result);
}

impl Owner for RequestFlight {
    fn completed(mut self: Box<Self>, result: i32) {
        match self.advance(result) {
            Ok(()) => launch(self),
            Err(error) => answer(self, Err(error)),
        }
    }
}

/// A host's error number as the engine knows it.
fn error_of(errno: i32) -> DeviceError {
    match Errno::from_raw_os_error(errno) {
        Errno::NOSPC => DeviceError::NoSpace,
        Errno::DQUOT => DeviceError::Quota,
        Errno::FBIG => DeviceError::TooLarge,
        Errno::ROFS => DeviceError::ReadOnly,
        Errno::ACCESS | Errno::PERM | Errno::TXTBSY => DeviceError::Denied,
        Errno::STALE => DeviceError::Stale,
        _ => DeviceError::Io { errno },
    }
}

#[cfg(test)]
mod tests;
