//! Hazard slots: a thread announces there the frames that it uses. So it changes no record that other threads read.
//!
//! Owns: the slots of one thread, the steps of an announcement and its end.
//! Does not own: the meaning of an announcement (`page::entry`); the list of all threads' slots, and the fence between
//! an announcement and a check of the slots (`cache::lending`).
//! Invariants: only the slots' thread fills a slot, and only the holder of the announcement empties it, on any thread.
//! The slots serve one cache in their life. An announcement counts once the record was looked at after it.

use afflux_frames::FrameId;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::light_fence;

/// Slots of a thread: with the owner's number they fill a cache line.
pub(crate) const SLOTS: usize = if cfg!(loom) { 1 } else { 14 };

const EMPTY: u32 = 0;
/// The frame is free of the announcement, whose holder still uses the cache.
const LEAVING: u32 = u32::MAX;
/// The number of no cache: the slots serve none yet.
const NO_CACHE: u64 = 0;
/// The number of no cache: the slots have served one.
const SERVED: u64 = u64::MAX;

/// The slots of a thread.
#[repr(align(128))]
pub struct Hazards {
    cache: AtomicU64,
    slots: [HazardSlot; SLOTS],
    /// Guards that the thread took otherwise, counted by itself.
    passes: AtomicU32,
}

/// Holds the number of a frame, plus one.
pub(crate) struct HazardSlot(AtomicU32);

impl Hazards {
    /// Empty slots, which serve no cache yet.
    #[allow(clippy::new_without_default, reason = "a thread makes its slots once, and on purpose")]
    pub fn new() -> Self {
        let slot = |_| HazardSlot(AtomicU32::new(EMPTY));
        Self { cache: AtomicU64::new(NO_CACHE), slots: std::array::from_fn(slot), passes: AtomicU32::new(0) }
    }

    /// Whether they serve no cache yet.
    pub(crate) fn are_fresh(&self) -> bool {
        self.cache.load(Ordering::Relaxed) == NO_CACHE
    }

    /// Gives them to the cache with this number.
    pub(crate) fn serve(&self, cache: u64) {
        debug_assert!(cache != NO_CACHE && cache != SERVED);
        self.cache.store(cache, Ordering::Relaxed);
    }

    /// No announcement is made any more.
    pub(crate) fn retire(&self) {
        self.cache.store(SERVED, Ordering::Relaxed);
    }

    /// Announces a frame of the cache with this number. Only the slots' own thread calls this. `None` if they serve
    /// another cache, or are full.
    #[inline]
    pub(crate) fn announce(&self, cache: u64, frame: FrameId) -> Option<&HazardSlot> {
        if self.cache.load(Ordering::Relaxed) != cache {
            return None;
        }
        // What the last holder read comes before anything that the next holder does.
        let slot = self.slots.iter().find(|slot| slot.0.load(Ordering::Acquire) == EMPTY)?;
        slot.0.store(frame.raw() + 1, Ordering::Relaxed);
        light_fence();
        Some(slot)
    }

    /// True once in `n` calls of the slots' own thread.
    pub(crate) fn take_nth_pass(&self, n: u32) -> bool {
        let passes = (self.passes.load(Ordering::Relaxed) + 1) % n;
        self.passes.store(passes, Ordering::Relaxed);
        passes == 0
    }

    /// The announced frames.
    pub(crate) fn frames(&self) -> impl Iterator<Item = FrameId> + '_ {
        let announced = |slot: &HazardSlot| match slot.0.load(Ordering::Acquire) {
            EMPTY | LEAVING => None,
            frame => Some(FrameId::new(frame - 1)),
        };
        self.slots.iter().filter_map(announced)
    }

    /// Whether no holder uses the cache.
    pub(crate) fn are_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.0.load(Ordering::Acquire) == EMPTY)
    }
}

impl HazardSlot {
    /// Ends the announcement. The holder then reads the record once more, and still uses the cache.
    #[inline]
    pub(crate) fn leave(&self) {
        self.0.store(LEAVING, Ordering::Release);
        light_fence();
    }

    /// The holder does not use the cache any more.
    #[inline]
    pub(crate) fn empty(&self) {
        self.0.store(EMPTY, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
