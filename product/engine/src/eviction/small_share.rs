//! How many frames the small queues of `s3-window` have: as many as returning pages show to be useful.
//!
//! A page that left the small queues and comes back would have been a hit in longer ones. A page that left main and
//! comes back would have been a hit in a longer main. Each such return moves the share by a step.
//!
//! Pages that are read in order come back in order, all after the same time. A loop a little larger than the cache
//! would so take one size for the other, and lose the pages that main keeps of it. So of pages that come back in order
//! only the first counts: the next ones have its age.
//!
//! Owns: the share, its bounds and its step; what is a return in order.
//! Does not own: the queues and the ghosts (`s3_window`).
//! Invariants: the share stays within its bounds. Threads that report at once may lose a step or an age.

use super::Left;
use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering};

pub(super) struct SmallShare {
    frames_min: u64,
    frames_max: u64,
    step: u64,
    /// Pages that come back in order differ in age by this at most.
    in_order: u64,
    now: OwnLines<Now>,
}

struct Now {
    frames: AtomicU64,
    /// The ages of the last pages that came back, by the part they had left.
    ages: [AtomicU64; 2],
}

impl SmallShare {
    /// The share in a cache of `frames` frames.
    pub(super) fn new(frames: u64) -> Self {
        let frames_min = frames / 32;
        let now = Now { frames: AtomicU64::new(frames_min), ages: [const { AtomicU64::new(u64::MAX / 2) }; 2] };
        Self {
            frames_min,
            frames_max: frames / 2,
            step: (frames / 128).max(1),
            in_order: frames / 256,
            now: OwnLines(now),
        }
    }

    /// A share that stays as it is.
    #[cfg(test)]
    pub(super) fn fixed(frames: u64) -> Self {
        let share = Self::new(frames);
        share.now.frames.store(frames, Ordering::Relaxed);
        Self { frames_min: frames, frames_max: frames, ..share }
    }

    pub(super) fn frames(&self) -> u64 {
        self.now.frames.load(Ordering::Relaxed)
    }

    /// A page came back `age` evictions after it had left this part.
    pub(super) fn came_back(&self, left: Left, age: u64) {
        let last = self.now.ages[usize::from(left == Left::Main)].swap(age, Ordering::Relaxed);
        if age.abs_diff(last) <= self.in_order {
            return;
        }
        let frames = match left {
            Left::Small => (self.frames() + self.step).min(self.frames_max),
            Left::Main => self.frames().saturating_sub(self.step).max(self.frames_min),
        };
        self.now.frames.store(frames, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
