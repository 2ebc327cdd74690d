//! One file's pages: its index and its size, as hits see them.
//!
//! Owns: the index, the size that readers of the cache see, the file's slot and number, where a hit tells readahead.
//! Does not own: what is dirty, in flight or synced of it (`devices`); what readahead does (`reading`).
//! Invariants: bytes of cached pages past the size are zero. The size may be read without a lock; it changes with
//! the file's lock held.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::FrameId;

use super::Cache;
use super::index::Index;
use crate::eviction::PageKey;
use crate::page::Identity;
use crate::units::PAGE_BYTES;

/// Pages of a file without users that are let go at a time.
const DROP_PAGES: usize = 64;

/// What the cache has of a file. All that a hit reads of it is in one cache line, since with very many files none of them
/// is in a cache.
#[repr(align(64))]
pub(crate) struct FilePages {
    /// What its frames say whose they are. Not used again while the file lives.
    pub(crate) slot: u32,
    number: u64,
    pub(crate) index: Index,
    pub(crate) size: AtomicU64,
    /// A read that ends past this offset has used up what was read ahead.
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

    /// Readahead is told of reads that end beyond this page; of none, if it is nothing.
    pub(crate) fn tell_readahead_past(&self, page: Option<u64>) {
        let trigger = page.map_or(u64::MAX, |page| page.saturating_mul(PAGE_BYTES));
        self.readahead_trigger.store(trigger, Ordering::Relaxed);
    }

    /// The size as readers of the cache see it.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// What frames of the page say that they are.
    #[inline]
    pub(crate) fn identity(&self, page: u64) -> Identity {
        Identity { file: self.slot, index: page }
    }

    /// What the page is called for ever.
    pub(crate) fn key(&self, page: u64) -> PageKey {
        PageKey { file: self.number, page }
    }

    /// Nobody uses the file any more: lets its pages go, all of them clean.
    pub(crate) fn forget(&self, cache: &Cache) {
        let (mut from, mut frames) = (0, Vec::with_capacity(DROP_PAGES));
        while let Some(page) = self.index.next_present(&cache.nodes, from) {
            let frame: Option<FrameId> = self.index.frame(&cache.nodes, page);
            frames.extend(frame);
            self.index.remove(&cache.nodes, page);
            from = page + 1;
            if frames.len() == DROP_PAGES {
                cache.let_all_go(&mut frames);
            }
        }
        cache.let_all_go(&mut frames);
        cache.eviction.file_forgotten(self.number);
    }
}
