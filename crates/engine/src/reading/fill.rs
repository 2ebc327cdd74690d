//! Read requests: filling absent pages, completing those that have some of their sectors, and what the end of a
//! request means for its pages.
//!
//! Owns: what is in flight of reads, the frames that they hold.
//! Does not own: the loop from miss to hit (`reading`), how far ahead (`readahead`).
//! Invariants: a page being read is in the index. A failed read takes its pages out again and is told to the reader
//! that asked for it. What is read ahead waits for nothing: what cannot be had now is not read.

use std::ops::Range;
use std::sync::Arc;

use frames::{Effort, FRAME_BYTES, FrameId};

use super::{Obstacle, Reading, set_trigger};
use crate::call::Call;
use crate::counters::Counter;
use crate::devices::Kind;
use crate::devices::delays::Delay;
use crate::devices::file::{FileInner, FileState};
use crate::devices::state::DeviceState;
use crate::error::{DeviceError, Error};
use crate::eviction::Admitted;
use crate::memory::{FrameMemory, Piece, Pieces};
use crate::page::{DIRTY, PRESENT, READING, SECTOR_BYTES, Sectors, UPTODATE};
use crate::platform::{Nanos, Platform};
use crate::policy::{Completed, Direction};
use crate::rare::Rare;
use crate::reclaim::Spare;
use crate::request::{Completion, Operation, Request};
use crate::trace::Event;
use crate::units::PAGE_BYTES;
use crate::wait::{Answer, Changed, lock};

/// A reader that waits for pages of a request.
struct Demand<'a> {
    answer: &'a Arc<Answer<Result<(), DeviceError>>>,
    /// Pages from here on nobody has asked for.
    end: u64,
}

impl<P: Platform> Reading<P> {
    /// Reads absent pages from the first on, and further ones ahead; waits for the first request.
    pub(super) async fn fill(self: &Arc<Self>, call: &Call<'_>, pages: Range<u64>) -> Result<(), Error> {
        let file = call.file;
        let bounds = self.readahead_bounds(file);
        let request_pages = file.device.request_pages();
        let (ahead, tried, count) = {
            let mut state = lock(&file.state);
            let ahead = state.readahead.missed(&pages, bounds);
            set_trigger(file, &state);
            let tried = (ahead.end.min(bounds.file_pages).max(pages.end) - pages.start).min(request_pages);
            // Others are not read, so that there is no use in frames for them.
            let absent = self.absent_run(file, pages.start..pages.start + tried);
            (ahead, tried, (absent.end - pages.start).clamp(1, tried))
        };
        let demanded = (pages.end - pages.start).min(count).min((self.base.cache.total_pages() / 16).max(1));
        file.device.reading.take(demanded).await;
        let mut room = ReadRoom { device: Arc::clone(&file.device), pages: demanded };
        let mut spare = call.waits(&self.base, Delay::Reclaim, self.reclaim.take_frames(demanded as usize)).await;
        if count > demanded && file.device.reading.try_take(count - demanded) {
            room.pages = count;
            spare.grow(count as usize, Effort::NoRetry);
        }
        self.base.rare_yield().await;
        file.device.slots.take(1).await;
        let answer = Answer::new();
        let filled = pages.start..pages.start + spare.len() as u64;
        if !self.start_fill(file, filled.clone(), &mut spare, room, Some(Demand { answer: &answer, end: pages.end })) {
            file.device.slots.give_back(1);
            return Ok(());
        }
        drop(spare);
        // A device that has answered already is as fast as memory; what it would read ahead now might
        // push out the very page that the reader has yet to see.
        if answer.taken().is_none() {
            let from = if filled.end == pages.start + count { pages.start + tried } else { filled.end };
            self.fill_ahead(file, from..ahead.end);
        }
        answer.wait().await.map_err(Error::Device)
    }

