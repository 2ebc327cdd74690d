//! Whether a device is quick enough for a reactor's thread to begin its reads.
//!
//! The ring asks the host's file system not to wait. The file system may still hold a read in the system call that
//! begins it. It may have to read where the file's blocks are, or wait for its journal to change the access time. On a
//! hung device such a wait does not end. The thread's other connections and devices would wait, too. So a thread of the
//! kernel begins the reads of a device that has not completed a request just now, the first read after a write, and all
//! writes.
//!
//! Owns: the time of the device's last completion, the number of its syncs in flight and their times.
//! Does not own: requests (`flight`), the threads that may wait (`reactor::ring`).
//! Invariants: the answer needs no lock. A sync that nobody completes, since its platform has stopped, stays counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afflux_engine::Nanos;

use crate::clock;

/// A quick device completes a sync within this time. It has completed some request within this time while it is busy. A
/// longer pause makes two hand-overs between threads cheap.
const QUICK_NS: u64 = 2 * Nanos::MILLISECOND;

/// The pace of one device.
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
