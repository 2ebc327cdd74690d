//! A miss: what prevents the copy of a page to a reader, and what overcomes that, by a request or on the thread of a
//! blocked caller.
//!
//! Owns: the check of the page under its file's lock; the pages and resources of a read until it has begun; the choice
//! between a request and a wait; which misses a caller's thread reads from the host where it stands, so that no other
//! thread has to be woken.
//! Does not own: a read that has begun (`in_flight`), readahead (`ahead`), the loop from miss to hit (`reading`).
//! Invariants: an absent page whose resources are free is begun in the same hold of the lock. Nobody waits for a page
//! with the lock held. Unused resources go back. A read that needs a request, or brings more pages than its caller
//! waits for, becomes one (`a_read_in_the_call_falls_back_to_a_request`). If a read of several pages fails, each page
//! is first requested separately.

use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_frames::{Effort, FRAME_BYTES, FrameId};
use afflux_pages::eviction::Admitted;
use afflux_pages::memory::{Piece, Pieces};
use afflux_pages::page::{PRESENT, READING, Sectors, UPTODATE, WRITEBACK};
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};

use super::in_flight::{ReadInFlight, ReadKind};
use super::{Reading, Waiting};
use crate::call::FileCall;
use crate::devices::delays::Delay;
use crate::devices::file::{FileInner, FileState};
use crate::readahead::{Ahead, ReadaheadEnd};
use crate::reclaim::SpareFrames;

/// Fewer pages than this get no readahead request of their own if more were wanted.
const WORTH_PAGES: u64 = 16;

/// Obstacles to reading a page.
enum Obstacle<P: Platform> {
    None,
    /// The file is held for a change of shape.
    Held,
    /// A request that will change the page's state is in flight.
    InFlight(FrameId),
    /// The page has only some of its sectors.
    Partial(FrameId),
    /// With its read, if that has begun.
    Absent(Option<ReadInFlight<P>>),
}

/// A read until it begins: its pages, and its resources as far as they were had.
pub(super) struct Miss<'a> {
    pub(super) file: &'a Arc<FileInner>,
    /// The pages that a reader has asked for; with none, those after their start are read ahead.
    pub(super) pages: Range<u64>,
    /// Pages to read in addition.
    ahead: Ahead,
    /// Absent pages from the first on, as far as a request may go.
    pub(super) absent: u64,
    /// Frames that the reader waits for; it takes further frames only if they are free.
    demanded: u64,
    spare: SpareFrames<'a>,
    /// Its quota at the device, in frames.
    pub(super) quota: u64,
    pub(super) has_slot: bool,
}

impl<'a> Miss<'a> {
    pub(super) fn new(file: &'a Arc<FileInner>, pages: Range<u64>) -> Self {
        let (demanded, spare) = (pages.end - pages.start, SpareFrames::none(&file.cache));
        Self { file, pages, ahead: Ahead::NONE, absent: demanded, demanded, spare, quota: 0, has_slot: false }
    }

    pub(super) fn frames(&self) -> u64 {
        self.spare.len() as u64
    }

    /// Takes all resources that the reader waits for, if they are free now.
    fn try_take_all(&mut self) -> bool {
        let device = &self.file.device;
        if !device.read_frames().try_take(self.demanded) {
            return false;
        }
        self.quota = self.demanded;
        self.spare.grow(self.demanded as usize, Effort::Normal);
        self.has_slot = self.frames() >= self.demanded && device.slots().try_take(1);
        self.has_slot
    }

    /// Takes quota and frames for the absent pages that nobody waits for, as far as they are free and the file's part
    /// goes.
    pub(super) fn grow(&mut self, state: &FileState) {
        let more = self.absent - self.demanded;
        if more > 0 {
            let own = state.flight.reading_pages() + self.quota;
            self.quota += self.file.device.read_frames().try_take_part(WORTH_PAGES.min(more), more, own);
            self.spare.grow(self.quota as usize, Effort::NoRetry);
        }
    }

    /// A read of so many pages has the slot, and the quota that it needs.
    fn give_to_read(&mut self, pages: u64) {
        self.has_slot = false;
        let quota = std::mem::take(&mut self.quota);
        if quota > pages {
            self.file.device.read_frames().give_back(quota - pages);
        }
    }
}

impl Drop for Miss<'_> {
    fn drop(&mut self) {
        if self.has_slot {
            self.file.device.slots().give_back(1);
        }
        if self.quota > 0 {
            self.file.device.read_frames().give_back(self.quota);
        }
    }
}

