//! How a file enters its device's lists.
//!
//! Owns: when a file is listed and where, the file's marks about its lists.
//! Does not own: the lists (`worklist`), which file is next (`policy`, `writeback`).
//! Invariants: a file is at most once in each list. Every function takes the state that the file's lock guards.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_device::platform::Nanos;
use afflux_pages::cache::nodes::Tag;

use super::file::{FileInner, FileState};
use super::ready::{ReadyEntry, Size};

impl FileInner {
    /// A page has become dirty; it was charged. Few of many pages read the clock.
    pub(crate) fn note_dirtied(self: &Arc<Self>, state: &mut FileState, now: impl Fn() -> Nanos) {
        state.dirty_pages += 1;
        if state.failures.is_unwritable() {
            self.note_failed(state);
        }
        if state.dirty_pages == 1 {
            state.marks.dirtied_at = now();
            self.unclean.store(true, Ordering::Release);
            self.device.worklist.keep(self.pages.slot, Arc::clone(self));
        }
        if !state.marks.queued && !state.is_held() && state.waiting_pages() > state.withheld.pages() {
            state.marks.queued = true;
            // The file had its slice: earlier dirty pages are in flight, or will be tried again.
            state.marks.dirtied_at = now();
            if let Some(idle) = self.device.in_flight.allowed().idle {
                state.watch.wakes(state.marks.dirtied_at, idle.look_ns);
            }
            self.queue_dirty(state);
        } else if state.waiting_pages().is_power_of_two() && state.marks.position.is_outgrown(state.waiting_pages()) {
            self.grow_queued(state);
        }
    }

    fn entry(self: &Arc<Self>, state: &FileState) -> ReadyEntry<Self> {
        let size = Size::of(state.waiting_pages());
        let (hot, look_at) = (state.watch.is_hot(), state.watch.look_at());
        ReadyEntry {
            file: Arc::downgrade(self),
            slot: self.pages.slot,
            dirtied_at: state.marks.dirtied_at,
            size,
            hot,
            look_at,
        }
    }

    /// The file is listed, or has its slice, and has twice as many dirty pages as before.
    fn grow_queued(&self, state: &mut FileState) {
        let grown = self.device.worklist.grow(state.marks.position, self.pages.slot, state.waiting_pages());
        state.marks.position = grown.unwrap_or(state.marks.position);
    }

    /// Lists a file that has had no slice since it became dirty.
    pub(crate) fn queue_dirty(self: &Arc<Self>, state: &mut FileState) {
        state.marks.position = self.device.worklist.list_dirty(self.entry(state));
    }

    /// Lists a file that had its slice and has more.
    pub(crate) fn queue_more(self: &Arc<Self>, state: &mut FileState) {
        state.marks.position = self.device.worklist.list_more(self.entry(state));
    }

    /// Lists a file that a sync waits for, once; the slice clears the mark.
    pub(crate) fn queue_sync(self: &Arc<Self>, state: &mut FileState) {
        if !std::mem::replace(&mut state.marks.sync_queued, true) {
            self.device.worklist.list_sync(Arc::downgrade(self));
        }
    }

    /// As [`FileInner::queue_sync`], with the slice at `at` or later.
    pub(crate) fn queue_sync_later(self: &Arc<Self>, state: &mut FileState, at: Nanos) {
        if !std::mem::replace(&mut state.marks.sync_queued, true) {
            self.device.worklist.list_sync_later(Arc::downgrade(self), at);
        }
    }

    /// Puts a file with dirty pages back in a list, unless it is in one or held. The end of the hold does it then.
    pub(crate) fn requeue(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        if self.try_mark_queued(state, now) {
            self.queue_more(state);
            self.device.flusher().raise();
        }
    }

    /// Whether the caller has to list the file among those that may be written.
    pub(crate) fn try_mark_queued(self: &Arc<Self>, state: &mut FileState, now: Nanos) -> bool {
        if state.is_held() {
            return false;
        }
        if self.has_tagged(Tag::ToWrite) {
            self.queue_sync(state);
        }
        if !self.has_tagged(Tag::Dirty) {
            return false;
        }
        if let Some(until) = state.failures.backs_off(now) {
            self.wake_flusher_at(state, until);
            return false;
        }
        !std::mem::replace(&mut state.marks.queued, true)
    }

    /// Makes the flusher come back at `at`, unless it will come back anyway.
    pub(crate) fn wake_flusher_at(self: &Arc<Self>, state: &mut FileState, at: Nanos) {
        if !state.marks.retry_queued {
            state.marks.retry_queued = true;
            self.device.worklist.list_retry(Arc::downgrade(self), at);
        }
    }
}
