//! Changes of a file's shape: size and holes, and forgetting it.
//!
//! Owns: truncation and extension, punched holes, ranges that are replaced on the device, discarding a file, taking
//! over a size that another program gave the host's file.
//! Does not own: the hold that stops submission (`writeback::flusher`), the host's part (`Device`).
//! Invariants: one change of shape a file at a time, as a separate task, so that a caller that goes away leaves none
//! half done. Pages go in pieces, and other tasks run in between. Submission stops, and requests in flight end, before
//! the device is called: so no late write brings bytes back. The device changes first, the cache after it; an error
//! leaves both as they were. A caller that is refused because the device hangs has one more outcome: a change already
//! requested is made when the device goes on.

use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::Operation;
use afflux_frames::{Effort, FRAME_BYTES, FrameId};
use afflux_pages::cache::hit::InPage;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::page::{DETACHED, DIRTY, FAILED, PRESENT, SECTOR_BYTES, Sectors, UPTODATE, WRITER};
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};

use crate::base::Base;
use crate::devices::file::{FileInner, FileState};
use crate::dirty::uncharge;
use crate::reclaim::SpareFrames;
use crate::recovery::slots::{Intent, PersistedFile};
use crate::writeback::Writeback;
use crate::writing::Writing;

/// Time before another check whether a copy into a page has ended.
const COPY_NS: u64 = 50_000;

/// The most pages removed in one hold of the file's lock.
const DROP_PAGES: u64 = 1024;

/// The most bytes of a hole that are written as zeros where the device cannot punch it. A longer hole is refused.
const ZEROS_BYTES_MAX: u64 = 64 << 20;

enum Shape {
    Size(u64),
    Hole(Range<u64>),
    Replaced(Range<u64>, DeviceChange),
}

/// A change of the device's bytes that no request makes. Its result: whether it was made.
pub(crate) type DeviceChange = Pin<Box<dyn Future<Output = bool> + Send>>;

pub(crate) struct Reshaping<P: Platform> {
    base: Base<P>,
    writeback: Arc<Writeback<P>>,
    writing: Arc<Writing<P>>,
}

impl<P: Platform> Reshaping<P> {
    pub(crate) fn new(base: Base<P>, writeback: Arc<Writeback<P>>, writing: Arc<Writing<P>>) -> Arc<Self> {
        Arc::new(Self { base, writeback, writing })
    }

    /// [`Engine::set_size`](crate::Engine::set_size).
    pub(crate) async fn set_size(self: &Arc<Self>, file: &Arc<FileInner>, size: u64) -> Result<(), Error> {
        let max = file.bytes_max;
        // A file that is already larger on the host may shrink.
        if size > max && size > file.size() {
            return Err(Error::OutOfRange { offset: size, len: 0, max });
        }
        if self.has_shape(file, size) {
            return Ok(());
        }
        self.reshape(file, Shape::Size(size)).await
    }

    /// [`Engine::punch`](crate::Engine::punch).
    pub(crate) async fn punch(self: &Arc<Self>, file: &Arc<FileInner>, range: Range<u64>) -> Result<(), Error> {
        if range.start >= range.end.min(file.size()) {
            return Ok(());
        }
        self.reshape(file, Shape::Hole(range)).await
    }

    /// [`Engine::replace_range`](crate::Engine::replace_range).
    pub(crate) async fn replace_range(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: Range<u64>,
        change: DeviceChange,
    ) -> Result<(), Error> {
        let max = file.bytes_max;
        if range.end > max {
            return Err(Error::OutOfRange { offset: range.start, len: range.end - range.start, max });
        }
        self.reshape(file, Shape::Replaced(range, change)).await
    }

    /// The engine stores nothing for a later process. The caller has written the range's dirty pages. So after a kill
    /// the range has the bytes that the device has: those before the change, those after it, or a mixture.
    async fn replace_alone(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: Range<u64>,
        change: DeviceChange,
        refused: &AtomicBool,
    ) -> Result<(), Error> {
        let _hold = self.hold(file, refused).await?;
        self.extend_device(file).await?;
        if !change.await {
            return Ok(());
        }
        {
            let mut state = lock(&file.state);
            state.host.note_change();
            state.host.reaches(range.end);
            file.owe_flush(&mut state, self.base.now());
        }
        self.drop_pages(file, FileInner::pages_of(&range)).await;
        let settled = {
            let mut state = lock(&file.state);
            file.keep_size(&mut state, file.size().max(range.end));
            file.pages.size.fetch_max(range.end, Ordering::AcqRel);
            file.settle(&mut state)
        };
        drop(settled);
        Ok(())
    }

