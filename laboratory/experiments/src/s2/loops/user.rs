//! The state of a thread that takes frames and gives them back.
//!
//! Owns: the calls of the allocator, the memory to write to, the random numbers.
//! Does not own: the loops.
//! Invariants: a failed call is counted; every variant sees the same random numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::Effort;
use afflux_kernel_frames::{Allocator, Mobility, Order};

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
    pub(super) memory: &'a Memory,
    pub(super) random: Random,
    pub(super) failed: u64,
}

impl<A: Allocator> User<'_, A> {
    pub(super) fn take(&mut self, order: u8, class: Mobility) -> Option<u32> {
        let taken = Order::new(order).and_then(|order| self.allocator.allocate(order, class, Effort::Normal));
        self.failed += u64::from(taken.is_none());
        taken
    }

    pub(super) fn give(&mut self, first: u32, order: u8) {
        let given = Order::new(order).is_some_and(|order| self.allocator.free(first, order).is_ok());
        self.failed += u64::from(!given);
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