impl<P: Platform> Reading<P> {
    /// Brings the first page in, or completes it, and waits for that. The caller checks again afterwards.
    pub(crate) async fn fetch(self: &Arc<Self>, call: &FileCall<'_>, pages: Range<u64>) -> Result<(), Error> {
        let mut miss = Miss::new(call.file, pages);
        match self.look(&mut miss)? {
            Obstacle::Absent(begun) => self.fill(call, miss, begun).await,
            obstacle => self.overcome(call, miss.pages.start, obstacle).await,
        }
    }

    /// As [`Reading::fetch`], on this thread if the device can; `wait` runs the rest.
    pub(super) fn fetch_here<E>(
        self: &Arc<Self>,
        call: &FileCall<'_>,
        pages: Range<u64>,
        wait: &mut impl FnMut(Pin<&mut Waiting<'_>>) -> Result<Result<(), Error>, E>,
    ) -> Result<Result<(), Error>, E> {
        let mut miss = Miss::new(call.file, pages);
        let begun = match self.look(&mut miss) {
            Ok(Obstacle::Absent(begun)) => begun,
            Ok(obstacle) => {
                let overcome = || self.overcome(call, miss.pages.start, obstacle);
                return wait(pin!(call.waits(&self.base, Delay::Read, overcome)));
            }
            Err(error) => return Ok(Err(error)),
        };
        if miss.ahead.count == 0
            && let Some(read) = &begun
            && let Some(result) = self.fill_here(call, read)
        {
            return Ok(result);
        }
        wait(pin!(call.waits(&self.base, Delay::Read, || self.fill(call, miss, begun))))
    }

    /// Carries a read out on this thread. `None` if it needs a request.
    fn fill_here(&self, call: &FileCall<'_>, read: &ReadInFlight<P>) -> Option<Result<(), Error>> {
        // Not where the frames were taken: it may start a task, and the file's lock was held there.
        self.reclaim.look_ahead();
        let (result, ended) = read.try_here()?;
        call.waited(Delay::Read, ended.since(read.at));
        self.reclaim.make_up_for(read.pages.end - read.pages.start);
        Some(filled(call.file, read.pages.clone(), result))
    }

    /// Finds why the first page cannot be copied. If it is absent, begins its read with the resources that are free.
    fn look(self: &Arc<Self>, miss: &mut Miss<'_>) -> Result<Obstacle<P>, Error> {
        let state = &mut *lock(&miss.file.state);
        if state.is_discarded() {
            return Err(Error::Discarded);
        }
        Ok(match self.obstacle(state, miss.file, miss.pages.start) {
            // Mostly all resources of a miss are free: then one check of the file is enough.
            Obstacle::Absent(_) => Obstacle::Absent(self.begin_at_once(state, miss)),
            obstacle => obstacle,
        })
    }

    fn obstacle(&self, state: &FileState, file: &FileInner, page: u64) -> Obstacle<P> {
        let Some(frame) = self.base.cache.frame_at(&file.pages, page) else {
            return if state.is_held() { Obstacle::Held } else { Obstacle::Absent(None) };
        };
        let word = self.base.cache.pages.word(frame);
        if word.has(UPTODATE) {
            Obstacle::None
        } else if word.has_any(READING | WRITEBACK) {
            Obstacle::InFlight(frame)
        } else if state.is_held() {
            Obstacle::Held
        } else {
            Obstacle::Partial(frame)
        }
    }

    /// Asks the policy for more pages, and begins the read if all resources that the reader waits for are free.
    fn begin_at_once(self: &Arc<Self>, state: &mut FileState, miss: &mut Miss<'_>) -> Option<ReadInFlight<P>> {
        let (file, start) = (miss.file, miss.pages.start);
        if state.suspect.contains(&start) {
            miss.pages.end = start + 1;
        } else {
            let pages = &miss.pages;
            miss.ahead =
                self.ask_policy(file, state, |state, terms, cached| state.readahead.missed(pages, terms, cached));
        }
        let asked_end = miss.pages.end;
        let end = miss.ahead.end_from(asked_end).min(file.size().div_ceil(PAGE_BYTES)).max(asked_end);
        let end = end.min(start + file.device.request_pages());
        // Other pages are not read, so frames for them would be useless.
        let single = end - start == 1;
        miss.absent = if single { 1 } else { self.absent_run(file, start..end).end.max(start + 1) - start };
        let most = (self.base.cache.total_pages() / 16).max(1);
        miss.demanded = (asked_end - start).min(miss.absent).min(most);
        let strikes = self.base.cache.rare.is_forced(Rare::Yield);
        if strikes || !miss.try_take_all() {
            return None;
        }
        miss.grow(state);
        self.begin(state, miss)
    }

    /// Puts absent pages in the index as being read: the first run of them, as far as the miss has frames. Pages past
    /// the device's end are zeros at once. `None` if there is nothing to read.
    pub(super) fn begin(self: &Arc<Self>, state: &mut FileState, miss: &mut Miss<'_>) -> Option<ReadInFlight<P>> {
        // A retry, after one that found no frame for the index, may hold more frames than a request may have pages.
        let count = miss.frames().min(miss.absent);
        let (pages, now) = (miss.pages.start..miss.pages.start + count, self.base.now());
        if pages.end > miss.pages.end {
            self.base.cache.pages.unread.age(now);
        }
        let (pieces, first) = self.occupy_absent(state, miss, pages);
        if pieces.is_empty() {
            return None;
        }
        let kind = ReadKind::Absent { demanded_end: miss.pages.end };
        miss.give_to_read(pieces.len() as u64);
        Some(ReadInFlight::begins(self, state, miss.file, first, pieces, kind, now))
    }

    /// Begins to read the missing sectors of the miss's one page, which is in this frame, into a frame beside it.
    fn begin_beside(
        self: &Arc<Self>,
        state: &mut FileState,
        miss: &mut Miss<'_>,
        partial: FrameId,
    ) -> Option<ReadInFlight<P>> {
        let (page, frame) = (miss.pages.start, miss.spare.take()?);
        self.base.cache.pages.change(partial, 0, READING);
        let pieces = Pieces::from_elem(Piece { frame, start: 0, len: FRAME_BYTES as u16 }, 1);
        miss.give_to_read(1);
        Some(ReadInFlight::begins(self, state, miss.file, page, pieces, ReadKind::Partial(partial), self.base.now()))
    }

    /// The pieces to read and the first of their pages. A store also sends short gaps of cached pages, into frames
    /// that the request's end frees.
    fn occupy_absent(&self, state: &FileState, miss: &mut Miss<'_>, pages: Range<u64>) -> (Pieces, u64) {
        let (cache, demanded_end) = (&self.base.cache, miss.pages.end);
        let Miss { file, spare, .. } = miss;
        let (mut pieces, mut first) = (Pieces::default(), pages.start);
        if state.is_held() || state.is_discarded() {
            return (pieces, first);
        }
        let gap_most = file.device.read_through_pages();
        // Cached pages since the last absent one; absent pages that nobody waits for.
        let (mut gap, mut ahead) = (0, 0);
        for page in pages {
            if cache.frame_at(&file.pages, page).is_some() {
                if pieces.is_empty() {
                    continue;
                }
                gap += 1;
                if gap > gap_most { break } else { continue }
            }
            let index = &file.pages.index;
            let Some(reserved) = index.reserve_nodes(&cache.nodes, page, || spare.take_for_index()) else { break };
            if spare.len() as u64 <= gap {
                break;
            }
            let Some(frame) = spare.take() else { break };
            let identity = file.pages.identity(page);
            cache.pages.set_dirty(frame, Sectors::NONE);
            let is_past_end = page * PAGE_BYTES >= state.host.size();
            if is_past_end {
                cache.zero(frame, 0..FRAME_BYTES);
            }
            cache.pages.set_sectors(frame, Sectors::NONE);
            cache.pages.occupy(frame, identity, PRESENT | if is_past_end { UPTODATE } else { READING });
            let why = self.note_why(page, demanded_end, frame);
            index.insert(&cache.nodes, page, frame, reserved);
            if is_past_end {
                cache.admit(&file.pages, page, frame, why);
                if pieces.is_empty() { continue } else { break }
            }
            if pieces.is_empty() {
                first = page;
            }
            self.read_again(file, page - gap..page, spare, &mut pieces);
            pieces.push(Piece { frame, start: 0, len: FRAME_BYTES as u16 });
            (gap, ahead) = (0, ahead + u64::from(page >= demanded_end));
        }
        self.base.local().count(Counter::ReadaheadPages, ahead);
        (pieces, first)
    }

    /// Adds cached pages to a request. Their frames are in no index, so the request's end frees them.
    fn read_again(&self, file: &FileInner, pages: Range<u64>, spare: &mut SpareFrames<'_>, pieces: &mut Pieces) {
        let cache = &self.base.cache;
        self.base.local().count(Counter::ReadGapPages, pages.end - pages.start);
        for page in pages {
            let Some(frame) = spare.take() else { unreachable!("the caller has looked") };
            cache.pages.set_dirty(frame, Sectors::NONE);
            cache.pages.set_sectors(frame, Sectors::NONE);
            cache.pages.occupy(frame, file.pages.identity(page), PRESENT | READING);
            cache.pages.detach(frame);
            pieces.push(Piece { frame, start: 0, len: FRAME_BYTES as u16 });
        }
    }

    /// Why a page comes into the cache; a page that nobody waits for counts as unread from now on.
    fn note_why(&self, page: u64, demanded_end: u64, frame: FrameId) -> Admitted {
        if page < demanded_end {
            return Admitted::Demand;
        }
        self.base.cache.pages.note_unread(frame);
        Admitted::Ahead
    }

    /// Waits for the missing resources of a miss.
    async fn take_all<'a>(&'a self, call: &FileCall<'_>, miss: &mut Miss<'a>) {
        let device = &miss.file.device;
        if miss.quota == 0 {
            device.read_frames().take(miss.demanded).await;
            miss.quota = miss.demanded;
        }
        if miss.frames() < miss.demanded {
            let missing = (miss.demanded - miss.frames()) as usize;
            let spare = call.waits(&self.base, Delay::Reclaim, || self.reclaim.take_frames(missing)).await;
            miss.spare.join(spare);
        }
        self.base.rare_yield().await;
        if !miss.has_slot {
            device.slots().take(1).await;
            miss.has_slot = true;
        }
    }

