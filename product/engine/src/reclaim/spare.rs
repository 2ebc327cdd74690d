//! Frames taken and not yet used.
//!
//! Owns: these frames, until they hold pages.
//! Does not own: the wait for one (`reclaim`).
//! Invariants: none is lost: unused frames go back on drop.

use afflux_frames::{Effort, FrameId};

use crate::cache::Cache;
use crate::rare::Rare;

/// Frames taken and not yet used; unused ones go back on drop. A single frame needs no heap memory. Of several the
/// lowest is used first: neighbours in memory then are neighbours in the file, and a device reads or writes them as one
/// piece. The cache is borrowed: its count of references is one word for all writers.
pub(crate) struct SpareFrames<'a> {
    cache: &'a Cache,
    only: Option<FrameId>,
    /// The highest first.
    more: Vec<FrameId>,
}

impl<'a> SpareFrames<'a> {
    pub(crate) fn none(cache: &'a Cache) -> Self {
        Self { cache, only: None, more: Vec::new() }
    }

    /// Takes over another's frames.
    pub(crate) fn join(&mut self, mut other: Self) {
        if self.len() == 0 {
            std::mem::swap(self, &mut other);
        }
        self.more.extend(self.only.take());
        self.more.extend(other.only.take().into_iter().chain(other.more.drain(..)));
        self.more.sort_unstable_by(|one, other| other.cmp(one));
    }

    pub(crate) fn take(&mut self) -> Option<FrameId> {
        self.more.pop().or_else(|| self.only.take())
    }

    /// A frame for nodes of an index. Takes a free frame first, so that the frames taken for pages stay for pages.
    /// Without a free frame one of the taken frames serves.
    pub(crate) fn take_for_index(&mut self) -> Option<FrameId> {
        let free = || self.cache.frames.allocate(Effort::Normal);
        let found = if self.cache.rare.fails_allocation(Rare::NoFrame) { None } else { free() };
        found.or_else(|| self.take())
    }

    /// A copy will soon fill the next frame, if there is one: prefetches its memory meanwhile.
    pub(crate) fn expect_copy(&self) {
        if let Some(frame) = self.more.last().copied().or(self.only) {
            self.cache.expect_copy(frame);
        }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.only.is_some()) + self.more.len()
    }

    /// Adds free frames, up to `count` in all.
    pub(crate) fn grow(&mut self, count: usize, effort: Effort) {
        let lacking = count.saturating_sub(self.len()) as u32;
        let path = if matches!(effort, Effort::Normal) { Rare::NoFrame } else { Rare::NoFrameAhead };
        if lacking == 0 || self.cache.rare.fails_allocation(path) {
            return;
        }
        let Self { cache, only, more } = self;
        if count == 1 {
            // Mostly the frame is in the thread's own hand.
            *only = cache.frames.allocate(effort);
            return;
        }
        more.reserve(count - more.len());
        more.extend(only.take());
        cache.frames.allocate_bulk(lacking, effort, |frame| more.push(frame));
        more.sort_unstable_by(|one, other| other.cmp(one));
    }
}

impl Drop for SpareFrames<'_> {
    fn drop(&mut self) {
        if self.len() == 0 {
            return;
        }
        for frame in self.only.take().into_iter().chain(self.more.drain(..)) {
            self.cache.frames.free(frame);
        }
        self.cache.memory_queue.wake_all();
    }
}
