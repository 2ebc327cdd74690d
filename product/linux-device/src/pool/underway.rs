//! The calls that the threads of a pool, and threads that block in place, are making now.
//!
//! Owns: a slot for each call, with the time of its beginning.
//! Does not own: the calls, how long one may take (`device`).
//! Invariants: a call takes no lock for its slot. A slot has one call at a time. A call that finds no free slot has
//! none, and then every slot has an older call.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use afflux_engine::Nanos;

use crate::clock;

/// The calls that are known; more than a pool has threads.
const SLOTS: usize = 64;
/// Slots in a line of the processor's cache.
const LINE: usize = 8;

/// The beginnings of calls, in nanoseconds of the monotonic clock; 0 in a free slot.
pub(crate) struct Underway([AtomicU64; SLOTS]);

/// A call that is being made. The drop ends it.
pub(super) struct CallUnderway<'a> {
    underway: &'a Underway,
    slot: Option<usize>,
}

impl Underway {
    pub(super) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; SLOTS])
    }

    /// This thread begins a call.
    pub(super) fn begin(&self) -> CallUnderway<'_> {
        let (first, now) = (FIRST.with(|first| *first), clock::monotonic().0.max(1));
        let take = |slot: &usize| {
            let was = self.0[*slot].compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            was.is_ok()
        };
        CallUnderway { underway: self, slot: (first..SLOTS).chain(0..first).find(take) }
    }

    /// The call in this slot has ended, and the same work begins another.
    pub(super) fn begin_next(&self, slot: usize) {
        self.0[slot].store(clock::monotonic().0.max(1), Ordering::Relaxed);
    }

    /// When the oldest call began.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.0.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|begun| *begun != 0).min().map(Nanos)
    }
}

impl CallUnderway<'_> {
    pub(super) fn slot(&self) -> Option<usize> {
        self.slot
    }
}

impl Drop for CallUnderway<'_> {
    fn drop(&mut self) {
        self.slot.into_iter().for_each(|slot| self.underway.0[slot].store(0, Ordering::Relaxed));
    }
}

thread_local! {
    /// The slot that this thread tries first. Threads share no line while there are fewer of them than lines.
    static FIRST: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let number = THREADS.fetch_add(1, Ordering::Relaxed);
        (number * LINE + number / LINE) % SLOTS
    };
}

#[cfg(test)]
mod tests;
