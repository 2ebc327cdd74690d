//! Which pages of a file the device does not have yet.
//!
//! Owns: the search for the next run of them.
//! Does not own: the states of pages (`page`).
//! Invariants: a page counts from the acknowledged write until the device has completed the write of it, also while it
//! is written or if that failed. The lock is held for a bounded number of pages.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::platform::Platform;
use afflux_pages::page::{DIRTY, FAILED, PRIOR, WRITEBACK};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::Writeback;
use crate::devices::file::FileInner;

/// The most pages looked at in one hold of the file's lock.
const LOOK_PAGES: u64 = 1024;

/// A search under way.
struct Search {
    /// The next page to look at.
    next: u64,
    /// The run found so far, in pages.
    run: Option<Range<u64>>,
}

impl<P: Platform> Writeback<P> {
    /// [`Engine::unwritten`](crate::Engine::unwritten).
    pub(crate) async fn unwritten(&self, file: &Arc<FileInner>, from: u64) -> Option<Range<u64>> {
        let mut search = Search { next: from / PAGE_BYTES, run: None };
        while !search.look(file) {
            self.base.pass().await;
        }
        search.run.map(|run| run.start * PAGE_BYTES..run.end * PAGE_BYTES)
    }
}

impl Search {
    /// Looks at some pages. Whether the search has ended.
    fn look(&mut self, file: &FileInner) -> bool {
        let (_state, cache) = (lock(&file.state), &file.cache);
        for looked in 0..cache.piece(LOOK_PAGES) {
            cache.longest_hold.raise_to(looked + 1);
            let Some(page) = file.pages.index.next_present(&cache.nodes, self.next) else { return true };
            if self.run.as_ref().is_some_and(|run| run.end != page) {
                return true;
            }
            let frame = cache.frame_at(&file.pages, page);
            let unwritten =
                frame.is_some_and(|frame| cache.pages.word(frame).has_any(DIRTY | WRITEBACK | PRIOR | FAILED));
            match &mut self.run {
                Some(_) if !unwritten => return true,
                Some(run) => run.end = page + 1,
                None if unwritten => self.run = Some(page..page + 1),
                None => {}
            }
            self.next = page + 1;
        }
        false
    }
}
