//! Read requests: filling absent pages, completing partial pages, and the effect of a request's end on its pages.
//!
//! Owns: reads in flight, and the frames that they hold.
//! Does not own: the loop from miss to hit (`reading`), readahead (`ahead`).
//! Invariants: a page being read is in the index. A failed read takes its pages out again and is reported to the reader
//! that asked for it. If it had several pages, each page is first requested separately. Nothing is submitted with the
//! file's lock held.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::{AtEnd, Completed, Direction};
use afflux_device::request::{Completion, Operation, Request};
use afflux_frames::{Effort, FRAME_BYTES, FrameId};
use afflux_pages::cache::PageCache;
use afflux_pages::eviction::{Admitted, Arrival};
use afflux_pages::memory::{FrameMemory, Piece, Pieces};
use afflux_pages::page::{DIRTY, PRESENT, READING, SECTOR_BYTES, Sectors, UPTODATE};
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, Changed, lock};

use super::{Obstacle, Reading};
use crate::call::FileCall;
use crate::devices::delays::Delay;
use crate::devices::file::{FileInner, FileState};
use crate::devices::in_flight::{Load, RequestEntry};
use crate::devices::{DeviceState, TransferKind};
use crate::readahead::{Ahead, ReadaheadEnd};
use crate::reclaim::SpareFrames;
use crate::trace::EngineEvent;

/// Fewer pages than this get no readahead request of their own if more were wanted.
const WORTH_PAGES: u64 = 16;

/// The resources of a read request, as far as they were had; unused ones go back.
pub(super) struct ReadResources<'a> {
    pub(super) device: &'a Arc<DeviceState>,
    pub(super) spare: SpareFrames<'a>,
    /// Its quota at the device, in frames.
    quota: u64,
    has_slot: bool,
}

impl<'a> ReadResources<'a> {
    pub(super) fn empty(cache: &'a PageCache, device: &'a Arc<DeviceState>) -> Self {
        Self { device, spare: SpareFrames::none(cache), quota: 0, has_slot: false }
    }

    pub(super) fn frames(&self) -> u64 {
        self.spare.len() as u64
    }

    /// Takes quota for frames at the device, if it is free now.
    pub(super) fn try_reserve(&mut self, pages: u64) -> bool {
        let taken = self.device.read_frames().try_take(pages - self.quota);
        if taken {
            self.quota = pages;
        }
        taken
    }

    /// Takes quota for up to `pages` more frames, as far as the file's part goes.
    pub(super) fn grow_quota(&mut self, pages: u64, own: u64) {
        self.quota += self.device.read_frames().try_take_part(WORTH_PAGES.min(pages), pages, own + self.quota);
    }

    pub(super) fn quota(&self) -> u64 {
        self.quota
    }

    /// Takes a request slot, if more than `left` are free.
    pub(super) fn try_slot(&mut self, left: u64) -> bool {
        self.has_slot = self.device.slots().try_take_leaving(1, left);
        self.has_slot
    }
}

impl Drop for ReadResources<'_> {
    fn drop(&mut self) {
        if self.has_slot {
            self.device.slots().give_back(1);
        }
        if self.quota > 0 {
            self.device.read_frames().give_back(self.quota);
        }
    }
}

/// The work of a miss: a reader waits for an absent page.
pub(super) struct Miss<P: Platform> {
    /// The pages asked for.
    pages: Range<u64>,
    /// Pages to read in addition.
    pub(super) ahead: Ahead,
    /// Absent pages from the first on, as far as a request may go.
    absent: u64,
    /// Frames that the reader waits for; it takes further frames only if they are free.
    demanded: u64,
    /// The read, if it has begun already.
    pub(super) begun: Option<BegunRead<P>>,
}

/// A read that has begun: its pages are in the index as being read. It is carried out once the file's lock is free.
pub(super) struct BegunRead<P: Platform> {
    pub(super) first: u64,
    pub(super) pieces: Pieces,
    pub(super) ends: FillEnds<P>,
}

impl<P: Platform> BegunRead<P> {
    pub(super) fn pages(&self) -> Range<u64> {
        self.first..self.first + self.pieces.len() as u64
    }

    pub(super) fn operation(&self) -> Operation {
        operation(self.first, self.pieces.len())
    }

    /// When it began.
    pub(super) fn at(&self) -> Nanos {
        self.ends.sent.at
    }

    /// The request that carries it out; with an answer for a reader that waits.
    fn by_request(mut self) -> Sending {
        let answer = (self.ends.demanded_end > 0).then(Answer::new);
        self.ends.answer.clone_from(&answer);
        let (first, pieces, at) = (self.first, self.pieces, self.ends.sent.at);
        Sending { first, pieces, ends: Box::new(self.ends), at, answer }
    }
}

