//! A device's admission queue: the pages charged to it, and the writers that wait until more fit.
//!
//! Owns: the count of pages and runs, their cost at the policy's prices, the two limits: the policy's, in its own unit,
//! and the memory guard's, in pages; which waiting writers a change of one file concerns.
//! Does not own: how large the limits are (`policy`; the guard's formula is in `dirty`), the slots of waiters (`wait`),
//! who is refused (`dirty::failing`).
//! Invariants: first come, first served, whichever other file fails
//! (`a_writer_whose_file_changes_keeps_its_place_and_others_are_not_woken`). A request larger than a limit is admitted
//! alone. Cost is never summed up but multiplied anew, so that new prices hold for all charged pages.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_device::policy::{ChargeBounds, Cost, PauseCause, Prices};
use afflux_pages::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use afflux_pages::sync::{self, Mutex, MutexGuard, OwnLines};
use afflux_pages::units::PageCount;
use afflux_pages::wait::WaitSlots;

use crate::devices::failures::{Amount, Unwritable};

/// The writers of a device that wait to be admitted, first come, first served.
pub(crate) struct AdmissionQueue {
    line: Mutex<Line>,
    waiting: AtomicUsize,
    runs: Arc<OwnLines<AtomicU64>>,
    wake: Wake,
}

/// The charges, and the writers that wait to be admitted.
struct Line {
    ledger: Ledger,
    writers: WaitSlots,
    /// The slot of each writer's file, with the writer's ticket.
    by_file: BTreeSet<(u32, u64)>,
}

/// When a writer wakes the flusher: [`ChargeBounds::wake_above`], and the prices to compare it at.
struct Wake {
    above: AtomicU64,
    page: AtomicU64,
    run: AtomicU64,
}

/// Charges and limits.
struct Ledger {
    /// Pages dirty or in flight, or charged to become so.
    pages: PageCount,
    /// Runs of dirty pages, and in flight.
    runs: Arc<OwnLines<AtomicU64>>,
    /// Of these, pages and runs that cost nothing.
    unwritable: Arc<Unwritable>,
    /// Writers admitted from the line since the policy last gave its bounds: each may begin a run that is not counted
    /// yet.
    admitted_runs: u64,
    prices: Prices,
    cost_max: Cost,
    /// [`ChargeBounds::unasked_max`], and the most pages.
    unasked_max: Cost,
    unasked_pages_max: PageCount,
    cause: PauseCause,
    pages_max: PageCount,
    /// The memory guard's limit as last computed, as views show it to a policy.
    guard_pages: PageCount,
    /// The most by which `pages_max` exceeds `pages` while nobody waits.
    unseen_pages: PageCount,
}

impl Ledger {
    fn set_guard(&mut self, pages: PageCount) {
        (self.pages_max, self.guard_pages) = (pages, pages);
    }

    fn may_admit_pages(&self, pages: PageCount) -> bool {
        self.pages.saturating_add(pages) <= self.pages_max
    }

    /// Whether `pages` more pages, as one run, cost little enough, or would be the only ones that cost anything.
    fn may_admit_cost(&self, pages: PageCount) -> bool {
        let runs = self.runs.load(Ordering::Relaxed).saturating_add(self.admitted_runs + 1);
        let charged = Amount { pages: self.pages.0, runs }.without(self.unwritable.roomless());
        charged.pages == 0 || self.prices.of(charged.pages.saturating_add(pages.0), charged.runs) <= self.cost_max
    }

    /// How many more pages, as one run, cost so little that no payer of them is asked about.
    fn unasked_pages(&self) -> PageCount {
        let runs = self.runs.load(Ordering::Relaxed).saturating_add(self.admitted_runs + 1);
        let left = self.unasked_max.0.saturating_sub(self.prices.of(self.pages.0, runs).0);
        PageCount(left / self.prices.page.0.max(1)).min(self.unasked_pages_max.saturating_sub(self.pages))
    }