    /// Runs with exclusive access to the file's shape, so that the size does not shrink meanwhile: written zeros must
    /// not make the file larger again.
    async fn punch_alone(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: Range<u64>,
        refused: &AtomicBool,
    ) -> Result<(), Error> {
        let range = range.start..range.end.min(file.size());
        let whole = range.start.next_multiple_of(PAGE_BYTES)..range.end / PAGE_BYTES * PAGE_BYTES;
        if whole.start >= whole.end {
            return self.write_zeros(file, range, refused).await;
        }
        match self.punch_pages(file, whole.clone(), refused).await {
            Ok(()) => {}
            // Before anything has changed.
            Err(Error::Device(DeviceError::Unsupported)) if whole.end - whole.start <= ZEROS_BYTES_MAX => {
                self.write_zeros(file, whole.clone(), refused).await?;
            }
            Err(error) => return Err(error),
        }
        self.write_zeros(file, range.start..whole.start, refused).await?;
        self.write_zeros(file, whole.end..range.end, refused).await
    }

    async fn punch_pages(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: Range<u64>,
        refused: &AtomicBool,
    ) -> Result<(), Error> {
        let _hold = self.hold(file, refused).await?;
        self.extend_device(file).await?;
        let operation = Operation::Punch { offset: range.start, len: range.end - range.start };
        self.ask(file, &Intent::Hole(range.clone()), operation).await?;
        {
            let mut state = lock(&file.state);
            state.host.note_change();
            file.owe_flush(&mut state, self.base.now());
        }
        self.drop_pages(file, FileInner::pages_of(&range)).await;
        let settled = file.settle(&mut lock(&file.state));
        file.persisted.iter().for_each(PersistedFile::end);
        drop(settled);
        Ok(())
    }

