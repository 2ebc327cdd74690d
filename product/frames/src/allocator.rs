//! The interface of every allocator.
//!
//! Owns: the trait. Does not own: the interface that the engine sees (`frames`).
//! Invariants: a frame is either free or handed out, never both. No call blocks.

use crate::bad_free::BadFree;
use crate::watermarks::Watermarks;
use crate::{Effort, Mobility, Order};

/// Keeps the free frames of an arena. Frames are numbers from 0.
pub trait Allocator: Send + Sync + Sized {
    /// Its name in tables.
    const NAME: &'static str;
    /// Fewest frames that it can keep.
    const FRAMES_MIN: u32;
    /// Most frames that it can keep.
    const FRAMES_MAX: u32;

    /// All of `frames` are free; their number is within the limits.
    fn new(frames: u32) -> Self;
    /// Takes a block of contiguous frames, aligned to its size.
    fn allocate(&self, order: Order, mobility: Mobility, effort: Effort) -> Option<u32>;
    /// Takes up to `count` single frames and hands each to `take`; returns their number. `take` may call the allocator.
    fn allocate_bulk(&self, count: u32, mobility: Mobility, effort: Effort, take: impl FnMut(u32)) -> u32;
    /// Gives a block back, with the order of its allocation.
    fn free(&self, first: u32, order: Order) -> Result<(), BadFree>;
    /// The number of free frames. A hint while other threads allocate, exact otherwise.
    fn free_count(&self) -> u32;
    /// The number of free frames outside the per-thread lists; efforts are compared with it. Costs one load.
    fn shared_free_count(&self) -> u32;
    /// The watermarks that bound each effort.
    fn watermarks(&self) -> Watermarks;
}
