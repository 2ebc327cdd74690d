//! The frames in no stash and no magazine, and whether they are few.
//!
//! Owns: the lock around them, their number as all threads see it, the comparison with the marks.
//! Does not own: the choice of a frame (`frame_set`), the marks' values.
//! Invariants: the number changes under the lock alone, so the marks hold for any number of threads. `short` is set
//! whenever the number is below the mark `min`.

use super::frame_set::FrameSet;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::{Effort, FrameId, Watermarks};

/// On a cache line of its own, since every call reads the fields around it.
#[repr(align(128))]
struct Apart(AtomicU32);

pub(crate) struct Shared {
    pub(super) short: AtomicBool,
    pub(crate) marks: Watermarks,
    /// With so many frames they are not short any more.
    enough: u32,
    free: Apart,
    pub(super) frames: SpinLock<FrameSet>,
}

impl Shared {
    /// All of `frames` free. They stop being short when `slack` are free above the mark `min`.
    pub(super) fn new(frames: u32, slack: u32) -> Self {
        let marks = Watermarks::of(frames);
        Self {
            short: AtomicBool::new(false),
            marks,
            enough: marks.min + slack,
            free: Apart(AtomicU32::new(frames)),
            frames: SpinLock::new(FrameSet::new(frames)),
        }
    }

    /// The number of free frames here.
    #[inline]
    pub(crate) fn free_frames(&self) -> u32 {
        self.free.0.load(Ordering::Relaxed)
    }

    /// Whether nothing may be kept aside.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Takes the lowest frames, as many as the effort may take, into one slice after the other; returns their numbers.
    pub(super) fn take<const N: usize>(&self, effort: Effort, outs: [&mut [u32]; N]) -> [usize; N] {
        let floor = self.marks.floor(effort);
        if self.free_frames() <= floor {
            return [0; N];
        }
        let mut frames = self.frames.lock();
        let mut free = self.free_frames();
        let taken = outs.map(|out| {
            let count = out.len().min(free.saturating_sub(floor) as usize);
            let taken = frames.take(&mut out[..count]);
            free -= taken as u32;
            taken
        });
        self.set_free(free);
        taken
    }

    /// Takes these frames, all of which are here.
    pub(super) fn take_out(&self, taken: &[FrameId]) {
        let mut frames = self.frames.lock();
        taken.iter().for_each(|frame| frames.take_out(frame.raw()));
        self.set_free(self.free_frames() - taken.len() as u32);
    }

    /// Puts frames back.
    pub(super) fn give(&self, given: &[u32]) {
        let mut frames = self.frames.lock();
        frames.give(given);
        self.set_free(self.free_frames() + given.len() as u32);
    }

    /// With the lock held.
    fn set_free(&self, free: u32) {
        self.free.0.store(free, Ordering::Relaxed);
        if free < self.marks.min {
            self.short.store(true, Ordering::Relaxed);
        } else if free >= self.enough && self.is_short() {
            self.short.store(false, Ordering::Relaxed);
        }
    }
}
