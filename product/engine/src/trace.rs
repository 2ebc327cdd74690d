//! Trace events: the engine's actions, one by one, for followers.
//!
//! Owns: the events, the ring of the last of them, the followers.
//! Does not own: the display of events (the command); the trace of a simulation, which is the simulator's.
//! Invariants: without followers an event costs one relaxed load, and nothing is stored. The ring is bounded: a
//! follower that is too slow learns how many events it has lost. Its lock is a leaf.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use afflux_device::client::Client;
use afflux_device::error::DeviceError;
use afflux_device::platform::Nanos;
use afflux_device::policy::{FlushSlice, PauseCause};
use afflux_device::request::{Backing, Operation};
use afflux_pages::wait::lock;

use crate::devices::DeviceId;
use crate::devices::file::FileInner;

/// The most events stored for followers.
pub const TRACED_EVENTS_MAX: usize = 16_384;

/// An event of the engine, as a trace records it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineEvent {
    /// A writer begins to wait.
    PauseBegins {
        /// The number of the wait, the same at its end: each device counts its own.
        wait: u64,
        /// Cause that the policy gave for the pause.
        cause: PauseCause,
    },
    /// The writer no longer waits: it goes on, is decided about again, or has gone away.
    PauseEnds {
        /// As at the beginning.
        wait: u64,
        /// As at the beginning.
        cause: PauseCause,
        /// How long it waited.
        ns: u64,
    },
    /// A caller begins to wait for a sync.
    SyncBegins {
        /// The number of the wait, the same at its end.
        wait: u64,
    },
    /// The caller no longer waits.
    SyncEnds {
        /// As at the beginning.
        wait: u64,
        /// How long it waited.
        ns: u64,
    },
    /// A COMMIT is over, or its caller has gone away.
    Commit {
        /// How long it took.
        ns: u64,
    },
    /// A file had its slice.
    FlushSlice {
        /// Why the flusher wrote the file.
        slice: FlushSlice,
        /// Pages submitted to the device.
        pages: u64,
        /// How long the slice lasted.
        ns: u64,
    },
    /// A request goes to the device.
    Submitted {
        /// Operation of the request.
        operation: Operation,
    },
    /// A request has ended.
    Completed {
        /// Operation of the request.
        operation: Operation,
        /// The time from submission to end.
        ns: u64,
        /// The error, if it failed.
        error: Option<DeviceError>,
    },
    /// A request of the file has not ended for too long. Other files get its slot in the device, and the file waits.
    SetAside {
        /// The time since its submission.
        ns: u64,
    },
    /// A knob was set, for the event's device or for all.
    KnobChanged {
        /// The knob's name.
        knob: &'static str,
        /// The new value.
        value: u64,
    },
    /// The engine has a new device.
    DeviceAdded,
    /// Writes to the device keep failing, and its waiting writers get the error; or they no longer do.
    DeviceFailing {
        /// The last error; `None` once a write has succeeded.
        error: Option<DeviceError>,
    },
    /// The device has requests and has completed nothing for too long.
    DeviceHangs {
        /// How long it has completed nothing.
        ns: u64,
        /// Whether its writers and syncs are refused, from now on at the latest.
        refuses: bool,
    },
    /// The device goes on, or has no more requests.
    DeviceGoesOn {
        /// How long it had completed nothing.
        ns: u64,
    },
}

/// A file of an event: named while it lives, and not held alive.
#[derive(Clone)]
pub struct TracedFile(Weak<FileInner>);

impl TracedFile {
    pub(crate) fn of(file: &Arc<FileInner>) -> Self {
        Self(Arc::downgrade(file))
    }

    /// The device's name for the file, unless it has been closed since.
    pub fn backing(&self) -> Option<Backing> {
        self.0.upgrade().map(|file| file.backing.clone())
    }
}

/// An event with its subject.
#[derive(Clone)]
pub struct Traced {
    /// Instant of the event, on the platform's clock.
    pub at: Nanos,
    /// The device; `None` for an event about all.
    pub device: Option<DeviceId>,
    /// The file, for an event about one.
    pub file: Option<TracedFile>,
    /// The client, if known.
    pub client: Option<Client>,
    /// The event at this instant.
    pub event: EngineEvent,
}

/// Collects events for followers.
#[derive(Default)]
pub(crate) struct Tracer {
    followers: AtomicUsize,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    traced: VecDeque<Traced>,
    /// Events so far, including those no longer stored.
    count: u64,
}

impl Tracer {
    /// Notes an event if anybody follows.
    #[inline]
    pub(crate) fn note(&self, traced: impl FnOnce() -> Traced) {
        if self.followers.load(Ordering::Relaxed) > 0 {
            self.keep(traced());
        }
    }

    #[cold]
    fn keep(&self, traced: Traced) {
        let mut ring = lock(&self.ring);
        let full = ring.traced.len() == TRACED_EVENTS_MAX;
        let oldest = if full { ring.traced.pop_front() } else { None };
        ring.traced.push_back(traced);
        ring.count += 1;
        drop(ring);
        drop(oldest);
    }
}

/// A follower of the events, from now on until dropped.
pub struct Follower {
    tracer: Arc<Tracer>,
    /// Events that it has received or lost.
    seen: u64,
}

impl Follower {
    pub(crate) fn new(tracer: Arc<Tracer>) -> Self {
        let ring = lock(&tracer.ring);
        tracer.followers.fetch_add(1, Ordering::Relaxed);
        let seen = ring.count;
        drop(ring);
        Self { tracer, seen }
    }

    /// The next events in order, at most `most`, and how many were lost before them.
    pub fn take(&mut self, most: usize) -> (Vec<Traced>, u64) {
        let ring = lock(&self.tracer.ring);
        let first = ring.count - ring.traced.len() as u64;
        let lost = first.saturating_sub(self.seen);
        let from = self.seen.max(first);
        let events: Vec<_> = ring.traced.iter().skip((from - first) as usize).take(most).cloned().collect();
        drop(ring);
        self.seen = from + events.len() as u64;
        (events, lost)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut ring = lock(&self.tracer.ring);
        let last = self.tracer.followers.fetch_sub(1, Ordering::Relaxed) == 1;
        let dropped = if last { std::mem::take(&mut ring.traced) } else { VecDeque::new() };
        drop(ring);
        // Dropped after the lock: an event may hold the last reference to a file.
        drop(dropped);
    }
}

#[cfg(test)]
mod tests;
