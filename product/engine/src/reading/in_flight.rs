//! Reads in flight: how a read begins, is carried out and ends, and what its end does to its pages.
//!
//! Owns: reads from their beginning to their end, with the frames, the quota and the slot that they hold.
//! Does not own: their pages and resources before that, and who waits (`miss`); readahead (`ahead`).
//! Invariants: every read begins in `begins` and ends in `end`: absent pages and partial ones, as a request and on a
//! caller's thread. So other readers of its pages wait for it and are woken (`others_wait_for_a_read_in_the_call`). A
//! page being read is in the index. A failed read takes its pages out again. Nothing is submitted with the file's lock
//! held.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::error::DeviceError;
use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::{Completed, Direction};
use afflux_device::request::{Completion, Operation, Request, TransferHere};
use afflux_frames::FrameId;
use afflux_pages::eviction::{Admitted, Arrival};
use afflux_pages::memory::{FrameMemory, Piece, Pieces};
use afflux_pages::page::{DIRTY, PRESENT, READING, SECTOR_BYTES, Sectors, UPTODATE};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, Changed, lock};

use super::Reading;
use crate::devices::DeviceState;
use crate::devices::file::{FileInner, FileState};
use crate::devices::in_flight::{EndedRequest, Load};
use crate::trace::EngineEvent;

/// The pages of a read.
pub(super) enum ReadKind {
    /// They were absent. Nobody has asked for those from `demanded_end` on.
    Absent { demanded_end: u64 },
    /// A page without some sectors, in this frame. The read brings all sectors into a frame beside it.
    Partial(FrameId),
}

/// A read that has begun: its pages are in the index as being read. It is carried out once the file's lock is free.
pub(super) struct ReadInFlight<P: Platform> {
    reading: Arc<Reading<P>>,
    file: Arc<FileInner>,
    /// It holds the device's quota for so many frames.
    pub(super) pages: Range<u64>,
    /// `None` while a request has it.
    memory: Option<FrameMemory>,
    kind: ReadKind,
    /// When it began.
    pub(super) at: Nanos,
    /// Its number at the device.
    number: u64,
    /// For the reader that waits.
    answer: Option<Arc<Answer<Result<(), DeviceError>>>>,
}

impl<P: Platform> ReadInFlight<P> {
    /// A read begins, with a slot of the device, and with its quota for as many frames as there are pieces.
    pub(super) fn begins(
        reading: &Arc<Reading<P>>,
        state: &mut FileState,
        file: &Arc<FileInner>,
        first: u64,
        pieces: Pieces,
        kind: ReadKind,
        at: Nanos,
    ) -> Self {
        let count = pieces.len() as u64;
        state.flight.read_begins(count);
        let (number, pages) = (file.request_begins(Load::read(first, count), at), first..first + count);
        let memory = Some(FrameMemory::new(Arc::clone(&reading.arena), pieces));
        let (reading, file) = (Arc::clone(reading), Arc::clone(file));
        Self { reading, file, pages, memory, kind, at, number, answer: None }
    }

    /// Submits it as a request. `answer`: for a reader that waits for it.
    pub(super) fn submit(mut self, device: &DeviceState, answer: Option<Arc<Answer<Result<(), DeviceError>>>>) {
        self.note_sent();
        let (operation, backing, memory) = (self.operation(), self.file.backing.clone(), self.memory.take());
        let is_ahead = answer.is_none();
        self.answer = answer;
        device.hardware.submit(Request::new(Box::new(self), backing, operation, memory).ahead(is_ahead));
    }

    /// Carries it out on this thread, if the device can. Returns how and when it ended.
    pub(super) fn try_here(&self) -> Option<(Result<(), DeviceError>, Nanos)> {
        let (file, memory) = (&self.file, self.memory.as_ref()?);
        let read = TransferHere::new(&file.backing, self.pages.start * PAGE_BYTES, memory);
        let result = file.device.hardware.read_here(&read)?;
        self.note_sent();
        Some((result, self.end(memory.pieces(), result)))
    }

    fn operation(&self) -> Operation {
        let Range { start, end } = self.pages;
        Operation::Read { offset: start * PAGE_BYTES, len: ((end - start) * PAGE_BYTES) as u32 }
    }

    /// Counts a read that is about to be carried out.
    fn note_sent(&self) {
        let base = &self.reading.base;
        base.local().count(Counter::ReadRequests, 1);
        base.local().count(Counter::PageIn, (self.pages.end - self.pages.start) * PAGE_BYTES);
        base.trace_file(self.at, &self.file, None, || EngineEvent::Submitted { operation: self.operation() });
    }

