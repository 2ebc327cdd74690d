//! The hit path: reads and overwrites of cached bytes.
//!
//! Owns: the copies, and the checks that they copied the right bytes.
//! Does not own: waiting; a page that is not simply there (other modules).
//! Invariants: no lock, no allocation, no system call. A frame found without a lock may have become another page since.
//! A read holds nothing and is checked after the copy. So it writes no memory that other readers read, and the copy
//! need not wait for the frame's record. If the frame was reused during the copy, the bytes are read again under a pin.
//! An overwrite holds the page as a writer, and does not change which of its sectors are dirty. If the arena backs only
//! the first bytes of a frame (simulations of much memory), copies are cut to those and the rest reads as zeros.

use std::ops::Range;

use afflux_frames::{FRAME_BYTES, FrameId};

use super::{FilePages, PageCache};
use crate::memory::copy;
use crate::page::{DETACHED, DIRTY, LENT, PIN, Sectors, WRITER, about_to_fill};
use crate::units::PAGE_BYTES;

/// A range of bytes within one page. Its end is inside the page by construction.
#[derive(Clone, Copy)]
pub struct InPage {
    /// Number of the page in its file.
    pub page: u64,
    /// The first byte in the page.
    pub start: usize,
    /// The number of bytes.
    pub len: usize,
}

impl InPage {
    /// The part of `offset..offset + len` that lies in its first page.
    #[inline]
    pub fn first(offset: u64, len: usize) -> Self {
        let start = (offset % PAGE_BYTES) as usize;
        Self { page: offset / PAGE_BYTES, start, len: len.min(FRAME_BYTES - start) }
    }

    /// The bytes in the page.
    pub fn range(self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// How many bytes a copy between the range and memory of `room` bytes moves.
    ///
    /// # Panics
    /// If the range leaves its page, or the memory is shorter: the copy would pass their ends.
    #[inline]
    fn copied(self, room: usize) -> usize {
        assert!(self.start <= FRAME_BYTES && self.len <= FRAME_BYTES - self.start && self.len <= room);
        self.len
    }
}

impl PageCache {
    /// Copies bytes of one page if it is cached. `into` may be unaligned.
    ///
    /// # Panics
    /// If `into` is shorter than the range.
    #[inline]
    pub fn try_read_hit(&self, file: &FilePages, at: InPage, into: &mut [u8]) -> bool {
        let len = at.copied(into.len());
        let Some(frame) = file.index.lookup(&self.nodes, at.page) else {
            return false;
        };
        let Some(glance) = self.pages.begin_optimistic_read(frame, file.identity(at.page)) else {
            return false;
        };
        if self.is_whole(at) {
            // SAFETY: the frame is arena memory, which stays mapped while the cache exists, even if the page goes. The
            // range is inside the frame, and `into` is ours and at least as long (both asserted above). Other threads
            // change the frame through the same routine meanwhile, and so may a device.
            unsafe { copy::copy_bytes(self.address_in(frame).add(at.start), into.as_mut_ptr(), len) };
        } else {
            self.read_backed(frame, at, into);
        }
        if !glance.is_valid() {
            return self.try_read_again(file, at, &mut into[..len]);
        }
        self.pages.touch(frame);
        true
    }

    /// Reads again, under a lasting pin, a page whose frame was reused during the copy.
    #[cold]
    fn try_read_again(&self, file: &FilePages, at: InPage, into: &mut [u8]) -> bool {
        let frame = file.index.lookup(&self.nodes, at.page).filter(|frame| self.pages.contains(*frame));
        let found = frame.is_some_and(|frame| {
            let found = self.pages.try_enter_reader(frame, file.identity(at.page));
            if found {
                self.pages.touch(frame);
                self.read_backed(frame, at, into);
            }
            self.unpin(frame, PIN);
            found
        });
        if !found {
            // Nobody must find bytes of another file there.
            into.fill(0);
        }
        found
    }

    /// Overwrites bytes of one page if that changes only bytes: the page and the sectors are dirty already, the page is
    /// not promised to be stable, and the file's size stays.
    ///
    /// # Panics
    /// If `from` is shorter than the range.
    #[inline]
    pub fn try_overwrite_hit(&self, file: &FilePages, at: InPage, from: &[u8]) -> bool {
        self.try_overwrite(file, at, from) || self.try_overwrite_lent(file, at, from)
    }

    /// An overwrite of a page that only a lent guard protects.
    #[cold]
    fn try_overwrite_lent(&self, file: &FilePages, at: InPage, from: &[u8]) -> bool {
        let frame = file.index.lookup(&self.nodes, at.page).filter(|frame| self.pages.contains(*frame));
        if !frame.is_some_and(|frame| self.pages.word(frame).has(DIRTY | LENT)) {
            return false;
        }
        self.recall_for_write(file, at.page..at.page + 1);
        self.try_overwrite(file, at, from)
    }

