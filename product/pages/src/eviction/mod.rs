//! The eviction seam: which clean page goes when a frame is needed.
//!
//! Owns: the seam, its events, the key of a page beyond the life of its frame, the policies by name.
//! Does not own: taking pages out (`reclaim`), the pages' states (`page`).
//! Invariants: a use is no event: a hit notes it in the page's record at no further cost, and a policy reads it when it
//! scans. A page's key is never another page's, so that an evicted page may be remembered. A policy sees a page's
//! record and the queues only: no other mechanism of the engine.

mod ghost;
mod offline;
pub mod queue;
mod rule_choice;
mod s3_window;

use std::fmt;

pub use afflux_frames::FrameId;

use crate::page::{DIRTY, PRESENT, PRIOR, PageIdentity, READING, WRITEBACK};
pub use crate::page::{PageTable, Word};
pub use offline::Offline;
pub use queue::is_claimed;

/// States in which a page cannot go, even if nobody holds it. When they end, the policy learns that the page is clean.
pub const UNEVICTABLE: u64 = DIRTY | WRITEBACK | READING | PRIOR;

/// A page of a file, for ever: file numbers are never reused, unlike slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PageKey {
    /// Number of the file.
    pub file: u64,
    /// The page in the file.
    pub page: u64,
}

/// Why a page came into the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// A reader waits for it.
    Demand,
    /// The page came before anybody asked for it.
    Ahead,
    /// A writer wrote it; it is dirty.
    Written,
}

/// A page that has come into the cache.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Frame that has the page.
    pub frame: FrameId,
    /// File and page number.
    pub key: PageKey,
    /// Why the page came into the cache.
    pub why: Admitted,
}

impl Arrival {
    /// Whether a writer wrote the page, so that it is dirty.
    pub fn is_written(&self) -> bool {
        self.why == Admitted::Written
    }
}

/// A page to try to evict.
pub struct Victim {
    /// Frame that has the page.
    pub frame: FrameId,
    /// The page that the frame held.
    pub identity: PageIdentity,
    /// Whether the policy wants the key once the page is gone.
    pub remember: bool,
}

/// The result of one search for victims.
pub struct Scan {
    /// Pages that may go.
    pub victims: Vec<Victim>,
    /// Pages that were looked at.
    pub scanned: u64,
    /// For each page that could not go because it is dirty and not being written, the slot of its file.
    pub waiting_to_be_written: Vec<u32>,
    /// How many victims are wanted, and how many pages may be looked at for them.
    pub wanted: (usize, u64),
}

impl Scan {
    /// A scan that has seen nothing.
    pub fn new(count: usize, scan_max: u64) -> Self {
        let victims = Vec::with_capacity(count.min(scan_max as usize));
        Self { victims, scanned: 0, waiting_to_be_written: Vec::new(), wanted: (count, scan_max) }
    }

    /// Whether more victims are wanted, and more pages may be looked at.
    pub fn may_go_on(&self) -> bool {
        self.victims.len() < self.wanted.0 && self.scanned < self.wanted.1
    }

    /// The page in this frame cannot go, and is no longer on its queue.
    pub fn pass_over(&mut self, pages: &PageTable, frame: FrameId, word: Word) {
        if word.has_any(DIRTY) && !word.has_any(WRITEBACK) {
            self.waiting_to_be_written.push(pages.identity(frame).file);
        }
    }

    /// The page in this frame, which is on no queue, becomes a victim.
    pub fn take(&mut self, pages: &PageTable, frame: FrameId, remember: bool) {
        queue::claim(pages, frame);
        self.victims.push(Victim { frame, identity: pages.identity(frame), remember });
    }
}

/// Whether a reported page is clean, so that it may be put on a queue. The end of a read reports its page: before that,
/// a page that comes was not admitted.
pub fn is_clean(pages: &PageTable, frame: FrameId) -> bool {
    let word = pages.word(frame);
    // Once a page is out of the index, a late reader may free its frame, and the frame may hold another file's page. A
    // queue would then have a page whose file's lock nobody holds.
    debug_assert!(word.has(PRESENT), "the eviction policy is told of {frame:?}, which holds no page of the cache");
    !word.has_any(DIRTY | READING)
}

/// Decides which clean pages go. Called with a file's lock held, or with none; its own lock is the last in the order.
pub trait Eviction: Send + Sync {
    /// Pages have come into the cache. They are in their file's index, whose lock the caller holds.
    fn admitted(&self, pages: &PageTable, arrivals: &[Arrival]);

    /// These pages may be clean now, and clean ones can go. They were written, cut to the device's content, or passed
    /// over by an eviction that found them held. They are in the index of their file, whose lock the caller holds.
    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>);

    /// A clean page has become dirty.
    fn dirtied(&self, _pages: &PageTable, _frame: FrameId) {}

    /// The page in `old`, which leaves the cache, is in `new` from now on: it was to change, and `old` must not. No
    /// other call announces `new`.
    fn replaced(&self, pages: &PageTable, _old: FrameId, new: FrameId) {
        if !pages.word(new).has_any(DIRTY) {
            self.cleaned(pages, &mut std::iter::once(new));
        }
    }

    /// Pages leave the cache for any reason.
    fn removed(&self, pages: &PageTable, frames: &[FrameId]);

    /// Victims that were to be remembered are gone.
    fn remember(&self, _keys: &[PageKey]) {}

    /// No page of the file is in the cache, nor will be under its number.
    fn file_forgotten(&self, _file: u64) {}

    /// Chooses up to `count` pages that may go, looking at `scan_max` at most. They are not victims again before they
    /// are `cleaned`.
    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan;

    /// Bytes that the policy has besides the frame table.
    fn bytes(&self) -> u64 {
        0
    }
}

/// Which pages are evicted.
#[derive(Clone, Copy)]
pub struct EvictionKind {
    /// Name of the policy, as the knob takes it.
    pub name: &'static str,
    /// A description in a line.
    pub about: &'static str,
    /// Makes a policy for a cache of so many frames.
    pub make: fn(u32) -> Box<dyn Eviction>,
}

impl PartialEq for EvictionKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for EvictionKind {}

impl fmt::Debug for EvictionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
