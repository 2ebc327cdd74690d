//! How many pages in the cache were read ahead and nobody has asked for yet, and how many left it so.
//!
//! Owns: the counts, spread over cache lines, since readers of different streams change them at every page.
//! Does not own: which pages these are (`table`), how many there may be (`readahead`).
//! Invariants: a page is counted from the moment that it is read ahead until its first use or its end, once.

use frames::FrameId;

use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Neighbouring frames have different counts, so that two streams seldom meet.
const PARTS: usize = 16;

/// The counts. A part alone may be below zero: only their sum means something.
pub(crate) struct Unread {
    pages: [OwnLines<AtomicU64>; PARTS],
    wasted: AtomicU64,
}

impl Unread {
    pub(super) fn new() -> Self {
        Self { pages: std::array::from_fn(|_| OwnLines(AtomicU64::new(0))), wasted: AtomicU64::new(0) }
    }

    #[inline]
    fn part(&self, frame: FrameId) -> &AtomicU64 {
        &self.pages[frame.index() % PARTS]
    }

    pub(super) fn add(&self, frame: FrameId) {
        self.part(frame).fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn take(&self, frame: FrameId) {
        self.part(frame).fetch_sub(1, Ordering::Relaxed);
    }

    /// One left the cache unread.
    pub(super) fn waste(&self, frame: FrameId) {
        self.take(frame);
        self.wasted.fetch_add(1, Ordering::Relaxed);
    }

    /// Pages now.
    pub(crate) fn pages(&self) -> u64 {
        let sum = self.pages.iter().fold(0u64, |sum, part| sum.wrapping_add(part.load(Ordering::Relaxed)));
        // A look that takes a moment may see a page leave that it did not see come.
        if sum > u64::MAX / 2 { 0 } else { sum }
    }

    /// Those that left the cache unread since this was last asked.
    pub(crate) fn take_wasted(&self) -> u64 {
        if self.wasted.load(Ordering::Relaxed) == 0 { 0 } else { self.wasted.swap(0, Ordering::Relaxed) }
    }
}
