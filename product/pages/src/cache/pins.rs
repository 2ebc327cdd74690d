//! Pages shown to user code without a copy, and the limit on their number.
//!
//! Owns: guards on frames of both kinds, and the slices that they make safe; the slots that count guards and hold the
//! cache, so that threads that take guards seldom change the same word.
//! Does not own: waiting for pages (`reading`), the frames' own counts of guards (`page`), the steps of lent guards
//! (`lending::guard`) and their part of the limit (`lending`).
//! Invariants: a guarded frame's bytes do not change and the frame is not reused until the guard is dropped: writers go
//! to another frame. A guard's reference to its slot also counts the first page, so that one atomic change serves both.
//! A small limit is never passed. Otherwise each slot may pass it by [`SLACK_PAGES_MAX`], or a little more when several
//! threads take guards there at one instant.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::{FRAME_BYTES, FrameId};

use crate::cache::hit::InPage;
use crate::cache::lending::guard::{self, LentGuard};
use crate::cache::{FilePages, PageCache};
use crate::hazards::{HazardSlot, Hazards};

/// The part of the cache that guards may hold: a reader of the bytes decides when they go. Three quarters stay for
/// pages that can be evicted. A reply beyond that is copied.
const PINNED_PART: u64 = 4;

/// The bytes that a stamped arena did not store.
static ZEROS: [u8; FRAME_BYTES] = [0; FRAME_BYTES];

/// Bytes of a file straight from the page frames, stable until dropped.
// Numbers and pointers alone, and no address of it given away: so a guard that is taken and dropped in one slot stays
// in registers.
pub struct PinnedPages {
    cache: NonNull<PageCache>,
    holder: GuardKind,
    /// The only frame, unless the holder has others.
    frame: FrameId,
    start: u32,
    len: usize,
}

/// What guards the frames, and holds the cache.
#[derive(Clone, Copy)]
enum GuardKind {
    /// One frame, by announcement: the usual case.
    Slot(NonNull<HazardSlot>),
    /// One frame, by a count in its record. The pointer is a reference to a counting slot.
    Counted(NonNull<GuardSlot>),
    /// Any other number of frames.
    Many(NonNull<ManyPages>),
}

/// Frames that are guarded together.
struct ManyPages {
    slot: Arc<GuardSlot>,
    frames: Vec<FrameId>,
}

// SAFETY: the cache and the slots are shared by all threads. A guard of any kind may end on any thread.
unsafe impl Send for PinnedPages {}
// SAFETY: as above; a shared guard changes nothing.
unsafe impl Sync for PinnedPages {}

impl PinnedPages {
    /// Guards the pages of a range, which lies inside the file, if all of them are present and may be shown. `None`
    /// also if guards would then hold too much.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "what a call returns through memory is read back before it is there")]
    pub fn take(slots: &GuardSlots, hazards: &Arc<Hazards>, file: &FilePages, offset: u64, len: usize) -> Option<Self> {
        let (first, cache) = (InPage::first(offset, len), slots.cache());
        let (holder, frame) = if len == 0 || first.len < len {
            (GuardKind::Many(take_many(slots, hazards, file, offset, len)?), FrameId::new(0))
        } else if let Some(lent) = LentGuard::take(cache, hazards, file, first.page) {
            (GuardKind::Slot(lent.slot), lent.frame)
        } else {
            let (slot, frame) = take_counted(slots, hazards, file, first.page)?;
            (GuardKind::Counted(slot), frame)
        };
        Some(Self { cache: NonNull::from(&**cache), holder, frame, start: first.start as u32, len })
    }

    #[inline]
    fn cache(&self) -> &PageCache {
        // SAFETY: the holder holds the cache while `self` lives.
        unsafe { self.cache.as_ref() }
    }