    /// Reads the pages of a miss, and further pages ahead; waits for the first request.
    async fn fill<'a>(
        self: &'a Arc<Self>,
        call: &FileCall<'a>,
        mut miss: Miss<'a>,
        mut begun: Option<ReadInFlight<P>>,
    ) -> Result<(), Error> {
        let file = call.file;
        // Not where the frames were taken: it may start a task, and the file's lock was held there.
        self.reclaim.look_ahead();
        if begun.is_none() {
            self.take_all(call, &mut miss).await;
            let state = &mut *lock(&file.state);
            miss.grow(state);
            begun = self.begin(state, &mut miss);
        }
        let (asked, ahead) = (miss.pages.clone(), miss.ahead.clone());
        drop(miss);
        let Some(read) = begun else {
            if ahead.count > 0 {
                self.note_readahead_end(file, ReadaheadEnd::NoRequest(asked.start));
            }
            return Ok(());
        };
        let (request, answer) = (read.pages.clone(), Answer::new());
        read.submit(&file.device, Some(Arc::clone(&answer)));
        if ahead.count > 0 {
            // A device that has answered already is as fast as memory. Readahead now might evict the very page that the
            // reader has yet to see.
            if answer.is_given() {
                self.note_readahead_end(file, ReadaheadEnd::NoRequest(request.end));
            } else {
                let goes_on = ahead.end_from(asked.end) > asked.end;
                self.fill_ranges(file, &ahead, if goes_on { request.end } else { 0 });
            }
        }
        self.reclaim.make_up_for(request.end - request.start);
        filled(file, request, answer.wait().await)
    }

    async fn overcome(self: &Arc<Self>, call: &FileCall<'_>, page: u64, obstacle: Obstacle<P>) -> Result<(), Error> {
        let file = call.file;
        match obstacle {
            Obstacle::None | Obstacle::Absent(_) => {}
            Obstacle::Held => file.queue.until(|| (!lock(&file.state).is_held()).then_some(())).await,
            Obstacle::InFlight(frame) => self.wait_for_page(file, page, frame).await,
            Obstacle::Partial(_) => self.complete(call, page).await?,
        }
        Ok(())
    }

    /// Waits until the frame is no longer this page with a request in flight.
    pub(crate) async fn wait_for_page(&self, file: &FileInner, page: u64, frame: FrameId) {
        let cache = &self.base.cache;
        let identity = file.pages.identity(page);
        cache
            .page_queue(frame)
            .until(|| {
                let word = cache.pages.word(frame);
                let same = word.has(PRESENT) && cache.pages.identity(frame) == identity;
                (!(same && word.has_any(READING | WRITEBACK))).then_some(())
            })
            .await;
    }

    /// Reads the missing sectors of a page, and waits for that.
    async fn complete(self: &Arc<Self>, call: &FileCall<'_>, page: u64) -> Result<(), Error> {
        let (file, mut miss) = (call.file, Miss::new(call.file, page..page + 1));
        self.take_all(call, &mut miss).await;
        let begun = {
            let state = &mut *lock(&file.state);
            let Obstacle::Partial(frame) = self.obstacle(state, file, page) else { return Ok(()) };
            self.begin_beside(state, &mut miss, frame)
        };
        drop(miss);
        let Some(read) = begun else { return Ok(()) };
        let answer = Answer::new();
        read.submit(&file.device, Some(Arc::clone(&answer)));
        answer.wait().await.map_err(Error::Device)
    }
}

/// What the end of a read of these pages is for the reader that asked for it.
fn filled(file: &FileInner, request: Range<u64>, result: Result<(), DeviceError>) -> Result<(), Error> {
    if result.is_err() && request.end - request.start > 1 {
        // A bad sector must not prevent reads of its neighbours: each page is requested separately.
        let mut state = lock(&file.state);
        state.suspect = request;
        state.readahead.failed();
        return Ok(());
    }
    result.map_err(Error::Device)
}