    /// Reads absent pages of a range without waiting for anything: what cannot be had now is not read.
    pub(super) fn fill_ahead(self: &Arc<Self>, file: &Arc<FileInner>, pages: Range<u64>) {
        let request_pages = file.device.request_pages();
        let in_file = file.size().div_ceil(PAGE_BYTES);
        let mut from = pages.start;
        while from < pages.end.min(in_file) {
            let end = (from + request_pages).min(pages.end).min(in_file);
            let absent = {
                let _state = lock(&file.state);
                self.absent_run(file, from..end)
            };
            let count = absent.end - absent.start;
            if count == 0 {
                from = end;
                continue;
            }
            if !file.device.reading.try_take(count) {
                return;
            }
            let room = ReadRoom { device: Arc::clone(&file.device), pages: count };
            let mut spare = Spare::none(&self.base.cache);
            spare.grow(count as usize, Effort::NoRetry);
            if spare.len() == 0 {
                self.reclaim.evict(count as usize);
                spare.grow(count as usize, Effort::NoRetry);
            }
            if spare.len() == 0 {
                self.base.local().count(Counter::AllocFail, 1);
                return;
            }
            let had = spare.len() as u64;
            if self.base.cache.rare.strikes(Rare::SlotTaken) || !file.device.slots.try_take(1) {
                return;
            }
            self.base.local().count(Counter::ReadaheadPages, had);
            if !self.start_fill(file, absent.start..absent.start + had, &mut spare, room, None) {
                file.device.slots.give_back(1);
            }
            // Of what it looked at, one run is read, unless frames ended before the run did.
            from = if had == count { end } else { absent.start + had };
        }
    }

    /// The first absent pages of the range that follow each other, with the file's lock held.
    fn absent_run(&self, file: &FileInner, pages: Range<u64>) -> Range<u64> {
        let absent = |page: &u64| self.base.cache.frame_at(&file.pages, *page).is_none();
        let start = pages.clone().find(absent).unwrap_or(pages.end);
        start..(start..pages.end).find(|page| !absent(page)).unwrap_or(pages.end)
    }

    /// Puts absent pages in the index as being read, and submits one request for them: the first
    /// contiguous ones of the range. Pages past the device's end are zeros at once. False if there
    /// was nothing to submit.
    fn start_fill(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        pages: Range<u64>,
        spare: &mut Spare<'_>,
        mut room: ReadRoom,
        demand: Option<Demand<'_>>,
    ) -> bool {
        let demanded_end = demand.as_ref().map_or(0, |demand| demand.end);
        let (pieces, first, sent) = {
            let mut state = lock(&file.state);
            let found = self.occupy_absent(&mut state, file, (pages, demanded_end), spare);
            if found.0.is_empty() {
                return false;
            }
            state.reads_in_flight += 1;
            let sent = Sent::now(file, found.1, found.0.len(), self.base.now());
            (found.0, found.1, sent)
        };
        room.keep(pieces.len() as u64);
        let len = (pieces.len() * FRAME_BYTES) as u32;
        let operation = Operation::Read { offset: first * PAGE_BYTES, len };
        let ends = FillEnds {
            reading: Arc::clone(self),
            file: Arc::clone(file),
            answer: demand.map(|demand| Arc::clone(demand.answer)),
            demanded_end,
            sent,
            _room: room,
        };
        self.submit_read(file, Box::new(ends), sent.at, operation, pieces);
        true
    }

    fn submit_read(
        &self,
        file: &Arc<FileInner>,
        ends: Box<dyn Completion>,
        at: Nanos,
        operation: Operation,
        pieces: Pieces,
    ) {
        self.base.local().count(Counter::ReadRequests, 1);
        let len = pieces.len() * FRAME_BYTES;
        file.device.request_begins(Kind::Read, len as u64, at);
        self.base.local().count(Counter::PageIn, len as u64);
        let memory = FrameMemory::new(Arc::clone(&self.base.cache.frames), pieces);
        self.base.trace_file(at, file, None, || Event::Submitted { operation });
        file.device.submit(Request::new(ends, file.backing.clone(), operation, Some(memory)));
    }

