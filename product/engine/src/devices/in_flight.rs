//! The requests in flight to a device: the slots for more, the policy's limits, and the division of the device's time
//! between syncs and the rest.
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
//! Owns: the slots for transfers and for calls without data, the frames of reads in flight, an entry for each request,
//! the mark of a request set aside. Also: the policy's answer, the runs in flight, how much more than the rest syncs
//! have used, which of their writes were passed.
//! Does not own: the pages in flight (`charges`), the waiting for a request to end (`writeback`), the time that is too
//! long (the policy), the checks (`writeback::hang_watch`).
//! Invariants: no policy is asked at a submission. With nothing in flight a request may always follow. Cost is never
//! summed up but multiplied anew, so that new prices hold for all requests in flight. A write that ends was counted. A
//! request is set aside once at most, and while it is in flight. The requests set aside are no more than the device's
//! slots, so a request with a slot always finds an entry. A later number in flight is higher, and ends once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afflux_device::platform::Nanos;
use afflux_device::policy::{Cost, Flight, Prices};
use afflux_pages::wait::{Permits, WaitQueue, lock};

use crate::devices::failures::Amount;

/// The part of the limit in flight that remains while a change of names is being made durable. Such a change is mostly
/// a few small writes one after the other, each of which would wait for all the data before it.
const NAMES_PART: u64 = 8;

/// A seek to the sync's position, and one back.
const SEEKS_OF_SYNC: u64 = 2;

/// Requests in flight, and their limits.
pub(crate) struct InFlight {
    terms: Mutex<Terms>,
    runs: AtomicU64,
    /// Pages in flight whose requests are set aside.
    aside_pages: AtomicU64,
    waiting: AtomicU32,
    /// Changes of names being made durable.
    names: AtomicU32,
    /// How much more than the rest syncs have used, by cost.
    lead: AtomicU64,
    order: Mutex<Order>,
}

/// The order in which writes were submitted and have ended.
#[derive(Default)]
struct Order {
    in_flight: InOrder<OneWrite>,
    /// The last submitted of the ended writes.
    ended: u64,
    /// How many writes in flight a sync waits for.
    awaited: u32,
    syncing: BTreeSet<u32>,
}

/// A write in flight.
struct OneWrite {
    /// Its file, by the slot.
    file: u32,
    /// Whether a sync waits for it.
    is_awaited: bool,
}

impl Order {
    fn leave(&mut self, number: u64) {
        let write = self.in_flight.end(number);
        self.awaited -= u32::from(write.is_some_and(|write| write.is_awaited));
    }
}

/// A write in flight, as its device counts it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    runs: u64,
    /// Its position in the order of submission, if that order is recorded.
    number: Option<u64>,
}

impl Ticket {
    /// The load of its request, with `pages` pages.
    pub(super) fn amount(self, pages: u64) -> Amount {
        Amount { pages, runs: self.runs }
    }
}

/// The policy's last answer, which holds until its next.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// How much may be in flight.
    pub flight: Flight,
    pub(super) prices: Prices,
}

impl InFlight {
    /// The knobs' limits, until the policy is asked.
    pub(super) fn new() -> Self {
        let terms = Terms { flight: Flight::BY_KNOBS, prices: Prices::PAGES };
        let (runs, aside_pages, lead) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (waiting, names) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { terms: Mutex::new(terms), runs, aside_pages, waiting, names, lead, order: Mutex::default() }
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
        let pages = pages.saturating_sub(self.aside_pages());
        let Terms { flight, prices } = terms;
        let (mut always, mut cost_max) = (flight.requests.max(1), flight.cost_max);
        if cost_max != Cost::MAX && self.names.load(Ordering::Relaxed) > 0 {
            (always, cost_max) = (1, Cost(cost_max.0 / NAMES_PART));
        }
        if always >= most || prices.of(pages, self.runs()) < cost_max { most } else { always }
    }

