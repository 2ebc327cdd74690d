//! One file's pages: the index, and the size that hits see.
//!
//! Owns: the index, the size that readers of the cache see, the file's slot and number, the offset past which a hit
//! tells readahead.
//! Does not own: the file's dirty, in-flight and synced pages (`devices`); readahead itself (`reading`).
//! Invariants: bytes of cached pages past the size are zero. The size may be read without a lock; it changes with the
//! file's lock held.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::FrameId;

use super::Cache;
use super::index::Index;
use crate::eviction::PageKey;
use crate::page::Identity;
use crate::units::PAGE_BYTES;

/// Pages of a file without users that are dropped at a time.
const DROP_PAGES: usize = 64;

/// The cache's view of a file. A hit reads only one cache line of it, since with very many files none of them is in a
/// CPU's cache.
#[repr(align(64))]
pub(crate) struct FilePages {
    /// The file's name in the records of its frames. Not used again while the file lives.
    pub(crate) slot: u32,
    number: u64,
    pub(crate) index: Index,
    pub(crate) size: AtomicU64,
    /// A read that ends past this offset has used up the pages read ahead.
    pub(crate) readahead_trigger: AtomicU64,
}

#[cfg(not(all(test, loom)))]
const _: () = assert!(size_of::<FilePages>() == 64);

impl FilePages {
    pub(crate) fn new(cache: &Cache, slot: u32, size: u64) -> Self {
        Self {
            slot,
            number: cache.number_file(),
            index: Index::new(),
            size: AtomicU64::new(size),
            readahead_trigger: AtomicU64::new(u64::MAX),
        }
    }

    /// Readahead learns of reads that end beyond this page, or of none for `None`.
    pub(crate) fn trigger_readahead_past(&self, page: Option<u64>) {
        let trigger = page.map_or(u64::MAX, |page| page.saturating_mul(PAGE_BYTES));
        self.readahead_trigger.store(trigger, Ordering::Relaxed);
    }

    /// The size as readers of the cache see it.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The identity of the page's frame.
    #[inline]
    pub(crate) fn identity(&self, page: u64) -> Identity {
        Identity { file: self.slot, index: page }
    }

    /// The page's name, never used again for another page.
    pub(crate) fn key(&self, page: u64) -> PageKey {
        PageKey { file: self.number, page }
    }

    /// Drops the pages of a file without users; all of them are clean.
    pub(crate) fn forget(&self, cache: &Cache) {
        let (mut from, mut frames) = (0, Vec::with_capacity(DROP_PAGES));
        while let Some(page) = self.index.next_present(&cache.nodes, from) {
            let frame: Option<FrameId> = self.index.frame(&cache.nodes, page);
            frames.extend(frame);
            self.index.remove(&cache.nodes, page);
            from = page + 1;
            if frames.len() == DROP_PAGES {
                cache.release_frames(&mut frames);
            }
        }
        cache.release_frames(&mut frames);
        cache.eviction.file_forgotten(self.number);
    }
}
