//! The page-frame arena and its free frames.
//!
//! Owns: the memory of file pages and of the tables beside them, its form, and which frames are free.
//! Does not own: a frame's contents, its pins, its eviction, the entries of the tables (the engine).
//! Invariants: a frame is either free or handed out, never both. A free of a free frame, or of a frame outside the
//! arena, aborts. No path makes a system call or allocates after start.

mod arena;
mod cpu;
mod frames;
mod header;
mod layout;
mod magazines;
mod memory;
mod sync;
mod table;

#[cfg(test)]
mod tests;

pub use arena::{Arena, Resident};
pub use cpu::run_as_cpu;
pub use frames::Frames;
pub use header::{ArenaState, Header, HeaderBytes, HeaderError};
pub use layout::{
    ARENA_BYTES_MAX, ARENA_BYTES_MIN, ArenaError, CLIENT_STATE_BYTES, FILE_SLOT_BYTES, FILE_SLOTS, HEADER_BYTES,
    HUGE_FRAMES, Layout, PAGE_RECORD_BYTES, Part, REPLY_BYTES, STAMP_BYTES,
};
pub use magazines::{Effort, Watermarks};
pub use memory::Memory;
pub use sync::{SpinGuard, SpinLock};
pub use table::{AnyBytes, FrameTable, Zeroed, zeroed};

/// Bytes in one frame. The cache's page size.
pub const FRAME_BYTES: usize = 4096;

/// The index of a 4 KiB frame in its arena, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FrameId(u32);

impl FrameId {
    /// The frame with this index. Its use checks whether the arena has it.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index as a table subscript.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The index as stored in packed words.
    pub const fn raw(self) -> u32 {
        self.0
    }
}