    fn may_admit(&self, pages: PageCount) -> bool {
        self.pages == PageCount(0) || (self.may_admit_pages(pages) && self.may_admit_cost(pages))
    }

    fn enter(&mut self, pages: PageCount) {
        self.pages = self.pages + pages;
    }

    fn leave(&mut self, pages: PageCount) {
        debug_assert!(self.pages >= pages, "gave back more pages than were charged");
        self.pages = self.pages.saturating_sub(pages);
    }

    fn nobody_waits(&mut self) {
        self.pages_max = self.pages_max.min(self.pages.saturating_add(self.unseen_pages));
    }
}

impl Line {
    /// Admits a writer if its pages fit and nobody waits.
    fn try_enter(&mut self, pages: PageCount) -> bool {
        let free = self.ledger.may_admit(pages) && self.writers.is_nobody_waiting();
        if free {
            self.ledger.enter(pages);
        }
        free
    }

    /// Admits writers from the front as far as their pages fit.
    #[inline]
    fn admit(&mut self) -> Vec<Waker> {
        if self.writers.count() == 0 {
            self.ledger.nobody_waits();
            return Vec::new();
        }
        self.admit_waiting()
    }

    fn admit_waiting(&mut self) -> Vec<Waker> {
        let Self { ledger, writers, .. } = self;
        let woken = writers.grant(|pages| {
            let fits = ledger.may_admit(PageCount(pages));
            if fits {
                ledger.admitted_runs += 1;
                ledger.enter(PageCount(pages));
            }
            fits
        });
        self.settle();
        woken
    }

    /// Has the file's waiting writers check their file. Others move up meanwhile.
    fn look_at_file(&mut self, file: u32) -> Vec<Waker> {
        let tickets = self.by_file.range((file, 0)..=(file, u64::MAX));
        let mut woken: Vec<Waker> = tickets.filter_map(|(_, ticket)| self.writers.look(*ticket)).collect();
        if !woken.is_empty() {
            woken.extend(self.admit());
        }
        woken
    }

    fn settle(&mut self) {
        if self.writers.is_nobody_waiting() {
            self.ledger.nobody_waits();
        }
    }
}

