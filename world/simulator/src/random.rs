//! The seeded generator behind every choice in a simulation.
//!
//! Owns: the sequence of a seed (xoshiro256**, seeded by splitmix64), and drawing from it.
//! Does not own: the draws. Each part of a world forks its own generator, so that one more draw in one part does not
//! shift the others.
//! Invariants: equal seeds give equal sequences on every machine; integers only.

/// A sequence of numbers that looks random and is fixed by its seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// The sequence of `seed`. All seeds are good ones, 0 included.
    pub fn new(seed: u64) -> Self {
        let mut expanded = seed;
        Self { state: std::array::from_fn(|_| splitmix(&mut expanded)) }
    }

    /// A separate sequence for the part called `part`. It depends on this sequence's state and on `part`; this sequence
    /// does not change.
    #[must_use]
    pub fn fork(&self, part: u64) -> Self {
        let mut mixed = part ^ self.state[0].rotate_left(17) ^ self.state[3];
        Self::new(splitmix(&mut mixed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number from 0 to `end - 1`. The bias, below `end` in 2^64, does not matter here.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "a number below 0 was asked for");
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    ///
    /// # Panics
    /// When `last` is below `first`.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        assert!(first <= last, "no number from {first} to {last}");
        match (last - first).checked_add(1) {
            Some(count) => first + self.below(count),
            None => self.bits(),
        }
    }

    /// An exponentially distributed number with mean `mean`, without its fraction. It is drawn by comparisons (von
    /// Neumann, "Various techniques used in connection with random digits", 1951): a logarithm of the C library may
    /// differ in its last bit between machines.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0;
        loop {
            let first = self.bits();
            let (mut last, mut falling) = (first, 1);
            loop {
                let next = self.bits();
                if next >= last {
                    break;
                }
                (last, falling) = (next, falling + 1);
            }
            if falling % 2 == 1 {
                let fraction = (u128::from(first) * u128::from(mean)) >> 64;
                return mean.saturating_mul(whole).saturating_add(fraction as u64);
            }
            whole += 1;
        }
    }

    /// True in `per_mille` of 1,000 draws.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `from`.
    ///
    /// # Panics
    /// When `from` is empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests;
