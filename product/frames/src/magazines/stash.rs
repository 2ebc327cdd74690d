//! The innermost list: a few frames that only the thread with the slot touches.
//!
//! Owns: up to 15 frames, last in first out, in one cache line.
//! Does not own: the choice of the slot's thread (`cpu`).
//! Invariants: only the slot's owner writes to it. Other threads may read the number of frames, and may take the frames
//! once they own the slot. Relaxed plain loads and stores; no locked instruction.

use crate::sync::atomic::{AtomicU32, Ordering};

/// Most frames in a stash: with their number they fill a cache line.
const STASH_FRAMES: usize = 15;
/// The number of frames that move to or from the magazine at a time.
pub(super) const STASH_BATCH: usize = 8;

#[repr(align(128))]
pub(super) struct Stash {
    len: AtomicU32,
    frames: [AtomicU32; STASH_FRAMES],
}

impl Stash {
    pub(super) fn new() -> Self {
        Self { len: AtomicU32::new(0), frames: [(); STASH_FRAMES].map(|()| AtomicU32::new(0)) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<u32> {
        let last = self.len().wrapping_sub(1);
        let frame = self.frames.get(last)?.load(Ordering::Relaxed);
        self.len.store(last as u32, Ordering::Relaxed);
        Some(frame)
    }

    /// Adds a frame if there is room.
    #[inline]
    pub(super) fn try_push(&self, frame: u32) -> bool {
        let len = self.len();
        let Some(place) = self.frames.get(len) else { return false };
        place.store(frame, Ordering::Relaxed);
        self.len.store(len as u32 + 1, Ordering::Relaxed);
        true
    }

    /// Adds a frame to a full stash, and takes the frames out that have been there longest.
    pub(super) fn push_full(&self, frame: u32) -> [u32; STASH_BATCH] {
        let get = |at: usize| self.frames[at].load(Ordering::Relaxed);
        let oldest = std::array::from_fn(get);
        for at in STASH_BATCH..STASH_FRAMES {
            self.frames[at - STASH_BATCH].store(get(at), Ordering::Relaxed);
        }
        self.len.store((STASH_FRAMES - STASH_BATCH) as u32, Ordering::Relaxed);
        self.try_push(frame);
        oldest
    }
}
