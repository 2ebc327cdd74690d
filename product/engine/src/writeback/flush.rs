//! The flush of a round, and its effect on the pages that it covers.
//!
//! Owns: the flush that a round owes, the tags of written pages that no flush covers yet, the states of these pages
//! when a flush ends.
//! Does not own: the round (`round`), the end of a write (`complete`).
//! Invariants: a write that ends during a flush owes another. After a failed flush, pages that it covered are dirty
//! again, and the loss of those that are gone is reported in the same hold of the file's lock
//! (`a_loss_is_told_before_all_other_pages_are_dirty_again`).

use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::Operation;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::page::{DIRTY, FAILED, Sectors, WRITEBACK};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::devices::file::{FileInner, FileState};
use crate::dirty::force_charge;
use crate::trace::EngineEvent;
use crate::writeback::Writeback;

/// The most pages updated after a flush in one hold of the file's lock.
const PIECE_PAGES: u64 = 1024;
/// The most leaves of the index whose tags are cleared in one hold of the file's lock.
const UNMARK_LEAVES: u64 = 1024;

impl<P: Platform> Writeback<P> {
    /// Flushes the device for the file, if a write or an earlier flush that failed owes it.
    pub(super) async fn flush(self: &Arc<Self>, file: &Arc<FileInner>) -> Result<(), Error> {
        // Every write that ends from here on owes another.
        let (failed_before, failures) = {
            let mut state = lock(&file.state);
            if state.is_discarded() || !state.flushes.try_begin() {
                return Ok(());
            }
            (state.flushes.has_failed(), state.flushes.failures())
        };
        let result = self.call_flush(file, failures).await;
        self.flush_ended(file, failed_before, result).await
    }

    /// Fails, too, if more flushes of the file than `failures` have failed: the device may have dropped bytes then.
    pub(super) async fn call_flush(self: &Arc<Self>, file: &Arc<FileInner>, failures: u64) -> Result<(), DeviceError> {
        self.base.local().count(Counter::SyncRequests, 1);
        self.call(file, Operation::Sync).await?;
        lock(&file.state).flushes.failure_since(failures).map_or(Ok(()), Err)
    }

    /// A flush of the file has ended.
    pub(super) async fn flush_ended(
        &self,
        file: &Arc<FileInner>,
        failed_before: bool,
        result: Result<(), DeviceError>,
    ) -> Result<(), Error> {
        if file.device.note_write(result, failed_before) {
            self.base.trace_device(Some(file.device.id()), || EngineEvent::DeviceFailing { error: result.err() });
        }
        match result {
            Ok(()) => self.flushed(file).await,
            Err(error) => self.flush_failed(file, error).await,
        }
        let kept = {
            let mut state = lock(&file.state);
            // No page of it has to stay any more, and no caller waits for the answer.
            if state.is_discarded() {
                return Ok(());
            }
            file.settle(&mut state)
        };
        drop(kept);
        result.map_err(Error::Device)
    }

    /// A flush succeeded: the pages that it covered lose their tags. If a write ends meanwhile, its pages need a tag
    /// until the next flush. Then all remaining tags stay until that flush.
    async fn flushed(&self, file: &Arc<FileInner>) {
        let mut next = Some(0);
        while let Some(from) = next {
            {
                let mut state = lock(&file.state);
                if from == 0 && !state.is_discarded() {
                    state.flushes.forget_failure();
                }
                if state.is_discarded() || state.flushes.is_owed() {
                    return;
                }
                if from == 0 {
                    file.device.worklist().forget_unflushed(file.pages.slot);
                    file.keep_flushed(&mut state);
                }
                next = self.unmark_flushed(file, &state, from);
                // A page that went before its tag did was durable.
                state.flushes.evicted_are_durable();
            }
            if next.is_some() {
                self.base.pass().await;
            }
        }
    }

