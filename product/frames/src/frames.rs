//! The arena and its allocator.
//!
//! Owns: the interface that the engine sees; the abort on a bad free.
//! Does not own: the memory (the arena), the keeping of free frames (`magazines`, `linux`), waits for a frame (the
//! engine).
//! Invariants: a frame is either free or handed out, never both. No call blocks or makes a system call, except when it
//! finds that the holder of a lock was switched out.

use std::ptr::NonNull;

use crate::allocator::Allocator;
use crate::bad_free::BadFree;
use crate::watermarks::Watermarks;
use crate::{Arena, ArenaError, Effort, FRAME_BYTES, FrameId, Magazines, Mobility, Order, STAMP_BYTES};

/// The arena and its free frames.
pub struct Frames<A = Magazines> {
    arena: Arena,
    allocator: A,
}

impl Frames<Magazines> {
    /// An arena of `bytes`, all of it free. See [`Arena::new`] for the limits.
    pub fn new(bytes: u64) -> Result<Self, ArenaError> {
        Self::with_allocator(bytes)
    }

    /// As [`Frames::new`], with memory only for the first bytes of each frame: see [`Arena::new_stamped`].
    pub fn new_stamped(bytes: u64) -> Result<Self, ArenaError> {
        Self::over(bytes, STAMP_BYTES)
    }
}

impl<A: Allocator> Frames<A> {
    /// An arena of `bytes`, with an allocator chosen by type.
    pub fn with_allocator(bytes: u64) -> Result<Self, ArenaError> {
        Self::over(bytes, FRAME_BYTES)
    }

    fn over(bytes: u64, kept_bytes: usize) -> Result<Self, ArenaError> {
        let limit = |frames: u32| u64::from(frames) * FRAME_BYTES as u64;
        let arena = Arena::within(bytes, limit(A::FRAMES_MIN), limit(A::FRAMES_MAX), kept_bytes)?;
        let allocator = A::new(arena.frames());
        Ok(Self { arena, allocator })
    }

    /// The memory behind the frames.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The allocator of the free frames.
    pub fn allocator(&self) -> &A {
        &self.allocator
    }

    /// The number of frames.
    pub fn total(&self) -> u32 {
        self.arena.frames()
    }

    /// The number of free frames. A hint: other threads allocate meanwhile.
    pub fn free_count(&self) -> u32 {
        self.allocator.free_count()
    }

    /// The number of free frames outside the per-thread lists; the marks are compared with it. Costs a load.
    #[inline]
    pub fn shared_free_count(&self) -> u32 {
        self.allocator.shared_free_count()
    }

    /// Free frames below which background reclaim should run.
    pub fn low_watermark(&self) -> u32 {
        self.watermarks().low
    }

    /// The marks on the number of free frames.
    pub fn watermarks(&self) -> Watermarks {
        self.allocator.watermarks()
    }

    /// The bytes of memory behind each frame: see [`Arena::kept_bytes`].
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.arena.kept_bytes()
    }

    /// The address of a frame of an arena known to keep whole frames: see [`Arena::whole_address`].
    #[inline]
    pub fn whole_address(&self, frame: FrameId) -> *mut u8 {
        self.arena.whole_address(frame)
    }

    /// The address of a frame, valid for [`Frames::kept_bytes`].
    #[inline]
    pub fn address(&self, frame: FrameId) -> NonNull<u8> {
        self.arena.address(frame)
    }

    /// Takes a block of contiguous frames, aligned to its size. Its contents are undefined.
    #[inline]
    pub fn allocate(&self, order: Order, mobility: Mobility, effort: Effort) -> Option<FrameId> {
        self.allocator.allocate(order, mobility, effort).map(FrameId::new)
    }

    /// Takes up to `count` single frames at once and hands each to `take`; returns their number.
    #[inline]
    pub fn allocate_bulk(&self, count: u32, mobility: Mobility, effort: Effort, mut take: impl FnMut(FrameId)) -> u32 {
        self.allocator.allocate_bulk(count, mobility, effort, |frame| take(FrameId::new(frame)))
    }

    /// Gives back a block from [`Frames::allocate`] with the same order.
    ///
    /// Aborts the process if the block is not handed out: the memory may then have two holders, and no caller can
    /// repair that.
    #[inline]
    pub fn free(&self, first: FrameId, order: Order) {
        if let Err(bad) = self.allocator.free(first.raw(), order) {
            abort_on(&bad);
        }
    }
}

#[cold]
fn abort_on(bad: &BadFree) -> ! {
    #[allow(clippy::print_stderr, reason = "the last words before an abort")]
    {
        eprintln!("afflux: {bad}; stopping before data mixes");
    }
    std::process::abort()
}
