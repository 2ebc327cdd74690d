//! The state of a thread that takes frames and gives them back.
//!
//! Owns: the interface of every compared allocator, its calls, the memory to write to, the random numbers.
//! Does not own: the loops.
//! Invariants: a failed call is counted; every variant sees the same random numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_kernels::zone::Mobility;

/// Hands out frames, numbers from 0, and takes them back, as the given CPU.
pub(in crate::s2) trait Allocator: Sync {
    /// Takes a block of 2^order contiguous frames, aligned to its size.
    fn allocate(&self, cpu: usize, order: u8, mobility: Mobility) -> Option<u32>;
    /// Gives a block back, with the order of its allocation.
    fn free(&self, cpu: usize, first: u32, order: u8);
}

/// Stands for the frames' memory: 32 MiB, so frames that are far from each other share it.
pub(in crate::s2) struct Memory(Box<[AtomicU64]>);

const MEMORY_WORDS: usize = 1 << 22;
const FRAME_WORDS: usize = afflux_frames::FRAME_BYTES / 8;

impl Memory {
    pub(in crate::s2) fn new() -> Self {
        Self((0..MEMORY_WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn fill(&self, frame: u32, from_bytes: usize, bytes: usize) {
        let start = (frame as usize * FRAME_WORDS + from_bytes / 8) % MEMORY_WORDS;
        let end = (start + bytes / 8).min(MEMORY_WORDS);
        self.0[start..end].iter().for_each(|word| word.store(u64::from(frame), Ordering::Relaxed));
    }
}

/// A thread that takes and gives.
pub(super) struct User<'a, A> {
    pub(super) allocator: &'a A,
    pub(super) cpu: usize,
    pub(super) memory: &'a Memory,
    pub(super) random: Random,
    pub(super) failed: u64,
}

impl<A: Allocator> User<'_, A> {
    pub(super) fn take(&mut self, order: u8, class: Mobility) -> Option<u32> {
        let taken = self.allocator.allocate(self.cpu, order, class);
        self.failed += u64::from(taken.is_none());
        taken
    }

    pub(super) fn give(&mut self, first: u32, order: u8) {
        self.allocator.free(self.cpu, first, order);
    }
}

/// A linear congruential generator: the same numbers for all variants.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((self.0 >> 32) * limit) >> 32
    }
}