    /// The pieces to read and the first of their pages.
    fn occupy_absent(
        &self,
        state: &mut FileState,
        file: &FileInner,
        (pages, demanded_end): (Range<u64>, u64),
        spare: &mut Spare<'_>,
    ) -> (Pieces, u64) {
        let cache = &self.base.cache;
        let (mut pieces, mut first) = (Pieces::default(), pages.start);
        if state.holds > 0 || state.discarded {
            return (pieces, first);
        }
        for page in pages {
            if cache.frame_at(&file.pages, page).is_some() {
                if pieces.is_empty() { continue } else { break }
            }
            let Some(frame) = spare.take() else { break };
            let identity = file.pages.identity(page);
            cache.pages.set_dirty(frame, Sectors::NONE);
            if page * PAGE_BYTES >= state.host_size {
                cache.zero(frame, 0..FRAME_BYTES);
                cache.pages.set_valid(frame, Sectors::ALL);
                cache.pages.occupy(frame, identity, PRESENT | UPTODATE);
                file.pages.index.insert(&cache.nodes, page, frame);
                let why = if page < demanded_end { Admitted::Demand } else { Admitted::Ahead };
                cache.admit(&file.pages, page, frame, why);
                if pieces.is_empty() { continue } else { break }
            }
            cache.pages.set_valid(frame, Sectors::NONE);
            cache.pages.occupy(frame, identity, PRESENT | READING);
            file.pages.index.insert(&cache.nodes, page, frame);
            if pieces.is_empty() {
                first = page;
            }
            pieces.push(Piece { frame, start: 0, len: FRAME_BYTES as u16 });
        }
        (pieces, first)
    }

    /// Reads what a page lacks into a side frame, merges it, and waits for that.
    pub(super) async fn merge(self: &Arc<Self>, call: &Call<'_>, page: u64) -> Result<(), Error> {
        let file = call.file;
        file.device.reading.take(1).await;
        let room = ReadRoom { device: Arc::clone(&file.device), pages: 1 };
        let mut spare = call.waits(&self.base, Delay::Reclaim, self.reclaim.take_frames(1)).await;
        file.device.slots.take(1).await;
        let answer = Answer::new();
        let side = {
            let mut state = lock(&file.state);
            match self.obstacle(&state, file, page) {
                Obstacle::Partial(frame) => {
                    self.base.cache.pages.change(frame, 0, READING);
                    state.reads_in_flight += 1;
                    let sent = Sent::now(file, page, 1, self.base.now());
                    spare.take().map(|side| (frame, side, sent))
                }
                _ => None,
            }
        };
        let Some((frame, side, sent)) = side else {
            file.device.slots.give_back(1);
            return Ok(());
        };
        let ends = MergeEnds {
            reading: Arc::clone(self),
            file: Arc::clone(file),
            frame,
            side,
            answer: Arc::clone(&answer),
            sent,
            _room: room,
        };
        let operation = Operation::Read { offset: page * PAGE_BYTES, len: FRAME_BYTES as u32 };
        let piece = Piece { frame: side, start: 0, len: FRAME_BYTES as u16 };
        self.submit_read(file, Box::new(ends), sent.at, operation, Pieces::One(piece));
        answer.wait().await.map_err(Error::Device)
    }

    fn read_ended(&self, file: &Arc<FileInner>, operation: Operation, sent: Sent, result: Result<(), DeviceError>) {
        if result.is_err() {
            self.base.local().count(Counter::ReadErrors, 1);
        }
        let (bytes, now) = (sent.pages * PAGE_BYTES, self.base.now());
        file.device.transfer_ends(Kind::Read, bytes, result.is_ok(), (sent.at, now));
        let ns = now.since(sent.at);
        self.base.trace_file(now, file, None, || Event::Completed { operation, ns, error: result.err() });
        if self.base.devices.policy.needs().reads {
            let done = sent.ended(result.is_ok(), now, self.base.platform.unwatched_ns());
            self.base.ask(&file.device, |policy, view, own, shared| {
                policy.completed(view, &done, own, shared);
            });
        }
        file.device.slots.give_back(1);
        let changed = Changed::now();
        file.queue.wake_for(&changed);
        file.cache.memory_queue.wake_for(&changed);
    }
}

/// A read request on its way, as the policy is told of it when it ends.
#[derive(Clone, Copy)]
struct Sent {
    /// 1, or 0 if it begins where the device read last.
    runs: u64,
    pages: u64,
    at: Nanos,
}

impl Sent {
    /// A request for so many pages from the first on, submitted now.
    fn now(file: &FileInner, first: u64, count: usize, now: Nanos) -> Self {
        let pages = count as u64;
        let reads_on = file.device.reads_on(first, (file.pages.slot, first + pages));
        Self { runs: u64::from(!reads_on), pages, at: now }
    }

