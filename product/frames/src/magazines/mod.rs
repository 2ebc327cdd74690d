//! The free frames: stashes, magazines, and the shared frames behind them.
//!
//! Owns: the path of a frame between a thread's stash (up to 15 frames in one cache line), its slot's magazine and the
//! shared frames; the shorter path when frames are few; the search in others' magazines; the state of each frame, and
//! its last events, in two bytes.
//! Does not own: the choice of a thread's slot (`cpu`), the memory (the arena).
//! Invariants: a frame is handed out, or in one stash, or in one magazine, or shared. A slot's lock is taken before
//! that of the shared frames, and of one slot at a time. A frame in a stash or a magazine is above the mark `min`. Only
//! a slot's owner writes to its stash, by plain loads and stores; another thread may read the number there, and may
//! take the frames once it owns the slot. When several threads free one frame, exactly one free succeeds.
//!
//! An allocation and a free on one thread cost one locked instruction. By it the free claims the frame's state, so that
//! every double free is found. Only its thread touches a stash. The magazine behind it is locked once in eight frames,
//! the shared frames once in 128. Frames that another thread allocated go back on the same path, in batches.
//!
//! When frames are few, or an allocation found none, threads hold no free frames. Frees are shared at once, and each
//! thread empties its stash and magazine at its next call. A thread that still lacks frames empties the other slots'.
//! Only the stashes of other live threads stay out of reach, 15 frames each, until those threads next allocate or free.

#[cfg(all(test, loom))]
mod loom_models;
mod shared;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::FrameId;
use crate::cpu::{self, ListSlot};
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use crate::sync::{SpinLock, zeros};
use shared::Shared;
pub use shared::{Effort, Watermarks};

/// The smallest arena with stashes: the stashes of all slots are then at most 3 % of it.
const FRAMES_WITH_STASHES: u32 = 1 << 14;

/// Most frames in a magazine.
const MAGAZINE_FRAMES: usize = 256;
/// Most frames that move between a magazine and the shared frames at a time.
const BATCH_MAX: usize = MAGAZINE_FRAMES / 2;

/// The free frames of an arena. Frames are numbers from 0.
pub(crate) struct Magazines {
    /// Most frames in a magazine of this arena.
    magazine_frames: usize,
    /// The number of frames that move between a magazine and the shared frames at a time.
    batch: usize,
    states: States,
    stashes: Box<[Stash]>,
    /// The magazines: the last frame in is the first out. They are made as large as they become.
    slots: Box<[SpinLock<Vec<u32>>]>,
    pub(crate) shared: Shared,
}

impl Magazines {
    /// All of `frames` are free.
    pub(crate) fn new(frames: u32) -> Self {
        let stashes = if frames < FRAMES_WITH_STASHES { 0 } else { cpu::SLOTS };
        // At most a 128th of the arena.
        Self::with_slots(frames, cpu::SLOTS, stashes, (frames as usize / 128).clamp(1, MAGAZINE_FRAMES))
    }

    fn with_slots(frames: u32, slots: usize, stashes: usize, magazine_frames: usize) -> Self {
        Self {
            magazine_frames,
            batch: magazine_frames.div_ceil(2),
            states: States::new(frames),
            stashes: (0..stashes).map(|_| Stash::new()).collect(),
            slots: (0..slots).map(|_| SpinLock::new(Vec::with_capacity(magazine_frames))).collect(),
            shared: Shared::new(frames, magazine_frames as u32),
        }
    }

    /// Stashes out these frames, all of which are shared: before anybody else has one.
    pub(crate) fn take_out(&self, frames: &[FrameId]) {
        self.shared.take_out(frames);
        frames.iter().for_each(|frame| self.states.hand_out(frame.raw(), 0));
    }

    /// Takes up to `count` frames and stashes each to `take`; returns their number. `take` may call the allocator.
    pub(crate) fn allocate_bulk(&self, place: ListSlot, count: u32, effort: Effort, mut take: impl FnMut(u32)) -> u32 {
        let place = place.or_settle();
        let mut frames = [0; BATCH_MAX];
        let mut taken = 0;
        while taken < count {
            let want = frames.len().min((count - taken) as usize);
            let got = self.gather(place, effort, &mut frames[..want]);
            for frame in &frames[..got] {
                self.states.hand_out(*frame, place.slot());
                take(*frame);
            }
            taken += got as u32;
            if got < want {
                break;
            }
        }
        taken
    }