    #[inline]
    fn try_overwrite(&self, file: &FilePages, at: InPage, from: &[u8]) -> bool {
        let len = at.copied(from.len());
        let Some(frame) = file.index.lookup(&self.nodes, at.page) else {
            return false;
        };
        if !self.pages.contains(frame) {
            return false;
        }
        let identity = file.identity(at.page);
        let found = self.pages.try_enter_overwriter(frame, identity, || {
            at.page * PAGE_BYTES + (at.start + at.len) as u64 <= file.size()
                && self.pages.dirty(frame).contains(Sectors::touched(at.range()))
        });
        if found {
            self.pages.touch_overwritten(frame);
            if self.is_whole(at) {
                // SAFETY: the held frame is arena memory, the range is inside it, and `from` has `len` bytes (both
                // asserted above). Concurrent readers and writers of the frame go through the same routine.
                unsafe { copy::copy_bytes(from.as_ptr(), self.address_in(frame).add(at.start), len) };
            } else {
                self.fill_backed(frame, at, from);
            }
        }
        self.unpin(frame, WRITER);
        found
    }

    /// Whether [`PageCache::try_overwrite_hit`] would overwrite the bytes now. Holds nothing, so the answer may change
    /// a moment later.
    #[inline]
    pub fn may_overwrite(&self, file: &FilePages, at: InPage) -> bool {
        let Some(frame) = file.index.lookup(&self.nodes, at.page) else {
            return false;
        };
        let identity = file.identity(at.page);
        self.pages.contains(frame)
            && self.pages.may_take_overwrites(frame, identity)
            && at.page * PAGE_BYTES + (at.start + at.len) as u64 <= file.size()
            && self.pages.dirty(frame).contains(Sectors::touched(at.range()))
    }

    #[inline]
    fn unpin(&self, frame: FrameId, holder: u64) {
        if self.pages.unhold(frame, holder).has(DETACHED) {
            self.release(frame);
        }
    }

    #[inline]
    fn address(&self, frame: FrameId) -> *mut u8 {
        self.frames.address(frame).as_ptr()
    }

    /// Whether all of the range has memory. Always true outside a stamped arena.
    #[inline]
    fn is_whole(&self, at: InPage) -> bool {
        !cfg!(feature = "stamped-frames") || at.start + at.len <= self.frames.backed_bytes()
    }

    /// The address of a frame. In worlds without stamped frames the arena was checked when the engine was made.
    #[inline]
    fn address_in(&self, frame: FrameId) -> *mut u8 {
        if cfg!(feature = "stamped-frames") { self.address(frame) } else { self.frames.whole_address(frame) }
    }

    /// The part of a frame's range that has memory.
    fn backed(&self, range: Range<usize>) -> Range<usize> {
        assert!(range.start <= range.end && range.end <= FRAME_BYTES);
        let backed = self.frames.backed_bytes();
        range.start.min(backed)..range.end.min(backed)
    }

    /// A read hit in any arena: bytes without memory read as zeros.
    #[cold]
    fn read_backed(&self, frame: FrameId, at: InPage, into: &mut [u8]) {
        let backed = self.backed(at.range());
        let (first, rest) = into[..at.len].split_at_mut(backed.len());
        // SAFETY: the frame has memory for the range; `first` is ours and as long.
        unsafe { copy::copy_backed(self.address(frame).wrapping_add(backed.start), first.as_mut_ptr(), backed.len()) };
        rest.fill(0);
    }

    /// An overwrite in a stamped arena.
    #[cold]
    fn fill_backed(&self, frame: FrameId, at: InPage, from: &[u8]) {
        self.fill_bytes(frame, at.start, &from[..at.len]);
    }

    /// Copies into a frame that the caller may change: a fresh frame, or one held as a writer.
    pub fn fill_bytes(&self, frame: FrameId, start: usize, from: &[u8]) {
        let backed = self.backed(start..start + from.len());
        about_to_fill();
        // SAFETY: the frame has memory for the range, which is not longer than `from`, the caller's; other
        // users of the frame go through the same routine.
        let copy = |part: Range<usize>| unsafe {
            let (from, to) =
                (from.as_ptr().add(part.start), self.address(frame).wrapping_add(backed.start + part.start));
            copy::copy_backed(from, to, part.len());
        };
        if cfg!(feature = "rare-paths") {
            // A process may be killed in the middle.
            copy(0..backed.len() / 2);
            self.pages.stores.point();
            copy(backed.len() / 2..backed.len());
        } else {
            copy(0..backed.len());
        }
    }

    /// Announces that all of the frame will be filled soon. Not worth its instructions if little of the frame is
    /// backed.
    pub fn expect_copy(&self, frame: FrameId) {
        if self.frames.backed_bytes() == FRAME_BYTES {
            copy::prefetch_to_fill(self.address(frame));
        }
    }

    /// Zeroes part of a frame that the caller may change.
    pub fn zero(&self, frame: FrameId, range: Range<usize>) {
        let range = self.backed(range);
        if range.is_empty() {
            return;
        }
        about_to_fill();
        // SAFETY: the frame has memory for the range; its other users go through such routines.
        unsafe { copy::zero_bytes(self.address(frame).wrapping_add(range.start), range.len()) };
    }

    /// Copies part of a frame to the same offsets in `to`, which the caller may change.
    pub fn copy_between(&self, from: FrameId, to: FrameId, range: Range<usize>) {
        assert!(from != to);
        let range = self.backed(range);
        about_to_fill();
        // SAFETY: both frames have memory for the range, and differ; other users of either go through
        // the same routine.
        unsafe {
            let (from, to) = (self.address(from).wrapping_add(range.start), self.address(to).wrapping_add(range.start));
            copy::copy_bytes(from, to, range.len());
        }
    }
}

#[cfg(test)]
mod tests;