    fn ended(self, moved: bool, now: Nanos, unwatched_ns: u64) -> Completed {
        let (direction, pages) = (Direction::Read, if moved { self.pages } else { 0 });
        let latency_ns = now.since(self.at);
        let (bytes, unwatched_ns) = (pages * PAGE_BYTES, unwatched_ns.min(latency_ns));
        Completed { direction, runs: self.runs, pages, bytes, latency_ns, unwatched_ns, ..Completed::default() }
    }
}

/// Frames that a read holds until it ends, counted at its device.
struct ReadRoom {
    device: Arc<DeviceState>,
    pages: u64,
}

impl ReadRoom {
    /// Gives back what is above `pages`.
    fn keep(&mut self, pages: u64) {
        self.device.reading.give_back(self.pages.saturating_sub(pages));
        self.pages = self.pages.min(pages);
    }
}

impl Drop for ReadRoom {
    fn drop(&mut self) {
        self.device.reading.give_back(self.pages);
    }
}

/// The end of a request that reads whole pages.
struct FillEnds<P: Platform> {
    reading: Arc<Reading<P>>,
    file: Arc<FileInner>,
    _room: ReadRoom,
    answer: Option<Arc<Answer<Result<(), DeviceError>>>>,
    /// Pages from here on nobody has asked for.
    demanded_end: u64,
    sent: Sent,
}

impl<P: Platform> Completion for FillEnds<P> {
    fn completed(self: Box<Self>, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let (reading, file) = (&self.reading, &self.file);
        let cache = &reading.base.cache;
        let pieces = memory.as_ref().map_or(&[][..], FrameMemory::pieces);
        {
            let mut state = lock(&file.state);
            for piece in pieces {
                let frame = piece.frame;
                if !cache.pages.word(frame).has(PRESENT) {
                    cache.pages.change(frame, READING, 0);
                } else if result.is_ok() {
                    cache.pages.set_valid(frame, Sectors::ALL);
                    cache.pages.change(frame, READING, UPTODATE);
                    let page = cache.pages.identity(frame).index;
                    let why = if page < self.demanded_end { Admitted::Demand } else { Admitted::Ahead };
                    cache.admit(&file.pages, page, frame, why);
                } else {
                    file.pages.index.remove(&cache.nodes, cache.pages.identity(frame).index);
                    cache.pages.detach(frame);
                    cache.pages.change(frame, READING, 0);
                }
            }
            state.reads_in_flight -= 1;
            // A turn of the flusher that found nothing may have left the file to the end of this.
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
        reading.read_ended(file, operation, self.sent, result);
    }
}

/// The end of a request that reads what a page lacks.
struct MergeEnds<P: Platform> {
    reading: Arc<Reading<P>>,
    file: Arc<FileInner>,
    frame: FrameId,
    side: FrameId,
    answer: Arc<Answer<Result<(), DeviceError>>>,
    sent: Sent,
    _room: ReadRoom,
}

impl<P: Platform> Completion for MergeEnds<P> {
    fn completed(self: Box<Self>, operation: Operation, _: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let (reading, file, frame) = (&self.reading, &self.file, self.frame);
        let cache = &reading.base.cache;
        {
            let mut state = lock(&file.state);
            let mut set = 0;
            if result.is_ok() && cache.pages.word(frame).has(PRESENT) {
                let valid = cache.pages.valid(frame);
                for sector in Sectors::ALL.without(valid).iter() {
                    let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    cache.copy_between(self.side, frame, bytes);
                }
                cache.pages.set_valid(frame, Sectors::ALL);
                set = UPTODATE;
            }
            let word = cache.pages.change(frame, READING, set);
            if word.has(PRESENT) && !word.any(DIRTY) {
                // A look for victims passes over pages that are being read.
                cache.note_clean(frame);
            }
            state.reads_in_flight -= 1;
            // The flusher passes by pages that are being read.
            file.requeue(&mut state, reading.base.now());
        }
        cache.release(frame);
        cache.free_frame(self.side);
        cache.page_queue(frame).wake_all();
        self.answer.give(result);
        reading.read_ended(file, operation, self.sent, result);
    }
}
