//! The eviction seam: which clean page goes when a frame is needed.
//!
//! Owns: the seam, its events, what a page is called beyond the life of its frame.
//! Does not own: taking pages out (`reclaim`), the pages' states (`page`).
//! Invariants: uses are no event: a hit notes them in the page's record and pays for nothing more; a policy reads
//! them when it looks. A page's key is never another page's, so that a page may be remembered that is gone.

mod two_lists;

use frames::FrameId;

use crate::page::{Identity, PageTable};
pub(crate) use two_lists::TwoLists;

/// A page of a file, for ever: numbers of files are not used again, as their slots are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PageKey {
    /// The file's number.
    pub(crate) file: u64,
    /// The page in it.
    pub(crate) page: u64,
}

/// Why a page came into the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admitted {
    /// A reader waits for it.
    Demand,
    /// Before anybody asked for it.
    Ahead,
    /// A writer wrote it; it is dirty.
    Written,
}

/// A page to try to evict.
pub(crate) struct Victim {
    pub(crate) frame: FrameId,
    pub(crate) identity: Identity,
}

/// What one look for victims met.
pub(crate) struct Scan {
    pub(crate) victims: Vec<Victim>,
    pub(crate) scanned: u64,
}

/// Decides which clean pages go. Called with a file's lock held, or with none; its own lock is the last in the order.
pub(crate) trait Eviction: Send + Sync {
    /// A page has come into the cache.
    fn admitted(&self, pages: &PageTable, frame: FrameId, key: PageKey, why: Admitted);

    /// These pages may be clean now, and those that are can go: written, cut to what the device has, or passed over
    /// by an eviction that found them held.
    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>);

    /// A clean page has become dirty.
    fn dirtied(&self, pages: &PageTable, frame: FrameId);

    /// Pages leave the cache, whoever takes them out.
    fn removed(&self, pages: &PageTable, frames: &[FrameId]);

    /// Nothing of the file is in the cache any more, nor will be under its number.
    fn file_forgotten(&self, file: u64);

    /// Chooses up to `count` pages that may go, looking at `scan_max` at most. They are no victims again before they
    /// are `cleaned`.
    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan;
}
