//! The state of each frame, and its last events: two bytes a frame.
//!
//! Owns: the packing, the one step in which a frame stops being handed out, the message about a bad free.
//! Does not own: the place of free frames, the abort (`Frames::free`).
//! Invariants: when several threads free one frame, exactly one free succeeds.

use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::zeros;

/// Set in the first byte while the frame is handed out, and in the second once the frame was freed.
const SET: u8 = 1 << 7;

/// The slots of the last allocation and of the last free.
#[derive(Default)]
pub(super) struct LastSlots {
    allocated: AtomicU8,
    freed: AtomicU8,
}

// SAFETY: both fields are numbers in memory, and zero is a number.
unsafe impl crate::Zeroed for LastSlots {}

/// The fault of a bad free: the memory may have two holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadFree {
    #[error("frame {frame} was freed, but the arena has no such frame: it has {total} frames")]
    Foreign { frame: u32, total: u32 },
    #[error("frame {frame} was freed, but is free already (nothing happened to it before)")]
    Unused { frame: u32 },
    #[error(
        "frame {frame} was freed, but is free already (its last events: allocated in slot {allocated_in}, then freed \
         in slot {freed_in})"
    )]
    Free { frame: u32, allocated_in: u8, freed_in: u8 },
}

pub(super) struct States(pub(super) Box<[LastSlots]>);

impl States {
    pub(super) fn new(frames: u32) -> Self {
        Self(zeros(frames as usize))
    }

    /// Records that a frame is handed out. Until then it is free, and only the caller has it.
    #[inline]
    pub(super) fn hand_out(&self, frame: u32, slot: usize) {
        let state = &self.0[frame as usize];
        debug_assert!(state.allocated.load(Ordering::Relaxed) & SET == 0, "frame {frame} is handed out twice");
        state.allocated.store(SET | slot as u8, Ordering::Relaxed);
    }

    /// Records that a frame is free, or returns the reason why it cannot be freed. Only the caller then has the frame,
    /// and puts it where other threads find it.
    #[inline]
    pub(super) fn take_back(&self, frame: u32, slot: usize) -> Result<(), BadFree> {
        let Some(state) = self.0.get(frame as usize) else {
            return Err(BadFree::Foreign { frame, total: self.0.len() as u32 });
        };
        // Relaxed: the lists carry the holder's accesses to the frame along with the frame.
        let allocated = state.allocated.swap(0, Ordering::Relaxed);
        if allocated & SET == 0 {
            return Err(match state.freed.load(Ordering::Relaxed) {
                0 => BadFree::Unused { frame },
                freed => BadFree::Free { frame, allocated_in: allocated, freed_in: freed & !SET },
            });
        }
        state.allocated.store(allocated & !SET, Ordering::Relaxed);
        state.freed.store(SET | slot as u8, Ordering::Relaxed);
        Ok(())
    }
}
