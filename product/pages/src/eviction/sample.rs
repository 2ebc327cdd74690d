//! The sampled pages: their numbers, and which of them the cache holds in which frame.
//!
//! Owns: the table, the entry of a page in it by a hash of its key.
//! Does not own: what miniatures know of a page (`miniature`), the uses of a frame (`page`).
//! Invariants: its size is fixed. A number stays with its page while a miniature knows the page. A hit costs nothing:
//! the uses of a page are read from its frame's record, some time later. The frame may hold another page by then; if
//! that is seen too late, one use is counted wrong.

use afflux_frames::FrameId;

use crate::page::{PageIdentity, PageTable};

/// Pages of a bucket.
const WAYS: usize = 16;
/// Pages of the sample for each frame of a miniature: two miniatures hold pages and remember others, and not all the
/// same.
const PAGES_A_FRAME: usize = 4;
const NO_FRAME: u32 = u32::MAX;
/// With so many uses in its record, a further use of a page shows.
const USES_SHOWN: u8 = 3;

/// The frame that holds a page, as far as is known.
#[derive(Clone, Copy)]
struct SampleEntry {
    frame: u32,
    file: u32,
    index: u32,
    /// Uses in the frame's record when it was looked at last.
    uses: u8,
}

pub(super) struct Sample {
    /// The page of each number; 0 if there is none.
    hashes: Box<[u32]>,
    entries: Box<[SampleEntry]>,
    /// The next number to look at.
    hand: usize,
}

impl Sample {
    /// A sample for miniatures of `frames` frames.
    pub(super) fn new(frames: u32) -> Self {
        let pages = (frames as usize * PAGES_A_FRAME).next_multiple_of(WAYS);
        let nowhere = SampleEntry { frame: NO_FRAME, file: 0, index: 0, uses: 0 };
        Self { hashes: vec![0; pages].into(), entries: vec![nowhere; pages].into(), hand: 0 }
    }

    /// The most pages that have a number.
    pub(super) fn pages(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&*self.hashes) + size_of_val(&*self.entries)) as u64
    }

    /// The number of a page. A new page takes the number of a page that is in no frame and may be forgotten. None if
    /// its bucket has no such page.
    pub(super) fn number(&mut self, hash: u32, may_forget: impl Fn(u16) -> bool) -> Option<u16> {
        let hash = hash.max(1);
        let buckets = (self.pages() / WAYS) as u64;
        let first = ((u64::from(hash) * buckets) >> 32) as usize * WAYS;
        let mut bucket = first..first + WAYS;
        let found = bucket.clone().find(|at| self.hashes[*at] == hash).or_else(|| {
            bucket.find(|at| self.hashes[*at] == 0 || self.entries[*at].frame == NO_FRAME && may_forget(*at as u16))
        })?;
        if self.hashes[found] != hash {
            self.hashes[found] = hash;
            self.entries[found].frame = NO_FRAME;
        }
        Some(found as u16)
    }

    /// The page is in this frame from now on, with as many uses as its record has once the page was used for what it
    /// came.
    pub(super) fn put(&mut self, number: u16, frame: FrameId, pages: &PageTable, uses: u8) {
        let PageIdentity { file, index } = pages.identity(frame);
        self.entries[usize::from(number)] = SampleEntry { frame: frame.raw(), file, index: index as u32, uses };
    }

    /// Looks at the next sampled page; returns its number if it was used since the last look.
    pub(super) fn look(&mut self, pages: &PageTable) -> Option<u16> {
        let at = self.hand;
        self.hand = (at + 1) % self.pages();
        let entry = &mut self.entries[at];
        if entry.frame == NO_FRAME {
            return None;
        }
        let frame = FrameId::new(entry.frame);
        let PageIdentity { file, index } = pages.identity(frame);
        if (file, index as u32) != (entry.file, entry.index) {
            entry.frame = NO_FRAME;
            return None;
        }
        let uses = pages.uses(frame);
        if uses == 0 || pages.is_unread(frame) {
            // Its reader has yet to use it for what it came.
            return None;
        }
        // Of hits that the policy took away, one at least is missing in the number.
        let before = entry.uses.saturating_sub(u8::from(pages.take_hits_mark(frame)));
        // A record counts four uses. So that the next one shows, one is taken away.
        let is_full = uses > USES_SHOWN && pages.try_drop_hit(frame) && pages.take_hits_mark(frame);
        entry.uses = if is_full { USES_SHOWN } else { uses };
        (uses > before).then_some(at as u16)
    }
}

#[cfg(test)]
mod tests;
