//! A device's admission queue: the pages charged to it, and the writers that wait until more fit.
//!
//! Owns: the count of pages and runs, their cost at the policy's prices, the two limits: the policy's, in its own unit,
//! and the memory guard's, in pages.
//! Does not own: how large the limits are (`policy`; the guard's formula is in `dirty`), the waiting (`wait`).
//! Invariants: first come, first served. A request larger than a limit is admitted alone. Cost is never summed up but
//! multiplied anew, so that new prices hold for all charged pages.

use std::sync::Arc;

use crate::error::DeviceError;
use crate::policy::{Cost, PauseCause, Prices, Room};
use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::units::Pages;
use crate::wait::{Gate, Line, Take};

pub(crate) struct AdmissionQueue {
    line: Line<Ledger>,
    runs: Arc<OwnLines<AtomicU64>>,
    wake: Wake,
}

/// When a writer wakes the flusher: [`Room::wake_above`], and the prices to compare it at.
struct Wake {
    above: AtomicU64,
    page: AtomicU64,
    run: AtomicU64,
}

/// Charges and limits.
pub(crate) struct Ledger {
    /// Pages dirty or in flight, or charged to become so.
    pages: Pages,
    /// Runs of dirty pages, and in flight.
    runs: Arc<OwnLines<AtomicU64>>,
    /// Writers admitted from the line since the policy last gave its room: each may begin a run that is not counted
    /// yet.
    admitted_runs: u64,
    prices: Prices,
    cost_max: Cost,
    cause: PauseCause,
    pages_max: Pages,
    /// The memory guard's limit as last computed, which a policy is told.
    guard_pages: Pages,
    /// The most by which `pages_max` exceeds `pages` while nobody waits.
    unseen_pages: Pages,
}

impl Ledger {
    fn set_guard(&mut self, pages: Pages) {
        (self.pages_max, self.guard_pages) = (pages, pages);
    }

    fn pages_fit(&self, pages: Pages) -> bool {
        self.pages.saturating_add(pages) <= self.pages_max
    }

    /// The cost with `pages` more pages, as one run.
    fn cost_with(&self, pages: Pages) -> Cost {
        let runs = self.runs.load(Ordering::Relaxed).saturating_add(self.admitted_runs + 1);
        self.prices.of(self.pages.saturating_add(pages).0, runs)
    }
}

impl Gate for Ledger {
    type Refusal = DeviceError;

    fn fits(&self, pages: u64) -> bool {
        let pages = Pages(pages);
        self.pages == Pages(0) || (self.pages_fit(pages) && self.cost_with(pages) <= self.cost_max)
    }

    fn enter(&mut self, pages: u64) {
        self.pages = self.pages + Pages(pages);
    }

    fn enter_from_line(&mut self, pages: u64) {
        self.admitted_runs += 1;
        self.enter(pages);
    }

    fn leave(&mut self, pages: u64) {
        debug_assert!(self.pages.0 >= pages, "gave back more pages than were charged");
        self.pages = self.pages.saturating_sub(Pages(pages));
    }

    fn line_is_empty(&mut self) {
        self.pages_max = self.pages_max.min(self.pages.saturating_add(self.unseen_pages));
    }
}

impl AdmissionQueue {
    /// Until limits are set, the queue admits only what may enter alone.
    pub(crate) fn new() -> Self {
        let runs = Arc::new(OwnLines(AtomicU64::new(0)));
        let Room { prices, cause, .. } = Room::UNLIMITED;
        let ledger = Ledger {
            admitted_runs: 0,
            pages: Pages(0),
            runs: Arc::clone(&runs),
            prices,
            cost_max: Cost(0),
            cause,
            pages_max: Pages::MAX,
            guard_pages: Pages::MAX,
            unseen_pages: Pages::MAX,
        };
        let wake = Wake { above: AtomicU64::new(u64::MAX), page: AtomicU64::new(0), run: AtomicU64::new(0) };
        Self { line: Line::before(ledger), runs, wake }
    }

    /// Charges pages if they fit and nobody waits.
    pub(crate) fn try_take(&self, pages: Pages) -> bool {
        self.line.try_take(pages.0)
    }

    /// Charges pages if they fit a new guard limit and nobody waits.
    pub(crate) fn try_take_within(&self, guard_pages: Pages, pages: Pages) -> bool {
        self.line.try_take_after(pages.0, |ledger| ledger.set_guard(guard_pages))
    }

