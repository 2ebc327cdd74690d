//! A set of small numbers with a fast lookup of its lowest member.
//!
//! Owns: levels of bits; each bit of a level tells whether a word of the level below is not zero.
//! Does not own: the meaning of the numbers.
//! Invariants: a bit above the lowest level is set exactly while its word is not zero.

/// A set of numbers below a limit.
#[derive(Debug)]
pub(super) struct IndexSet {
    /// The lowest level first; the last has one word.
    levels: Vec<Box<[u64]>>,
}

impl IndexSet {
    /// An empty set for numbers below `limit`.
    pub(super) fn new(limit: u32) -> Self {
        let mut levels = Vec::new();
        let mut words = limit.div_ceil(64).max(1) as usize;
        loop {
            levels.push(vec![0; words].into_boxed_slice());
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(64);
        }
    }

    pub(super) fn insert(&mut self, index: u32) {
        let mut at = index as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            at /= 64;
        }
    }

    pub(super) fn remove(&mut self, index: u32) {
        let mut at = index as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The lowest member.
    pub(super) fn first(&self) -> Option<u32> {
        self.next(0)
    }

    /// The lowest member that is `from` or more.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        let mut height = 0;
        // Up until a word has a bit at or after the place, then down along the lowest bits.
        loop {
            let level = self.levels.get(height)?;
            let word = *level.get(at / 64)? & u64::MAX << (at % 64);
            if word != 0 {
                at = at / 64 * 64 + word.trailing_zeros() as usize;
                break;
            }
            at = at / 64 + 1;
            height += 1;
        }
        for level in self.levels[..height].iter().rev() {
            at = at * 64 + level[at].trailing_zeros() as usize;
        }
        Some(at as u32)
    }
}
