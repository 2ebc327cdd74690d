//! The seam between the engine and its world: traits, and the types in their calls.
//!
//! Owns: the interface of a world (`Platform`) and of a store of file data (`Device`).
//! Does not own: any implementation; requests (`request`), which carry the answer back.
//! Invariants: the engine uses the world only through this interface. A platform never calls into the engine from
//! inside `spawn` or `sleep_until`; a device may complete inside `submit`.

use std::future::Future;

pub use afflux_pages::units::{Nanos, WallNanos};

use crate::FILE_BYTES_MAX;
use crate::counters::{Counters, Local};
use crate::error::DeviceError;
use crate::request::{Backing, Request, TransferHere};

/// The world: clocks, randomness, tasks. Cheap to call; shared by all threads.
pub trait Platform: Send + Sync + Sized + 'static {
    /// The monotonic time.
    fn now(&self) -> Nanos;

    /// The time of day, for file times.
    fn wall_clock(&self) -> WallNanos;

    /// Sixty-four random bits; from the seed in the simulator.
    fn random_u64(&self) -> u64;

    /// Ends when [`Platform::now`] has reached `deadline`, never before. Dropping the future cancels it.
    fn sleep_until(&self, deadline: Nanos) -> impl Future<Output = ()> + Send + 'static;

    /// Starts a task. It is polled on one of the world's own threads; never inside this call.
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static);

    /// Starts a task that is one device's alone, as [`Platform::spawn`] does. A world with threads may give the device
    /// one of its own, so that nobody else waits while the host holds the thread in a call. May wait for that thread to
    /// start.
    fn spawn_for_device(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, task);
    }

    /// Starts a task whose end the caller waits for. If the world has several threads, the task runs on the caller's,
    /// so that neither has to wake the other's thread.
    fn spawn_near(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, task);
    }

    /// Starts a task that others wait for and that does little at a time. If the world orders ready tasks, this one
    /// goes ahead of others.
    fn spawn_ahead(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static);

    /// Awaited in long loops with no lock held. Lets other tasks of this thread run.
    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static;

    /// Awaited between requests submitted in a row, with no lock held. Where time passes by itself this does nothing,
    /// and the requests go to the device together. A simulated CPU runs tasks here whose requests and completions fall
    /// between the two.
    fn between_requests(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::ready(())
    }

    /// Whether the present call blocks its thread, which carries out the call's requests. Then the engine does work in
    /// the call that a task would do otherwise: no other thread has to be woken.
    fn may_wait_on_this_thread(&self) -> bool {
        false
    }

    /// How long before now nobody had looked for the completions that this thread reports: each may have come that much
    /// earlier. A policy that learns from times must not count this time as the device's. 0 where completions are
    /// noticed as they come. Called once for each completion, on the thread that reports it.
    fn unwatched_ns(&self) -> u64;

    /// A call that has every thread of the process pass a full fence before it returns. `None` if the world has no such
    /// call: then hits order their own stores and loads, which costs more. Asked once, when an engine is made.
    fn fence_all_threads(&self) -> Option<fn()> {
        None
    }

    /// This thread's counters. In the simulator: those of the virtual CPU that runs the step.
    fn local(&self) -> &Local;

    /// The counters of all threads.
    fn counters(&self) -> &Counters;
}

/// A device with requests of this size takes whole runs in one.
const STORE_REQUEST_BYTES: u32 = 8 << 20;

