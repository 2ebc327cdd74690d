//! The memory of an arena: anonymous, or that of a file, which outlives the process.
//!
//! Owns: the mapping, with inaccessible memory around it and before the frames; its copy.
//! Does not own: where the parts are (`layout`), what stands in them.
//! Invariants: the memory begins on a 2 MiB border. It stays mapped, at one address, until its last user is gone.
//!
//! Anonymous memory gets 2 MiB pages by advice. That needs no pool reserved by the administrator, and without the grant
//! 4 KiB pages serve instead. A file's memory has those at first (`shmem_enabled` is `never` on most hosts), and
//! [`Arena::prefault`](crate::Arena::prefault) joins them to large ones. Core dumps leave out both.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};

use crate::header::Header;
use crate::layout::{ArenaError, HEADER_BYTES, HUGE_BYTES, Layout, Part};
use crate::table::{AnyBytes, FrameTable};
use crate::{FRAME_BYTES, FrameId};

#[cfg(test)]
mod tests;

const GUARD_BYTES: usize = HUGE_BYTES;

/// The memory of one arena: header, file slots, page records, frames.
pub struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    outlives: bool,
    /// Unmaps the memory when it is dropped.
    _mapping: Mapping,
}

// SAFETY: the memory is a fixed range that its owner holds until drop; it has no thread affinity.
unsafe impl Send for Memory {}
// SAFETY: shared use only computes addresses, or reads and writes atomic numbers.
unsafe impl Sync for Memory {}

/// A range of addresses that is ours.
struct Mapping {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the range has no thread affinity.
unsafe impl Send for Mapping {}
// SAFETY: shared use does nothing.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and each user of its memory held a reference to it.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

impl Memory {
    /// Zeroed memory that ends with the process, with a fresh header.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    pub fn anonymous(layout: Layout) -> Result<Arc<Self>, ArenaError> {
        let memory = Self::mapped(layout, None)?;
        memory.header().begin([0; 16], 0);
        Ok(memory)
    }

    /// The memory of a file, which outlives the process: a memory file, or one on a tmpfs. Its contents may be any
    /// bytes: [`Header::check`] reports whether they are an arena's. It stays mapped after the file is closed.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    ///
    /// # Safety
    /// The file has [`Layout::bytes`], and nobody shortens it. While the memory lives, nobody else uses
    /// the file's bytes.
    pub unsafe fn in_file(file: BorrowedFd<'_>, layout: Layout) -> Result<Arc<Self>, ArenaError> {
        Self::mapped(layout, Some(file))
    }

