//! A device's knowledge of its host, for all its requests.
//!
//! Owns: how a directory's files are reached (O_DIRECT or not), the limits, the device's own threads, the guess at the
//! free space, the identity that takes space for the bytes of users; whether the device is quick enough for a reactor's
//! thread to begin its reads.
//! Does not own: requests (`flight`), the files (`file`), the questions that a new device asks (`probe`), the threads
//! that may wait (`reactor::ring`).
//! Invariants: one question for the free space is under way at a time. The answer about the pace needs no lock. A sync
//! that nobody completes, since its platform has stopped, stays counted.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use afflux_engine::{Limits, Nanos};
use rustix::fs::fstatvfs;

use crate::clock;
use crate::device::file::HostFile;
use crate::device::hidden_limits::HiddenLimits;
use crate::device::probe::Access;
use crate::platform::LinuxPlatform;
use crate::pool::{Underway, WorkerPool};

/// Most bytes of one request: one bio of 256 pages.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Requests in flight that occupy fast disks; more of them only wait in the disks' queues.
const DEPTH: u32 = 64;
/// Threads for operations that no ring does. Each carries one request.
const THREADS_MAX: usize = 16;

/// The host object under a device.
pub(super) struct HostObject {
    /// The calls for names of its file system.
    pub(super) names: Option<Arc<Underway>>,
    /// The directory whose free space the device asks for; none if the device allocates nothing.
    pub(super) directory: Option<OwnedFd>,
    pub(super) file_bytes_max: u64,
    pub(super) free_bytes: u64,
    pub(super) grows_files: bool,
    pub(super) takes_uncached: bool,
    pub(super) unshares: bool,
    pub(super) writes_in_place: bool,
    pub(super) frees_reserved: bool,
    /// The limits that the free bytes do not show.
    pub(super) hidden_limits: HiddenLimits,
}

pub(super) struct DeviceCore {
    pub(super) platform: LinuxPlatform,
    pub(super) names: Option<Arc<Underway>>,
    pub(super) directory: Option<OwnedFd>,
    pub(super) limits: Limits,
    pub(super) access: Access,
    pub(super) memory_align: usize,
    /// Files may be made longer ahead of the writes that need the length.
    pub(super) grows_files: bool,
    /// The host may take uncached writes; the first such write finds out.
    takes_uncached: AtomicBool,
    /// A reservation gives a file its own blocks where the file shares blocks with others.
    pub(super) unshares: bool,
    /// A write to bytes that have blocks takes no further one.
    pub(super) writes_in_place: bool,
    /// A refused write beyond a file's end frees what is reserved there.
    pub(super) frees_reserved: bool,
    pub(super) pool: WorkerPool,
    pub(super) pace: DevicePace,
    free_bytes: AtomicU64,
    free_asked: AtomicU64,
    free_asking: AtomicBool,
    /// The files are those of a server's users: blocks that a file system reserves for root are not for them.
    pub(super) is_of_users: bool,
    /// A [`HiddenLimits`].
    hidden_limits: AtomicU8,
    /// The host has refused to reserve space, and not for the lack of it.
    is_without_reservations: AtomicBool,
}

