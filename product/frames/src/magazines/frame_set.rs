//! A set of frames: a bit each.
//!
//! Owns: levels of bits; each bit of a level tells whether a word of the level below is not zero.
//! Does not own: the lock, the number of frames.
//! Invariants: a bit above the lowest level is set exactly while its word is not zero.
//!
//! The lowest frames are used first, so that memory never touched stays untouched for as long as possible. Equal calls
//! get equal frames, independent of the order of earlier frees.

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
