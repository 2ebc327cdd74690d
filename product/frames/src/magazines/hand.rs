//! The innermost list: a few frames that only the thread with the slot touches.
//!
//! Owns: up to 15 frames, last in first out, in one cache line.
//! Does not own: the choice of the slot's thread (`cpu`).
//! Invariants: only the slot's owner writes to it. Other threads may read the number of frames, and may take the frames
//! once they own the slot. Relaxed plain loads and stores; no locked instruction.

use crate::Mobility;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Most frames in a hand: with their number they fill a cache line.
pub(super) const HAND_FRAMES: usize = 15;
/// The number of frames that move to or from the magazine at a time.
pub(super) const HAND_BATCH: usize = 8;

/// One slot's hands.
#[repr(align(128))]
pub(super) struct Hands([Hand; Mobility::COUNT]);

#[repr(align(64))]
pub(super) struct Hand {
    len: AtomicU32,
    frames: [AtomicU32; HAND_FRAMES],
}

impl Hands {
    pub(super) fn new() -> Self {
        let hand = || Hand { len: AtomicU32::new(0), frames: [(); HAND_FRAMES].map(|()| AtomicU32::new(0)) };
        Self([(); Mobility::COUNT].map(|()| hand()))
    }

    #[inline]
    pub(super) fn of(&self, class: Mobility) -> &Hand {
        &self.0[class.index()]
    }

    /// The number of frames in them.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Hand::len).sum()
    }
}

impl Hand {
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.len.load(Ordering::Relaxed) as usize).min(HAND_FRAMES)
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<u32> {
        let last = self.len().checked_sub(1)?;
        self.len.store(last as u32, Ordering::Relaxed);
        Some(self.frames[last].load(Ordering::Relaxed))
    }

    /// Adds a frame if there is room.
    #[inline]
    pub(super) fn push(&self, frame: u32) -> bool {
        let len = self.len();
        if len == HAND_FRAMES {
            return false;
        }
        self.frames[len].store(frame, Ordering::Relaxed);
        self.len.store(len as u32 + 1, Ordering::Relaxed);
        true
    }

    /// Takes the frames that have been there longest.
    pub(super) fn take_oldest(&self) -> [u32; HAND_BATCH] {
        let oldest = std::array::from_fn(|at| self.frames[at].load(Ordering::Relaxed));
        let len = self.len();
        for at in HAND_BATCH..len {
            self.frames[at - HAND_BATCH].store(self.frames[at].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.len.store((len - HAND_BATCH) as u32, Ordering::Relaxed);
        oldest
    }
}
