//! The policy's limits on requests in flight, and the division of the device's time between syncs and the rest.
//!
//! A device, or the scheduler before it, may let a stream pass a sync's write again and again. If the policy says how
//! long syncs go first, nothing else is submitted while a passed write of a sync is in flight. That write then waits
//! for the requests in flight, and no longer. All writes in flight to a sync's file count as the sync's, even if
//! submitted for another reason: the sync waits for them.
//!
//! Owns: the policy's answer, the runs in flight, how much more than the rest syncs have used, which of their writes
//! were passed.
//! Does not own: how many requests (`requests`) and pages (`charges`) are in flight, the waiting for one to end
//! (`writeback`).
//! Invariants: no policy is asked at a submission. With nothing in flight a request may always follow. Cost is never
//! summed up but multiplied anew, so that new prices hold for all requests in flight.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afflux_device::policy::{Cost, Flight, Prices};
use afflux_pages::wait::lock;

use super::in_order::InOrder;
use super::unwritable::Amount;

/// The part of the limit in flight that remains while a change of names is being made durable. Such a change is mostly
/// a few small writes one after the other, each of which would wait for all the data before it.
const NAMES_PART: u64 = 8;

/// A seek to the sync's place, and one back.
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
    /// Its place in the order of submission, if that order is kept.
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

    /// Whether syncs have used enough for other writes, if any, to have their turn.
    pub(crate) fn is_sync_ahead(&self) -> bool {
        self.is_sync_ahead_by(&self.terms())
    }

    /// As [`InFlight::is_sync_ahead`], by this answer of the policy.
    pub(crate) fn is_sync_ahead_by(&self, terms: &Terms) -> bool {
        let lead_max = terms.flight.sync_lead;
        lead_max != Cost::MAX && Cost(self.lead.load(Ordering::Relaxed)) >= lead_max
    }

    /// Only syncs have work, so their use beyond the lead kept no other write waiting.
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

#[cfg(test)]
mod tests;
