//! The requests in flight to a device: the slots for more, the policy's limits, and the division of the device's time
//! between syncs and the rest.
//!
//! Each request has one record here, from `begin` to `end`. These two functions and `try_set_aside` change the sums
//! over the records, and nothing else does. The policy, the hang watch and `stat` see these sums.
//!
//! A device, or the scheduler before it, may let a stream pass a sync's write again and again. If the policy says how
//! long syncs go first, nothing else is submitted while a passed write of a sync is in flight. That write then waits
//! for the requests in flight, and no longer. All writes in flight to a sync's file count as the sync's, even if
//! submitted for another reason: the sync waits for them.
//!
//! A request may stay in the device for long while others come and go. For example, a program holds the lock of its
//! file in the host, or a part of a disk fails slowly. Such a request is set aside. Its slot goes to another request,
//! so a few files cannot take all slots.
//!
//! Owns: the slots for transfers and for calls without data, the frames of reads in flight, the records, their sums and
//! their lock. Also: the policy's answer, how much more than the rest syncs have used, which of their writes were
//! passed; the law of readahead in force, whether the device hangs.
//! Does not own: the file's part in a beginning and an end (`file`), the learning from ends (`usage`), the pages in
//! flight (`charges`), the waiting for a request to end (`writeback`), the time that is too long (the policy), the
//! checks (`writeback::hang_watch`).
//! Invariants: no policy is asked at a submission. With nothing in flight a request may always follow. Cost is never
//! summed up but multiplied anew, so that new prices hold for all requests in flight. A request ends once, in whatever
//! state, and leaves nothing in the sums (`a_request_that_ends_in_any_state_leaves_all_sums_at_zero`). A request is set
//! aside once at most, and while it is in flight. The requests set aside are no more than the device's slots. A later
//! number in flight is higher. An end takes a hang back. The lock of the records is a leaf.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use afflux_device::platform::Nanos;
use afflux_device::policy::{AtEnd, Cost, Flight, Prices};
use afflux_pages::sync::OwnLines;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Permits, WaitQueue, lock};

use crate::devices::failures::Amount;
use crate::devices::hang::HangState;
use crate::devices::usage::{RequestStream, TransferKind, Usage};
use crate::readahead::prices::{SharedWindowSizes, WindowSizes};

/// The part of the limit in flight that remains while a change of names is being made durable. Such a change is mostly
/// a few small writes one after the other, each of which would wait for all the data before it.
const NAMES_PART: u64 = 8;

/// A seek to the sync's position, and one back.
const SEEKS_OF_SYNC: u64 = 2;

/// Requests in flight, and their limits.
pub(crate) struct InFlight {
    terms: Mutex<Terms>,
    /// The most requests set aside.
    aside_max: u32,
    counted: OwnLines<Mutex<Counted>>,
    waiting: AtomicU32,
    /// Changes of names being made durable.
    names: AtomicU32,
    /// How far to read ahead, given the cost of reads.
    read_windows: SharedWindowSizes,
    pub(super) hang: HangState,
}

/// The records of requests, and the sums over them. The fields that a read changes come first, on few cache lines:
/// readers on many threads contend for them.
#[derive(Default)]
#[repr(C)]
pub(super) struct Counted {
    requests: InOrder<RequestInFlight>,
    pub(super) usage: Usage,
    /// Bytes and runs of writes that are not set aside.
    pub(super) write_bytes: u64,
    pub(super) runs: u64,
    /// Requests set aside, and the pages of writes among them.
    aside: u32,
    pub(super) aside_pages: u64,
    /// How many writes in flight a sync waits for.
    awaited: u32,
    syncing: BTreeSet<u32>,
    /// The last submitted of the ended writes whose order counts.
    ended: u64,
    /// How much more than the rest syncs have used, by cost.
    lead: u64,
}

/// The load of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    pub kind: TransferKind,
    /// Its first page and their number, in whole or in part; no pages if it moves no bytes.
    pub first: u64,
    pub pages: u64,
    pub bytes: u64,
    /// Of a write: 1, or 0 if it continues the file's last write. Of a read, from its beginning on: 0 if it continues
    /// the device's last read.
    pub runs: u64,
    pub for_sync: bool,
}

