//! The interface of every compared allocator.
//!
//! Owns: the trait. Does not own: the allocators.
//! Invariants: a frame is either free or handed out, never both. No call blocks.

use afflux_frames::Effort;

use crate::{BadFree, Mobility, Order};

/// Hands out frames as the calling thread. Frames are numbers from 0.
pub trait Allocator: Sync {
    /// Takes a block of contiguous frames, aligned to its size.
    fn allocate(&self, order: Order, mobility: Mobility, effort: Effort) -> Option<u32>;
    /// Gives a block back, with the order of its allocation.
    fn free(&self, first: u32, order: Order) -> Result<(), BadFree>;
}
