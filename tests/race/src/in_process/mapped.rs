//! A mapping of a file as a contender: copies out of memory that the kernel has filled before.
//!
//! Owns: the mapping, copies.
//! Does not own: the file.
//! Invariants: every page is in the page tables before anything is measured. The file keeps its length while it is mapped.
#![allow(unsafe_code, reason = "a mapping is memory without a type")]

use std::fs::File;
use std::io;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::rounds::PAGE;

/// All of a file.
pub(super) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: only bytes are copied, in both directions, and who copies what at the same time is no matter to a race: no
// reference into the mapping is ever made.
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
        // SAFETY: inside the mapping, as was just looked at.
        unsafe { self.start.add(at) }
    }

    pub(super) fn read(&self, number: u64, into: &mut [u8; PAGE]) {
        // SAFETY: a whole page of the mapping, and memory of the caller's.
        unsafe { std::ptr::copy_nonoverlapping(self.page(number), into.as_mut_ptr(), PAGE) }
    }

    /// Needs a mapping that can be written.
    pub(super) fn write(&self, number: u64, from: &[u8; PAGE]) {
        // SAFETY: a whole page of the mapping, and memory of the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.page(number), PAGE) }
    }

    /// A word of the page, where it is.
    pub(super) fn word(&self, number: u64) -> u64 {
        // SAFETY: the first bytes of a page of the mapping, which is aligned.
        unsafe { self.page(number).cast::<u64>().read_volatile() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more: copies alone are given out.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