    fn mapped(layout: Layout, file: Option<BorrowedFd<'_>>) -> Result<Arc<Self>, ArenaError> {
        let bytes = layout.bytes() as u64;
        let refused = |source: Errno| ArenaError::Mapping { bytes, source: source.into() };
        let mapping_bytes = layout.bytes() + 2 * GUARD_BYTES + HUGE_BYTES;
        let (null, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a fresh private anonymous mapping aliases nothing.
        let start = unsafe { mmap_anonymous(null, mapping_bytes, ProtFlags::empty(), flags) }.map_err(refused)?;
        let mapping = Mapping { start, bytes: mapping_bytes };
        let before = (start as usize + GUARD_BYTES).next_multiple_of(HUGE_BYTES) - start as usize;
        let first = start.cast::<u8>().wrapping_add(before);
        for part in [0..layout.gap().start, layout.frame_bytes()] {
            let (at, bytes) = (first.wrapping_add(part.start).cast(), part.len());
            // SAFETY: the range lies inside the mapping made above, and no other code has its address yet.
            unsafe { make_usable(at, bytes, file.map(|file| (file, part.start as u64))) }.map_err(refused)?;
        }
        let frames = layout.frame_bytes();
        // Without the grant base pages serve. SAFETY: as above; the advice changes page sizes, not contents.
        let _ = unsafe { madvise(first.wrapping_add(frames.start).cast(), frames.len(), Advice::LinuxHugepage) };
        let start = NonNull::new(first).ok_or(Errno::NOMEM).map_err(refused)?;
        Ok(Arc::new(Self { start, layout, outlives: file.is_some(), _mapping: mapping }))
    }

    /// Where the parts are.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the memory is a file's, and so outlives the process.
    pub fn may_outlive_process(&self) -> bool {
        self.outlives
    }

    /// Header of the memory: form, lengths and the server's number.
    pub fn header(&self) -> Header<'_> {
        // SAFETY: the header's bytes are inside the memory and aligned. Any bytes are atomic numbers, and all users
        // read and write them as such.
        let words = unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast::<AtomicU64>(), HEADER_BYTES / 8) };
        Header::new(words, self.layout)
    }

    /// A part as a table.
    ///
    /// # Panics
    /// If the entries have another size.
    pub fn table<T: AnyBytes>(self: &Arc<Self>, part: Part) -> FrameTable<T> {
        let (len, bytes) = self.layout.entries(part);
        assert_eq!(size_of::<T>(), bytes, "entries of {part:?}");
        let start = self.start.as_ptr().wrapping_add(self.layout.part(part).start).cast::<T>();
        let start = NonNull::new(start).unwrap_or_else(|| unreachable!("inside a mapping"));
        // SAFETY: the part is inside the memory, on a 2 MiB border, and stays mapped while the table holds the memory.
        // Any bytes are an entry.
        unsafe { FrameTable::new(start, len, Arc::<Self>::clone(self)) }
    }

    /// The address of the first frame.
    pub(crate) fn first_frame(&self) -> NonNull<u8> {
        // SAFETY: the frames are inside the memory.
        unsafe { self.start.add(self.layout.frame_bytes().start) }
    }

    /// The bytes of a frame. Copies of others into it may run meanwhile; then the result is a mix.
    ///
    /// # Panics
    /// If the memory does not have the whole frame.
    pub fn frame(&self, frame: FrameId) -> [u8; FRAME_BYTES] {
        let at = self.layout.frame_bytes().start + frame.index() * FRAME_BYTES;
        assert!(at + FRAME_BYTES <= self.layout.bytes(), "frame {} of {:?}", frame.raw(), self.layout);
        let mut bytes = [0; FRAME_BYTES];
        for (word, bytes) in self.words(at).iter().zip(bytes.as_chunks_mut::<8>().0) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        bytes
    }

    /// A page of the host.
    fn words(&self, at: usize) -> &[AtomicU64] {
        let page = self.start.as_ptr().wrapping_add(at).cast::<AtomicU64>();
        // SAFETY: all but the gap is readable, in whole pages; any bytes are atomic numbers.
        unsafe { std::slice::from_raw_parts(page, FRAME_BYTES / 8) }
    }

    /// Anonymous memory with the same bytes: the memory as it would be in the kernel if the process were killed now.
    /// For simulations, in which nothing else runs meanwhile.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    pub fn copy(&self) -> Result<Arc<Self>, ArenaError> {
        Self::of_words(self.layout, self.used_words())
    }

    /// All words that are not zero, each with its offset in bytes.
    pub fn used_words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let parts = [0..self.layout.gap().start, self.layout.frame_bytes()];
        let pages = parts.into_iter().flat_map(|part| part.step_by(FRAME_BYTES));
        let used = |at: usize| self.words(at).iter().enumerate().map(move |(word, value)| (at + word * 8, value));
        pages.flat_map(used).map(|(at, word)| (at, word.load(Ordering::Relaxed))).filter(|(_, word)| *word != 0)
    }

    /// Anonymous memory with these words at their offsets in bytes, and zeros. For simulations and samples.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    ///
    /// # Panics
    /// If an offset is outside the parts.
    pub fn of_words(layout: Layout, words: impl IntoIterator<Item = (usize, u64)>) -> Result<Arc<Self>, ArenaError> {
        let memory = Self::mapped(layout, None)?;
        for (at, word) in words {
            let is_inside = at < layout.gap().start || layout.frame_bytes().contains(&at);
            assert!(is_inside && at.is_multiple_of(8), "offset {at} of {layout:?}");
            memory.words(at - at % FRAME_BYTES)[at % FRAME_BYTES / 8].store(word, Ordering::Relaxed);
        }
        Ok(memory)
    }
}

/// Makes a part of a reserved range readable and writable, with a file's bytes from an offset on, or with zeros.
///
/// # Safety
/// The range is mapped for the caller alone, and nobody uses it yet.
unsafe fn make_usable(at: *mut c_void, bytes: usize, file: Option<(BorrowedFd<'_>, u64)>) -> Result<(), Errno> {
    match file {
        // SAFETY: the caller's promise; the new mapping replaces a part of a mapping that nobody uses.
        Some((file, offset)) => unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
            mmap(at, bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, offset)?;
        },
        // SAFETY: the caller's promise.
        None => unsafe { mprotect(at, bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?,
    }
    // Without the grant dumps are larger. SAFETY: the advice changes no contents.
    let _ = unsafe { madvise(at, bytes, Advice::LinuxDontDump) };
    Ok(())
}
