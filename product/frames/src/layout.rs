//! Where the parts of an arena's memory are: header, file slots, page records, stored replies, marks of dirty pages,
//! clients' state, frames.
//!
//! Owns: the sizes that an arena may have, the sizes of the entries, the offsets, the hash of a
//! form; the error about a size or a mapping.
//! Does not own: the memory (`memory`), the meaning of slots and records (the engine).
//! Invariants: each part begins on a 2 MiB border, so that 2 MiB pages hold one part each. The parts do not overlap,
//! and 2 MiB before the frames belong to none.

use std::io;
use std::ops::Range;

use crate::FRAME_BYTES;

#[cfg(test)]
mod tests;

/// Frames of one 2 MiB page.
pub const HUGE_FRAMES: u32 = 512;
/// Bytes of one 2 MiB page.
pub(crate) const HUGE_BYTES: usize = HUGE_FRAMES as usize * FRAME_BYTES;

/// Fewest bytes an arena may have: 64 frames.
pub const ARENA_BYTES_MIN: u64 = 64 * FRAME_BYTES as u64;
/// Bytes that a stamped arena stores of each frame.
pub const STAMP_BYTES: usize = 16;
/// Most bytes an arena may have, on any machine: frame numbers are 32 bits wide and the last is reserved.
pub const ARENA_BYTES_MAX: u64 = (u32::MAX as u64 - 1) * FRAME_BYTES as u64;

/// Why an arena could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// The size is outside what an arena can be, or not a whole number of frames.
    #[error(
        "an arena of {bytes} bytes cannot be made: the size must be a multiple of 4096 between \
         {min} and {max}"
    )]
    Size {
        /// The requested size.
        bytes: u64,
        /// The smallest size.
        min: u64,
        /// The largest size: [`ARENA_BYTES_MAX`], or all of the machine's memory.
        max: u64,
    },
    /// The kernel refused the mapping.
    #[error("the kernel refused {bytes} bytes for the arena: {source}")]
    Mapping {
        /// The requested size.
        bytes: u64,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a file slot.
pub const FILE_SLOT_BYTES: usize = 128;
/// Bytes of a page record.
pub const PAGE_RECORD_BYTES: usize = 32;
/// Bytes of a frame's mark.
pub(crate) const PAGE_MARK_BYTES: usize = 8;
/// Bytes of a stored reply.
pub const REPLY_BYTES: usize = 512;
/// The stored replies of an arena.
const REPLIES: usize = 4096;
/// Bytes of a piece of clients' state.
pub const CLIENT_STATE_BYTES: usize = 1024;
/// Of an arena's frames, one of so many has a frame's bytes of clients' state beside it.
const CLIENT_STATE_FRAMES: usize = 32;
/// Most bytes of clients' state.
const CLIENT_STATE_BYTES_MAX: usize = 24 << 20;
/// The file slots of an arena, as a rule.
pub const FILE_SLOTS: u32 = 1 << 16;

/// The form of an arena's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    frames: u32,
    backed_bytes: usize,
    files: u32,
    /// It has as much memory for clients' state as any arena has.
    has_most_client_state: bool,
}

/// The form of memories. The number changes with each change of the meaning of a header, a slot, a record, a mark, a
/// reply or a piece of clients' state.
pub(crate) const FORM: u64 = 7;

/// A part of an arena's memory that is a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// One entry for each file that outlives the process.
    Files,
    /// One entry for each frame.
    Records,
    /// One entry for each of the last calls that clients may repeat.
    Replies,
    /// One entry for each frame: whether its page is dirty.
    Marks,
    /// The state of clients with sessions, opens and locks.
    Clients,
}

impl Layout {
    /// An arena of `bytes` with so many file slots.
    ///
    /// # Errors
    /// The size is no multiple of 4096 between [`ARENA_BYTES_MIN`] and the machine's memory.
    pub fn new(bytes: u64, files: u32) -> Result<Self, ArenaError> {
        Self::keeping(bytes, FRAME_BYTES, files)
    }