    /// A change of names begins to be made durable.
    pub(crate) fn names_begin(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// A change of names is durable, or failed; returns whether it was the last.
    pub(crate) fn remove_name(&self) -> bool {
        self.names.fetch_sub(1, Ordering::Relaxed) == 1
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// A request with `pages` pages of the file in `slot` is submitted, for a sync or for another reason.
    pub(crate) fn begin(&self, slot: u32, pages: u64, runs: u64, for_sync: bool) -> Ticket {
        self.runs.fetch_add(runs, Ordering::Relaxed);
        let Terms { flight, prices } = self.terms();
        if flight.sync_lead == Cost::MAX {
            return Ticket { runs, number: None };
        }
        let changed = |lead: u64| match for_sync {
            true => Some(lead.saturating_add(prices.of(pages, runs * SEEKS_OF_SYNC).0)),
            false => Some(lead.saturating_sub(prices.of(pages, runs).0)),
        };
        let _ = self.lead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
        let mut order = lock(&self.order);
        let is_awaited = for_sync || order.syncing.contains(&slot);
        order.awaited += u32::from(is_awaited);
        let number = order.in_flight.begin(OneWrite { file: slot, is_awaited });
        Ticket { runs, number: Some(number) }
    }

    /// A write has ended.
    pub(crate) fn end(&self, ticket: Ticket) {
        self.runs.fetch_sub(ticket.runs, Ordering::Relaxed);
        if let Some(number) = ticket.number {
            let mut order = lock(&self.order);
            order.leave(number);
            order.ended = order.ended.max(number);
        }
    }

    /// A request with `pages` pages no longer counts, and no sync waits for it ahead of other requests.
    pub(super) fn set_aside(&self, ticket: Ticket, pages: u64) {
        self.aside_pages.fetch_add(pages, Ordering::Relaxed);
        self.runs.fetch_sub(ticket.runs, Ordering::Relaxed);
        if let Some(number) = ticket.number {
            lock(&self.order).leave(number);
        }
    }

    /// Pages in flight whose requests are set aside.
    pub(super) fn aside_pages(&self) -> u64 {
        self.aside_pages.load(Ordering::Relaxed)
    }

    /// A request that was set aside is about to end.
    pub(super) fn take_back(&self, ticket: Ticket, pages: u64) {
        self.runs.fetch_add(ticket.runs, Ordering::Relaxed);
        self.aside_pages.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Until the answer is dropped, a sync of the file in `slot` waits for all requests in flight to it.
    pub(crate) fn sync_waits(&self, slot: u32) -> SyncWaits<'_> {
        let Order { in_flight, awaited, syncing, .. } = &mut *lock(&self.order);
        syncing.insert(slot);
        for write in in_flight.values_mut().filter(|write| write.file == slot && !write.is_awaited) {
            write.is_awaited = true;
            *awaited += 1;
        }
        SyncWaits { in_flight: self, slot }
    }

    /// Whether a write submitted after a sync's write has ended before it.
    pub(super) fn was_sync_passed(&self) -> bool {
        let order = lock(&self.order);
        order.awaited > 0 && order.in_flight.first(|write| write.is_awaited).is_some_and(|first| first < order.ended)
    }

    /// Whether syncs have used enough for other writes, if any, to come next.
    pub(crate) fn is_sync_ahead(&self) -> bool {
        self.is_sync_ahead_by(&self.terms())
    }

    /// As [`InFlight::is_sync_ahead`], under this answer of the policy.
    pub(crate) fn is_sync_ahead_by(&self, terms: &Terms) -> bool {
        let lead_max = terms.flight.sync_lead;
        lead_max != Cost::MAX && Cost(self.lead.load(Ordering::Relaxed)) >= lead_max
    }

    /// Only syncs have work, so their use beyond the lead delayed no other write.
    pub(crate) fn nothing_but_syncs(&self) {
        self.lead.fetch_min(self.allowed().sync_lead.0, Ordering::Relaxed);
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

/// A sync's wait for the requests in flight to its file; at most one for each file.
pub(crate) struct SyncWaits<'a> {
    in_flight: &'a InFlight,
    slot: u32,
}

impl Drop for SyncWaits<'_> {
    fn drop(&mut self) {
        lock(&self.in_flight.order).syncing.remove(&self.slot);
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
        let at = self.in_flight.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.in_flight.remove(at).map(|(_, value)| value)
    }

    /// The number of the next that begins.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The first in flight that is `wanted`.
    pub(crate) fn first(&self, wanted: impl Fn(&T) -> bool) -> Option<u64> {
        self.in_flight.iter().find(|(_, value)| wanted(value)).map(|(number, _)| *number)
    }

    /// The value of a number in flight.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = self.in_flight.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.in_flight.get_mut(at).map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.in_flight.iter_mut().map(|(_, value)| value)
    }
}

/// The load of a request besides its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// A read request in flight.
    Read,
    /// A write request in flight.
    Write {
        /// Length of the request in bytes.
        bytes: u64,
        /// Its pages, in whole or in part.
        pages: u64,
        /// The policy's ticket for the request.
        ticket: Ticket,
    },
}

