//! Recording the bytes that callers request, for a later replay.
//!
//! Owns: the ring of the last calls, its reader.
//! Does not own: the moment of a record, the numbers of files (front ends), the destination of records (the command).
//! Invariants: without a reader nothing is recorded, and this is checked once a batch of calls, not once a call. The
//! ring is bounded: a slow reader learns how many calls it has lost. Times never run backwards.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::trace::TracedOperation;

/// Most calls that the ring holds for a reader.
pub const RECORDED_CALLS_MAX: usize = 1 << 17;

/// A call of a client, as `trace record` writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    /// Operation of the call.
    pub operation: TracedOperation,
    /// The file: the same number for the same handle.
    pub file: u64,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; 0 for a sync.
    pub bytes: u64,
}

impl RecordedCall {
    /// Adds the call to others. If the server answers a write once the write `is_durable`, a sync follows it.
    #[inline]
    pub fn add_to(self, calls: &mut Vec<Self>, is_durable: bool) {
        calls.push(self);
        if is_durable {
            calls.push(Self { operation: TracedOperation::Sync, offset: 0, bytes: 0, ..self });
        }
    }
}

#[derive(Default)]
struct Ring {
    recorded: VecDeque<(u64, RecordedCall)>,
    /// Lost since the reader's last take.
    lost: u64,
    read: bool,
}

/// Front ends record calls here.
#[derive(Default)]
pub struct Recording {
    is_on: AtomicBool,
    ring: Mutex<Ring>,
}

impl Recording {
    /// Whether there is a reader.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Records calls that have just come, in their order; `now_ns` is called once for all of them.
    pub fn note(&self, calls: &mut Vec<RecordedCall>, now_ns: impl FnOnce() -> u64) {
        let mut ring = self.lock();
        if ring.read {
            let now_ns = now_ns();
            let over = (ring.recorded.len() + calls.len()).saturating_sub(RECORDED_CALLS_MAX).min(ring.recorded.len());
            ring.recorded.drain(..over);
            ring.lost += over as u64;
            ring.recorded.extend(calls.iter().map(|call| (now_ns, *call)));
        }
        drop(ring);
        calls.clear();
    }

    /// Records a call that has just come. If the server answers a write once the write `is_durable`, it records a sync,
    /// too.
    pub fn note_call(&self, call: RecordedCall, is_durable: bool, now_ns: impl FnOnce() -> u64) {
        let mut calls = Vec::with_capacity(2);
        call.add_to(&mut calls, is_durable);
        self.note(&mut calls, now_ns);
    }

    /// Records from now on until the reader is dropped; `None` if there is another reader.
    pub fn read(self: &Arc<Self>) -> Option<RecordingReader> {
        let mut ring = self.lock();
        if std::mem::replace(&mut ring.read, true) {
            return None;
        }
        // Reserved at once; otherwise a call would sometimes wait until the ring has grown.
        ring.recorded.reserve_exact(RECORDED_CALLS_MAX);
        self.is_on.store(true, Ordering::Relaxed);
        Some(RecordingReader(Arc::clone(self)))
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reader of a recording.
pub struct RecordingReader(Arc<Recording>);

impl RecordingReader {
    /// The next calls with their times in nanoseconds, at most `most`, and the number of calls lost before them.
    pub fn take(&mut self, most: usize) -> (Vec<(u64, RecordedCall)>, u64) {
        let mut ring = self.0.lock();
        let count = ring.recorded.len().min(most);
        (ring.recorded.drain(..count).collect(), std::mem::take(&mut ring.lost))
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