    /// The read has ended: its pages are there, or gone again. Returns the instant.
    fn end(&self, pieces: &[Piece], result: Result<(), DeviceError>) -> Nanos {
        let (base, file) = (&self.reading.base, &self.file);
        let (cache, count) = (&base.cache, self.pages.end - self.pages.start);
        let ended = file.request_ends(self.number, result.is_ok(), base.now());
        {
            let mut state = lock(&file.state);
            match self.kind {
                ReadKind::Absent { demanded_end } => self.fill_pages(demanded_end, pieces, result),
                ReadKind::Partial(frame) => self.complete_page(frame, pieces, result),
            }
            state.flight.read_ends(count);
            // The flusher passes over pages that are being read, and may have delisted the file until this read ends.
            file.requeue(&mut state, ended.at);
        }
        let changed = Changed::now();
        for piece in pieces {
            let frame = if let ReadKind::Partial(frame) = self.kind { frame } else { piece.frame };
            cache.release(frame);
            if frame != piece.frame {
                cache.free_frame(piece.frame);
            }
            cache.page_queue(frame).wake_for(&changed);
        }
        if let Some(answer) = &self.answer {
            answer.give(result);
        }
        cache.rare_wake();
        self.tell(&ended, result);
        let changed = Changed::now();
        file.queue.wake_for(&changed);
        cache.memory_queue.wake_for(&changed);
        file.device.read_frames().give_back(count);
        ended.at
    }

    /// With the file's lock held: the pages that were absent are there, or gone again.
    fn fill_pages(&self, demanded_end: u64, pieces: &[Piece], result: Result<(), DeviceError>) {
        let (file, cache) = (&self.file, &self.reading.base.cache);
        let mut arrivals = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let frame = piece.frame;
            if !cache.pages.word(frame).has(PRESENT) {
                cache.pages.change(frame, READING, 0);
            } else if result.is_ok() {
                let page = cache.pages.identity(frame).index;
                let why = if page < demanded_end { Admitted::Demand } else { Admitted::Ahead };
                cache.pages.change(frame, READING, UPTODATE);
                arrivals.push(Arrival { frame, key: file.pages.key(page), why });
            } else {
                file.pages.index.remove(&cache.nodes, cache.pages.identity(frame).index);
                cache.pages.detach(frame);
                cache.pages.change(frame, READING, 0);
            }
        }
        cache.admit_all(&arrivals);
    }

    /// With the file's lock held: the partial page has all its sectors, or those that it had.
    fn complete_page(&self, frame: FrameId, pieces: &[Piece], result: Result<(), DeviceError>) {
        let cache = &self.reading.base.cache;
        let mut set = 0;
        if result.is_ok() && cache.pages.word(frame).has(PRESENT) {
            let valid = cache.pages.valid(frame);
            for sector in Sectors::ALL.without(valid).iter() {
                let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                pieces.iter().for_each(|piece| cache.copy_between(piece.frame, frame, bytes.clone()));
            }
            set = UPTODATE;
        }
        let word = cache.pages.change(frame, READING, set);
        if word.has(PRESENT) && !word.has_any(DIRTY) {
            // Searches for victims pass over pages that are being read.
            cache.note_clean(frame);
        }
    }

    /// Records the end, reports it to the policy, and gives the slot back.
    fn tell(&self, ended: &EndedRequest, result: Result<(), DeviceError>) {
        let (base, device) = (&self.reading.base, &self.file.device);
        let EndedRequest { load, bytes, at, latency_ns, device: at_end, .. } = *ended;
        if result.is_err() {
            base.local().count(Counter::ReadErrors, 1);
        }
        let (operation, error) = (self.operation(), result.err());
        base.trace_file(at, &self.file, None, || EngineEvent::Completed { operation, ns: latency_ns, error });
        // Of a request that was set aside, the latency is not the device's alone, and another request has the slot.
        let Some(at_end) = at_end else { return };
        if base.devices.policy.needs().reads {
            let unwatched_ns = base.platform.unwatched_ns().min(latency_ns);
            let (direction, runs, pages, rest) = (Direction::Read, load.runs, bytes / PAGE_BYTES, Completed::default());
            let done =
                Completed { direction, at, device: at_end, runs, pages, bytes, latency_ns, unwatched_ns, ..rest };
            base.devices.request_ended(device, base.moment_at(at), done);
        }
        device.slots().give_back(1);
    }
}

impl<P: Platform> Completion for ReadInFlight<P> {
    fn completed(self: Box<Self>, _: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        self.end(memory.as_ref().map_or(&[][..], FrameMemory::pieces), result);
    }
}