    /// Waits in order of asking; fails if the device keeps failing.
    pub(crate) fn take(&self, pages: Pages) -> Take<'_, Ledger> {
        self.line.take(pages.0)
    }

    /// Charges pages that the policy has admitted, past its own room and the writers that wait for it, unless the
    /// memory guard keeps them out.
    pub(crate) fn try_enter(&self, pages: Pages) -> bool {
        self.line.try_pass(pages.0, |ledger| ledger.pages == Pages(0) || ledger.pages_fit(pages))
    }

    /// Charges pages whether they fit or not.
    pub(crate) fn force(&self, pages: Pages) {
        self.line.force(pages.0);
    }

    /// Pages are no longer dirty, or were not dirtied after all.
    pub(crate) fn give_back(&self, pages: Pages) {
        self.line.give_back(pages.0);
    }

    /// As [`AdmissionQueue::give_back`], for a write that has ended. Waiting writers are admitted once the policy has
    /// given its room anew, since its last room was for the earlier backlog.
    pub(crate) fn release_deferred(&self, pages: Pages) {
        self.line.adjust(|ledger| ledger.leave(pages.0));
    }

    /// Fails all waits of this moment.
    pub(crate) fn fail(&self, error: DeviceError) {
        self.line.fail(error);
    }

    pub(crate) fn set_room(&self, room: &Room) {
        self.wake.above.store(room.wake_above.0, Ordering::Relaxed);
        self.wake.page.store(room.prices.page.0, Ordering::Relaxed);
        self.wake.run.store(room.prices.run.0, Ordering::Relaxed);
        self.line.change(|ledger| {
            (ledger.cost_max, ledger.prices, ledger.cause) = (room.cost_max, room.prices, room.cause);
            ledger.admitted_runs = 0;
        });
    }

    pub(crate) fn set_guard(&self, pages: Pages) {
        self.line.change(|ledger| ledger.set_guard(pages));
    }

    /// From now on the guard's limit falls with the charged pages, to at most `pages` above them: a writer that needs
    /// more asks for a new limit.
    pub(crate) fn set_unseen(&self, pages: Pages) {
        self.line.adjust(|ledger| ledger.unseen_pages = pages);
    }

    /// Why pages that do not fit have to wait.
    pub(crate) fn cause(&self, pages: Pages) -> PauseCause {
        self.line.look(|ledger| if ledger.pages_fit(pages) { ledger.cause } else { PauseCause::MemoryGuard })
    }

    /// Charged pages, and the memory guard's limit as last computed.
    pub(crate) fn pages_and_guard(&self) -> (Pages, Pages) {
        self.line.look(|ledger| (ledger.pages, ledger.guard_pages))
    }

    pub(crate) fn pages(&self) -> Pages {
        self.line.look(|ledger| ledger.pages)
    }

    /// Adds `more` runs, or removes them if negative.
    pub(crate) fn add_runs(&self, more: i64) {
        self.runs.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Runs of dirty pages, and in flight.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// The number of waiting writers.
    pub(crate) fn waiting(&self) -> usize {
        self.line.waiting()
    }

    /// Whether a writer may have to wake the flusher at all.
    pub(crate) fn may_wake(&self) -> bool {
        self.wake.above.load(Ordering::Relaxed) < u64::MAX
    }

    /// Until the next room is set, a writer wakes the flusher only above this many dirty pages, and an eighth more.
    pub(crate) fn wake_later(&self, pages: Pages) {
        let cost = self.waking_cost(pages).0;
        self.wake.above.store(cost.saturating_add(cost / 8), Ordering::Relaxed);
    }

    /// Whether the cost of so many pages, dirty and not in flight, and of all runs is high enough for a writer to wake
    /// the flusher.
    pub(crate) fn wakes(&self, pages: Pages) -> bool {
        self.waking_cost(pages) > Cost(self.wake.above.load(Ordering::Relaxed))
    }

    fn waking_cost(&self, pages: Pages) -> Cost {
        let price = |of: &AtomicU64| Cost(of.load(Ordering::Relaxed));
        let prices = Prices { page: price(&self.wake.page), run: price(&self.wake.run) };
        prices.of(pages.0, if pages == Pages(0) { 0 } else { self.runs() })
    }
}

#[cfg(test)]
mod tests;