impl Load {
    /// A request that moves no bytes.
    pub(crate) const CALL: Self =
        Self { kind: TransferKind::Other, first: 0, pages: 0, bytes: 0, runs: 0, for_sync: false };

    /// A read of whole pages.
    pub(crate) fn read(first: u64, pages: u64) -> Self {
        Self { kind: TransferKind::Read, first, pages, bytes: pages * PAGE_BYTES, ..Self::CALL }
    }

    /// The dirty pages that it carries, as one run or none.
    pub(super) fn dirty(&self) -> Amount {
        match self.kind {
            TransferKind::Write => Amount { pages: self.pages, runs: self.runs },
            TransferKind::Read | TransferKind::Other => Amount::default(),
        }
    }
}

/// The record of a request, from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestInFlight {
    /// The file, by its slot.
    pub file: u32,
    pub load: Load,
    /// When it was submitted.
    pub submitted: Nanos,
    /// Whether it was set aside, and its slot given to another.
    is_aside: bool,
    /// Whether a sync waits for it; `None` if its order does not count.
    is_awaited: Option<bool>,
    /// How long the hang watch has seen it in the device.
    seen_ns: Option<u64>,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedRequest {
    pub load: Load,
    /// Bytes moved: 0 if it failed.
    pub bytes: u64,
    pub at: Nanos,
    /// From its submission on.
    pub latency_ns: u64,
    /// Whether it was set aside: it has no slot.
    pub was_aside: bool,
    /// The device at that instant; `None` if the request was set aside, or moves no bytes.
    pub device: Option<AtEnd>,
}

/// The policy's last answer, which holds until its next.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// How much may be in flight.
    pub flight: Flight,
    pub(super) prices: Prices,
}

impl Terms {
    /// The prices of writes, if their order counts.
    fn prices_of_order(&self) -> Option<Prices> {
        (self.flight.sync_lead != Cost::MAX).then_some(self.prices)
    }
}

impl Counted {
    /// A write is submitted whose order counts. Returns whether a sync waits for it.
    fn order(&mut self, file: u32, load: &Load, prices: Prices) -> bool {
        let cost = |seeks| prices.of(load.pages, load.runs * seeks).0;
        self.lead = match load.for_sync {
            true => self.lead.saturating_add(cost(SEEKS_OF_SYNC)),
            false => self.lead.saturating_sub(cost(1)),
        };
        let is_awaited = load.for_sync || self.syncing.contains(&file);
        self.awaited += u32::from(is_awaited);
        is_awaited
    }

    /// A request ends, or is set aside: it leaves the sums over those that are in flight.
    fn leave(&mut self, request: &RequestInFlight) {
        if request.load.kind == TransferKind::Write {
            self.write_bytes -= request.load.bytes;
            self.runs -= request.load.runs;
            self.awaited -= u32::from(request.is_awaited == Some(true));
        }
    }

    fn at_end(&mut self, now: Nanos) -> AtEnd {
        let (busy, oldest_in_flight) = (self.usage.clocks.times(now), self.oldest());
        AtEnd { busy, oldest_in_flight, bytes_in_flight: self.write_bytes }
    }

    /// When the oldest of the reads and writes in flight was submitted, except for late reports.
    pub(super) fn oldest(&self) -> Option<Nanos> {
        self.requests.first(RequestInFlight::is_moving).map(|(_, request)| request.submitted)
    }
}

impl RequestInFlight {
    /// Whether the device moves its bytes, as far as is known.
    fn is_moving(&self) -> bool {
        !self.is_aside && self.load.kind != TransferKind::Other
    }
}

