//! Recording which bytes callers ask for, to replay that later.
//!
//! Owns: the ring of the last calls, who reads it.
//! Does not own: when a call is noted, the numbers of files (front ends), where records go (the command).
//! Invariants: while nobody reads nothing is kept, and whether somebody does is asked once a batch of calls, not once a
//! call. The ring is bounded: a reader that is too slow is told how many calls it has lost. Times never run backwards.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most calls that are kept for a reader.
pub const CALLS_KEPT: usize = 1 << 17;

/// What a recorded call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordedOperation {
    /// Read bytes.
    Read,
    /// Wrote bytes.
    Write,
    /// Asked for what was written to be durable.
    Sync,
}

/// A call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    /// What.
    pub operation: RecordedOperation,
    /// Of which file: the same for the same handle.
    pub file: u64,
    /// From where on.
    pub offset: u64,
    /// How much; of a sync 0.
    pub bytes: u64,
}

#[derive(Default)]
struct Ring {
    kept: VecDeque<(u64, RecordedCall)>,
    /// Lost since the reader last took something.
    lost: u64,
    read: bool,
}

/// What front ends note calls in.
#[derive(Default)]
pub struct Recording {
    is_on: AtomicBool,
    ring: Mutex<Ring>,
}

impl Recording {
    /// Whether somebody reads.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Notes calls that have just come, in their order; `now_ns` is asked once for all of them.
    pub fn note(&self, calls: &mut Vec<RecordedCall>, now_ns: impl FnOnce() -> u64) {
        let mut ring = self.lock();
        if ring.read {
            let now_ns = now_ns();
            let over = (ring.kept.len() + calls.len()).saturating_sub(CALLS_KEPT).min(ring.kept.len());
            ring.kept.drain(..over);
            ring.lost += over as u64;
            ring.kept.extend(calls.iter().map(|call| (now_ns, *call)));
        }
        drop(ring);
        calls.clear();
    }

    /// Records from now on until the reader is dropped; nothing if somebody else reads.
    pub fn read(self: &Arc<Self>) -> Option<RecordingReader> {
        let mut ring = self.lock();
        if std::mem::replace(&mut ring.read, true) {
            return None;
        }
        // At once, or a call would now and then wait until the ring has moved to more room.
        ring.kept.reserve_exact(CALLS_KEPT);
        self.is_on.store(true, Ordering::Relaxed);
        Some(RecordingReader(Arc::clone(self)))
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who reads.
pub struct RecordingReader(Arc<Recording>);

impl RecordingReader {
    /// The next calls with their times in nanoseconds, so many at most, and how many were lost before them.
    pub fn take(&mut self, most: usize) -> (Vec<(u64, RecordedCall)>, u64) {
        let mut ring = self.0.lock();
        let count = ring.kept.len().min(most);
        (ring.kept.drain(..count).collect(), std::mem::take(&mut ring.lost))
    }
}

impl Drop for RecordingReader {
    fn drop(&mut self) {
        self.0.is_on.store(false, Ordering::Relaxed);
        let mut ring = self.0.lock();
        let old = std::mem::take(&mut *ring);
        drop(ring);
        drop(old);
    }
}

#[cfg(test)]
mod tests;