    /// An arena that backs the first `backed_bytes` of each frame.
    pub(crate) fn keeping(bytes: u64, backed_bytes: usize, files: u32) -> Result<Self, ArenaError> {
        let min = ARENA_BYTES_MIN;
        let max = ARENA_BYTES_MAX.min(memory_bytes().saturating_mul((FRAME_BYTES / backed_bytes) as u64));
        if !(min..=max).contains(&bytes) || !bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(ArenaError::Size { bytes, min, max });
        }
        Ok(Self { frames: (bytes / FRAME_BYTES as u64) as u32, backed_bytes, files, has_most_client_state: false })
    }

    /// The same with as much memory for clients' state as any arena has: for memory that ends with its process. The
    /// unused part takes no frames of the host.
    pub(crate) fn with_most_client_state(self) -> Self {
        Self { has_most_client_state: true, ..self }
    }

    /// The number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The number of file slots.
    pub fn files(&self) -> u32 {
        self.files
    }

    pub(crate) fn backed_bytes(&self) -> usize {
        self.backed_bytes
    }

    /// The number and the size of a part's entries.
    pub(crate) fn entries(&self, part: Part) -> (usize, usize) {
        match part {
            Part::Files => (self.files as usize, FILE_SLOT_BYTES),
            Part::Records => (self.frames as usize, PAGE_RECORD_BYTES),
            Part::Replies => (REPLIES, REPLY_BYTES),
            Part::Marks => (self.frames as usize, PAGE_MARK_BYTES),
            Part::Clients => {
                let of_frames = self.frames as usize / CLIENT_STATE_FRAMES * FRAME_BYTES;
                let bytes = if self.has_most_client_state { usize::MAX } else { of_frames }.min(CLIENT_STATE_BYTES_MAX);
                (bytes / CLIENT_STATE_BYTES, CLIENT_STATE_BYTES)
            }
        }
    }

    /// The bytes of a part.
    pub(crate) fn part(&self, part: Part) -> Range<usize> {
        let start = match part {
            Part::Files => HUGE_BYTES,
            Part::Records => self.part(Part::Files).end.next_multiple_of(HUGE_BYTES),
            Part::Replies => self.part(Part::Records).end.next_multiple_of(HUGE_BYTES),
            Part::Marks => self.part(Part::Replies).end.next_multiple_of(HUGE_BYTES),
            Part::Clients => self.part(Part::Marks).end.next_multiple_of(HUGE_BYTES),
        };
        let (len, bytes) = self.entries(part);
        start..start + len * bytes
    }

    /// The inaccessible bytes before the frames.
    pub(crate) fn gap(&self) -> Range<usize> {
        let start = self.part(Part::Clients).end.next_multiple_of(HUGE_BYTES);
        start..start + HUGE_BYTES
    }

    /// The bytes of the frames, in whole pages of the host.
    pub(crate) fn frame_bytes(&self) -> Range<usize> {
        let start = self.gap().end;
        start..start + (self.frames as usize * self.backed_bytes).next_multiple_of(FRAME_BYTES)
    }

    /// All bytes, from the header's first to the last frame's last.
    pub fn bytes(&self) -> usize {
        self.frame_bytes().end
    }

    /// Equal for memories of the same sizes alone.
    pub(crate) fn hash(&self) -> u64 {
        let numbers = [
            FRAME_BYTES,
            self.backed_bytes,
            self.frames as usize,
            self.files as usize,
            FILE_SLOT_BYTES,
            PAGE_RECORD_BYTES,
            REPLIES,
            REPLY_BYTES,
            self.part(Part::Files).start,
            self.part(Part::Records).start,
            self.part(Part::Replies).start,
            self.frame_bytes().start,
            self.bytes(),
            PAGE_MARK_BYTES,
            self.part(Part::Marks).start,
            CLIENT_STATE_BYTES,
            self.part(Part::Clients).start,
        ];
        // FNV-1a: a hash that no library's next version changes.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        numbers.iter().flat_map(|number| (*number as u64).to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step)
    }
}

/// All memory of the machine, in whole frames.
pub(crate) fn memory_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "as wide as the machine's words")]
    let bytes = u64::from(system.totalram).saturating_mul(u64::from(system.mem_unit));
    bytes - bytes % FRAME_BYTES as u64
}