/// The abilities of a device. Fixed for its life.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Requests start at multiples of this. Unless they end at the file's end, their length is a multiple, too. 512 or
    /// 4096.
    pub block_bytes: u32,
    /// The most bytes that one request may carry: a multiple of 4096, at least 4096.
    pub request_bytes_max: u32,
    /// The most requests that the engine has in flight: 1 or more. Requests that do not end for long do not count, but
    /// there are no more of them than this.
    pub depth: u32,
    /// The largest size that a file can have: writes beyond it are refused before they are accepted.
    pub file_bytes_max: u64,
    /// Whether completed writes are lost with power unless [`Operation::Sync`](crate::request::Operation) follows.
    pub volatile_cache: bool,
    /// Whether written bytes can be read back at once. If they can only after an
    /// [`Operation::Sync`](crate::request::Operation), because a file's bytes become an object then, the engine caches
    /// the pages until one has followed.
    pub readable_before_flush: bool,
    /// Whether syncs of a file may overlap: each reports its own errors, and none of another's.
    pub syncs_overlap: bool,
    /// The preferred bytes of a request, if there is a preference: a multiple of 4096, at most `request_bytes_max`. A
    /// hint for policies.
    pub request_bytes_preferred: Option<u32>,
}

impl Default for Limits {
    /// A disk with a volatile cache that takes one request of a page at a time.
    fn default() -> Self {
        Self {
            block_bytes: 4096,
            request_bytes_max: 4096,
            depth: 1,
            file_bytes_max: FILE_BYTES_MAX,
            volatile_cache: true,
            readable_before_flush: true,
            syncs_overlap: false,
            request_bytes_preferred: None,
        }
    }
}

impl Limits {
    /// Whether the device is like an object store: its calls are long and overlap.
    pub fn is_store(&self) -> bool {
        self.request_bytes_max >= STORE_REQUEST_BYTES
    }

    /// The best size of a request: the device's preference, or its maximum.
    pub fn request_bytes_best(&self) -> u64 {
        u64::from(self.request_bytes_preferred.unwrap_or(self.request_bytes_max))
    }
}

/// A device's own word on its state, beside what its requests show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// Since when the store behind the device has given no answer. Requests wait for it inside the device.
    pub away_since: Option<Nanos>,
    /// Since when a call for names or attributes has been under way, if a device that works would have ended it. The
    /// engine makes no such calls.
    pub names_since: Option<Nanos>,
    /// A limit that the free bytes do not show, and that no reservation covers, may refuse accepted bytes when they are
    /// written: the quota of another computer or of a subvolume, a pool that several disks share. A front end whose
    /// clients close files writes the bytes before it answers a close.
    pub refuses_late: bool,
}

/// A store of file data: a disk with files on it.
///
/// The engine never waits in a device: it submits, and goes on.
pub trait Device: Send + Sync + 'static {
    /// The abilities of the device.
    fn limits(&self) -> &Limits;

    /// Takes the request. Never blocks; may complete the request before returning. The engine has at most
    /// [`Limits::depth`] data requests in flight, and as many that do not end for long. It holds no lock during the
    /// call.
    fn submit(&self, request: Request);

    /// Reads on the calling thread, which waits for the host. The engine calls it for a caller that blocks anyway.
    /// `None` if this device or this read needs a request: the memory may then hold some of the bytes.
    fn read_here(&self, _read: &TransferHere<'_>) -> Option<Result<(), DeviceError>> {
        None
    }

    /// Writes all of it on the calling thread, which waits for the host. The engine calls it for a caller that blocks
    /// anyway; an [`Device::sync_here`] or a request follows. `None` if this device or this write needs a request: some
    /// of the bytes may have been written.
    fn write_here(&self, _write: &TransferHere<'_>) -> Option<()> {
        None
    }

    /// [`Operation::Sync`](crate::request::Operation::Sync) on the calling thread, which waits for the host. `None` if
    /// it needs a request.
    fn sync_here(&self, _backing: &Backing) -> Option<Result<(), DeviceError>> {
        None
    }

    /// Bytes that can still be allocated to files, as far as is known without blocking. Once this gets small, the
    /// engine has writers make a real reservation.
    fn free_bytes_hint(&self) -> u64;

    /// How often the store has refused a request because it gets too many. The device tried these again. Never falls.
    /// The engine asks at the end of each write.
    fn too_many(&self) -> u64 {
        0
    }

    /// The device's own word on its state. A device over a network waits for its store inside a request: an outage
    /// fails no request, and is reported here.
    fn report(&self) -> DeviceReport {
        DeviceReport::default()
    }
}
