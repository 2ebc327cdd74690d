//! Trace events: what the engine does, one by one, for those who follow it.
//!
//! Owns: the events, the ring of the last of them, who follows.
//! Does not own: how events look (the command); the trace of a simulation, which is the simulator's.
//! Invariants: while nobody follows an event costs one relaxed load, and nothing is kept. The ring is bounded: a
//! follower that is too slow is told how many events it has lost. Its lock is a leaf.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::client::Client;
use crate::devices::file::FileInner;
use crate::devices::state::DeviceId;
use crate::error::DeviceError;
use crate::platform::Nanos;
use crate::policy::PauseCause;
use crate::request::{Backing, Operation};
use crate::wait::lock;

/// Most events that are kept for followers.
pub const EVENTS_KEPT: usize = 16_384;

/// Why a file had its turn to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnReason {
    /// A sync waits for it.
    Sync,
    /// Its last write failed, or it was busy, and the pause is over.
    Retry,
    /// The device has too much that is dirty, or somebody needs the room.
    Background,
    /// It has been dirty for too long.
    Expired,
    /// The device would have idled, and it had been left alone.
    Idle,
}

impl TurnReason {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Retry => "retry",
            Self::Background => "background",
            Self::Expired => "expired",
            Self::Idle => "idle",
        }
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A writer begins to wait.
    PauseBegins {
        /// The number of the wait, the same at its end: each device counts its own.
        wait: u64,
        /// Why.
        cause: PauseCause,
    },
    /// It waits no more: it goes on, is asked about again, or has gone away.
    PauseEnds {
        /// As at the beginning.
        wait: u64,
        /// As at the beginning.
        cause: PauseCause,
        /// How long it waited.
        ns: u64,
    },
    /// Somebody begins to wait for a sync.
    SyncBegins {
        /// The number of the wait, the same at its end.
        wait: u64,
    },
    /// It waits no more.
    SyncEnds {
        /// As at the beginning.
        wait: u64,
        /// How long it waited.
        ns: u64,
    },
    /// A COMMIT is over, or whoever waited for it has gone away.
    Commit {
        /// How long it took.
        ns: u64,
    },
    /// A file had its turn to be written.
    Turn {
        /// Why.
        reason: TurnReason,
        /// Pages put on their way to the device.
        pages: u64,
        /// How long it had it.
        ns: u64,
    },
    /// A request goes to the device.
    Submitted {
        /// What is asked for.
        operation: Operation,
    },
    /// A request has ended.
    Completed {
        /// What was asked for.
        operation: Operation,
        /// From submission to end.
        ns: u64,
        /// How it failed, if it did.
        error: Option<DeviceError>,
    },
    /// A knob was set, for the event's device or for all.
    KnobChanged {
        /// Its name.
        knob: &'static str,
        /// Its value now.
        value: u64,
    },
    /// The engine has a new device.
    DeviceAdded,
    /// The policy says that the device is over its limit, or is so no more.
    DeviceOver {
        /// Whether it is.
        over: bool,
    },
    /// Writes to the device keep failing, so that its writers are told, or have ceased to.
    DeviceFailing {
        /// The last error; none once a write has succeeded.
        error: Option<DeviceError>,
    },
    /// The device has requests and has completed nothing for too long.
    DeviceHangs {
        /// For how long.
        ns: u64,
        /// Its writers and syncs are refused, now or from now on.
        refuses: bool,
    },
    /// It goes on, or has nothing to do any more.
    DeviceGoesOn {
        /// For how long it had completed nothing.
        ns: u64,
    },
}

/// A file of an event: named while it lives, and not kept alive.
#[derive(Clone)]
pub struct TracedFile(Weak<FileInner>);

impl TracedFile {
    pub(crate) fn of(file: &Arc<FileInner>) -> Self {
        Self(Arc::downgrade(file))
    }

    /// What its device knows it by, unless it has been closed since.
    pub fn backing(&self) -> Option<Backing> {
        self.0.upgrade().map(|file| file.backing.clone())
    }
}

/// An event and what it is about.
#[derive(Clone)]
pub struct Traced {
    /// When.
    pub at: Nanos,
    /// The device; none if it is about all.
    pub device: Option<DeviceId>,
    /// The file, if it is about one.
    pub file: Option<TracedFile>,
    /// For whom, if that is known.
    pub client: Option<Client>,
    /// What happened.
    pub event: Event,
}

/// Where events go.
#[derive(Default)]
pub(crate) struct Tracer {
    followers: AtomicUsize,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    kept: VecDeque<Traced>,
    /// Events so far, those that are kept no more included.
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
        let full = ring.kept.len() == EVENTS_KEPT;
        let oldest = if full { ring.kept.pop_front() } else { None };
        ring.kept.push_back(traced);
        ring.count += 1;
        drop(ring);
        drop(oldest);
    }
}

/// One who follows the events, from now on until dropped.
pub struct Follower {
    tracer: Arc<Tracer>,
    /// Events that it has had or lost.
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

    /// The next events in order, so many at most, and how many were lost before them.
    pub fn take(&mut self, most: usize) -> (Vec<Traced>, u64) {
        let ring = lock(&self.tracer.ring);
        let first = ring.count - ring.kept.len() as u64;
        let lost = first.saturating_sub(self.seen);
        let from = self.seen.max(first);
        let events: Vec<_> = ring.kept.iter().skip((from - first) as usize).take(most).cloned().collect();
        drop(ring);
        self.seen = from + events.len() as u64;
        (events, lost)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut ring = lock(&self.tracer.ring);
        let last = self.tracer.followers.fetch_sub(1, Ordering::Relaxed) == 1;
        let kept = if last { std::mem::take(&mut ring.kept) } else { VecDeque::new() };
        drop(ring);
        // What it held of files may be the last.
        drop(kept);
    }
}

#[cfg(test)]
mod tests;
