//! Frames taken and not yet used.
//!
//! Owns: these frames, until they hold pages.
//! Does not own: the wait for one (`reclaim`).
//! Invariants: none is lost: unused frames go back on drop.

use afflux_frames::{Effort, FrameId};
use afflux_pages::cache::PageCache;
use afflux_pages::rare::Rare;
use smallvec::SmallVec;

/// Frames taken and not yet used; unused ones go back on drop. A single frame needs no heap memory. Of several the
/// lowest is used first: neighbours in memory then are neighbours in the file, and a device reads or writes them as one
/// piece. The cache is borrowed: its count of references is one word for all writers.
pub(crate) struct SpareFrames<'a> {
    cache: &'a PageCache,
    /// The highest first.
    frames: SmallVec<[FrameId; 1]>,
}

impl<'a> SpareFrames<'a> {
    pub(crate) fn none(cache: &'a PageCache) -> Self {
        Self { cache, frames: SmallVec::new() }
    }

    /// Takes over another's frames.
    pub(crate) fn join(&mut self, mut other: Self) {
        if self.len() == 0 {
            std::mem::swap(self, &mut other);
        }
        self.frames.append(&mut other.frames);
        self.frames.sort_unstable_by(|one, other| other.cmp(one));
    }

    pub(crate) fn take(&mut self) -> Option<FrameId> {
        self.frames.pop()
    }

    /// A frame for nodes of an index. Takes a free frame first, so that the frames taken for pages stay for pages.
    /// Without a free frame one of the taken frames serves.
    pub(crate) fn take_for_index(&mut self) -> Option<FrameId> {
        let free = || self.cache.frames.allocate(Effort::Normal);
        let found = if self.cache.rare.must_fail_allocation(Rare::NoFrame) { None } else { free() };
        found.or_else(|| self.take())
    }

    /// A copy will soon fill the next frame, if there is one: prefetches its memory meanwhile.
    pub(crate) fn expect_copy(&self) {
        if let Some(frame) = self.frames.last() {
            self.cache.expect_copy(*frame);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Adds free frames, up to `count` in all.
    pub(crate) fn grow(&mut self, count: usize, effort: Effort) {
        let lacking = count.saturating_sub(self.len()) as u32;
        let path = if matches!(effort, Effort::Normal) { Rare::NoFrame } else { Rare::NoFrameAhead };
        if lacking == 0 || self.cache.rare.must_fail_allocation(path) {
            return;
        }
        let Self { cache, frames } = self;
        if count == 1 {
            // Mostly the frame is in the thread's own hand.
            frames.extend(cache.frames.allocate(effort));
            return;
        }
        frames.reserve(lacking as usize);
        cache.frames.allocate_bulk(lacking, effort, |frame| frames.push(frame));
        frames.sort_unstable_by(|one, other| other.cmp(one));
    }
}

impl Drop for SpareFrames<'_> {
    fn drop(&mut self) {
        if self.len() == 0 {
            return;
        }
        for frame in self.frames.drain(..) {
            self.cache.frames.free(frame);
        }
        self.cache.memory_queue.wake_all();
    }
}
