//! One flusher for each device (`bdi_writeback_task` and `wb_writeback` of 2.6.32).
//!
//! A flusher takes work from its list: background writeback, or pages for `sync`. It also writes inodes that are older
//! than the expiry, once an interval. It waits for requests.
//!
//! Owns: the work list, the flusher's loop. Does not own: the writing (`fs_writeback`).
//! Invariants: only a flusher takes from its device's list.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::fs_writeback::{MAX_WRITEBACK_PAGES, WritebackControl};
use crate::kernel::{Kernel, Task};
use crate::sysctl::{HZ, JIFFY_NS};
use crate::wait::WaitQueue;

/// Work for a flusher (`struct wb_writeback_args`).
pub(crate) enum Work {
    /// Until fewer pages than the background threshold are dirty.
    Background,
    /// So many pages.
    Pages(u64),
    /// Everything, and wait for it. Then wakes the task that called `sync`.
    SyncAll(WaitQueue),
}

impl Kernel {
    pub(crate) fn start_flushers(self: &Arc<Self>) {
        let count = self.lock().bdis.len();
        for bdi in 0..count {
            let kernel = Arc::clone(self);
            self.platform.spawn("flush", async move { kernel.bdi_writeback_task(bdi).await });
        }
    }

    /// `bdi_queue_work`.
    pub(crate) fn queue_work(&self, bdi: usize, work: Work) {
        let flusher = {
            let bdi = &mut self.lock().bdis[bdi];
            bdi.work.push_back(work);
            bdi.flusher.clone()
        };
        flusher.wake_all();
    }

    /// `bdi_start_writeback` for background writeback.
    pub(crate) fn start_background_work(&self, bdi: usize) {
        self.queue_work(bdi, Work::Background);
    }

    async fn bdi_writeback_task(self: Arc<Self>, bdi: usize) {
        let (mut task, mut last_old_flush) = (Task::default(), self.jiffies());
        loop {
            let entry = self.lock().bdis[bdi].flusher.enter();
            // A walk that has begun leaves the list of work to others.
            while let Some(work) = self.next_work(bdi) {
                self.do_work(bdi, work, &mut task).await;
            }
            last_old_flush = self.check_old_data_flush(bdi, last_old_flush, &mut task).await;
            let interval = self.lock().sysctl.writeback_jiffies();
            match interval {
                0 => entry.await,
                _ => _ = entry.at_most(&self.platform, interval * JIFFY_NS).await,
            }
        }
    }

    fn next_work(&self, bdi: usize) -> Option<Work> {
        self.lock().bdis[bdi].work.pop_front()
    }

    async fn do_work(self: &Arc<Self>, bdi: usize, work: Work, task: &mut Task) {
        match work {
            Work::Background => self.wb_writeback(bdi, u64::MAX, None, true, task).await,
            Work::Pages(pages) => self.wb_writeback(bdi, pages, None, false, task).await,
            Work::SyncAll(caller) => {
                let mut wbc = WritebackControl { bdi: Some(bdi), sync_all: true, ..WritebackControl::of(u64::MAX) };
                self.writeback_inodes(&mut wbc, task).await;
                caller.wake_all();
            }
        }
    }

    /// Writes old inodes if an interval has passed since the last time; returns the tick of the last time.
    async fn check_old_data_flush(self: &Arc<Self>, bdi: usize, last: u64, task: &mut Task) -> u64 {
        let (now, sysctl) = (self.jiffies(), self.lock().sysctl);
        let interval = sysctl.writeback_jiffies();
        if interval == 0 || now < last + interval {
            return last;
        }
        self.wb_writeback(bdi, self.dirty_with_inodes(), Some(sysctl.expire_jiffies()), false, task).await;
        now
    }

    /// `wb_writeback`: with `expire`, only inodes that are older, in ticks.
    async fn wb_writeback(
        self: &Arc<Self>,
        bdi: usize,
        nr_pages: u64,
        expire: Option<u64>,
        for_background: bool,
        task: &mut Task,
    ) {
        let oldest = expire.map(|expire| self.jiffies().saturating_sub(expire));
        let mut nr_pages = nr_pages;
        while nr_pages > 0 && (!for_background || self.over_background()) {
            let mut wbc = WritebackControl {
                bdi: Some(bdi),
                older_than_this: oldest,
                for_kupdate: expire.is_some(),
                ..WritebackControl::of(MAX_WRITEBACK_PAGES)
            };
            self.writeback_inodes(&mut wbc, task).await;
            nr_pages = nr_pages.saturating_sub(MAX_WRITEBACK_PAGES - wbc.nr_to_write);
            if wbc.nr_to_write == 0 {
                continue;
            }
            if !wbc.more_io {
                return;
            }
            if wbc.nr_to_write == MAX_WRITEBACK_PAGES {
                self.wait_for_an_inode(bdi).await;
            }
        }
    }

    /// Nothing was written: waits until another task has written an inode.
    async fn wait_for_an_inode(&self, bdi: usize) {
        let entry = self.inode_synced.enter();
        let waits = {
            let state = self.lock();
            let oldest = state.lists[bdi].oldest_more_io();
            oldest.is_some_and(|id| state.inodes[id.0].is_syncing)
        };
        if waits {
            // The task that writes the inode wakes all; a tick bounds the wait if that was another inode's.
            entry.at_most(&self.platform, HZ * JIFFY_NS).await;
        }
    }
}
