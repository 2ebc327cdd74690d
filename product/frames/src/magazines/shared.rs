//! The frames in no stash and no magazine, and whether they are few for how hard an allocation may try.
//!
//! Owns: the set of these frames, a bit each, and the lock around it; their number as all threads see it; the efforts,
//! the marks and the comparison with them.
//! Does not own: stashes and magazines (`magazines`).
//! Invariants: the number changes under the lock alone, so the marks hold for any number of threads: min ≤ low ≤ high.
//! `short` is set whenever the number is below the mark `min`. In the set, a bit above the lowest level is set exactly
//! while its word is not zero.
//!
//! The lowest frames are used first, so that memory never touched stays untouched for as long as possible. Equal calls
//! get equal frames, independent of the order of earlier frees.

use crate::FrameId;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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

    /// Whether frames are so few that threads may hold no free ones.
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

/// A set of frames.
#[derive(Debug)]
pub(super) struct FrameSet {
    /// The lowest level first; the last has one word.
    pub(super) levels: Vec<Box<[u64]>>,
}

impl FrameSet {
    /// All of `frames`.
    pub(super) fn new(frames: u32) -> Self {
        let mut levels: Vec<Box<[u64]>> = Vec::new();
        let mut bits = frames as usize;
        loop {
            let word = |at: usize| u64::MAX >> (64 - (bits - at * 64).min(64));
            levels.push((0..bits.div_ceil(64)).map(word).collect());
            bits = bits.div_ceil(64);
            if bits == 1 {
                return Self { levels };
            }
        }
    }

    /// Moves the lowest frames to `out`; returns their number.
    pub(super) fn take(&mut self, out: &mut [u32]) -> usize {
        let mut taken = 0;
        while taken < out.len()
            && let Some(at) = self.lowest_word()
        {
            let bits = &mut self.levels[0][at];
            let first = at as u32 * 64;
            let count = (out.len() - taken).min(bits.count_ones() as usize);
            for frame in &mut out[taken..taken + count] {
                *frame = first + bits.trailing_zeros();
                *bits &= *bits - 1;
            }
            taken += count;
            if *bits == 0 {
                self.note(at);
            }
        }
        taken
    }

    /// Takes out one frame.
    ///
    /// # Panics
    /// If it is not in the set.
    pub(super) fn take_out(&mut self, frame: u32) {
        let (at, bit) = (frame as usize / 64, 1 << (frame % 64));
        let bits = &mut self.levels[0][at];
        assert!(*bits & bit != 0, "frame {frame} is taken twice");
        *bits &= !bit;
        if *bits == 0 {
            self.note(at);
        }
    }

    pub(super) fn give(&mut self, frames: &[u32]) {
        let mut frames = frames.iter().map(|frame| *frame as usize).peekable();
        while let Some(first) = frames.next() {
            let (at, mut mask) = (first / 64, 1 << (first % 64));
            // Neighbours are put back by the word.
            while let Some(frame) = frames.next_if(|frame| frame / 64 == at) {
                mask |= 1 << (frame % 64);
            }
            let was_empty = self.levels[0][at] == 0;
            self.levels[0][at] |= mask;
            if was_empty {
                self.note(at);
            }
        }
    }

    /// The lowest word with a frame.
    #[inline]
    fn lowest_word(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels[1..].iter().rev() {
            // In an empty set this is a word beyond the last.
            at = at * 64 + level.get(at)?.trailing_zeros() as usize;
        }
        self.levels[0].get(at).filter(|bits| **bits != 0).map(|_| at)
    }

    /// Sets the bits above a word that became empty, or has its first frames.
    fn note(&mut self, mut at: usize) {
        for height in 1..self.levels.len() {
            let has_some = self.levels[height - 1][at] != 0;
            let word = &mut self.levels[height][at / 64];
            let was_empty = *word == 0;
            *word = *word & !(1 << (at % 64)) | u64::from(has_some) << (at % 64);
            if was_empty == (*word == 0) {
                return;
            }
            at /= 64;
        }
    }
}

/// How hard an allocation may try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// May use the reserve, since progress of writeback depends on it.
    Reserve,
    /// For a demand read or a write.
    Normal,
    /// Fails at once when frames are short: readahead.
    NoRetry,
}

/// Marks on the number of free frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watermarks {
    /// Only [`Effort::Reserve`] goes below this.
    pub min: u32,
    /// [`Effort::NoRetry`] stops here, and background reclaim starts.
    pub low: u32,
    /// Background reclaim stops here.
    pub high: u32,
}

impl Watermarks {
    /// The marks of an arena: 1/256 of the frames is for writeback's progress (4 to 1,024), and readahead stops when
    /// 1/64 remains (8 to 8,192). Linux's square root would leave a cache of a few MiB nothing to use.
    pub fn of(frames: u32) -> Self {
        let low = (frames / 64).clamp(8, 8192);
        Self { min: (frames / 256).clamp(4, 1024), low, high: low + low / 2 }
    }

    /// The number of frames that this effort leaves free.
    pub const fn floor(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Reserve => 0,
            Effort::Normal => self.min,
            Effort::NoRetry => self.low,
        }
    }
}

#[cfg(test)]
mod tests;
