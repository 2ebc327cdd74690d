//! A policy on a frame table alone, without an engine: for studies and for tests of policies.
//!
//! Owns: the free frames. Does not own: the policy, the page states: both are the engine's.
//! Invariants: evicts in the same order of steps as reclaim. All pages belong to one file, and are never held.

use afflux_frames::FrameId;

use super::{Admitted, Arrival, Eviction, EvictionKind, PageKey};
use crate::page::{DIRTY, PRESENT, PageIdentity, PageTable, UPTODATE};

/// The most pages that reclaim, too, scans for one batch.
const SCAN_MAX: u64 = 256;

/// A cache of pages without bytes.
pub struct Offline {
    pages: PageTable,
    policy: Box<dyn Eviction>,
    free: Vec<FrameId>,
    scanned: u64,
}

impl Offline {
    /// An empty cache of `frames` frames.
    pub fn new(kind: EvictionKind, frames: u32) -> Self {
        let free = (0..frames).rev().map(FrameId::new).collect();
        Self { pages: PageTable::new(frames), policy: (kind.make)(frames), free, scanned: 0 }
    }

    /// Whether a page can come without another one going.
    pub fn has_free_frame(&self) -> bool {
        !self.free.is_empty()
    }

    /// A page comes; returns its frame, or `None` if none is free.
    pub fn admit(&mut self, page: u64, why: Admitted) -> Option<FrameId> {
        let frame = self.free.pop()?;
        let dirty = if why == Admitted::Written { DIRTY } else { 0 };
        self.pages.occupy(frame, PageIdentity { file: 0, index: page }, PRESENT | UPTODATE | dirty);
        if why == Admitted::Ahead {
            self.pages.note_unread(frame);
        }
        self.policy.admitted(&self.pages, &[Arrival { frame, key: key(page), why }]);
        if why == Admitted::Demand {
            self.pages.touch(frame);
        }
        Some(frame)
    }

    /// The page is read.
    pub fn read(&self, frame: FrameId) {
        self.pages.touch(frame);
    }

    /// The page is written to.
    pub fn write(&self, frame: FrameId) {
        if self.pages.word(frame).has_any(DIRTY) {
            self.pages.touch_overwritten(frame);
            return;
        }
        self.pages.change(frame, 0, DIRTY);
        self.policy.dirtied(&self.pages, frame);
        self.pages.touch(frame);
    }

    /// Dirty pages are written back.
    pub fn clean(&self, frames: &[FrameId]) {
        for frame in frames {
            self.pages.change(*frame, DIRTY, 0);
        }
        self.policy.cleaned(&self.pages, &mut frames.iter().copied());
    }

    /// One search for up to `want` pages that may go; reports each page that goes. Returns the number of scanned pages.
    pub fn evict(&mut self, want: usize, mut gone: impl FnMut(u64)) -> u64 {
        let scan = self.policy.victims(&self.pages, want, SCAN_MAX);
        self.scanned += scan.scanned;
        for victim in scan.victims {
            self.policy.removed(&self.pages, &[victim.frame]);
            assert!(self.pages.try_detach_idle(victim.frame), "a victim that cannot go");
            let page = victim.identity.index;
            if victim.remember {
                self.policy.remember(&[key(page)]);
            }
            assert!(self.pages.try_release(victim.frame), "nobody holds it");
            self.free.push(victim.frame);
            gone(page);
        }
        scan.scanned
    }

    /// Pages looked at so far.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Pages read ahead that nobody has used yet.
    pub fn unread(&self) -> u64 {
        self.pages.unread.pages()
    }
}

fn key(page: u64) -> PageKey {
    PageKey { file: 0, page }
}

#[cfg(test)]
mod tests;
