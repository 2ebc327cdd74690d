//! The pdflush pool of Linux 2.6.31: background writeback by threads that belong to no device.
//!
//! The pool has two to eight threads (kernel-facts, section 2.1). A call for background writeback takes an idle thread,
//! and is dropped if there is none. A thread is added when none has been idle for 1 s, and ends when one has been idle
//! for 1 s.
//!
//! The background job asks for 1,024 pages of any device, in the order of the devices. It repeats this until the dirty
//! pages are below the threshold. After a round with fewer pages it waits up to 100 ms if queues were congested or
//! files had more, and ends otherwise. The periodic job does the same for files older than the expiry, for as many
//! pages as are dirty plus one for each dirty file. The next run begins one interval after the start of the last, but
//! no sooner than 1 s after the end.
//!
//! A thread never waits for a request. It passes over a congested device. A file whose device becomes congested keeps
//! its remaining dirty pages, and goes to the young end of the list of dirty files (`redirty_tail`). In background
//! writeback, a file whose slice is used up goes there, too; in the periodic job it keeps its place (`requeue_io`). One
//! thread works on a device at a time.
//!
//! Not modelled: pages that are skipped because their buffers are locked, after which the kernel waits, too.
//!
//! Owns: the pool, the two jobs, the rules of putting back. Does not own: lists, requests, congestion marks.
//! Invariants: the rounds of a job end: from each device, a round takes at most one file more than there are dirty
//! ones. A task keeps the engine alive.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::old_kernels::{Flush, Global, OldKernel, PutBack, RunEnd};
use afflux_engine::{DeviceId, FileTurn, Nanos};

use crate::balance::SLICE_PAGES;

const THREADS_MIN: u32 = 2;
const THREADS_MAX: u32 = 8;
/// Time without an idle thread, or with one, until the number of threads changes.
const RESIZE_NS: u64 = Nanos::SECOND;
/// The longest wait for congestion.
const WAIT_NS: u64 = 100 * Nanos::MILLISECOND;
const PERIODIC_PAUSE_NS: u64 = Nanos::SECOND;

/// The pool of threads.
pub(crate) struct Pdflush {
    pool: Arc<Pool>,
}

/// The state that the threads share.
struct Pool {
    state: Mutex<PdflushState>,
    /// Whether a wait for congestion ends when a queue clears, instead of after its whole time.
    woken_on_clear: bool,
}

struct PdflushState {
    threads: u32,
    working: u32,
    /// Since when there has been an idle thread, or none.
    changed: Nanos,
    /// Devices on which a thread works.
    taken: BTreeSet<DeviceId>,
}

/// One request for writeback.
struct Control {
    pages: u64,
    /// For the periodic job: only files that have been dirty since before this instant.
    older_than: Option<Nanos>,
    congested: bool,
    more: bool,
}

impl Pdflush {
    pub(crate) fn new(woken_on_clear: bool) -> Self {
        let state = PdflushState { threads: THREADS_MIN, working: 0, changed: Nanos(0), taken: BTreeSet::new() };
        Self { pool: Arc::new(Pool { state: Mutex::new(state), woken_on_clear }) }
    }
}

impl OldKernel for Pdflush {
    fn has_own_threads(&self) -> bool {
        true
    }

    fn start(&self, flush: Arc<dyn Flush>) {
        let (pool, within) = (Arc::clone(&self.pool), Arc::clone(&flush));
        flush.spawn("pdflush timer", Box::pin(async move { pool.periodic(&*within).await }));
    }