    /// The number of free frames. A hint while other threads allocate, exact otherwise.
    pub(crate) fn free_count(&self) -> u32 {
        let slots: usize = self.slots.iter().map(|slot| slot.lock().len()).sum();
        let stashes: usize = self.stashes.iter().map(Stash::len).sum();
        (slots + stashes) as u32 + self.shared.free_frames()
    }

    #[inline]
    pub(crate) fn allocate(&self, place: ListSlot, effort: Effort) -> Option<u32> {
        if let Some(stash) = self.own_stash(place)
            && self.has_plenty(effort)
            && let Some(frame) = stash.pop()
        {
            self.states.hand_out(frame, place.own_slot());
            return Some(frame);
        }
        self.allocate_further(place, effort)
    }

    #[inline]
    pub(crate) fn free(&self, place: ListSlot, frame: u32) -> Result<(), BadFree> {
        let stash = self.own_stash(place);
        let place = if stash.is_some() { place } else { place.or_settle() };
        self.states.take_back(frame, place.slot())?;
        if self.shared.is_short() || !stash.is_some_and(|stash| stash.try_push(frame)) {
            self.free_further(place, frame);
        }
        Ok(())
    }

    /// The stash of the caller's slot, if there is one and only the caller uses it.
    #[inline]
    fn own_stash(&self, place: ListSlot) -> Option<&Stash> {
        self.stashes.get(place.own_slot())
    }

    /// Whether this effort may take frames that threads hold without counting them: the shared frames alone are those
    /// that the effort must leave.
    #[inline]
    fn has_plenty(&self, effort: Effort) -> bool {
        !self.shared.is_short() && (effort != Effort::NoRetry || self.shared.free_frames() >= self.shared.marks.low)
    }

    #[cold]
    fn allocate_further(&self, place: ListSlot, effort: Effort) -> Option<u32> {
        let place = place.or_settle();
        let mut frame = [0];
        (self.gather(place, effort, &mut frame) == 1).then(|| {
            self.states.hand_out(frame[0], place.slot());
            frame[0]
        })
    }

    /// Takes up to `out.len()` frames, at most [`BATCH_MAX`].
    fn gather(&self, place: ListSlot, effort: Effort, out: &mut [u32]) -> usize {
        let mut taken = 0;
        if self.has_plenty(effort) {
            let mut magazine = self.slots[place.slot()].lock();
            taken = magazine.len().min(out.len());
            let left = magazine.len() - taken;
            out[..taken].copy_from_slice(&magazine[left..]);
            magazine.truncate(left);
            if taken < out.len() {
                magazine.resize(self.batch, 0);
                let [missing, brought] = self.shared.take(effort, [&mut out[taken..], &mut magazine]);
                taken += missing;
                magazine.truncate(brought);
                magazine.reverse();
            }
            if let Some(stash) = self.own_stash(place).filter(|stash| stash.len() == 0) {
                let left = magazine.len().saturating_sub(STASH_BATCH);
                magazine.drain(left..).for_each(|frame| _ = stash.try_push(frame));
            }
        }
        if taken < out.len() { taken + self.gather_rest(place, effort, &mut out[taken..]) } else { taken }
    }

    /// Takes frames when they are few: leaves none in the caller's slot, and empties others' magazines.
    #[cold]
    fn gather_rest(&self, place: ListSlot, effort: Effort, out: &mut [u32]) -> usize {
        self.empty_own(place);
        let [mut taken] = self.shared.take(effort, [&mut *out]);
        if taken < out.len() && effort != Effort::NoRetry {
            self.shared.short.store(true, Ordering::Relaxed);
            self.empty_others(place);
            taken += self.shared.take(effort, [&mut out[taken..]])[0];
        }
        taken
    }

