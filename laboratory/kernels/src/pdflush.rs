//! The pdflush pool and its two jobs (`mm/pdflush.c`, `mm/page-writeback.c` of 2.6.31).
//!
//! The pool has two to eight threads. A job goes to the thread that fell asleep last, and is refused if none is idle. A
//! thread that ends a job adds a thread if none has been idle for 1 s, and ends itself if one has slept for 1 s.
//!
//! Owns: the pool, the timer, `background_writeout`, `wb_kupdate`. Does not own: the writing (`fs_writeback`).
//! Invariants: the rounds of a job end, since each either writes, waits or is the last.

use std::sync::{Arc, Mutex};

use afflux_engine::Platform;

use crate::balance::Balance;
use crate::fs_writeback::{MAX_WRITEBACK_PAGES, WritebackControl};
use crate::kernel::{Kernel, Task};
use crate::sysctl::{HZ, JIFFY_NS};
use crate::vmstat::Item;
use crate::wait::{WaitQueue, lock};

const THREADS_MIN: u64 = 2;
const THREADS_MAX: u64 = 8;

/// A job for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Writes at least so many pages, and until fewer than the background threshold are dirty.
    BackgroundWriteout(u64),
    /// Writes inodes that are older than the expiry.
    WbKupdate,
}

/// An idle thread.
struct Idle {
    job: Arc<Mutex<Option<Job>>>,
    wakes: WaitQueue,
    when_i_went_to_sleep: u64,
}

/// The pool.
#[derive(Default)]
pub(crate) struct Pool {
    threads: u64,
    /// The thread that fell asleep last is the last one.
    idle: Vec<Idle>,
    last_empty_jifs: u64,
    /// The tick of the next periodic run; `None` while one runs.
    wb_timer: Option<u64>,
}

impl Pool {
    /// After a job: whether to start another thread.
    fn grows(&mut self, jiffies: u64) -> bool {
        let grows = jiffies > self.last_empty_jifs + HZ && self.idle.is_empty() && self.threads < THREADS_MAX;
        if grows {
            self.last_empty_jifs = jiffies;
            self.threads += 1;
        }
        grows
    }

    /// After a job: whether this thread ends.
    fn shrinks(&mut self, jiffies: u64) -> bool {
        let Some(sleepiest) = self.idle.first_mut().filter(|_| self.threads > THREADS_MIN) else { return false };
        let shrinks = jiffies > sleepiest.when_i_went_to_sleep + HZ;
        if shrinks {
            sleepiest.when_i_went_to_sleep = jiffies;
            self.threads -= 1;
        }
        shrinks
    }
}

impl Kernel {
    pub(crate) fn start_pdflush(self: &Arc<Self>) {
        let (now, interval) = (self.jiffies(), self.lock().sysctl.writeback_jiffies());
        {
            let pool = &mut self.lock().pool;
            (pool.threads, pool.last_empty_jifs, pool.wb_timer) = (THREADS_MIN, now, Some(now + interval));
        }
        (0..THREADS_MIN).for_each(|_| self.start_one_pdflush_thread());
        let kernel = Arc::clone(self);
        self.platform.spawn("wb_timer", async move { kernel.wb_timer().await });
    }

    fn start_one_pdflush_thread(self: &Arc<Self>) {
        let kernel = Arc::clone(self);
        self.platform.spawn("pdflush", async move { kernel.pdflush().await });
    }

    /// Gives a job to an idle thread; false if there is none.
    fn pdflush_operation(&self, job: Job) -> bool {
        let jiffies = self.jiffies();
        let idle = {
            let state = &mut *self.lock();
            let idle = state.pool.idle.pop();
            if idle.is_none() {
                state.records.figures.pdflush_refused += 1;
            } else if state.pool.idle.is_empty() {
                state.pool.last_empty_jifs = jiffies;
            }
            idle
        };
        let Some(idle) = idle else { return false };
        *lock(&idle.job) = Some(job);
        idle.wakes.wake_all();
        true
    }

    /// Requests background writeback of at least so many pages (`wakeup_pdflush`). Refused if no thread is idle.
    pub(crate) fn start_background_writeout(&self, min_pages: u64) {
        self.pdflush_operation(Job::BackgroundWriteout(min_pages));
    }