    #[inline]
    fn frames(&self) -> &[FrameId] {
        match self.holder {
            // SAFETY: the frames live until `self` is dropped.
            GuardKind::Many(many) => unsafe { &many.as_ref().frames },
            _ => std::slice::from_ref(&self.frame),
        }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of pages.
    #[inline]
    pub fn count(&self) -> u64 {
        match self.holder {
            GuardKind::Many(_) => self.frames().len() as u64,
            _ => 1,
        }
    }

    /// The bytes as one slice, if they lie in one page: the quick form for a record. `None` for more pages, and where a
    /// stamped arena did not store all bytes.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        if matches!(self.holder, GuardKind::Many(_)) {
            return self.is_empty().then_some(&[]);
        }
        let (arena, start) = (&self.cache().frames, self.start as usize);
        (start + self.len <= arena.backed_bytes()).then(|| {
            let address = arena.address(self.frame).as_ptr().wrapping_add(start);
            // SAFETY: the guard holds the frame's memory mapped and unchanged while `self` lives, and the frame has
            // memory for the range.
            unsafe { std::slice::from_raw_parts(address, self.len) }
        })
    }

    /// The bytes, one slice a page, in the file's order. A page of a stamped arena is two slices: the stored bytes, and
    /// zeros.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let arena = &self.cache().frames;
        let kept = arena.backed_bytes();
        let mut frames = self.frames().iter().copied();
        let (mut start, mut left, mut zeros) = (self.start as usize, self.len, 0);
        std::iter::from_fn(move || {
            if zeros > 0 {
                return Some(&ZEROS[..std::mem::take(&mut zeros)]);
            }
            let frame = frames.next()?;
            let len = left.min(FRAME_BYTES - start);
            let here = len.min(kept.saturating_sub(start));
            let address = arena.address(frame).as_ptr().wrapping_add(start.min(kept));
            (start, left, zeros) = (0, left - len, len - here);
            // SAFETY: the guard holds the frame's memory mapped and unchanged while `self` lives, and the frame has
            // memory for the range.
            Some(unsafe { std::slice::from_raw_parts(address, here) })
        })
    }
}

/// The most pages that guards may hold.
fn guards_max(cache: &PageCache) -> u64 {
    cache.total_pages() / PINNED_PART
}

/// Guards one page by a count in its record. The slot is a reference, which the guard gives back.
#[inline(never)]
fn take_counted(
    slots: &GuardSlots,
    hazards: &Arc<Hazards>,
    file: &FilePages,
    page: u64,
) -> Option<(NonNull<GuardSlot>, FrameId)> {
    let guards_max = guards_max(slots.cache());
    slots.cache().lending.enlist(hazards, guards_max);
    let slot = slots.admit(GuardIndex::of(&**hazards), guards_max)?;
    let frame = guard(&slot.cache, file, page)?;
    slot.cache.pages.touch(frame);
    Some((NonNull::new(Arc::into_raw(slot).cast_mut())?, frame))
}

/// Guards any number of pages. A guard of none counts as one.
#[inline(never)]
fn take_many(
    slots: &GuardSlots,
    hazards: &Arc<Hazards>,
    file: &FilePages,
    offset: u64,
    len: usize,
) -> Option<NonNull<ManyPages>> {
    let first = InPage::first(offset, len);
    let count = if len == 0 { 0 } else { (first.start + len).div_ceil(FRAME_BYTES) };
    let pages = count.max(1) as u64;
    let slot = slots.admit_many(GuardIndex::of(&**hazards), pages, guards_max(slots.cache()))?;
    let mut frames = Vec::with_capacity(count);
    for page in first.page..first.page + count as u64 {
        let Some(frame) = guard(&slot.cache, file, page) else {
            frames.iter().for_each(|frame| slot.cache.unguard(*frame));
            slot.forget_more(pages - 1);
            return None;
        };
        frames.push(frame);
    }
    // A range that lacks a page was not used. Its pages that were read ahead stay protected until the reader comes
    // again.
    frames.iter().for_each(|frame| slot.cache.pages.touch(*frame));
    NonNull::new(Box::into_raw(Box::new(ManyPages { slot, frames })))
}

#[inline]
fn guard(cache: &PageCache, file: &FilePages, page: u64) -> Option<FrameId> {
    let frame = file.index.lookup(&cache.nodes, page)?;
    if !cache.pages.contains(frame) {
        return None;
    }
    if cache.pages.try_enter_guard(frame, file.identity(page)) {
        return Some(frame);
    }
    cache.unguard(frame);
    None
}

impl Drop for PinnedPages {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the holder ends once, and nothing of the guard is used after this.
        unsafe { end(self.cache, self.holder, self.frame) };
    }
}

/// Ends a guard. A call by value, so that no unwinding needs the guard in memory.
///
/// # Safety
/// The holder is of this cache and frame, and ends once.
#[inline(never)]
unsafe fn end(cache: NonNull<PageCache>, holder: GuardKind, frame: FrameId) {
    // SAFETY: as the caller says.
    unsafe {
        match holder {
            GuardKind::Slot(slot) => LentGuard { slot, frame }.end(cache),
            GuardKind::Counted(slot) => end_counted(slot, frame),
            GuardKind::Many(many) => end_many(many),
        }
    }
}

/// # Safety
/// The slot is of [`take_counted`], and is given back once.
#[inline(never)]
unsafe fn end_counted(slot: NonNull<GuardSlot>, frame: FrameId) {
    // SAFETY: the reference that `take_counted` kept.
    let slot = unsafe { Arc::from_raw(slot.as_ptr()) };
    slot.cache.unguard(frame);
}