    /// Frees a frame for which there is no stash or no free entry in it, or when frames are few. The frames that have
    /// been in the stash and in the magazine longest move on.
    #[cold]
    fn free_further(&self, place: ListSlot, frame: u32) {
        if self.shared.is_short() {
            self.shared.give(&[frame]);
            if self.shared.is_short() {
                self.empty_own(place);
            }
            return;
        }
        let stash = self.own_stash(place);
        if stash.is_some_and(|stash| stash.try_push(frame)) {
            return;
        }
        let (single, oldest) = ([frame], stash.map(|stash| stash.push_full(frame)));
        let leaving = oldest.as_ref().map_or(&single[..], |oldest| oldest);
        let mut magazine = self.slots[place.slot()].lock();
        if magazine.len() + leaving.len() > self.magazine_frames {
            self.shared.give(&magazine[..self.batch]);
            magazine.drain(..self.batch);
        }
        magazine.extend_from_slice(leaving);
    }

    /// Shares all frames that the caller's slot holds.
    fn empty_own(&self, place: ListSlot) {
        if let Some(stash) = self.own_stash(place) {
            self.empty_stash(stash);
        }
        self.empty_magazine(place.slot());
    }

    #[cold]
    fn empty_others(&self, place: ListSlot) {
        for slot in (0..self.slots.len()).filter(|slot| *slot != place.own_slot()) {
            if let Some(stash) = self.stashes.get(slot).filter(|stash| stash.len() > 0) {
                cpu::while_unowned(slot, || self.empty_stash(stash));
            }
            self.empty_magazine(slot);
        }
    }

    fn empty_magazine(&self, slot: usize) {
        let mut magazine = self.slots[slot].lock();
        if !magazine.is_empty() {
            self.shared.give(&magazine);
            magazine.clear();
        }
    }

    /// Empties a stash, as the owner of its slot.
    fn empty_stash(&self, stash: &Stash) {
        while let Some(frame) = stash.pop() {
            self.shared.give(&[frame]);
        }
    }
}

/// Most frames in a stash: with their number they fill a cache line.
const STASH_FRAMES: usize = 15;
/// The number of frames that move to or from the magazine at a time.
const STASH_BATCH: usize = 8;

#[repr(align(128))]
struct Stash {
    len: AtomicU32,
    frames: [AtomicU32; STASH_FRAMES],
}

impl Stash {
    fn new() -> Self {
        Self { len: AtomicU32::new(0), frames: [(); STASH_FRAMES].map(|()| AtomicU32::new(0)) }
    }

    #[inline]
    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    #[inline]
    fn pop(&self) -> Option<u32> {
        let last = self.len().wrapping_sub(1);
        let frame = self.frames.get(last)?.load(Ordering::Relaxed);
        self.len.store(last as u32, Ordering::Relaxed);
        Some(frame)
    }

    /// Adds a frame unless the list is full.
    #[inline]
    fn try_push(&self, frame: u32) -> bool {
        let len = self.len();
        let Some(place) = self.frames.get(len) else { return false };
        place.store(frame, Ordering::Relaxed);
        self.len.store(len as u32 + 1, Ordering::Relaxed);
        true
    }

    /// Adds a frame to a full stash, and takes the frames out that have been there longest.
    fn push_full(&self, frame: u32) -> [u32; STASH_BATCH] {
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

/// Set in the first byte while the frame is handed out, and in the second once the frame was freed.
const SET: u8 = 1 << 7;

/// The slots of the last allocation and of the last free.
#[derive(Default)]
struct LastSlots {
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

struct States(Box<[LastSlots]>);

impl States {
    fn new(frames: u32) -> Self {
        Self(zeros(frames as usize))
    }

    /// Records that a frame is handed out. Until then it is free, and only the caller has it.
    #[inline]
    fn hand_out(&self, frame: u32, slot: usize) {
        let state = &self.0[frame as usize];
        debug_assert!(state.allocated.load(Ordering::Relaxed) & SET == 0, "frame {frame} is handed out twice");
        state.allocated.store(SET | slot as u8, Ordering::Relaxed);
    }

    /// Records that a frame is free, or returns the reason why it cannot be freed. Only the caller then has the frame,
    /// and puts it where other threads find it.
    #[inline]
    fn take_back(&self, frame: u32, slot: usize) -> Result<(), BadFree> {
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