/// A request to submit once the file's lock is free.
struct Sending {
    first: u64,
    pieces: Pieces,
    ends: Box<dyn Completion>,
    at: Nanos,
    answer: Option<Arc<Answer<Result<(), DeviceError>>>>,
}

/// The reading of so many whole pages.
fn operation(first: u64, count: usize) -> Operation {
    Operation::Read { offset: first * PAGE_BYTES, len: (count * FRAME_BYTES) as u32 }
}

impl<P: Platform> Reading<P> {
    /// A read misses the first of these pages. Asks the policy for more, and begins with the resources that it has.
    pub(super) fn miss<'a>(
        self: &Arc<Self>,
        file: &'a Arc<FileInner>,
        state: &mut FileState,
        pages: &Range<u64>,
        hand: &mut ReadResources<'a>,
    ) -> Miss<P> {
        let suspect = state.suspect.contains(&pages.start);
        let pages = pages.start..if suspect { pages.start + 1 } else { pages.end };
        let ahead = if suspect { Ahead::NONE } else { self.missed(file, state, &pages) };
        let end = ahead.end_from(pages.end).min(file.size().div_ceil(PAGE_BYTES)).max(pages.end);
        let end = end.min(pages.start + file.device.request_pages());
        // Other pages are not read, so frames for them would be useless.
        let single = end - pages.start == 1;
        let absent =
            if single { 1 } else { self.absent_run(file, pages.start..end).end.max(pages.start + 1) - pages.start };
        let most = (self.base.cache.total_pages() / 16).max(1);
        let demanded = (pages.end - pages.start).min(absent).min(most);
        let mut miss = Miss { pages, ahead, absent, demanded, begun: None };
        let strikes = self.base.cache.rare.is_forced(Rare::Yield);
        if !strikes && self.has_all_at_once(&miss, hand) {
            miss.begun = self.begin_miss(file, state, hand, &miss);
        }
        miss
    }

    /// Takes all resources of the miss, if they are free now.
    fn has_all_at_once(&self, miss: &Miss<P>, hand: &mut ReadResources<'_>) -> bool {
        if !hand.try_reserve(miss.demanded) {
            return false;
        }
        hand.spare.grow(miss.demanded as usize, Effort::Normal);
        hand.frames() >= miss.demanded && hand.try_slot(0)
    }

    /// Waits for the missing resources of the miss.
    async fn take_all<'a>(&'a self, call: &FileCall<'_>, demanded: u64, hand: &mut ReadResources<'a>) {
        if hand.quota == 0 {
            hand.device.read_frames().take(demanded).await;
            hand.quota = demanded;
        }
        if hand.frames() < demanded {
            let missing = (demanded - hand.frames()) as usize;
            let spare = call.waits(&self.base, Delay::Reclaim, || self.reclaim.take_frames(missing)).await;
            hand.spare.join(spare);
        }
        self.base.rare_yield().await;
        if !hand.has_slot {
            hand.device.slots().take(1).await;
            hand.has_slot = true;
        }
    }

    /// Begins the request for the absent pages from the first on.
    fn begin_miss(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        state: &mut FileState,
        hand: &mut ReadResources<'_>,
        miss: &Miss<P>,
    ) -> Option<BegunRead<P>> {
        if miss.absent > miss.demanded {
            hand.grow_quota(miss.absent - miss.demanded, state.flight.reading_pages());
            hand.spare.grow(hand.quota() as usize, Effort::NoRetry);
        }
        // A retry, after one that found no frame for the index, may hold more frames than a request may have pages.
        let count = hand.frames().min(miss.absent);
        self.begin(file, state, hand, miss.pages.start..miss.pages.start + count, miss.pages.end)
    }

    /// Reads the pages of a miss, and further pages ahead; waits for the first request.
    pub(super) async fn fill<'a>(
        self: &'a Arc<Self>,
        call: &FileCall<'a>,
        mut miss: Miss<P>,
        mut hand: ReadResources<'a>,
    ) -> Result<(), Error> {
        let file = call.file;
        // Not where the frames were taken: it may start a task, and the file's lock was held there.
        self.reclaim.look_ahead();
        if miss.begun.is_none() {
            self.take_all(call, miss.demanded, &mut hand).await;
            miss.begun = self.begin_miss(file, &mut lock(&file.state), &mut hand, &miss);
        }
        drop(hand);
        let Some(begun) = miss.begun.take() else {
            if miss.ahead.count > 0 {
                self.note_readahead_end(file, ReadaheadEnd::NoRequest(miss.pages.start));
            }
            return Ok(());
        };
        let request = begun.pages();
        let Some(answer) = self.send(file, begun.by_request()) else { return Ok(()) };
        if miss.ahead.count > 0 {
            // A device that has answered already is as fast as memory. Readahead now might evict the very page that the
            // reader has yet to see.
            if answer.is_given() {
                self.note_readahead_end(file, ReadaheadEnd::NoRequest(request.end));
            } else {
                let goes_on = miss.ahead.end_from(miss.pages.end) > miss.pages.end;
                self.fill_ranges(file, &miss.ahead, if goes_on { request.end } else { 0 });
            }
        }
        self.reclaim.make_up_for(request.end - request.start);
        self.filled(file, request, answer.wait().await)
    }

    /// What the end of a read of these pages is for the reader that asked for it.
    pub(super) fn filled(
        &self,
        file: &FileInner,
        request: Range<u64>,
        result: Result<(), DeviceError>,
    ) -> Result<(), Error> {
        if result.is_err() && request.end - request.start > 1 {
            // A bad sector must not prevent reads of its neighbours: each page is requested separately.
            let mut state = lock(&file.state);
            state.suspect = request;
            state.readahead.failed();
            return Ok(());
        }
        result.map_err(Error::Device)
    }

    /// Puts absent pages in the index as being read: the first run of them in the range. A reader waits for those
    /// before `demanded_end`. Pages past the device's end are zeros at once. `None` if there is nothing to read.
    pub(super) fn begin(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        state: &mut FileState,
        hand: &mut ReadResources<'_>,
        pages: Range<u64>,
        demanded_end: u64,
    ) -> Option<BegunRead<P>> {
        let now = self.base.now();
        if pages.end > demanded_end {
            self.base.cache.pages.unread.age(now);
        }
        let (pieces, first) = self.occupy_absent(state, file, pages, demanded_end, &mut hand.spare);
        if pieces.is_empty() {
            return None;
        }
        hand.has_slot = false;
        state.flight.read_begins(pieces.len() as u64);
        let quota = FrameQuota::of(file, std::mem::take(&mut hand.quota), pieces.len() as u64);
        let sent = Sent::now(file, first, pieces.len(), now);
        let ends = FillEnds { reading: Arc::clone(self), quota, answer: None, demanded_end, sent };
        Some(BegunRead { first, pieces, ends })
    }

    /// Submits a request for pages that nobody waits for yet.
    pub(super) fn send_ahead(&self, file: &Arc<FileInner>, begun: BegunRead<P>) {
        self.send(file, begun.by_request());
    }

    /// Submits a request. Returns its answer, if a reader waits for it.
    fn send(&self, file: &Arc<FileInner>, sending: Sending) -> Option<Arc<Answer<Result<(), DeviceError>>>> {
        let Sending { first, pieces, ends, at, answer } = sending;
        let operation = operation(first, pieces.len());
        self.note_sent(file, operation, at);
        let memory = self.memory(pieces);
        let request = Request::new(ends, file.backing.clone(), operation, Some(memory));
        file.device.submit(request.ahead(answer.is_none()));
        answer
    }

    /// Counts a read that is about to be carried out.
    pub(super) fn note_sent(&self, file: &Arc<FileInner>, operation: Operation, at: Nanos) {
        let Operation::Read { len, .. } = operation else { unreachable!("a read") };
        self.base.local().count(Counter::ReadRequests, 1);
        self.base.local().count(Counter::PageIn, u64::from(len));
        self.base.trace_file(at, file, None, || EngineEvent::Submitted { operation });
    }

    pub(super) fn memory(&self, pieces: Pieces) -> FrameMemory {
        FrameMemory::new(Arc::clone(&self.arena), pieces)
    }

    /// The pieces to read and the first of their pages. A store also sends short gaps of cached pages, into frames
    /// that the request's end frees.
    fn occupy_absent(
        &self,
        state: &mut FileState,
        file: &FileInner,
        pages: Range<u64>,
        demanded_end: u64,
        spare: &mut SpareFrames<'_>,
    ) -> (Pieces, u64) {
        let cache = &self.base.cache;
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
            if page * PAGE_BYTES >= state.host.size() {
                cache.zero(frame, 0..FRAME_BYTES);
                cache.pages.set_sectors(frame, Sectors::NONE);
                cache.pages.occupy(frame, identity, PRESENT | UPTODATE);
                let why = self.note_why(page, demanded_end, frame);
                index.insert(&cache.nodes, page, frame, reserved);
                cache.admit(&file.pages, page, frame, why);
                if pieces.is_empty() { continue } else { break }
            }
            cache.pages.set_sectors(frame, Sectors::NONE);
            cache.pages.occupy(frame, identity, PRESENT | READING);
            self.note_why(page, demanded_end, frame);
            index.insert(&cache.nodes, page, frame, reserved);
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

    /// Reads the missing sectors of a page into a side frame, merges them, and waits for that.
    pub(super) async fn merge(self: &Arc<Self>, call: &FileCall<'_>, page: u64) -> Result<(), Error> {
        let file = call.file;
        file.device.read_frames().take(1).await;
        let quota = FrameQuota::of(file, 1, 1);
        let mut spare = call.waits(&self.base, Delay::Reclaim, || self.reclaim.take_frames(1)).await;
        file.device.slots().take(1).await;
        let answer = Answer::new();
        let side = {
            let mut state = lock(&file.state);
            match self.obstacle(&state, file, page) {
                Obstacle::Partial(frame) => {
                    self.base.cache.pages.change(frame, 0, READING);
                    state.flight.read_begins(1);
                    let sent = Sent::now(file, page, 1, self.base.now());
                    spare.take().map(|side| (frame, side, sent))
                }
                _ => None,
            }
        };
        let Some((frame, side, sent)) = side else {
            file.device.slots().give_back(1);
            return Ok(());
        };
        let ends = MergeEnds { reading: Arc::clone(self), quota, frame, side, answer: Arc::clone(&answer), sent };
        let piece = Piece { frame: side, start: 0, len: FRAME_BYTES as u16 };
        let (pieces, ends) = (Pieces::from_elem(piece, 1), Box::new(ends));
        self.send(file, Sending { first: page, pieces, ends, at: sent.at, answer: None });
        answer.wait().await.map_err(Error::Device)
    }

    fn read_ended(
        &self,
        file: &Arc<FileInner>,
        operation: Operation,
        sent: Sent,
        was_aside: bool,
        result: Result<(), DeviceError>,
    ) -> Nanos {
        if result.is_err() {
            self.base.local().count(Counter::ReadErrors, 1);
        }
        let (bytes, now) = (if result.is_ok() { sent.pages * PAGE_BYTES } else { 0 }, self.base.now());
        let ns = now.since(sent.at);
        self.base.trace_file(now, file, None, || EngineEvent::Completed { operation, ns, error: result.err() });
        if was_aside {
            // The time of its wait is not the device's.
            file.device.figures.aside_ends(TransferKind::Read, bytes, now);
        } else {
            self.note_read(file, sent, bytes, now);
            file.device.slots().give_back(1);
        }
        let changed = Changed::now();
        file.queue.wake_for(&changed);
        file.cache.memory_queue.wake_for(&changed);
        now
    }

    /// Reports a read that has moved so many bytes, 0 if it failed, to the device's figures and its policy.
    fn note_read(&self, file: &FileInner, sent: Sent, bytes: u64, now: Nanos) {
        let at_end = file.device.figures.read_ends(sent.runs, bytes, (sent.at, now));
        if self.base.devices.policy.needs().reads {
            let done = sent.ended(bytes > 0, (now, at_end), self.base.platform.unwatched_ns());
            self.base.devices.request_ended(&file.device, self.base.moment_at(now), done);
        }
    }
}