/// # Safety
/// The pages are of [`take_many`], and are given back once.
#[inline(never)]
unsafe fn end_many(many: NonNull<ManyPages>) {
    // SAFETY: the memory that `take_many` kept.
    let many = unsafe { Box::from_raw(many.as_ptr()) };
    many.frames.iter().for_each(|frame| many.slot.cache.unguard(*frame));
    many.slot.forget_more((many.frames.len() as u64).saturating_sub(1));
}

const SLOTS: usize = 16;
/// A slot asks for the sum after it has grown by at most this: a power of two.
const SLACK_PAGES_MAX: u64 = 64;
/// The slack of all slots together is at most this part of the limit.
const SLACK_PART: u64 = 8;

/// One of the slots that hold the cache for guards.
#[repr(align(128))]
pub(crate) struct GuardSlot {
    pub(super) cache: Arc<PageCache>,
    /// Guarded pages, except for the first of each guard.
    more: AtomicU64,
}

impl GuardSlot {
    fn pages(self: &Arc<Self>) -> u64 {
        // One of the references belongs to the array of slots.
        Arc::strong_count(self) as u64 - 1 + self.more.load(Ordering::Relaxed)
    }

    /// Uncounts a guard's pages after the first.
    pub(super) fn forget_more(&self, pages: u64) {
        let before = self.more.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(before >= pages, "guards were given back that nobody took");
    }
}

/// The slots of one engine's guards.
pub struct GuardSlots([Arc<GuardSlot>; SLOTS]);

impl GuardSlots {
    /// Slots for guards on pages of this cache.
    pub fn new(cache: &Arc<PageCache>) -> Arc<Self> {
        let slot = |_| Arc::new(GuardSlot { cache: Arc::clone(cache), more: AtomicU64::new(0) });
        Arc::new(Self(std::array::from_fn(slot)))
    }

    /// The slot for a guard of one page, which the guard holds until it is dropped; `None` if guards would then hold
    /// too much.
    #[inline]
    pub(super) fn admit(&self, number: GuardIndex, pages_max: u64) -> Option<Arc<GuardSlot>> {
        let slot = Arc::clone(&self.0[number.0]);
        (!may_ask(&slot, 1, pages_max) || self.taken() <= pages_max).then_some(slot)
    }

    /// As [`GuardSlots::admit`], for several pages: the guard also gives back the pages after the first
    /// ([`GuardSlot::forget_more`]).
    pub(super) fn admit_many(&self, number: GuardIndex, pages: u64, pages_max: u64) -> Option<Arc<GuardSlot>> {
        let slot = Arc::clone(&self.0[number.0]);
        slot.more.fetch_add(pages - 1, Ordering::Relaxed);
        if may_ask(&slot, pages, pages_max) && self.taken() > pages_max {
            slot.forget_more(pages - 1);
            return None;
        }
        Some(slot)
    }

    #[inline]
    pub(super) fn cache(&self) -> &Arc<PageCache> {
        &self.0[0].cache
    }

    /// Pages under guards.
    #[cold]
    pub fn pages(&self) -> u64 {
        self.counted() + self.cache().lending.pages()
    }

    /// Pages that guards hold or may hold.
    #[cold]
    fn taken(&self) -> u64 {
        self.counted() + self.cache().lending.leased()
    }

    fn counted(&self) -> u64 {
        self.0.iter().map(GuardSlot::pages).sum()
    }
}

impl Drop for GuardSlots {
    fn drop(&mut self) {
        guard::keep(self.cache());
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GuardIndex(usize);

impl GuardIndex {
    /// The slot of a thread, chosen by the address of a value that only this thread has.
    #[inline]
    pub(crate) fn of<T>(own: &T) -> Self {
        // Any slot will do. The bits above a cache line's differ if threads' values lie apart.
        let address = std::ptr::from_ref(own) as usize;
        Self((address >> 7 ^ address >> 12) % SLOTS)
    }
}

/// Whether a slot that has just grown by some pages has passed a multiple of its slack.
#[inline]
fn may_ask(slot: &Arc<GuardSlot>, pages: u64, pages_max: u64) -> bool {
    let slack = slack_pages(pages_max);
    let after = slot.pages();
    after & !(slack - 1) != after.saturating_sub(pages) & !(slack - 1)
}

/// By how much a slot grows without asking for the sum: a power of two.
#[inline]
fn slack_pages(pages_max: u64) -> u64 {
    let share = pages_max / (SLACK_PART * SLOTS as u64);
    1 << share.clamp(1, SLACK_PAGES_MAX).ilog2()
}

#[cfg(test)]
mod tests;
