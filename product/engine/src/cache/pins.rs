//! Pages shown to user code without a copy.
//!
//! Owns: guards on frames, and the slices that they make safe.
//! Does not own: waiting for pages (`reading`), the limit on how much may be guarded (the knob).
//! Invariants: a guarded frame's bytes do not change and the frame is not reused until the guard is
//! dropped: writers go to another frame.

use std::sync::Arc;

use afflux_frames::{FRAME_BYTES, FrameId};

use super::guards::{GuardPlace, GuardPlaces, PlaceNumber};
use super::hit::InPage;
use super::{Cache, FilePages};

/// The bytes that a stamped arena did not keep.
static ZEROS: [u8; FRAME_BYTES] = [0; FRAME_BYTES];

/// Bytes of a file straight from the page frames, stable until dropped.
pub struct PinnedPages {
    place: Arc<GuardPlace>,
    held: PinnedFrames,
    start: usize,
    len: usize,
}

enum PinnedFrames {
    /// One frame: the usual case, without memory of its own.
    One(FrameId),
    /// Any other number of frames.
    Some(Box<[FrameId]>),
}

impl PinnedFrames {
    #[inline]
    fn frames(&self) -> &[FrameId] {
        match self {
            Self::One(frame) => std::slice::from_ref(frame),
            Self::Some(frames) => frames,
        }
    }
}

impl PinnedPages {
    /// Guards the pages of a range, which lies inside the file, if all of them are present and may be shown. `None`
    /// also if guards would then hold more than `guards_max` pages in all.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "what a call returns through memory is read back before it is there")]
    pub(crate) fn take(
        places: &GuardPlaces,
        number: PlaceNumber,
        file: &FilePages,
        (offset, len): (u64, usize),
        guards_max: u64,
    ) -> Option<Self> {
        let first = InPage::first(offset, len);
        if len == 0 || first.len < len {
            return Self::take_some(places, number, file, (offset, len), guards_max);
        }
        let place = places.admit(number, guards_max)?;
        let frame = guard(&place.cache, file, first.page)?;
        place.cache.pages.touch(frame);
        Some(Self { place, held: PinnedFrames::One(frame), start: first.start, len })
    }

    /// [`PinnedPages::take`] for any number of pages. A guard of none counts as one.
    #[inline(never)]
    fn take_some(
        places: &GuardPlaces,
        number: PlaceNumber,
        file: &FilePages,
        (offset, len): (u64, usize),
        guards_max: u64,
    ) -> Option<Self> {
        let first = InPage::first(offset, len);
        let count = if len == 0 { 0 } else { (first.start + len).div_ceil(FRAME_BYTES) };
        let place = places.admit_many(number, count.max(1) as u64, guards_max)?;
        let mut frames = Vec::with_capacity(count);
        for page in first.page..first.page + count as u64 {
            let Some(frame) = guard(&place.cache, file, page) else {
                frames.iter().for_each(|frame| place.cache.unguard(*frame));
                place.forget_more(count as u64 - 1);
                return None;
            };
            frames.push(frame);
        }
        // A range that lacks a page was not used. Its pages that were read ahead stay protected until the reader comes
        // again.
        frames.iter().for_each(|frame| place.cache.pages.touch(*frame));
        Some(Self { place, held: PinnedFrames::Some(frames.into()), start: first.start, len })
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes as one slice, if they lie in one page: the quick way to a record. `None` for more pages, and where a
    /// stamped arena did not keep all bytes.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        let arena = &self.place.cache.frames;
        match self.held {
            PinnedFrames::One(frame) if self.start + self.len <= arena.kept_bytes() => {
                let address = arena.address(frame).as_ptr().wrapping_add(self.start);
                // SAFETY: the guard keeps the frame's memory in place and unchanged while `self` lives,
                // and the frame has memory for the range.
                Some(unsafe { std::slice::from_raw_parts(address, self.len) })
            }
            PinnedFrames::Some(ref frames) if frames.is_empty() => Some(&[]),
            _ => None,
        }
    }

    /// The bytes, one slice a page, in the file's order. A page of a stamped arena is two slices: the kept bytes, and
    /// zeros.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let arena = &self.place.cache.frames;
        let kept = arena.kept_bytes();
        let mut frames = self.held.frames().iter().copied();
        let (mut start, mut left, mut zeros) = (self.start, self.len, 0);
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

impl GuardPlace {
    /// Releases the pages of a guard.
    #[inline(never)]
    fn release_frames(&self, frames: &[FrameId]) {
        frames.iter().for_each(|frame| self.cache.unguard(*frame));
        if frames.len() > 1 {
            self.forget_more(frames.len() as u64 - 1);
        }
    }
}

#[inline]
fn guard(cache: &Cache, file: &FilePages, page: u64) -> Option<FrameId> {
    let frame = file.index.lookup(&cache.nodes, page)?;
    if !cache.pages.contains(frame) {
        return None;
    }
    if cache.pages.enter_guard(frame, file.identity(page)) {
        return Some(frame);
    }
    cache.unguard(frame);
    None
}

impl Drop for PinnedPages {
    #[inline]
    fn drop(&mut self) {
        match &self.held {
            PinnedFrames::One(frame) => self.place.cache.unguard(*frame),
            PinnedFrames::Some(frames) => self.place.release_frames(frames),
        }
    }
}
