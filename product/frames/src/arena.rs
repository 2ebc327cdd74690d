//! The memory that frames live in.
//!
//! Owns: one anonymous mapping with a guard page's worth of inaccessible memory at each end.
//! Does not own: which frames are free.
//! Invariants: the usable part starts on a 2 MiB boundary and is a whole number of frames; it stays mapped, at one
//! address, until the arena is dropped. A stamped arena has memory only for the first bytes of each frame.
//!
//! The memory is anonymous, and 2 MiB pages are requested by advice. That needs no pool reserved by the administrator,
//! and without the grant 4 KiB pages serve instead. A memory file would get only those (`shmem_enabled` is `never` on
//! most hosts).

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{
    Advice, MapFlags, MlockFlags, MprotectFlags, ProtFlags, madvise, mlock_with, mmap_anonymous, mprotect, munmap,
};

use crate::{FRAME_BYTES, FrameId};

#[cfg(test)]
mod tests;

/// Frames of one 2 MiB page.
pub const HUGE_FRAMES: u32 = 512;
const HUGE_BYTES: usize = HUGE_FRAMES as usize * FRAME_BYTES;
const GUARD_BYTES: usize = HUGE_BYTES;

/// Fewest bytes an arena may have: 64 frames.
pub const ARENA_BYTES_MIN: u64 = 64 * FRAME_BYTES as u64;
/// Bytes that a stamped arena keeps of each frame.
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

/// The whole mapping, with the guards.
struct Mapping {
    start: *mut c_void,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and each user of its frames held a reference to the arena.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// A mapped range of frames.
pub struct Arena {
    _mapping: Mapping,
    first_frame: NonNull<u8>,
    frames: u32,
    /// Bytes of memory behind each frame, and the distance to the next frame's memory.
    kept_bytes: usize,
}

// SAFETY: the arena is a fixed range of memory that it owns until drop; it has no thread affinity.
unsafe impl Send for Arena {}
// SAFETY: shared use only computes addresses; the caller synchronises the accesses to the memory behind them.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `bytes` (a multiple of 4096) of zeroed memory, or a part of it: the first `kept_bytes` of each frame.
    pub(crate) fn new(bytes: u64, kept_bytes: usize) -> Result<Self, ArenaError> {
        let min = ARENA_BYTES_MIN;
        let max = ARENA_BYTES_MAX.min(memory_bytes().saturating_mul((FRAME_BYTES / kept_bytes) as u64));
        if !(min..=max).contains(&bytes) || !bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(ArenaError::Size { bytes, min, max });
        }
        let refused = |source: rustix::io::Errno| ArenaError::Mapping { bytes, source: source.into() };
        let frames = bytes as usize / FRAME_BYTES;
        let usable = (frames * kept_bytes).next_multiple_of(FRAME_BYTES);
        let mapping_bytes = usable + 2 * GUARD_BYTES + HUGE_BYTES;
        let (null, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a fresh private anonymous mapping aliases nothing.
        let start = unsafe { mmap_anonymous(null, mapping_bytes, ProtFlags::empty(), flags) }.map_err(refused)?;
        let mapping = Mapping { start, bytes: mapping_bytes };
        let before = (start as usize + GUARD_BYTES).next_multiple_of(HUGE_BYTES) - start as usize;
        let first_frame = start.cast::<u8>().wrapping_add(before);
        // SAFETY: the range lies inside the mapping made above, and no other code has its address yet.
        unsafe { mprotect(first_frame.cast(), usable, MprotectFlags::READ | MprotectFlags::WRITE) }.map_err(refused)?;
        // Without the grant base pages serve. SAFETY: as above; the advice changes page sizes, not contents.
        let _ = unsafe { madvise(first_frame.cast(), usable, Advice::LinuxHugepage) };
        let first_frame = NonNull::new(first_frame).ok_or(rustix::io::Errno::NOMEM).map_err(refused)?;
        Ok(Self { _mapping: mapping, first_frame, frames: frames as u32, kept_bytes })
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
        let end = range.end.min(self.frames);
        let Some(count) = end.checked_sub(range.start).filter(|count| *count > 0) else { return Ok(()) };
        // Whole pages of the host: a stamped arena has several frames in one.
        let from = range.start as usize * self.kept_bytes / FRAME_BYTES * FRAME_BYTES;
        let to = ((range.start + count) as usize * self.kept_bytes).next_multiple_of(FRAME_BYTES);
        let start = self.first_frame.as_ptr().wrapping_add(from);
        // SAFETY: the range lies inside the usable part of the mapping; the call changes no contents.
        unsafe { madvise(start.cast(), to - from, Advice::LinuxPopulateWrite) }?;
        Ok(())
    }

    /// Locks the arena's memory, each page from its first use on.
    ///
    /// # Errors
    /// The kernel's: more than this process may lock.
    pub fn lock(&self) -> io::Result<()> {
        let bytes = self.frames as usize * self.kept_bytes;
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
        Ok(Resident::in_smaps(&smaps, start..start + u64::from(self.frames) * self.kept_bytes as u64))
    }

    /// The bytes of memory behind each frame, from its first byte on: 4096, or [`STAMP_BYTES`].
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// As [`Arena::address`], one instruction less, for arenas known to keep whole frames. The address is valid for
    /// 4096 bytes there; in a stamped arena it must not be read or written.
    ///
    /// # Panics
    /// If the arena does not have the frame.
    #[inline]
    pub fn whole_address(&self, frame: FrameId) -> *mut u8 {
        assert!(frame.raw() < self.frames, "frame {} of an arena of {}", frame.raw(), self.frames);
        self.first_frame.as_ptr().wrapping_add(frame.index() * FRAME_BYTES)
    }

    /// The address of a frame's first byte, valid for [`Arena::kept_bytes`] while the arena lives.
    ///
    /// # Panics
    /// If the arena does not have the frame.
    #[inline]
    pub fn address(&self, frame: FrameId) -> NonNull<u8> {
        assert!(frame.raw() < self.frames, "frame {} of an arena of {}", frame.raw(), self.frames);
        // SAFETY: the frame lies inside the usable part of the mapping, by the assertion above.
        unsafe { self.first_frame.add(frame.index() * self.kept_bytes) }
    }
}

/// All memory of the machine, in whole frames.
fn memory_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "as wide as the machine's words")]
    let bytes = u64::from(system.totalram).saturating_mul(u64::from(system.mem_unit));
    bytes - bytes % FRAME_BYTES as u64
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
                "AnonHugePages:" if inside => huge_bytes += bytes(),
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
