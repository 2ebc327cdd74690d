//! One file's pages: the index, and the size that hits see.
//!
//! Owns: the index, the size that readers of the cache see, the file's slot and number, the offset past which a hit
//! notifies readahead.
//! Does not own: the file's dirty, in-flight and synced pages (`devices`); readahead itself (`reading`).
//! Invariants: bytes of cached pages past the size are zero. The size may be read without a lock; it changes with the
//! file's lock held.

use std::sync::atomic::{AtomicU64, Ordering};

use super::index::Index;
use crate::eviction::PageKey;
use crate::page::PageIdentity;
use crate::units::PAGE_BYTES;

/// The cache's view of a file. A hit reads only one cache line of it, since with very many files none of them is in a
/// CPU's cache.
#[repr(align(64))]
pub struct FilePages {
    /// The file's name in the records of its frames. Not used again while the file lives.
    pub slot: u32,
    /// No other file of the cache has this number, ever.
    pub(super) number: u64,
    /// The file's pages that have frames.
    pub index: Index,
    /// The file's size in bytes, as calls see it.
    pub size: AtomicU64,
    /// A read that ends past this offset has used up the pages read ahead.
    pub readahead_trigger: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<FilePages>() == 64);

impl FilePages {
    /// The pages of a file of `size` bytes: none is cached. `slot` is the file's number in the arena, `number` the
    /// cache's for it ([`PageCache::number_file`](super::PageCache::number_file)).
    pub fn new(number: u64, slot: u32, size: u64) -> Self {
        Self {
            slot,
            number,
            index: Index::new(),
            size: AtomicU64::new(size),
            readahead_trigger: AtomicU64::new(u64::MAX),
        }
    }

    /// Readahead learns of reads that end beyond this page, or of none for `None`.
    pub fn trigger_readahead_past(&self, page: Option<u64>) {
        let trigger = page.map_or(u64::MAX, |page| page.saturating_mul(PAGE_BYTES));
        self.readahead_trigger.store(trigger, Ordering::Relaxed);
    }

    /// The size as readers of the cache see it.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The identity of the page's frame.
    #[inline]
    pub fn identity(&self, page: u64) -> PageIdentity {
        PageIdentity { file: self.slot, index: page }
    }

    /// The page's name, never used again for another page.
    pub fn key(&self, page: u64) -> PageKey {
        PageKey { file: self.number, page }
    }
}