impl DeviceCore {
    pub(super) fn new(platform: &LinuxPlatform, place: HostObject, access: Access) -> Self {
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
            // The host reports an error of its page cache to one caller only.
            syncs_overlap: matches!(access, Access::Direct { .. }),
            ..Limits::default()
        };
        Self {
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
        }
    }

    pub(super) fn is_direct(&self) -> bool {
        matches!(self.access, Access::Direct { .. })
    }

    pub(super) fn may_write_uncached(&self) -> bool {
        self.takes_uncached.load(Ordering::Relaxed)
    }

    pub(super) fn refuse_uncached(&self) {
        self.takes_uncached.store(false, Ordering::Relaxed);
    }

    pub(super) fn hidden_limits(&self) -> HiddenLimits {
        const LIMITS: [HiddenLimits; 4] =
            [HiddenLimits::None, HiddenLimits::AtRewriting, HiddenLimits::Reservable, HiddenLimits::AtWriting];
        LIMITS[usize::from(self.hidden_limits.load(Ordering::Relaxed)).min(3)]
    }

    pub(super) fn note_hidden_limits(&self, limits: HiddenLimits) {
        self.hidden_limits.store(limits as u8, Ordering::Relaxed);
    }

    /// Whether each write of the file has to end inside the file, so that a refused one frees no reserved space.
    pub(super) fn must_end_inside(&self, file: &HostFile) -> bool {
        // Without quotas the host has blocks of its own for lists of extents.
        self.frees_reserved && self.hidden_limits() == HiddenLimits::Reservable && file.has_reserved()
    }

    pub(super) fn reserves_nothing(&self) {
        self.is_without_reservations.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_without_reservations(&self) -> bool {
        self.is_without_reservations.load(Ordering::Relaxed)
    }

    /// The last answer to the question for the free space.
    pub(super) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Whether the host has to be asked for its free space, since the last answer is older than `age_ns`. The caller
    /// then sees to it that a thread asks ([`DeviceCore::ask_free_bytes`]).
    pub(super) fn try_ask_free_bytes(&self, age_ns: u64) -> bool {
        if self.directory.is_none() {
            return false;
        }
        let (now, asked) = (clock::monotonic(), self.free_asked.load(Ordering::Relaxed));
        now.since(Nanos(asked)) >= age_ns && !self.free_asking.swap(true, Ordering::AcqRel)
    }

    /// Asks the host for its free space, and for limits that the free bytes do not show. Blocks.
    pub(super) fn ask_free_bytes(&self) {
        if let Some(Ok(free)) = self.directory.as_ref().map(|directory| free_bytes(directory.as_fd())) {
            self.free_bytes.store(free, Ordering::Relaxed);
        }
        if let Some(directory) = &self.directory {
            self.note_hidden_limits(self.hidden_limits().again(directory.as_fd()));
        }
        self.free_asked.store(clock::monotonic().0, Ordering::Relaxed);
        self.free_asking.store(false, Ordering::Release);
    }
}

pub(super) fn free_bytes(directory: BorrowedFd<'_>) -> std::io::Result<u64> {
    let stat = fstatvfs(directory)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// A quick device completes a sync within this time. It has completed some request within this time while it is busy. A
/// longer pause makes two hand-overs between threads cheap.
const QUICK_NS: u64 = 2 * Nanos::MILLISECOND;

/// The pace of one device: the time of its last completion, its syncs in flight and their times.
///
/// The ring asks the host's file system not to wait. The file system may still hold a read in the system call that
/// begins it. It may have to read where the file's blocks are, or wait for its journal to change the access time. On a
/// hung device such a wait does not end. The thread's other connections and devices would wait, too. So a thread of the
/// kernel begins the reads of a device that has not completed a request just now, the first read after a write, and all
/// writes.
#[derive(Default)]
pub(super) struct DevicePace {
    /// When a request was last completed, in nanoseconds.
    completed: AtomicU64,
    syncs: InFlight,
    /// How long the last sync took.
    sync_ns: AtomicU64,
}

/// Syncs in flight.
#[derive(Default)]
struct InFlight {
    count: AtomicU32,
    /// When one of them was last completed, or came while there was none; in nanoseconds.
    moved: AtomicU64,
}

impl InFlight {
    fn begin(&self, now: Nanos) {
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.moved.store(now.0, Ordering::Relaxed);
        }
    }

    fn end(&self, now: Nanos) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.moved.store(now.0, Ordering::Relaxed);
    }

    fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn is_stuck(&self, now: Nanos) -> bool {
        self.has_any() && is_long_ago(&self.moved, now)
    }
}

fn is_long_ago(time: &AtomicU64, now: Nanos) -> bool {
    now.since(Nanos(time.load(Ordering::Relaxed))) > QUICK_NS
}

impl DevicePace {
    /// A sync comes. Returns the time.
    pub(super) fn sync_begins(&self) -> Nanos {
        let now = clock::monotonic();
        self.syncs.begin(now);
        now
    }

    /// A request is completed, with or without an error; a sync came at `sync_began`.
    pub(super) fn end(&self, sync_began: Option<Nanos>) {
        self.end_at(sync_began, clock::monotonic());
    }

    /// Whether a system call that begins a read may wait long for the device. Either the device has completed no
    /// request for a while, or a sync is in flight that takes long or follows such a one.
    pub(super) fn is_slow(&self) -> bool {
        self.is_slow_at(clock::monotonic())
    }

    fn end_at(&self, sync_began: Option<Nanos>, now: Nanos) {
        self.completed.store(now.0, Ordering::Relaxed);
        if let Some(began) = sync_began {
            self.sync_ns.store(now.since(began), Ordering::Relaxed);
            self.syncs.end(now);
        }
    }

    fn is_slow_at(&self, now: Nanos) -> bool {
        let syncs_slowly = self.syncs.has_any() && self.sync_ns.load(Ordering::Relaxed) > QUICK_NS;
        syncs_slowly || self.syncs.is_stuck(now) || is_long_ago(&self.completed, now)
    }
}

#[cfg(test)]
mod tests;