    /// Clears the tags of some pages that a flush covered, from a page on. Pages that had to stay until the flush may
    /// go again. Returns where to continue, if there may be more.
    fn unmark_flushed(&self, file: &FileInner, _: &FileState, from: u64) -> Option<u64> {
        let (cache, index) = (&file.cache, &file.pages.index);
        if file.device.limits().readable_before_flush {
            let leaves = cache.piece(UNMARK_LEAVES);
            cache.longest_hold.raise_to(leaves);
            return index.clear_tag(&cache.nodes, from, Tag::Unflushed, leaves);
        }
        let tagged = |page| index.next_tagged(&cache.nodes, page, Tag::Unflushed);
        let next = cache.visit_piece(PIECE_PAGES, from, tagged, |page| {
            index.set_tag(&cache.nodes, page, Tag::Unflushed, false);
            cache.frame_at(&file.pages, page).into_iter().for_each(|frame| cache.note_clean(frame));
        });
        cache.memory_queue.wake_all();
        next
    }

    /// A flush failed: data written since the last one may not be durable. Pages still cached become dirty again; if
    /// some are gone, unsynced data may have been lost. A page that the flush covered stays in the cache until it is
    /// dirty again (`redirtying`).
    async fn flush_failed(&self, file: &Arc<FileInner>, error: DeviceError) {
        let mut next = Some(0);
        while let Some(from) = next {
            {
                let mut state = lock(&file.state);
                if state.is_discarded() {
                    return;
                }
                if from == 0 {
                    self.base.local().count(Counter::WriteErrors, 1);
                    if state.failures.insert_error(error) {
                        file.device.failures.file_fails();
                    }
                    state.flushes.fails();
                    file.owe_flush(&mut state, self.base.now());
                }
                next = self.redirty(file, &mut state, from);
                // Not at the end only: between two pieces, a reader may find the device's old bytes.
                if state.flushes.take_evicted() {
                    self.base.devices.note_lost();
                }
                if next.is_none() {
                    state.flushes.end_redirtying();
                    file.requeue(&mut state, self.base.now());
                }
            }
            if next.is_some() {
                self.base.pass().await;
            }
        }
    }

    /// Makes some pages that the failed flush covered dirty again, from a page on. Returns where to continue, if there
    /// may be more.
    fn redirty(&self, file: &Arc<FileInner>, state: &mut FileState, from: u64) -> Option<u64> {
        let (nodes, index) = (&file.cache.nodes, &file.pages.index);
        let tagged = |page| index.next_tagged(nodes, page, Tag::Unflushed);
        file.cache.visit_piece(PIECE_PAGES, from, tagged, |page| {
            index.set_tag(nodes, page, Tag::Unflushed, false);
            self.redirty_page(file, state, page);
        })
    }

    fn redirty_page(&self, file: &Arc<FileInner>, state: &mut FileState, page: u64) {
        let cache = &file.cache;
        let Some(frame) = cache.frame_at(&file.pages, page) else { return };
        let in_file = file.size().saturating_sub(page * PAGE_BYTES).min(PAGE_BYTES) as usize;
        let doubtful = cache.pages.unflushed(frame).intersection(Sectors::touched(0..in_file));
        if doubtful.is_empty() {
            return;
        }
        let word = cache.pages.word(frame);
        if word.has_any(DIRTY | WRITEBACK) {
            cache.pages.set_dirty(frame, cache.pages.dirty(frame).union(doubtful));
            if !word.has(DIRTY) {
                // The request in flight may leave some sectors dirty: the next sync has to mark the page.
                file.tag_dirty(state, page, true);
                state.failures.add_pages(u64::from(!cache.pages.change(frame, 0, FAILED).has(FAILED)));
            }
            return;
        }
        cache.pages.set_dirty(frame, doubtful);
        cache.pages.change(frame, 0, DIRTY | FAILED);
        file.tag_dirty(state, page, true);
        state.failures.add_pages(1);
        cache.eviction.dirtied(&cache.pages, frame);
        self.base.local().count(Counter::PagesDirtied, 1);
        file.note_dirtied(state, || self.base.now());
        force_charge(&file.device, 1);
    }
}