/// With no lock held.
fn wake(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

impl AdmissionQueue {
    /// Until limits are set, the queue admits only what may enter alone.
    pub(crate) fn new(unwritable: Arc<Unwritable>) -> Self {
        let runs = Arc::new(OwnLines(AtomicU64::new(0)));
        let ChargeBounds { prices, cause, .. } = ChargeBounds::UNLIMITED;
        let ledger = Ledger {
            admitted_runs: 0,
            pages: PageCount(0),
            runs: Arc::clone(&runs),
            unwritable,
            prices,
            cost_max: Cost(0),
            unasked_max: Cost(0),
            unasked_pages_max: PageCount(0),
            cause,
            pages_max: PageCount::MAX,
            guard_pages: PageCount::MAX,
            unseen_pages: PageCount::MAX,
        };
        let wake = Wake { above: AtomicU64::new(u64::MAX), page: AtomicU64::new(0), run: AtomicU64::new(0) };
        let line = Mutex::new(Line { ledger, writers: WaitSlots::default(), by_file: BTreeSet::new() });
        Self { line, waiting: AtomicUsize::new(0), runs, wake }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        sync::lock(&self.line)
    }

    /// Changes charges or limits; admits writers that fit then.
    fn change(&self, change: impl FnOnce(&mut Ledger)) {
        let woken = {
            let mut line = self.line();
            change(&mut line.ledger);
            line.admit()
        };
        wake(woken);
    }

    /// Charges pages if they fit and nobody waits.
    pub(crate) fn try_take(&self, pages: PageCount) -> bool {
        self.line().try_enter(pages)
    }

    /// How many more pages no payer would be asked about.
    pub(crate) fn unasked_pages(&self) -> PageCount {
        self.line().ledger.unasked_pages()
    }

    /// Charges pages if so little is charged that their payer is not asked about, and nobody waits.
    pub(crate) fn try_take_unasked(&self, pages: PageCount) -> bool {
        let mut line = self.line();
        pages <= line.ledger.unasked_pages() && line.try_enter(pages)
    }

    /// Charges pages if they fit a new guard limit and nobody waits.
    pub(crate) fn try_take_within(&self, guard_pages: PageCount, pages: PageCount) -> bool {
        let mut line = self.line();
        line.ledger.set_guard(guard_pages);
        let taken = line.try_enter(pages);
        line.settle();
        taken
    }

    /// Waits in order of asking, for a writer of the file in this slot.
    pub(crate) fn take(&self, pages: PageCount, file: u32) -> Take<'_> {
        Take { queue: self, pages, file, ticket: None }
    }

    /// Charges pages that the policy has admitted, past its own limit and the writers that wait for it, unless the
    /// memory guard forbids that.
    pub(crate) fn try_enter(&self, pages: PageCount) -> bool {
        let ledger = &mut self.line().ledger;
        let enters = ledger.pages == PageCount(0) || ledger.may_admit_pages(pages);
        if enters {
            ledger.enter(pages);
        }
        enters
    }

    /// Charges pages if the memory guard lets them in and no page costs anything but those that cannot be written.
    /// While the device hangs, a writer of another file so finds out whether only these files' writes do not end.
    pub(crate) fn try_enter_alone(&self, pages: PageCount) -> bool {
        let ledger = &mut self.line().ledger;
        let enters = ledger.may_admit_pages(pages) && ledger.unwritable.are_all(ledger.pages.0);
        if enters {
            ledger.enter(pages);
        }
        enters
    }

    /// Charges pages whether they fit or not.
    pub(crate) fn force(&self, pages: PageCount) {
        self.line().ledger.enter(pages);
    }

    /// Pages are no longer dirty, or were not dirtied after all.
    pub(crate) fn give_back(&self, pages: PageCount) {
        self.change(|ledger| ledger.leave(pages));
    }

    /// As [`AdmissionQueue::give_back`], for a write that has ended. Waiting writers are admitted once the policy has
    /// given its bounds anew, since its last bounds were for the earlier backlog.
    pub(crate) fn release_deferred(&self, pages: PageCount) {
        self.line().ledger.leave(pages);
    }

    /// Whether the file's writers may wait here has changed. Each checks its file ([`Take::wait_on`]) before it is
    /// admitted.
    pub(crate) fn file_changed(&self, file: u32) {
        let woken = self.line().look_at_file(file);
        wake(woken);
    }

    /// Whether writers of any file are refused, or may pass the line, has changed. Each checks, in its slot.
    pub(crate) fn device_changed(&self) {
        let woken = self.line().writers.wakers();
        wake(woken);
    }

    pub(crate) fn set_bounds(&self, bounds: &ChargeBounds) {
        self.wake.above.store(bounds.wake_above.0, Ordering::Relaxed);
        self.wake.page.store(bounds.prices.page.0, Ordering::Relaxed);
        self.wake.run.store(bounds.prices.run.0, Ordering::Relaxed);
        self.change(|ledger| {
            (ledger.cost_max, ledger.prices, ledger.cause) = (bounds.cost_max, bounds.prices, bounds.cause);
            (ledger.unasked_max, ledger.unasked_pages_max) = (bounds.unasked_max, PageCount(bounds.unasked_pages_max));
            ledger.admitted_runs = 0;
        });
    }

    /// Sets the limit of the memory guard.
    pub(crate) fn set_guard(&self, pages: PageCount) {
        self.change(|ledger| ledger.set_guard(pages));
    }

    /// From now on the guard's limit falls with the charged pages, to at most `pages` above them: a writer that needs
    /// more asks for a new limit.
    pub(crate) fn set_unseen(&self, pages: PageCount) {
        self.line().ledger.unseen_pages = pages;
    }

    /// Why pages that do not fit have to wait.
    pub(crate) fn cause(&self, pages: PageCount) -> PauseCause {
        let ledger = &self.line().ledger;
        if ledger.may_admit_pages(pages) { ledger.cause } else { PauseCause::MemoryGuard }
    }

    /// Charged pages, and the memory guard's limit as last computed.
    pub(crate) fn pages_and_guard(&self) -> (PageCount, PageCount) {
        let ledger = &self.line().ledger;
        (ledger.pages, ledger.guard_pages)
    }

    /// How many pages in one run cost as much as `pages` pages in `runs` runs.
    pub(crate) fn pages_worth(&self, pages: PageCount, runs: u64) -> PageCount {
        let prices = self.line().ledger.prices;
        let run_pages = prices.run.0 / prices.page.0.max(1);
        pages.saturating_add(PageCount(run_pages.saturating_mul(runs.saturating_sub(1))))
    }

    /// The pages that are charged to the device.
    pub(crate) fn pages(&self) -> PageCount {
        self.line().ledger.pages
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
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether a writer may have to wake the flusher at all.
    pub(crate) fn may_wake(&self) -> bool {
        self.wake.above.load(Ordering::Relaxed) < u64::MAX
    }

    /// Until the next bounds are set, a writer wakes the flusher only above this many dirty pages, and an eighth more.
    pub(crate) fn wake_later(&self, pages: PageCount) {
        let cost = self.waking_cost(pages).0;
        self.wake.above.store(cost.saturating_add(cost / 8), Ordering::Relaxed);
    }

    /// Whether the cost of so many pages, dirty and not in flight, and of all runs is high enough for a writer to wake
    /// the flusher.
    pub(crate) fn needs_wake(&self, pages: PageCount) -> bool {
        self.waking_cost(pages) > Cost(self.wake.above.load(Ordering::Relaxed))
    }

    fn waking_cost(&self, pages: PageCount) -> Cost {
        let price = |of: &AtomicU64| Cost(of.load(Ordering::Relaxed));
        let prices = Prices { page: price(&self.wake.page), run: price(&self.wake.run) };
        prices.of(pages.0, if pages == PageCount(0) { 0 } else { self.runs() })
    }
}

/// A writer's wait for its pages to fit.
pub(crate) struct Take<'a> {
    queue: &'a AdmissionQueue,
    pages: PageCount,
    file: u32,
    ticket: Option<u64>,
}

