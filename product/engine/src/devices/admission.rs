//! A device's admission queue: what is charged to it, and who waits until more fits.
//!
//! Owns: the count of pages and runs, their cost at the policy's prices, the two limits: the policy's, in its own
//! unit, and the memory guard's, in pages.
//! Does not own: how large the limits are (`policy`; the guard's formula is in `dirty`), the waiting (`wait`).
//! Invariants: first come, first served. What is more than a limit is let in alone. Cost is never summed up but
//! multiplied anew, so that new prices hold for all that is charged.

use std::sync::Arc;

use crate::error::DeviceError;
use crate::policy::{Cost, PauseCause, Prices, Room};
use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::units::Pages;
use crate::wait::{Gate, Line, Take};

/// The queue.
pub(crate) struct AdmissionQueue {
    line: Line<Ledger>,
    runs: Arc<OwnLines<AtomicU64>>,
    wake: Wake,
}

/// When a writer wakes the flusher: [`Room::wake_above`] and the prices that it is compared at.
struct Wake {
    above: AtomicU64,
    page: AtomicU64,
    run: AtomicU64,
}

/// What is charged, and what may be.
pub(crate) struct Ledger {
    /// Dirty or in flight, or charged to become so.
    pages: Pages,
    /// Of dirty pages, and in flight.
    runs: Arc<OwnLines<AtomicU64>>,
    /// Those let in from the line since the policy said its room: each may begin a run, which is not there yet.
    let_in: u64,
    prices: Prices,
    cost_max: Cost,
    cause: PauseCause,
    pages_max: Pages,
    /// The memory guard's limit when it was computed last: what a policy is told.
    guard_pages: Pages,
    /// Most that `pages_max` stays above `pages` while nobody waits.
    unseen_pages: Pages,
}

impl Ledger {
    fn set_guard(&mut self, pages: Pages) {
        (self.pages_max, self.guard_pages) = (pages, pages);
    }

    fn pages_fit(&self, pages: Pages) -> bool {
        self.pages.saturating_add(pages) <= self.pages_max
    }

    /// With so many pages more, as one run.
    fn cost_with(&self, pages: Pages) -> Cost {
        let runs = self.runs.load(Ordering::Relaxed).saturating_add(self.let_in + 1);
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
        self.let_in += 1;
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
    /// Nothing fits but what is let in alone, until limits are set.
    pub(crate) fn new() -> Self {
        let runs = Arc::new(OwnLines(AtomicU64::new(0)));
        let Room { prices, cause, .. } = Room::UNLIMITED;
        let ledger = Ledger {
            let_in: 0,
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

    /// Charges pages if a new guard lets them in and nobody waits.
    pub(crate) fn try_take_within(&self, guard_pages: Pages, pages: Pages) -> bool {
        self.line.try_take_after(pages.0, |ledger| ledger.set_guard(guard_pages))
    }

    /// Waits in order of asking; fails when the device keeps failing.
    pub(crate) fn take(&self, pages: Pages) -> Take<'_, Ledger> {
        self.line.take(pages.0)
    }

    /// Charges pages that the policy has let in, past its own room and those who wait for it, unless the memory
    /// guard keeps them out.
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

    /// The same, of a write that has ended: those who wait are let in when the policy has said its room anew, since the
    /// room of a moment ago was for what was owed then.
    pub(crate) fn give_back_unserved(&self, pages: Pages) {
        self.line.adjust(|ledger| ledger.leave(pages.0));
    }

    /// Ends the waiting of everybody who waits now.
    pub(crate) fn fail(&self, error: DeviceError) {
        self.line.fail(error);
    }

    /// The policy's room.
    pub(crate) fn set_room(&self, room: &Room) {
        self.wake.above.store(room.wake_above.0, Ordering::Relaxed);
        self.wake.page.store(room.prices.page.0, Ordering::Relaxed);
        self.wake.run.store(room.prices.run.0, Ordering::Relaxed);
        self.line.change(|ledger| {
            (ledger.cost_max, ledger.prices, ledger.cause) = (room.cost_max, room.prices, room.cause);
            ledger.let_in = 0;
        });
    }

    /// The memory guard's limit.
    pub(crate) fn set_guard(&self, pages: Pages) {
        self.line.change(|ledger| ledger.set_guard(pages));
    }

    /// From now on the guard's limit falls with what is charged, to at most `pages` above it: who wants more has to
    /// ask for a new one.
    pub(crate) fn set_unseen(&self, pages: Pages) {
        self.line.adjust(|ledger| ledger.unseen_pages = pages);
    }

    /// Why pages that do not fit have to wait.
    pub(crate) fn cause(&self, pages: Pages) -> PauseCause {
        self.line.look(|ledger| if ledger.pages_fit(pages) { ledger.cause } else { PauseCause::MemoryGuard })
    }

    /// Pages that are charged, and the memory guard's limit as it was computed last.
    pub(crate) fn pages_and_guard(&self) -> (Pages, Pages) {
        self.line.look(|ledger| (ledger.pages, ledger.guard_pages))
    }

    /// Pages that are charged.
    pub(crate) fn pages(&self) -> Pages {
        self.line.look(|ledger| ledger.pages)
    }

    /// There are so many runs more, or fewer.
    pub(crate) fn add_runs(&self, more: i64) {
        self.runs.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Runs of dirty pages, and in flight.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.line.waiting()
    }

    /// Whether a writer may have to wake the flusher at all.
    pub(crate) fn may_wake(&self) -> bool {
        self.wake.above.load(Ordering::Relaxed) < u64::MAX
    }

    /// Until the next room is set, the flusher is woken only when an eighth more than so many pages is dirty.
    pub(crate) fn wake_later(&self, pages: Pages) {
        let cost = self.waking_cost(pages).0;
        self.wake.above.store(cost.saturating_add(cost / 8), Ordering::Relaxed);
    }

    /// Whether so many pages that are dirty and not in flight, with all runs, cost so much that a writer wakes the
    /// flusher.
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