/// A request in its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestInFlight {
    /// No other request of the device has this number, ever.
    pub number: u64,
    /// The file, by its slot.
    pub file: u32,
    pub(crate) load: Load,
    /// When it was submitted.
    pub submitted: Nanos,
    /// Whether it was set aside, and its slot given to another.
    pub is_aside: bool,
}

/// Where a request is, until it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestEntry(u32);

/// The entries of a device's requests.
pub(crate) struct RequestTable {
    entries: Box<[Mutex<Option<RequestInFlight>>]>,
    begun: AtomicU64,
    aside: AtomicU32,
}

impl RequestTable {
    /// Entries for a device with `slots` slots, and for as many requests set aside.
    pub(super) fn new(slots: u32) -> Self {
        let entries = (0..2 * slots).map(|_| Mutex::new(None)).collect();
        Self { entries, begun: AtomicU64::new(0), aside: AtomicU32::new(0) }
    }

    /// A request of the file with the slot `file` is about to be submitted; it has a slot of the device.
    pub(crate) fn begin(&self, file: u32, load: Load, now: Nanos) -> RequestEntry {
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let at = (number % self.entries.len() as u64) as usize;
            let mut entry = lock(&self.entries[at]);
            if entry.is_none() {
                *entry = Some(RequestInFlight { number, file, load, submitted: now, is_aside: false });
                return RequestEntry(at as u32);
            }
        }
    }

    /// The request has ended; returns what it was.
    pub(super) fn end(&self, entry: RequestEntry) -> RequestInFlight {
        let ended = lock(&self.entries[entry.0 as usize]).take().expect("a request ends once");
        if ended.is_aside {
            self.aside.fetch_sub(1, Ordering::Relaxed);
        }
        ended
    }

    /// The number of entries. A request has the entry of its number, modulo this.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// The requests in flight, each as it was at one moment.
    pub(crate) fn all(&self) -> impl Iterator<Item = RequestInFlight> {
        self.entries.iter().filter_map(|entry| *lock(entry))
    }

    /// Marks a request as set aside, unless it has ended, or as many as the device has slots are; returns whether it
    /// did. The caller gives the slot back.
    pub(super) fn try_set_aside(&self, number: u64) -> bool {
        let most = self.entries.len() as u32 / 2;
        let mut entry = lock(&self.entries[(number % self.entries.len() as u64) as usize]);
        let Some(request) = entry.as_mut().filter(|request| request.number == number && !request.is_aside) else {
            return false;
        };
        let one_more = |aside: u32| (aside < most).then_some(aside + 1);
        request.is_aside = self.aside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        request.is_aside
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
    pub entries: RequestTable,
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
            entries: RequestTable::new(slots),
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