impl Take<'_> {
    /// The writer has looked at its file, and waits on.
    pub(crate) fn wait_on(&self) {
        let Some(ticket) = self.ticket else { return };
        let woken = {
            let mut line = self.queue.line();
            if line.writers.try_wait_on(ticket) { line.admit() } else { Vec::new() }
        };
        wake(woken);
    }
}

impl Future for Take<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (queue, pages, file) = (self.queue, self.pages, self.file);
        let mut line = queue.line();
        let Some(ticket) = self.ticket else {
            if line.try_enter(pages) {
                return Poll::Ready(());
            }
            let ticket = line.writers.enter(pages.0, cx.waker());
            line.by_file.insert((file, ticket));
            self.ticket = Some(ticket);
            queue.waiting.fetch_add(1, Ordering::Relaxed);
            return Poll::Pending;
        };
        if !line.writers.try_take(ticket, cx.waker()) {
            return Poll::Pending;
        }
        line.by_file.remove(&(file, ticket));
        queue.waiting.fetch_sub(1, Ordering::Relaxed);
        self.ticket = None;
        Poll::Ready(())
    }
}

impl Drop for Take<'_> {
    /// A writer that goes away gives back what it did not take, and the writers behind it move up.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let woken = {
            let mut line = self.queue.line();
            self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
            line.by_file.remove(&(self.file, ticket));
            if line.writers.take_grant(ticket) {
                line.ledger.leave(self.pages);
            }
            line.admit()
        };
        wake(woken);
    }
}

#[cfg(test)]
mod tests;