/// The only functions that change what is in flight.
impl InFlight {
    /// A request of the file in the slot `file` is about to be submitted. Returns its number, which no other request of
    /// the device ever has.
    pub(super) fn begin(&self, file: u32, mut load: Load, now: Nanos) -> u64 {
        let prices = if load.kind == TransferKind::Write { lock(&self.terms).prices_of_order() } else { None };
        let number = {
            let counted = &mut *self.counted();
            match load.kind {
                TransferKind::Read => {
                    let end = load.first + load.pages;
                    load.runs = u64::from(!counted.usage.try_continue(RequestStream::Reads, file, load.first, end));
                }
                TransferKind::Write => {
                    counted.write_bytes += load.bytes;
                    counted.runs += load.runs;
                }
                TransferKind::Other => {}
            }
            let is_awaited = prices.map(|prices| counted.order(file, &load, prices));
            counted.usage.begins(load.kind, now);
            let (is_aside, seen_ns) = (false, None);
            counted.requests.begin(RequestInFlight { file, load, submitted: now, is_aside, is_awaited, seen_ns })
        };
        self.hang.begins();
        number
    }

    /// Sets a request aside, unless it has ended or as many as the device has slots are. Returns its load; the caller
    /// gives the slot back. From now on the request has no cost, and no sync puts it before others.
    pub(super) fn try_set_aside(&self, number: u64, now: Nanos) -> Option<Load> {
        let counted = &mut *self.counted();
        let has_slot = counted.aside < self.aside_max;
        let request = counted.requests.get_mut(number).filter(|request| has_slot && !request.is_aside)?;
        let before = *request;
        (request.is_aside, request.is_awaited) = (true, before.is_awaited.map(|_| false));
        counted.leave(&before);
        counted.aside += 1;
        counted.aside_pages += before.load.dirty().pages;
        counted.usage.set_aside(before.load.kind, now);
        Some(before.load)
    }

    /// A request has ended.
    pub(super) fn end(&self, number: u64, succeeds: bool, now: Nanos) -> EndedRequest {
        let mut guard = self.counted();
        let counted = &mut *guard;
        let request = counted.requests.end(number).expect("a request ends once");
        let RequestInFlight { load, submitted, is_aside, is_awaited, .. } = request;
        let bytes = if succeeds { load.bytes } else { 0 };
        if is_awaited.is_some() {
            counted.ended = counted.ended.max(number);
        }
        let mut device = None;
        if is_aside {
            counted.aside -= 1;
            counted.aside_pages -= load.dirty().pages;
            counted.usage.aside_ends(load.kind, bytes, now);
        } else {
            counted.leave(&request);
            if let Some(window_sizes) = counted.usage.ends(load.kind, load.runs, bytes, submitted, now) {
                self.read_windows.set(window_sizes);
            }
            device = (load.kind != TransferKind::Other).then(|| counted.at_end(now));
        }
        drop(guard);
        self.hang.ends();
        EndedRequest { load, bytes, at: now, latency_ns: now.since(submitted), was_aside: is_aside, device }
    }
}

impl InFlight {
    /// The knobs' limits, until the policy is asked. For a device with `slots` slots.
    pub(super) fn new(slots: u32, is_store: bool) -> Self {
        let usage = Usage::new(is_store);
        let read_windows = SharedWindowSizes::new(usage.window_sizes());
        Self {
            terms: Mutex::new(Terms { flight: Flight::BY_KNOBS, prices: Prices::PAGES }),
            aside_max: slots,
            counted: OwnLines(Mutex::new(Counted { usage, ..Counted::default() })),
            waiting: AtomicU32::new(0),
            names: AtomicU32::new(0),
            read_windows,
            hang: HangState::new(),
        }
    }