    fn kick(&self, flush: Arc<dyn Flush>) {
        if !self.pool.begin(flush.now()) {
            return;
        }
        let (pool, within) = (Arc::clone(&self.pool), Arc::clone(&flush));
        let job = async move {
            pool.background(&*within).await;
            pool.end(within.now());
        };
        flush.spawn("pdflush", Box::pin(job));
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, PdflushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle thread; returns false if there is none.
    fn begin(&self, now: Nanos) -> bool {
        let mut state = self.lock();
        let waited = now.since(state.changed) >= RESIZE_NS;
        if state.working == state.threads {
            if waited && state.threads < THREADS_MAX {
                state.threads += 1;
                state.changed = now;
            }
            return false;
        }
        if waited && state.threads > THREADS_MIN.max(state.working + 1) {
            state.threads -= 1;
        }
        state.working += 1;
        if state.working == state.threads {
            state.changed = now;
        }
        true
    }

    fn end(&self, now: Nanos) {
        let mut state = self.lock();
        if state.working == state.threads {
            state.changed = now;
        }
        state.working -= 1;
    }

    async fn wait(&self, flush: &dyn Flush) {
        if self.woken_on_clear { flush.congestion_clears(WAIT_NS).await } else { flush.sleep(WAIT_NS).await }
    }

    async fn background(&self, flush: &dyn Flush) {
        while flush.devices().into_iter().any(|device| flush.over_background(device)) {
            let mut control = Control::new(SLICE_PAGES, None);
            self.round(flush, &mut control).await;
            if control.pages == 0 {
                continue;
            }
            if !control.congested && !control.more {
                return;
            }
            self.wait(flush).await;
        }
    }

    async fn periodic(&self, flush: &dyn Flush) {
        let mut next = flush.now().after(flush.interval_ns().unwrap_or(PERIODIC_PAUSE_NS));
        loop {
            flush.sleep(next.since(flush.now())).await;
            let Some(interval_ns) = flush.interval_ns() else {
                // Off: the kernel removes its timer then. No event tells when the knob is set again, so look from time
                // to time.
                next = flush.now().after(PERIODIC_PAUSE_NS);
                continue;
            };
            if !self.begin(flush.now()) {
                next = flush.now().after(PERIODIC_PAUSE_NS);
                continue;
            }
            let began = flush.now();
            self.write_old(flush).await;
            self.end(flush.now());
            next = began.after(interval_ns).max(flush.now().after(PERIODIC_PAUSE_NS));
        }
    }

    async fn write_old(&self, flush: &dyn Flush) {
        let older_than = Nanos(flush.now().0.saturating_sub(flush.expire_ns()));
        let view = flush.view();
        let mut left = view.read(Global::Dirty) + view.read(Global::Unstable) + flush.dirty_files();
        while left > 0 {
            let mut control = Control::new(SLICE_PAGES, Some(older_than));
            self.round(flush, &mut control).await;
            if control.pages > 0 {
                if !control.congested && !control.more {
                    return;
                }
                self.wait(flush).await;
            }
            // A round without progress counts, too, so that this loop always ends.
            left = left.saturating_sub((SLICE_PAGES - control.pages).max(1));
        }
    }

    /// Writes the requested pages, from the devices in their order.
    async fn round(&self, flush: &dyn Flush, control: &mut Control) {
        for device in flush.devices() {
            if control.pages == 0 {
                return;
            }
            // Bounded, because a file that was put back may come round again.
            for _ in 0..=flush.dirty_files() {
                if control.pages == 0 {
                    control.more = true;
                    break;
                }
                if flush.congested(device) {
                    control.congested = true;
                    break;
                }
                if !self.lock().taken.insert(device) {
                    break;
                }
                let leave = Leave { pool: self, device };
                let Some(taken) = flush.take_file(device, control.older_than) else {
                    break;
                };
                let congested = control.write(flush, taken).await;
                drop(leave);
                if congested {
                    break;
                }
            }
        }
    }
}

impl Control {
    fn new(pages: u64, older_than: Option<Nanos>) -> Self {
        Self { pages, older_than, congested: false, more: false }
    }

    /// Writes one file as far as possible; returns whether congestion stopped it.
    async fn write(&mut self, flush: &dyn Flush, taken: FileTurn) -> bool {
        let mut taken = taken;
        let mut congested = false;
        while self.pages > 0 {
            match flush.write_run(&mut taken, self.pages, false).await {
                RunEnd::Pages(pages) => self.pages = self.pages.saturating_sub(pages),
                RunEnd::Congested => {
                    congested = true;
                    break;
                }
                RunEnd::Nothing => break,
            }
        }
        self.congested |= congested;
        let keeps_place = self.older_than.is_some() && self.pages == 0;
        flush.put_back(taken, if keeps_place { PutBack::More } else { PutBack::Redirty });
        congested
    }
}

/// The hold of a thread on its device.
struct Leave<'a> {
    pool: &'a Pool,
    device: DeviceId,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.pool.lock().taken.remove(&self.device);
    }
}

#[cfg(test)]
mod tests;
