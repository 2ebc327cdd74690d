//! What the policy lets be on its way to a device, and how the device's time is divided between syncs and the rest.
//!
//! A device, or the scheduler before it, may let a stream pass a sync's write again and again. Where the policy says
//! how long syncs go first, nothing else is submitted while a sync's write is in flight that was passed: then it
//! waits for what is in flight, and no longer. A sync's writes are all those in flight to its file, for whatever they
//! were submitted: the sync waits for them.
//!
//! Owns: the policy's answer, the runs in flight, what syncs have used more than the rest, which of them were passed.
//! Does not own: how many requests and pages are in flight (`state`), the waiting for one to end (`writeback`).
//! Invariants: nothing is asked at a submission. With nothing in flight a request may always follow. Cost is never
//! summed up but multiplied anew, so that new prices hold for all that is in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::policy::{Cost, Flight, Prices};
use crate::wait::lock;

/// Which part of what may be in flight is, while a change of names is being made durable: that is mostly a few small
/// writes one after the other, each of which would wait for all the data before it.
const NAMES_PART: u64 = 8;

/// To the sync's place and back again.
const SEEKS_OF_SYNC: u64 = 2;

/// What is on its way, and what may be.
pub(crate) struct InFlight {
    terms: Mutex<Terms>,
    runs: AtomicU64,
    waiting: AtomicU32,
    /// Changes of names that are being made durable.
    names: AtomicU32,
    /// What syncs have used more than the rest.
    lead: AtomicU64,
    order: Mutex<Order>,
}

/// In which order writes were submitted, and have ended.
#[derive(Default)]
struct Order {
    submitted: u64,
    /// The last submitted of those that have ended.
    ended: u64,
    /// Writes in flight, and the file of each, by its slot.
    in_flight: BTreeMap<u64, u32>,
    /// Those of them that a sync waits for.
    syncs: BTreeSet<u64>,
    /// Files that are being synced.
    syncing: BTreeSet<u32>,
}

/// A write in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    runs: u64,
    /// Its place in the order of submission, where that is kept.
    number: Option<u64>,
}

#[derive(Clone, Copy)]
struct Terms {
    flight: Flight,
    prices: Prices,
}

impl InFlight {
    /// As the knobs say, until the policy is asked.
    pub(super) fn new() -> Self {
        let terms = Terms { flight: Flight::BY_KNOBS, prices: Prices::PAGES };
        let (runs, waiting, names) = (AtomicU64::new(0), AtomicU32::new(0), AtomicU32::new(0));
        Self { terms: Mutex::new(terms), runs, waiting, names, lead: AtomicU64::new(0), order: Mutex::default() }
    }

    fn terms(&self) -> Terms {
        *lock(&self.terms)
    }

    /// What the policy has answered.
    pub(super) fn set(&self, flight: Flight, prices: Prices) {
        *lock(&self.terms) = Terms { flight, prices };
    }

    /// The policy's answer.
    pub(crate) fn allowed(&self) -> Flight {
        self.terms().flight
    }

    /// Most requests at this moment, of `most` at any, with so many pages in flight.
    pub(super) fn requests_now(&self, most: u32, pages: u64) -> u32 {
        let Terms { flight, prices } = self.terms();
        let (mut always, mut cost_max) = (flight.requests.max(1), flight.cost_max);
        if cost_max != Cost::MAX && self.names.load(Ordering::Relaxed) > 0 {
            (always, cost_max) = (1, Cost(cost_max.0 / NAMES_PART));
        }
        if always >= most || prices.of(pages, self.runs()) < cost_max { most } else { always }
    }

    /// A change of names is being made durable, from now on.
    pub(crate) fn names_begin(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// It is, or could not be; whether it was the last.
    pub(crate) fn names_end(&self) -> bool {
        self.names.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Runs in flight.
    pub(super) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// A request with so many pages of the file in `slot` is submitted, for a sync or for another reason.
    pub(crate) fn begin(&self, slot: u32, pages: u64, runs: u64, for_sync: bool) -> Ticket {
        self.runs.fetch_add(runs, Ordering::Relaxed);
        let Terms { flight, prices } = self.terms();
        if flight.sync_lead == Cost::MAX {
            return Ticket { runs, number: None };
        }
        let changed = |lead: u64| {
            if for_sync {
                lead.saturating_add(prices.of(pages, runs * SEEKS_OF_SYNC).0)
            } else {
                lead.saturating_sub(prices.of(pages, runs).0)
            }
        };
        self.lead.update(Ordering::Relaxed, Ordering::Relaxed, changed);
        let mut order = lock(&self.order);
        order.submitted += 1;
        let number = order.submitted;
        order.in_flight.insert(number, slot);
        if for_sync || order.syncing.contains(&slot) {
            order.syncs.insert(number);
        }
        Ticket { runs, number: Some(number) }
    }

    /// A request has ended.
    pub(crate) fn end(&self, ticket: Ticket) {
        self.runs.fetch_sub(ticket.runs, Ordering::Relaxed);
        if let Some(number) = ticket.number {
            let mut order = lock(&self.order);
            order.syncs.remove(&number);
            order.in_flight.remove(&number);
            order.ended = order.ended.max(number);
        }
    }

    /// A sync of the file in `slot` waits for all that is in flight to it while the answer lives.
    pub(crate) fn sync_waits(&self, slot: u32) -> SyncWaits<'_> {
        let Order { in_flight, syncs, syncing, .. } = &mut *lock(&self.order);
        syncing.insert(slot);
        syncs.extend(in_flight.iter().filter(|(_, file)| **file == slot).map(|(number, _)| *number));
        SyncWaits { in_flight: self, slot }
    }

    /// Whether something that was submitted after a sync's write has ended before it.
    pub(super) fn sync_was_passed(&self) -> bool {
        let order = lock(&self.order);
        order.syncs.first().is_some_and(|first| *first < order.ended)
    }

    /// Whether syncs have used so much that the rest has its turn, if there is any.
    pub(crate) fn is_sync_ahead(&self) -> bool {
        let lead_max = self.allowed().sync_lead;
        lead_max != Cost::MAX && Cost(self.lead.load(Ordering::Relaxed)) >= lead_max
    }

    /// There is nothing but syncs: what they use beyond their lead, nobody was kept from.
    pub(crate) fn nothing_but_syncs(&self) {
        self.lead.fetch_min(self.allowed().sync_lead.0, Ordering::Relaxed);
    }

    /// Somebody waits to submit while this lives.
    pub(crate) fn waits(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }

    /// Whether somebody waits to submit.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// A sync waits for what is in flight to its file: one at a time of each.
pub(crate) struct SyncWaits<'a> {
    in_flight: &'a InFlight,
    slot: u32,
}

impl Drop for SyncWaits<'_> {
    fn drop(&mut self) {
        lock(&self.in_flight.order).syncing.remove(&self.slot);
    }
}

/// Somebody waits to submit.
pub(crate) struct Waits<'a>(&'a InFlight);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