/// A read request in flight, in the form for the policy at its end.
#[derive(Clone, Copy)]
struct Sent {
    /// 1, or 0 if the request continues the device's last read.
    runs: u64,
    pages: u64,
    at: Nanos,
    entry: RequestEntry,
}

impl Sent {
    /// A request for `count` pages from the first on, submitted now.
    fn now(file: &FileInner, first: u64, count: usize, now: Nanos) -> Self {
        let pages = count as u64;
        let runs = file.device.figures.read_begins(first, (file.pages.slot, first + pages), now);
        let entry = file.device.requests().entries.begin(file.pages.slot, Load::Read, now);
        Self { runs, pages, at: now, entry }
    }

    fn ended(self, moved: bool, (at, device): (Nanos, AtEnd), unwatched_ns: u64) -> Completed {
        let (direction, pages) = (Direction::Read, if moved { self.pages } else { 0 });
        let latency_ns = at.since(self.at);
        let (bytes, unwatched_ns) = (pages * PAGE_BYTES, unwatched_ns.min(latency_ns));
        let (runs, rest) = (self.runs, Completed::default());
        Completed { direction, at, device, runs, pages, bytes, latency_ns, unwatched_ns, ..rest }
    }
}

/// Frames that a read of a file holds until it ends, counted at the file's device.
struct FrameQuota {
    file: Arc<FileInner>,
    pages: u64,
}

