//! The calls that the threads of a pool, and threads that block in place, are making now.
//!
//! Owns: a place for each call, with the time of its beginning.
//! Does not own: the calls, how long one may take (`device`).
//! Invariants: a call takes no lock for its place. A place has one call at a time. A call that finds no free place has
//! none, and then every place has an older call.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use afflux_engine::Nanos;

use crate::clock;

/// The calls that are known; more than a pool has threads.
const PLACES: usize = 64;
/// Places in a line of the processor's cache.
const LINE: usize = 8;

/// The beginnings of calls, in nanoseconds of the monotonic clock; 0 in a free place.
pub(crate) struct Underway([AtomicU64; PLACES]);

/// A call that is being made. The drop ends it.
pub(super) struct CallUnderway<'a> {
    underway: &'a Underway,
    place: Option<usize>,
}

impl Underway {
    pub(super) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; PLACES])
    }

    /// This thread begins a call.
    pub(super) fn begin(&self) -> CallUnderway<'_> {
        let (first, now) = (FIRST.with(|first| *first), clock::monotonic().0.max(1));
        let take = |place: &usize| {
            let was = self.0[*place].compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            was.is_ok()
        };
        CallUnderway { underway: self, place: (first..PLACES).chain(0..first).find(take) }
    }

    /// The call in this place has ended, and the same work begins another.
    pub(super) fn begin_next(&self, place: usize) {
        self.0[place].store(clock::monotonic().0.max(1), Ordering::Relaxed);
    }

    /// When the oldest call began.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.0.iter().map(|place| place.load(Ordering::Relaxed)).filter(|begun| *begun != 0).min().map(Nanos)
    }
}

impl CallUnderway<'_> {
    pub(super) fn place(&self) -> Option<usize> {
        self.place
    }
}

impl Drop for CallUnderway<'_> {
    fn drop(&mut self) {
        self.place.into_iter().for_each(|place| self.underway.0[place].store(0, Ordering::Relaxed));
    }
}

thread_local! {
    /// The place that this thread tries first. Threads share no line while there are fewer of them than lines.
    static FIRST: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let number = THREADS.fetch_add(1, Ordering::Relaxed);
        (number * LINE + number / LINE) % PLACES
    };
}

#[cfg(test)]
mod tests;
