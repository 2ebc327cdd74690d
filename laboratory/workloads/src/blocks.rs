//! The blocks of a file that a random job has touched, so that it touches each once.
//!
//! Owns: one bit a block.
//! Does not own: the draw.
//! Invariants: `free` is the number of bits not set.

#[derive(Clone, Debug)]
pub(super) struct Blocks {
    count: u64,
    free: u64,
    words: Vec<u64>,
}

impl Blocks {
    pub(super) fn new(count: u64) -> Self {
        let mut blocks = Self { count, free: 0, words: vec![0; count.div_ceil(64) as usize] };
        blocks.clear();
        blocks
    }

    /// Marks all blocks free.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.free = self.count;
        if let (Some(last), rest @ 1..) = (self.words.last_mut(), self.count % 64) {
            // Blocks past the end are never free.
            *last = u64::MAX << rest;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.free == 0
    }

    /// The first free block from `from` on; the search wraps around.
    pub(super) fn next_free(&self, from: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let (first, words) = ((from / 64) as usize, self.words.len());
        // The first word is visited twice: above `from`, and, last of all, as a whole.
        let below = (1_u64 << (from % 64)) - 1;
        let masks = std::iter::once(below).chain(std::iter::repeat(0));
        masks.take(words + 1).enumerate().find_map(|(at, mask)| {
            let word = (first + at) % words;
            let taken = self.words[word] | mask;
            (taken != u64::MAX).then(|| word as u64 * 64 + u64::from(taken.trailing_ones()))
        })
    }

    /// Takes up to `count` consecutive free blocks from `first`, which is free; returns their number.
    pub(super) fn take(&mut self, first: u64, count: u64) -> u64 {
        let mut taken = 0;
        while taken < count && first + taken < self.count {
            let at = first + taken;
            let (word, bit) = (&mut self.words[(at / 64) as usize], 1_u64 << (at % 64));
            if *word & bit != 0 {
                break;
            }
            *word |= bit;
            taken += 1;
        }
        self.free -= taken;
        taken
    }
}

#[cfg(test)]
mod tests;