impl FrameQuota {
    /// Holds the needed part of the taken quota, and gives back the rest.
    fn of(file: &Arc<FileInner>, taken: u64, needed: u64) -> Self {
        if taken > needed {
            file.device.read_frames().give_back(taken - needed);
        }
        Self { file: Arc::clone(file), pages: needed }
    }
}

impl Drop for FrameQuota {
    fn drop(&mut self) {
        self.file.device.read_frames().give_back(self.pages);
    }
}

/// The end of a read of whole pages.
pub(super) struct FillEnds<P: Platform> {
    reading: Arc<Reading<P>>,
    quota: FrameQuota,
    answer: Option<Arc<Answer<Result<(), DeviceError>>>>,
    /// The page from which on nobody has asked for pages.
    demanded_end: u64,
    sent: Sent,
}

impl<P: Platform> FillEnds<P> {
    fn why(&self, page: u64) -> Admitted {
        if page < self.demanded_end { Admitted::Demand } else { Admitted::Ahead }
    }

    /// The read has ended: its pages are there, or gone again. Returns the instant.
    pub(super) fn end(self, operation: Operation, pieces: &[Piece], result: Result<(), DeviceError>) -> Nanos {
        let (reading, file) = (&self.reading, &self.quota.file);
        let cache = &reading.base.cache;
        let was_aside = file.request_ended(self.sent.entry);
        {
            let mut state = lock(&file.state);
            let mut arrivals = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let frame = piece.frame;
                if !cache.pages.word(frame).has(PRESENT) {
                    cache.pages.change(frame, READING, 0);
                } else if result.is_ok() {
                    let page = cache.pages.identity(frame).index;
                    let why = self.why(page);
                    cache.pages.change(frame, READING, UPTODATE);
                    arrivals.push(Arrival { frame, key: file.pages.key(page), why });
                } else {
                    file.pages.index.remove(&cache.nodes, cache.pages.identity(frame).index);
                    cache.pages.detach(frame);
                    cache.pages.change(frame, READING, 0);
                }
            }
            cache.admit_all(&arrivals);
            state.flight.read_ends(self.quota.pages);
            // A slice that found nothing may have delisted the file until this read ends.
            file.requeue(&mut state, reading.base.now());
        }
        let changed = Changed::now();
        for piece in pieces {
            cache.release(piece.frame);
            cache.page_queue(piece.frame).wake_for(&changed);
        }
        if let Some(answer) = &self.answer {
            answer.give(result);
        }
        cache.rare_wake();
        reading.read_ended(file, operation, self.sent, was_aside, result)
    }
}

