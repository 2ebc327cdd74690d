//! A mapping of a file as a contender: copies from memory that the kernel has filled before.
//!
//! Owns: the mapping, copies.
//! Does not own: the file.
//! Invariants: every page is in the page tables before anything is measured. The file keeps its length while it is
//! mapped.
#![allow(unsafe_code, reason = "a mapping is memory without a type")]

use std::fs::File;
use std::io;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::rounds::PAGE;

/// A mapping of a whole file.
pub(super) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: bytes are only copied, in both directions, and simultaneous copies do not matter to a race: no reference into
// the mapping is ever made.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(file: &File, bytes: u64, write: bool) -> io::Result<Self> {
        let protection = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes as usize, protection, flags, file, 0)? };
        Ok(Self { start: start.cast(), bytes: bytes as usize })
    }

    fn page(&self, number: u64) -> *mut u8 {
        let at = number as usize * PAGE;
        assert!(at + PAGE <= self.bytes, "page {number} is not mapped");
        // SAFETY: the offset is inside the mapping, as just checked.
        unsafe { self.start.add(at) }
    }

    pub(super) fn read(&self, number: u64, into: &mut [u8; PAGE]) {
        // SAFETY: the source is a whole page of the mapping, the target is the caller's memory.
        unsafe { std::ptr::copy_nonoverlapping(self.page(number), into.as_mut_ptr(), PAGE) }
    }

    /// Requires a writable mapping.
    pub(super) fn write(&self, number: u64, from: &[u8; PAGE]) {
        // SAFETY: the target is a whole page of the mapping, the source is the caller's memory.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.page(number), PAGE) }
    }

    /// Reads a byte of the page in place.
    pub(super) fn byte(&self, number: u64, at: usize) -> u8 {
        assert!(at < PAGE, "{at} is not in a page");
        // SAFETY: the byte is in a page of the mapping.
        unsafe { self.page(number).add(at).read_volatile() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more: callers only get copies.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
