//! The arena and its free frames.
//!
//! Owns: the interface that the engine sees; the abort on a bad free.
//! Does not own: the memory (the arena), the storage of free frames (`magazines`), waits for a frame (the engine).
//! Invariants: a frame is either free or handed out, never both. No call blocks or makes a system call, except when it
//! finds that the holder of a lock was switched out.

use std::ops::Deref;
use std::sync::Arc;

use crate::layout::FILE_SLOTS;
use crate::magazines::{BadFree, Magazines};
use crate::{Arena, ArenaError, Effort, FRAME_BYTES, FrameId, Layout, Memory, STAMP_BYTES, Watermarks, cpu};

/// The arena and its free frames.
pub struct Frames {
    arena: Arena,
    free: Magazines,
}

impl Frames {
    /// `bytes` of zeroed memory, all of it free. Memory comes with the first use, or ahead of it by
    /// [`Arena::prefault`].
    ///
    /// # Errors
    /// The size is no multiple of 4096 between [`ARENA_BYTES_MIN`](crate::ARENA_BYTES_MIN) and the machine's memory, or
    /// the kernel refuses the mapping.
    pub fn new(bytes: u64) -> Result<Self, ArenaError> {
        Self::keeping(bytes, FRAME_BYTES)
    }

    /// As [`Frames::new`], for simulations of much memory: there are only the first [`STAMP_BYTES`] of each frame.
    /// `bytes` is the size that the frames stand for; it may exceed the machine's memory.
    pub fn new_stamped(bytes: u64) -> Result<Self, ArenaError> {
        Self::keeping(bytes, STAMP_BYTES)
    }

    fn keeping(bytes: u64, backed_bytes: usize) -> Result<Self, ArenaError> {
        let layout = Layout::keeping(bytes, backed_bytes, FILE_SLOTS)?.with_most_client_state();
        Ok(Self::over(Memory::anonymous(layout)?, &[]))
    }

    /// The frames of memory that may be older than this process. All of them are free but those that are `taken`, which
    /// are handed out.
    pub fn over(memory: Arc<Memory>, taken: &[FrameId]) -> Self {
        let arena = Arena::over(memory);
        let free = Magazines::new(arena.frames());
        free.take_out(taken);
        Self { arena, free }
    }

    /// The memory behind the frames.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The number of frames.
    pub fn total(&self) -> u32 {
        self.arena.frames()
    }

    /// The number of free frames. A hint while other threads allocate, exact otherwise.
    pub fn free_count(&self) -> u32 {
        self.free.free_count()
    }

    /// The number of free frames outside the per-thread lists; the marks are compared with it. Costs a load.
    #[inline]
    pub fn shared_free_count(&self) -> u32 {
        self.free.shared.free_frames()
    }

    /// The marks on the number of free frames.
    pub fn watermarks(&self) -> Watermarks {
        self.free.shared.marks
    }

    /// Takes a frame. Its contents are undefined.
    #[inline]
    pub fn allocate(&self, effort: Effort) -> Option<FrameId> {
        self.free.allocate(cpu::slot(), effort).map(FrameId::new)
    }

    /// Takes up to `count` frames at once and hands each to `take`; returns their number. `take` may allocate and free.
    #[inline]
    pub fn allocate_bulk(&self, count: u32, effort: Effort, mut take: impl FnMut(FrameId)) -> u32 {
        self.free.allocate_bulk(cpu::slot(), count, effort, |frame| take(FrameId::new(frame)))
    }

    /// Gives a frame back.
    ///
    /// Aborts the process if the frame is not handed out: the memory may then have two holders, and no caller can
    /// repair that.
    #[inline]
    pub fn free(&self, frame: FrameId) {
        if let Err(bad) = self.free.free(cpu::slot(), frame.raw()) {
            abort_on(&bad);
        }
    }
}

impl Deref for Frames {
    type Target = Arena;

    #[inline]
    fn deref(&self) -> &Arena {
        &self.arena
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