impl<P: Platform> Completion for FillEnds<P> {
    fn completed(self: Box<Self>, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        (*self).end(operation, memory.as_ref().map_or(&[][..], FrameMemory::pieces), result);
    }
}

/// The end of a request for the missing sectors of a page.
struct MergeEnds<P: Platform> {
    reading: Arc<Reading<P>>,
    frame: FrameId,
    side: FrameId,
    answer: Arc<Answer<Result<(), DeviceError>>>,
    sent: Sent,
    quota: FrameQuota,
}

impl<P: Platform> Completion for MergeEnds<P> {
    fn completed(self: Box<Self>, operation: Operation, _: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let (reading, file, frame) = (&self.reading, &self.quota.file, self.frame);
        let cache = &reading.base.cache;
        let was_aside = file.request_ended(self.sent.entry);
        {
            let mut state = lock(&file.state);
            let mut set = 0;
            if result.is_ok() && cache.pages.word(frame).has(PRESENT) {
                let valid = cache.pages.valid(frame);
                for sector in Sectors::ALL.without(valid).iter() {
                    let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    cache.copy_between(self.side, frame, bytes);
                }
                set = UPTODATE;
            }
            let word = cache.pages.change(frame, READING, set);
            if word.has(PRESENT) && !word.has_any(DIRTY) {
                // Searches for victims pass over pages that are being read.
                cache.note_clean(frame);
            }
            state.flight.read_ends(self.quota.pages);
            // The flusher passes over pages that are being read.
            file.requeue(&mut state, reading.base.now());
        }
        cache.release(frame);
        cache.free_frame(self.side);
        cache.page_queue(frame).wake_all();
        self.answer.give(result);
        reading.read_ended(file, operation, self.sent, was_aside, result);
    }
}