    pub(super) fn counted(&self) -> MutexGuard<'_, Counted> {
        lock(&self.counted)
    }

    /// The policy's answer. A step that needs several of its figures asks once.
    pub(crate) fn terms(&self) -> Terms {
        *lock(&self.terms)
    }

    /// Sets the policy's answer.
    pub(super) fn set(&self, terms: Terms) {
        *lock(&self.terms) = terms;
    }

    /// How much may be in flight, by the policy's last answer.
    pub(crate) fn allowed(&self) -> Flight {
        self.terms().flight
    }

    /// The most requests at this moment, with so many pages in flight; never more than `most`. Requests set aside cost
    /// nothing.
    pub(super) fn requests_now(&self, terms: &Terms, most: u32, pages: u64) -> u32 {
        let Terms { flight, prices } = terms;
        let (mut always, mut cost_max) = (flight.requests.max(1), flight.cost_max);
        if cost_max != Cost::MAX && self.names.load(Ordering::Relaxed) > 0 {
            (always, cost_max) = (1, Cost(cost_max.0 / NAMES_PART));
        }
        if always >= most {
            return most;
        }
        let (runs, aside_pages) = {
            let counted = self.counted();
            (counted.runs, counted.aside_pages)
        };
        if prices.of(pages.saturating_sub(aside_pages), runs) < cost_max { most } else { always }
    }

    /// A change of names begins to be made durable.
    pub(crate) fn names_begin(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// A change of names is durable, or failed; returns whether it was the last.
    pub(crate) fn remove_name(&self) -> bool {
        self.names.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Until the answer is dropped, a sync of the file in `slot` waits for all requests in flight to it.
    pub(crate) fn sync_waits(&self, slot: u32) -> SyncWaits<'_> {
        let Counted { requests, awaited, syncing, .. } = &mut *self.counted();
        syncing.insert(slot);
        let of_file = requests.values_mut().filter(|request| request.file == slot && !request.is_aside);
        for is_awaited in of_file.filter_map(|request| request.is_awaited.as_mut()) {
            *awaited += u32::from(!std::mem::replace(is_awaited, true));
        }
        SyncWaits { in_flight: self, slot }
    }

    /// Whether a write submitted after a sync's write has ended before it.
    pub(super) fn was_sync_passed(&self) -> bool {
        let counted = self.counted();
        let first = || counted.requests.first(|request| request.is_awaited == Some(true));
        counted.awaited > 0 && first().is_some_and(|(first, _)| *first < counted.ended)
    }

    /// Whether syncs have used enough for other writes, if any, to come next.
    pub(crate) fn is_sync_ahead(&self) -> bool {
        self.is_sync_ahead_by(&self.terms())
    }

    /// As [`InFlight::is_sync_ahead`], under this answer of the policy.
    pub(crate) fn is_sync_ahead_by(&self, terms: &Terms) -> bool {
        let lead_max = terms.flight.sync_lead;
        lead_max != Cost::MAX && Cost(self.counted().lead) >= lead_max
    }

    /// Only syncs have work, so their use beyond the lead delayed no other write.
    pub(crate) fn nothing_but_syncs(&self) {
        let lead_max = self.allowed().sync_lead.0;
        let mut counted = self.counted();
        counted.lead = counted.lead.min(lead_max);
    }

    /// A request of this stream from page `first` up to `end` of a file is about to be submitted; returns whether the
    /// one before it ended there.
    pub(crate) fn try_continue(&self, stream: RequestStream, file: u32, first: u64, end: u64) -> bool {
        self.counted().usage.try_continue(stream, file, first, end)
    }

    /// How far to read ahead.
    pub(crate) fn read_windows(&self) -> WindowSizes {
        self.read_windows.get()
    }

    /// Until the answer is dropped, a task waits to submit.
    pub(crate) fn waits(&self) -> SubmitWait<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        SubmitWait(self)
    }

    /// Whether a task waits to submit.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// For the hang watch.
impl InFlight {
    /// Since when the device has completed nothing; `None` if nothing is in flight.
    pub(crate) fn stalled_since(&self) -> Option<Nanos> {
        self.counted().usage.clocks.stalled_since()
    }

    /// Stops the watch until a request is in flight; false if one is.
    pub(crate) fn try_unwatch(&self) -> bool {
        self.hang.set_watched(false);
        let idle = self.stalled_since().is_none();
        if !idle {
            self.hang.set_watched(true);
        }
        idle
    }

    /// The device hangs since `since`, and refuses its writers or does not; false if it has gone on.
    pub(crate) fn try_mark_hanging(&self, since: Nanos, refuses: bool) -> bool {
        let hangs = {
            // A request that ends meanwhile resets this afterwards.
            let counted = self.counted();
            let hangs = counted.usage.clocks.stalled_since() == Some(since);
            if hangs {
                self.hang.set(true, refuses);
            }
            hangs
        };
        if hangs && refuses {
            self.hang.wake_waiters();
        }
        hangs
    }