    async fn write_zeros(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: Range<u64>,
        refused: &AtomicBool,
    ) -> Result<(), Error> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut from = range.start;
        while from < range.end {
            goes_on(refused)?;
            let len = (range.end - from).min(ZEROS.len() as u64);
            self.writing.write(file, None, from, &ZEROS[..len as usize]).await?;
            from += len;
            self.base.pass().await;
        }
        Ok(())
    }

    fn has_shape(&self, file: &FileInner, size: u64) -> bool {
        let state = lock(&file.state);
        file.size() == size && state.host.size() == size && state.is_clean() && !state.is_held()
    }

    async fn reshape(self: &Arc<Self>, file: &Arc<FileInner>, shape: Shape) -> Result<(), Error> {
        let hang = &file.device.hang();
        hang.takes_work()?;
        let (answer, refused) = (Answer::new(), Arc::new(AtomicBool::new(false)));
        let (reshaping, inner, told) = (Arc::clone(self), Arc::clone(file), Arc::clone(&answer));
        let was_refused = Arc::clone(&refused);
        inner.reshape_begins();
        self.base.platform.spawn("reshape", async move {
            let result = reshaping.reshape_alone(&inner, shape, &was_refused).await;
            inner.reshape_ends();
            told.give(result);
        });
        // The task stays. It does not call the device any more, unless it has done so already.
        let result = hang.unless_refused(pin!(answer.wait())).await;
        if !answer.is_given() {
            refused.store(true, Ordering::Relaxed);
        }
        result
    }

    async fn reshape_alone(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        shape: Shape,
        refused: &AtomicBool,
    ) -> Result<(), Error> {
        file.reshaping.take(1).await;
        let _turn = ReshapeGuard(file);
        goes_on(refused)?;
        match shape {
            Shape::Size(size) => {
                let _hold = self.hold(file, refused).await?;
                self.ask(file, &Intent::Size(size), Operation::SetSize { size }).await?;
                self.base.rare_yield().await;
                self.cut(file, size).await;
                Ok(())
            }
            Shape::Hole(range) => self.punch_alone(file, range, refused).await,
            Shape::Replaced(range, change) => self.replace_alone(file, range, change, refused).await,
        }
    }

    /// Stops submission, unless the file or the caller of the change has gone meanwhile.
    async fn hold(&self, file: &Arc<FileInner>, refused: &AtomicBool) -> Result<impl Sized, Error> {
        let hold = self.writeback.hold(file).await;
        if lock(&file.state).is_discarded() {
            return Err(Error::Discarded);
        }
        goes_on(refused)?;
        Ok(hold)
    }

    /// Asks the device for a change of shape. The intent is stored first: after a kill, a later process carries the
    /// change out. It stays until the cache has followed.
    async fn ask(self: &Arc<Self>, file: &Arc<FileInner>, intent: &Intent, operation: Operation) -> Result<(), Error> {
        file.persisted.iter().for_each(|persisted| persisted.begin(intent));
        let result = self.writeback.call(file, operation).await;
        if result.is_err() {
            file.persisted.iter().for_each(PersistedFile::end);
        }
        Ok(result?)
    }

    /// Passes the file's size to the device before dirty pages are dropped: the last of them would have done so.
    async fn extend_device(self: &Arc<Self>, file: &Arc<FileInner>) -> Result<(), Error> {
        let size = file.size();
        if size > lock(&file.state).host.size() {
            self.writeback.call(file, Operation::SetSize { size }).await?;
            let mut state = lock(&file.state);
            state.host.reaches(size);
            state.host.note_change();
            file.owe_flush(&mut state, self.base.now());
        }
        Ok(())
    }

    /// The cache's part of a new size, after the device's. Writers that would need the lock wait until it is done, so
    /// their later writes are not cut.
    async fn cut(self: &Arc<Self>, file: &Arc<FileInner>, size: u64) {
        // Stored first, so that overwrites that begin from here on see the new size.
        let before = {
            let mut state = lock(&file.state);
            state.host.set_cutting(true);
            state.host.note_change();
            state.host.set_size(size);
            file.owe_flush(&mut state, self.base.now());
            file.keep_size(&mut state, size);
            file.pages.size.swap(size, Ordering::AcqRel)
        };
        while size < before && !self.try_cut_tail(file, size) {
            // A writer is in the middle of a copy into the last page.
            self.base.sleep_until(self.base.now().after(COPY_NS)).await;
        }
        if size < before {
            self.drop_pages(file, size.div_ceil(PAGE_BYTES)..u64::MAX).await;
        }
        let persisted = {
            let mut state = lock(&file.state);
            // Before later writers go on: a later process must not cut what they write.
            file.persisted.iter().for_each(PersistedFile::end);
            state.host.set_cutting(false);
            file.settle(&mut state)
        };
        file.queue.wake_all();
        drop(persisted);
    }

    fn try_cut_tail(&self, file: &FileInner, size: u64) -> bool {
        if self.base.cache.rare.is_forced(Rare::CopyUnderWay) {
            return false;
        }
        let mut spare = SpareFrames::none(&self.base.cache);
        spare.grow(1, Effort::Reserve);
        let tail = InPage::first(size, FRAME_BYTES);
        tail.start == 0 || self.try_zero_tail(file, &mut lock(&file.state), tail, &mut spare)
    }

    /// Zeroes the last page's bytes past the new end. The device has cut the same bytes, so the page does not become
    /// dirty by this, and may become clean.
    fn try_zero_tail(
        &self,
        file: &FileInner,
        state: &mut FileState,
        tail: InPage,
        spare: &mut SpareFrames<'_>,
    ) -> bool {
        let cache = &self.base.cache;
        let Some(frame) = cache.frame_at(&file.pages, tail.page) else {
            return true;
        };
        let Some(frame) = self.hold_to_change(file, tail.page, frame, spare) else {
            return false;
        };
        cache.zero(frame, tail.range());
        let past = Sectors::span(tail.start.div_ceil(SECTOR_BYTES), 8);
        let uptodate = cache.pages.add_valid(frame, past);
        cache.pages.change(frame, 0, uptodate);
        if file.device.limits().block_bytes as usize == SECTOR_BYTES {
            cache.pages.set_dirty(frame, cache.pages.dirty(frame).without(past));
        }
        if cache.pages.dirty(frame).is_empty() && cache.pages.word(frame).has_any(DIRTY) {
            self.forget_dirty(file, state, tail.page, frame);
        }
        self.end_writing(frame);
        true
    }

    /// The page's frame, or a new one if the page is guarded, with the caller as its writer. Later overwriters see the
    /// size stored before, and nobody guards the page. `None` if a writer is in the middle of a copy, or no frame is
    /// free.
    fn hold_to_change(
        &self,
        file: &FileInner,
        page: u64,
        found: FrameId,
        spare: &mut SpareFrames<'_>,
    ) -> Option<FrameId> {
        self.base.cache.recall(std::iter::once(found));
        let word = self.base.cache.pages.hold(found, WRITER);
        if !word.is_being_written_to() && !word.is_stable() {
            return Some(found);
        }
        let new = if word.is_being_written_to() { None } else { spare.take() };
        let replaced = new.and_then(|new| self.replace(file, page, found, new));
        self.end_writing(found);
        replaced
    }

    fn end_writing(&self, frame: FrameId) {
        if self.base.cache.pages.unhold(frame, WRITER).has(DETACHED) {
            self.base.cache.release(frame);
        }
    }

    /// Replaces a guarded page by a copy, with the caller as its writer; no request for the page is in flight. `None`
    /// if a writer is in the middle of a copy into the page.
    fn replace(&self, file: &FileInner, page: u64, old: FrameId, new: FrameId) -> Option<FrameId> {
        let cache = &self.base.cache;
        if !cache.pages.try_freeze(old) {
            cache.unguard(old);
            cache.free_frame(new);
            return None;
        }
        let _ = cache.pages.hold(new, WRITER);
        cache.copy_between(old, new, 0..FRAME_BYTES);
        cache.pages.set_sectors(new, cache.pages.unflushed(old));
        cache.pages.set_dirty(new, cache.pages.dirty(old));
        let flags = cache.pages.word(old).flags() & (PRESENT | UPTODATE | DIRTY | FAILED);
        cache.pages.occupy(new, file.pages.identity(page), flags);
        // Before a writer finds the new frame: a later process that finds both must take the new one.
        cache.pages.set_dirty(old, Sectors::NONE);
        file.pages.index.replace(&cache.nodes, page, new);
        cache.eviction.replaced(&cache.pages, old, new);
        cache.release_frame(old);
        cache.unguard(old);
        Some(new)
    }

    /// A dirty page's last dirty sector was cut off: the page is clean.
    fn forget_dirty(&self, file: &FileInner, state: &mut FileState, page: u64, frame: FrameId) {
        let cache = &self.base.cache;
        let before = cache.pages.change(frame, DIRTY | FAILED, 0);
        file.untag(state, page);
        cache.note_clean(frame);
        self.count_cut(file, state, u64::from(before.has(FAILED)));
    }

    fn count_cut(&self, file: &FileInner, state: &mut FileState, failed: u64) {
        state.page_is_clean();
        state.failures.remove_pages(failed);
        uncharge(&self.base.devices, &file.device, 1, self.base.moment());
        self.base.local().count(Counter::PagesTruncated, 1);
    }

    /// Takes pages out of the cache, dirty or not. Pages being written go when their write ends. Lets other tasks run
    /// now and then; pages that come meanwhile may stay.
    async fn drop_pages(&self, file: &FileInner, pages: Range<u64>) {
        let mut next = self.drop_some_pages(file, pages.clone());
        while let Some(from) = next {
            self.base.pass().await;
            next = self.drop_some_pages(file, from..pages.end);
        }
    }

    /// Takes some pages out of the cache, from the first on. Returns where to continue, if there may be more.
    fn drop_some_pages(&self, file: &FileInner, pages: Range<u64>) -> Option<u64> {
        let (cache, state) = (&self.base.cache, &mut *lock(&file.state));
        let present = |page| file.pages.index.next_present(&cache.nodes, page).filter(|page| *page < pages.end);
        cache.recall_present(&file.pages, pages.clone(), DROP_PAGES);
        cache.visit_piece(DROP_PAGES, pages.start, present, |page| {
            let Some(frame) = cache.frame_at(&file.pages, page) else { return };
            let word = cache.pages.word(frame);
            if word.has_any(DIRTY) {
                cache.pages.set_dirty(frame, Sectors::NONE);
                file.untag(state, page);
                self.count_cut(file, state, u64::from(word.has(FAILED)));
            } else if word.has(FAILED) {
                state.failures.remove_pages(1);
            }
            cache.drop_page(&file.pages, page, frame);
            cache.page_queue(frame).wake_all();
        })
    }

    /// [`Engine::discard`](crate::Engine::discard).
    pub(crate) fn discard(self: &Arc<Self>, file: &Arc<FileInner>) {
        {
            // No request begins for pages that are still there.
            let mut state = lock(&file.state);
            state.discard();
            state.hold();
        }
        let Some(from) = self.drop_some_pages(file, 0..u64::MAX) else { return self.end_discard(file) };
        let (me, file) = (Arc::clone(self), Arc::clone(file));
        self.base.platform.spawn("discard", async move {
            me.base.pass().await;
            me.drop_pages(&file, from..u64::MAX).await;
            me.end_discard(&file);
        });
    }

    /// [`Engine::release`](crate::Engine::release).
    pub(crate) fn release(self: &Arc<Self>, file: Arc<FileInner>) {
        // A file with dirty pages or other users retains its pages.
        if Arc::strong_count(&file) > 1 || !file.is_settled() {
            return;
        }
        let Some(from) = self.drop_some_pages(&file, 0..u64::MAX) else { return };
        file.persisted.iter().for_each(PersistedFile::forget);
        let me = Arc::clone(self);
        self.base.platform.spawn("release", async move {
            me.base.pass().await;
            me.drop_pages(&file, from..u64::MAX).await;
        });
    }

    /// No page of a discarded file remains.
    fn end_discard(&self, file: &Arc<FileInner>) {
        file.persisted.iter().for_each(PersistedFile::forget);
        let persisted = {
            let mut state = lock(&file.state);
            state.release();
            if state.failures.take_error() {
                file.device.failures.file_recovers();
            }
            state.flushes.forget_failure();
            file.device.worklist().forget_unflushed(file.pages.slot);
            file.settle(&mut state)
        };
        file.queue.wake_all();
        self.writeback.let_go_later(file, 0, &(0..0));
        drop(persisted);
    }

    /// [`Engine::try_invalidate`](crate::Engine::try_invalidate).
    pub(crate) async fn try_invalidate(&self, file: &Arc<FileInner>, size: u64, seen: u64) -> bool {
        file.reshaping.take(1).await;
        let _turn = ReshapeGuard(file);
        let _hold = self.writeback.hold(file).await;
        let mut next = 0;
        loop {
            {
                let mut state = lock(&file.state);
                let Some(on) = self.forget_clean(file, &mut state, next) else {
                    // The hold blocks reads: callers wrote the pages that came meanwhile.
                    let current = state.host.changes() == seen;
                    if current {
                        take_size(file, &mut state, size);
                    }
                    return current;
                };
                next = on;
            }
            self.base.pass().await;
        }
    }

    /// Takes some clean pages out of the cache, from a page on. Returns where to continue, if there may be more.
    fn forget_clean(&self, file: &FileInner, state: &mut FileState, from: u64) -> Option<u64> {
        let cache = &self.base.cache;
        let present = |page| file.pages.index.next_present(&cache.nodes, page);
        cache.recall_present(&file.pages, from..u64::MAX, DROP_PAGES);
        cache.visit_piece(DROP_PAGES, from, present, |page| {
            let Some(frame) = cache.frame_at(&file.pages, page) else { return };
            if !cache.pages.word(frame).has_any(DIRTY) {
                state.flushes.note_evicted(file.pages.index.has_tag(&cache.nodes, page, Tag::Unflushed));
                cache.drop_page(&file.pages, page, frame);
            }
        })
    }
}

/// Fails if the caller got the error that the device hangs: the caller's later writes must not be cut.
fn goes_on(refused: &AtomicBool) -> Result<(), Error> {
    if refused.load(Ordering::Relaxed) { Err(DeviceError::Hung.into()) } else { Ok(()) }
}

/// Dirty pages reach up to the size that clients know: while there are any, only a larger size is taken.
fn take_size(file: &FileInner, state: &mut FileState, size: u64) {
    if state.is_clean() {
        state.host.set_size(size);
        file.keep_size(state, size);
        file.pages.size.store(size, Ordering::Release);
    } else {
        state.host.reaches(size);
        file.keep_size(state, file.size().max(size));
        file.pages.size.fetch_max(size, Ordering::AcqRel);
    }
}

struct ReshapeGuard<'a>(&'a FileInner);

impl Drop for ReshapeGuard<'_> {
    fn drop(&mut self) {
        self.0.reshaping.give_back(1);
    }
}