    async fn pdflush(self: Arc<Self>) {
        let mut task = Task { is_pdflush: true, ..Task::default() };
        loop {
            let (job, wakes) = (Arc::default(), WaitQueue::default());
            let entry = wakes.enter();
            let idle = Idle { job: Arc::clone(&job), wakes, when_i_went_to_sleep: self.jiffies() };
            self.lock().pool.idle.push(idle);
            entry.await;
            let job = lock(&job).take();
            match job {
                Some(Job::BackgroundWriteout(min_pages)) => self.background_writeout(min_pages, &mut task).await,
                Some(Job::WbKupdate) => self.wb_kupdate(&mut task).await,
                None => {}
            }
            let jiffies = self.jiffies();
            let (grows, shrinks) = {
                let state = &mut *self.lock();
                let grows = state.pool.grows(jiffies);
                let figures = &mut state.records.figures;
                figures.pdflush_threads = figures.pdflush_threads.max(state.pool.threads);
                (grows, state.pool.shrinks(jiffies))
            };
            if grows {
                self.start_one_pdflush_thread();
            }
            if shrinks {
                return;
            }
        }
    }

    async fn background_writeout(self: &Arc<Self>, min_pages: u64, task: &mut Task) {
        let mut min_pages = min_pages;
        while self.over_background() || min_pages > 0 {
            let mut wbc = WritebackControl { nonblocking: true, ..WritebackControl::of(MAX_WRITEBACK_PAGES) };
            self.writeback_inodes(&mut wbc, task).await;
            min_pages = min_pages.saturating_sub(MAX_WRITEBACK_PAGES - wbc.nr_to_write);
            if !self.goes_on(&wbc).await {
                return;
            }
        }
    }

    /// After a round: waits for congestion to clear if it wrote less than it should have. False if nothing was left.
    async fn goes_on(&self, wbc: &WritebackControl) -> bool {
        if wbc.nr_to_write == 0 {
            return true;
        }
        if wbc.encountered_congestion || wbc.more_io {
            self.congestion_wait(HZ / 10 * JIFFY_NS).await;
            return true;
        }
        false
    }

    pub(crate) fn over_background(&self) -> bool {
        Balance::over_background(&self.lock().view(None))
    }

    /// Dirty pages of the machine, plus one for each dirty inode.
    pub(crate) fn dirty_with_inodes(&self) -> u64 {
        let state = self.lock();
        let view = state.view(None);
        let inodes = state.inodes.iter().filter(|inode| inode.is_dirty || inode.is_syncing).count() as u64;
        view.global_page_state(Item::FileDirty) + view.global_page_state(Item::UnstableNfs) + inodes
    }

    async fn wb_kupdate(self: &Arc<Self>, task: &mut Task) {
        let (start, sysctl) = (self.jiffies(), self.lock().sysctl);
        let oldest = start.saturating_sub(sysctl.expire_jiffies());
        let mut nr_to_write = self.dirty_with_inodes();
        while nr_to_write > 0 {
            let mut wbc = WritebackControl {
                older_than_this: Some(oldest),
                nonblocking: true,
                for_kupdate: true,
                ..WritebackControl::of(MAX_WRITEBACK_PAGES)
            };
            self.writeback_inodes(&mut wbc, task).await;
            if !self.goes_on(&wbc).await {
                break;
            }
            nr_to_write = nr_to_write.saturating_sub(MAX_WRITEBACK_PAGES - wbc.nr_to_write);
        }
        let interval = self.lock().sysctl.writeback_jiffies();
        self.mod_timer((start + interval).max(self.jiffies() + HZ));
    }

    fn mod_timer(&self, at: u64) {
        self.lock().pool.wb_timer = Some(at);
        self.timer.wake_all();
    }

    /// Starts the periodic job when its time has come.
    async fn wb_timer(self: Arc<Self>) {
        loop {
            let entry = self.timer.enter();
            let due = self.lock().pool.wb_timer;
            let Some(due) = due else {
                entry.await;
                continue;
            };
            let now = self.jiffies();
            if now < due {
                entry.at_most(&self.platform, (due - now) * JIFFY_NS).await;
                continue;
            }
            drop(entry);
            // A knob of 0 stops the periodic job.
            let is_off = self.lock().sysctl.writeback_centisecs == 0;
            self.lock().pool.wb_timer = None;
            if is_off || !self.pdflush_operation(Job::WbKupdate) {
                self.lock().pool.wb_timer = Some(now + HZ);
            }
        }
    }
}

#[cfg(test)]
mod tests;