    /// So much more time was watched. Returns the longest time for which the watch has seen a read or write.
    pub(crate) fn watched(&self, passed_ns: u64) -> u64 {
        let mut counted = self.counted();
        let moving = counted.requests.values_mut().filter(|request| request.is_moving());
        let seen = moving.map(|request| *request.seen_ns.insert(request.seen_ns.map_or(0, |ns| ns + passed_ns)));
        seen.max().unwrap_or(0)
    }

    /// The first read or write, from a number on, that the watch has seen for `most_ns` and longer.
    pub(crate) fn overdue(&self, from: u64, most_ns: u64) -> Option<(u64, RequestInFlight)> {
        let is_overdue = |request: &RequestInFlight| request.is_moving() && request.seen_ns.unwrap_or(0) >= most_ns;
        let counted = self.counted();
        counted.requests.in_flight.iter().find(|(number, request)| *number >= from && is_overdue(request)).copied()
    }
}

/// A sync's wait for the requests in flight to its file; at most one for each file.
pub(crate) struct SyncWaits<'a> {
    in_flight: &'a InFlight,
    slot: u32,
}

impl Drop for SyncWaits<'_> {
    fn drop(&mut self) {
        self.in_flight.counted().syncing.remove(&self.slot);
    }
}

/// A task's wait to submit.
pub(crate) struct SubmitWait<'a>(&'a InFlight);

impl Drop for SubmitWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct InOrder<T> {
    next: u64,
    /// In the order of their numbers.
    in_flight: VecDeque<(u64, T)>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { next: 0, in_flight: VecDeque::new() }
    }
}

impl<T> InOrder<T> {
    pub(crate) fn begin(&mut self, value: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.in_flight.push_back((number, value));
        number
    }

    /// Ends a number. None if it has ended before.
    pub(crate) fn end(&mut self, number: u64) -> Option<T> {
        // Mostly the first ends first.
        if self.in_flight.front()?.0 == number {
            return self.in_flight.pop_front().map(|(_, value)| value);
        }
        let at = self.position(number)?;
        self.in_flight.remove(at).map(|(_, value)| value)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.in_flight.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    /// The number of the next that begins.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The first in flight that is `wanted`.
    pub(crate) fn first(&self, wanted: impl Fn(&T) -> bool) -> Option<&(u64, T)> {
        let first = self.in_flight.front()?;
        if wanted(&first.1) { Some(first) } else { self.in_flight.iter().find(|(_, value)| wanted(value)) }
    }

    /// The value of a number in flight.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = self.position(number)?;
        self.in_flight.get_mut(at).map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.in_flight.iter_mut().map(|(_, value)| value)
    }
}

pub(crate) struct Requests {
    pub(super) slots: Permits,
    /// Syncs, reservations and changes of shape in flight. They have slots of their own: many files whose syncs do not
    /// end leave reads and writes theirs.
    pub calls: Permits,
    pub(super) read_frames: Permits,
    /// Writes in flight, or about to be submitted.
    writes: AtomicU32,
    write_ended: WaitQueue,
}

impl Requests {
    /// A device with `slots` slots. Reads have no frames until a limit is set.
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots: Permits::new(slots.into()),
            calls: Permits::new(slots.into()),
            read_frames: Permits::new(0),
            writes: AtomicU32::new(0),
            write_ended: WaitQueue::new(),
        }
    }

    pub(crate) fn writes(&self) -> u64 {
        u64::from(self.writes.load(Ordering::Relaxed))
    }

    /// Counts one more write in flight unless there are `most`.
    pub(crate) fn try_count_write(&self, most: u32) -> bool {
        let more = |count| (count < most).then_some(count + 1);
        self.writes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts one write less in flight.
    pub(crate) fn uncount_write(&self) {
        let before = self.writes.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a write ends that was not counted");
    }

    /// Tasks that wait for a write to end, to take over its request.
    pub(crate) fn write_ended(&self) -> &WaitQueue {
        &self.write_ended
    }
}

#[cfg(test)]
mod tests;
