//! The frames in an arena's memory.
//!
//! Owns: the frames' addresses; their memory ahead of use, and how much of it there is.
//! Does not own: the memory itself (`memory`), which frames are free.
//! Invariants: the frames start on a 2 MiB boundary, and stay mapped, at one address, until the arena is dropped. A
//! stamped arena has memory only for the first bytes of each frame.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{Advice, MlockFlags, madvise, mlock_with};

use crate::layout::HUGE_BYTES;
use crate::memory::Memory;
use crate::{FRAME_BYTES, FrameId};

#[cfg(test)]
mod tests;

/// The frames of an arena's memory.
pub struct Arena {
    memory: Arc<Memory>,
    first_frame: NonNull<u8>,
    frames: u32,
    /// Bytes of memory behind each frame, and the distance to the next frame's memory.
    backed_bytes: usize,
}

// SAFETY: the frames are a fixed range of memory that stays mapped until drop; it has no thread affinity.
unsafe impl Send for Arena {}
// SAFETY: shared use only computes addresses; the caller synchronises the accesses to the memory behind them.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) fn over(memory: Arc<Memory>) -> Self {
        let (first_frame, layout) = (memory.first_frame(), memory.layout());
        Self { first_frame, frames: layout.frames(), backed_bytes: layout.backed_bytes(), memory }
    }

    /// The memory, with the tables before the frames.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The number of frames in the arena.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Puts memory behind the frames of `range` that have none yet, so that their first use costs no fault. Contents
    /// stay, so it may be called while the frames are used; frames outside the arena are ignored. Blocks for about 0.3
    /// ms for each MiB without memory: call it from a background thread, a few MiB at a time.
    ///
    /// # Errors
    /// The kernel's: it cannot do this before Linux 5.14, or has no memory.
    pub fn prefault(&self, range: Range<u32>) -> io::Result<()> {
        let Some((start, bytes)) = self.pages_of(range) else { return Ok(()) };
        // SAFETY: the range lies inside the usable part of the mapping; the call changes no contents.
        unsafe { madvise(start.cast(), bytes, Advice::LinuxPopulateWrite) }?;
        Ok(())
    }

    /// Joins the memory behind the frames of `range` to 2 MiB pages, where it covers whole ones. Contents stay, and the
    /// frames may be used meanwhile. Blocks for some ms for each such page.
    ///
    /// # Errors
    /// The kernel's: it cannot do this before Linux 6.1, or has no 2 MiB in one piece.
    pub fn collapse(&self, range: Range<u32>) -> io::Result<()> {
        /// Not among rustix's.
        const MADV_COLLAPSE: libc::c_int = 25;
        let Some((start, bytes)) = self.pages_of(range) else { return Ok(()) };
        let bytes = bytes / HUGE_BYTES * HUGE_BYTES;
        // SAFETY: as above.
        if bytes > 0 && unsafe { libc::madvise(start.cast(), bytes, MADV_COLLAPSE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The host's pages behind the frames of a range: where they begin, and their bytes. A stamped arena has several
    /// frames in a page. `None` if the arena has no such frames.
    fn pages_of(&self, range: Range<u32>) -> Option<(*mut u8, usize)> {
        let end = range.end.min(self.frames);
        let count = end.checked_sub(range.start).filter(|count| *count > 0)?;
        let from = range.start as usize * self.backed_bytes / FRAME_BYTES * FRAME_BYTES;
        let to = ((range.start + count) as usize * self.backed_bytes).next_multiple_of(FRAME_BYTES);
        Some((self.first_frame.as_ptr().wrapping_add(from), to - from))
    }

    /// Locks the arena's memory, each page from its first use on.
    ///
    /// # Errors
    /// The kernel's: more than this process may lock.
    pub fn lock(&self) -> io::Result<()> {
        let bytes = self.frames as usize * self.backed_bytes;
        // SAFETY: the range is the usable part of the mapping; the call changes no contents.
        unsafe { mlock_with(self.first_frame.as_ptr().cast(), bytes, MlockFlags::ONFAULT) }?;
        Ok(())
    }

    /// The amount of memory behind the arena, as reported by the kernel. Reads a file of `/proc` and walks page tables:
    /// this takes milliseconds for some GiB, so call it only for status output.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn resident(&self) -> io::Result<Resident> {
        let start = self.first_frame.as_ptr() as u64;
        let smaps = std::fs::read_to_string("/proc/self/smaps")?;
        Ok(Resident::in_smaps(&smaps, start..start + u64::from(self.frames) * self.backed_bytes as u64))
    }

    /// The bytes of memory behind each frame, from its first byte on: 4096, or [`crate::STAMP_BYTES`].
    #[inline]
    pub fn backed_bytes(&self) -> usize {
        self.backed_bytes
    }

    /// As [`Arena::address`], one instruction less, for arenas known to back whole frames. The address is valid for
    /// 4096 bytes there; in a stamped arena it must not be read or written.
    ///
    /// # Panics
    /// If the arena does not have the frame.
    #[inline]
    pub fn whole_address(&self, frame: FrameId) -> *mut u8 {
        assert!(frame.raw() < self.frames, "frame {} of an arena of {}", frame.raw(), self.frames);
        self.first_frame.as_ptr().wrapping_add(frame.index() * FRAME_BYTES)
    }

    /// The address of a frame's first byte, valid for [`Arena::backed_bytes`] while the arena lives.
    ///
    /// # Panics
    /// If the arena does not have the frame.
    #[inline]
    pub fn address(&self, frame: FrameId) -> NonNull<u8> {
        assert!(frame.raw() < self.frames, "frame {} of an arena of {}", frame.raw(), self.frames);
        // SAFETY: the frame lies inside the usable part of the mapping, by the assertion above.
        unsafe { self.first_frame.add(frame.index() * self.backed_bytes) }
    }
}

/// The memory behind an arena, by page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resident {
    /// Bytes in 2 MiB pages.
    pub huge_bytes: u64,
    /// Bytes in 4 KiB pages.
    pub base_bytes: u64,
}

impl Resident {
    /// Sums the mappings of `/proc/self/smaps` that begin inside `range`.
    fn in_smaps(smaps: &str, range: Range<u64>) -> Self {
        let (mut all, mut huge_bytes, mut inside) = (0_u64, 0, false);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let mut bytes = || words.next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10;
            match name {
                "Rss:" if inside => all += bytes(),
                "AnonHugePages:" | "ShmemPmdMapped:" if inside => huge_bytes += bytes(),
                _ if name.ends_with(':') => {}
                _ => {
                    let start = name.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
                    inside = start.is_some_and(|start| range.contains(&start));
                }
            }
        }
        Self { huge_bytes, base_bytes: all.saturating_sub(huge_bytes) }
    }
}
