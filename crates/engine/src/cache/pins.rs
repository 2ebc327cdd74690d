//! Pages shown to user code without a copy.
//!
//! Owns: guards on frames, and the slices that they make safe.
//! Does not own: waiting for pages (`reading`), the limit on how much may be guarded (the knob).
//! Invariants: a guarded frame's bytes do not change and the frame is not reused until the guard is
//! dropped: writers go to another frame.

use std::sync::Arc;

use frames::{FRAME_BYTES, FrameId};

use super::guards::GuardPlace;
use super::hit::InPage;
use super::{Cache, FilePages};

/// What a stamped arena did not keep.
static ZEROS: [u8; FRAME_BYTES] = [0; FRAME_BYTES];

/// Bytes of a file straight from the page frames, stable until dropped.
pub struct PinnedPages {
    place: Arc<GuardPlace>,
    first: Option<FrameId>,
    /// Those after the first: mostly none, which takes no memory.
    more: Vec<FrameId>,
    start: usize,
    len: usize,
}

impl PinnedPages {
    /// Guards the pages of a range if all of them are there and may be shown; the range lies inside
    /// the file. Nothing also when guards would then hold more than `guards_max` pages in all.
    pub(crate) fn take(
        place: &Arc<GuardPlace>,
        file: &FilePages,
        (offset, len): (u64, usize),
        guards_max: u64,
    ) -> Option<Self> {
        let first = InPage::first(offset, len);
        let count = (first.start + len).div_ceil(FRAME_BYTES);
        let cache = &place.cache;
        if !cache.guards.admit(place.number, count as u64, guards_max) {
            return None;
        }
        let more = Vec::with_capacity(count.saturating_sub(1));
        let mut pages = Self { place: Arc::clone(place), first: None, more, start: first.start, len };
        for page in first.page..first.page + count as u64 {
            let Some(frame) = guard(cache, file, page) else {
                // Those not taken are given back here, the others when `pages` is dropped.
                cache.forget_guards(place.number, (count - pages.frames().count()) as u64);
                return None;
            };
            pages.push(frame);
        }
        Some(pages)
    }

    fn push(&mut self, frame: FrameId) {
        if self.first.is_none() {
            self.first = Some(frame);
        } else {
            self.more.push(frame);
        }
    }

    fn frames(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.first.into_iter().chain(self.more.iter().copied())
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, a slice a page, in the file's order. From a stamped arena a page is two slices: what
    /// was kept of it, and zeros.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let arena = &self.place.cache.frames;
        let kept = arena.kept_bytes();
        let (mut frames, mut start, mut left, mut zeros) = (self.frames(), self.start, self.len, 0);
        std::iter::from_fn(move || {
            if zeros > 0 {
                return Some(&ZEROS[..std::mem::take(&mut zeros)]);
            }
            let frame = frames.next()?;
            let len = left.min(FRAME_BYTES - start);
            let here = len.min(kept.saturating_sub(start));
            let address = arena.address(frame).as_ptr().wrapping_add(start.min(kept));
            (start, left, zeros) = (0, left - len, len - here);
            // SAFETY: the guard keeps the frame's memory in place and unchanged while `self` lives,
            // and the frame has memory for the range.
            Some(unsafe { std::slice::from_raw_parts(address, here) })
        })
    }
}

fn guard(cache: &Cache, file: &FilePages, page: u64) -> Option<FrameId> {
    let frame = file.index.lookup(&cache.nodes, page)?;
    if !cache.pages.contains(frame) {
        return None;
    }
    if cache.pages.enter_guard(frame, file.identity(page)) {
        cache.pages.touch(frame);
        return Some(frame);
    }
    cache.unguard(frame);
    None
}

impl Drop for PinnedPages {
    fn drop(&mut self) {
        let cache = &self.place.cache;
        let mut count = 0;
        for frame in self.frames() {
            cache.unguard(frame);
            count += 1;
        }
        cache.forget_guards(self.place.number, count);
    }
}
