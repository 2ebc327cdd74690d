//! Walks over dirty inodes, and the writing of one of them (`fs/fs-writeback.c`, `write_cache_pages`).
//!
//! Owns: the order of inodes, the rules of putting back, the division into requests.
//! Does not own: the lists (`inode`), the queue (`request_queue`), the threads.
//! Invariants: a walk ends: it writes each inode at most once between two fillings of `s_io`. One task writes an inode
//! at a time. Not modelled: pages that are skipped because their buffers are locked; inodes' own blocks.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::inode::{InodeId, Next};
use crate::kernel::{Kernel, Task};
use crate::release::Threads;
use crate::state::State;
use crate::wait::QueueEntry;

/// Pages of one slice (`MAX_WRITEBACK_PAGES`).
pub(crate) const MAX_WRITEBACK_PAGES: u64 = 1024;

/// The order for a walk, and its course (`struct writeback_control`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WritebackControl {
    /// Only this device.
    pub(crate) bdi: Option<usize>,
    /// `WB_SYNC_ALL`: everything, and wait for it.
    pub(crate) sync_all: bool,
    /// Only inodes that became dirty by this tick.
    pub(crate) older_than_this: Option<u64>,
    pub(crate) nr_to_write: u64,
    /// Leave a device whose queue is congested.
    pub(crate) nonblocking: bool,
    pub(crate) for_kupdate: bool,
    pub(crate) encountered_congestion: bool,
    pub(crate) more_io: bool,
}

impl WritebackControl {
    /// So many pages of anything, waiting for requests.
    pub(crate) fn of(nr_to_write: u64) -> Self {
        Self { nr_to_write, ..Self::default() }
    }
}

/// The begin of an inode's writing.
enum Begin {
    Writing,
    /// Another task writes the inode, and wakes this waiter at the end.
    After(QueueEntry),
    /// Another task writes the inode, which is on `s_more_io` now.
    PutOff,
}

impl Kernel {
    /// `writeback_inodes`: until 2.6.31 all superblocks in their order, from 2.6.32 on the lists of the device.
    pub(crate) async fn writeback_inodes(self: &Arc<Self>, wbc: &mut WritebackControl, task: &mut Task) {
        let all = match (self.release.threads, wbc.bdi) {
            (Threads::Flushers, Some(bdi)) => bdi..bdi + 1,
            _ => 0..self.lock().lists.len(),
        };
        for lists in all {
            if self.lock().lists[lists].has_dirty() {
                self.sync_sb_inodes(lists, wbc, task).await;
            }
            if wbc.nr_to_write == 0 {
                return;
            }
        }
    }

    /// `generic_sync_sb_inodes`, and `writeback_inodes_wb` of 2.6.32.
    pub(crate) async fn sync_sb_inodes(self: &Arc<Self>, lists: usize, wbc: &mut WritebackControl, task: &mut Task) {
        let start = self.jiffies();
        {
            let State { lists: all, inodes, .. } = &mut *self.lock();
            if !wbc.for_kupdate || all[lists].has_no_io() {
                all[lists].queue_io(inodes, wbc.older_than_this);
            }
        }
        while let Some((id, bdi)) = self.next_inode(lists, start, wbc, task) {
            self.writeback_single_inode(id, wbc, task).await;
            let more = {
                let mut state = self.lock();
                state.bdis[bdi].has_pdflush &= !task.is_pdflush;
                state.lists[lists].oldest_more_io().is_some()
            };
            self.platform.preemption_point().await;
            if wbc.nr_to_write == 0 {
                wbc.more_io = true;
                return;
            }
            wbc.more_io |= more;
        }
    }

    /// The next inode of a walk that began at `start`; a pdflush thread takes its device.
    fn next_inode(
        &self,
        lists: usize,
        start: u64,
        wbc: &mut WritebackControl,
        task: &Task,
    ) -> Option<(InodeId, usize)> {
        let mut state = self.lock();
        let id = state.lists[lists].next()?;
        let (bdi, dirtied_when) = (state.inodes[id.0].bdi, state.inodes[id.0].dirtied_when);
        let device = &mut state.bdis[bdi];
        if wbc.nonblocking && device.queue.is_congested() {
            wbc.encountered_congestion = true;
            return None;
        }
        let is_of_other = wbc.bdi.is_some_and(|only| only != bdi);
        if is_of_other || dirtied_when > start || task.is_pdflush && device.has_pdflush {
            return None;
        }
        device.has_pdflush |= task.is_pdflush;
        Some((id, bdi))
    }

    async fn writeback_single_inode(self: &Arc<Self>, id: InodeId, wbc: &mut WritebackControl, task: &mut Task) {
        loop {
            match self.begins(id, wbc) {
                Begin::Writing => break,
                Begin::After(entry) => entry.await,
                Begin::PutOff => return,
            }
        }
        self.write_cache_pages(id, wbc, task).await;
        if wbc.sync_all {
            self.wait_on_writeback(id).await;
        }
        self.put_back(id, wbc);
        self.inode_synced.wake_all();
    }

    /// Takes the inode's `I_SYNC`. If another task has it, a walk for a sync waits, and other walks put the inode off.
    fn begins(&self, id: InodeId, wbc: &WritebackControl) -> Begin {
        let State { lists, inodes, .. } = &mut *self.lock();
        let inode = &mut inodes[id.0];
        if !inode.is_syncing {
            (inode.is_syncing, inode.is_dirty) = (true, false);
            return Begin::Writing;
        }
        if wbc.sync_all {
            return Begin::After(self.inode_synced.enter());
        }
        let of = inode.lists;
        lists[of].requeue_io(inodes, id);
        Begin::PutOff
    }

    /// The list on which an inode goes on after its slice.
    fn put_back(&self, id: InodeId, wbc: &WritebackControl) {
        let jiffies = self.jiffies();
        let flushers = self.release.threads == Threads::Flushers;
        let State { lists, inodes, .. } = &mut *self.lock();
        let inode = &mut inodes[id.0];
        inode.is_syncing = false;
        let (of, redirtied, more) = (inode.lists, inode.is_dirty, !inode.dirty.is_empty());
        inode.is_dirty |= more;
        let lists = &mut lists[of];
        // 2.6.32 selects the queue also for an inode that was redirtied meanwhile.
        if wbc.for_kupdate && wbc.nr_to_write == 0 && (more && !redirtied || redirtied && flushers) {
            lists.requeue_io(inodes, id);
        } else if more || redirtied {
            lists.redirty_tail(inodes, id, jiffies);
        } else {
            lists.remove(inodes, id);
        }
    }

    /// Writes pages of the inode from the index at which the last slice ended, once around the file.
    async fn write_cache_pages(self: &Arc<Self>, id: InodeId, wbc: &mut WritebackControl, task: &mut Task) {
        let (bdi, largest, start) = {
            let state = self.lock();
            let inode = &state.inodes[id.0];
            let start = if wbc.sync_all { 0 } else { inode.writeback_index };
            (inode.bdi, state.bdis[inode.bdi].queue.options.request_pages, start)
        };
        let (mut index, mut end, mut cycled) = (start, u64::MAX, start == 0);
        loop {
            if wbc.nonblocking && self.lock().bdis[bdi].queue.is_congested() {
                wbc.encountered_congestion = true;
                break;
            }
            let next = self.lock().inodes[id.0].next_dirty(index..end);
            let pages = match next {
                Next::Pages(pages) => pages,
                Next::UnderWriteback(_) if wbc.sync_all => {
                    self.wait_on_writeback(id).await;
                    continue;
                }
                Next::UnderWriteback(pages) => {
                    index = pages.end;
                    continue;
                }
                Next::None if cycled => break,
                Next::None => {
                    (index, end, cycled) = (0, start, true);
                    continue;
                }
            };
            let most = if wbc.sync_all { largest } else { largest.min(wbc.nr_to_write) };
            let pages = pages.start..pages.end.min(pages.start + most);
            let count = pages.end - pages.start;
            self.lock().set_page_writeback(id, pages.clone());
            self.charge_writing(count);
            self.get_request_wait(bdi, task).await;
            index = pages.end;
            self.submit(id, pages);
            wbc.nr_to_write = wbc.nr_to_write.saturating_sub(count);
            self.platform.between_requests().await;
            if wbc.nr_to_write == 0 && !wbc.sync_all {
                break;
            }
        }
        self.lock().inodes[id.0].writeback_index = index;
    }

    async fn get_request_wait(&self, bdi: usize, task: &mut Task) {
        loop {
            let jiffies = self.jiffies();
            let entry = {
                let queue = &mut self.lock().bdis[bdi].queue;
                if queue.get_request(&mut task.io, jiffies) {
                    return;
                }
                queue.wait.enter()
            };
            entry.await;
            let batch = self.lock().bdis[bdi].queue.options.batch;
            task.io.set_batching(batch, self.jiffies());
        }
    }

    /// `filemap_fdatawait`: until no page of the inode is under writeback.
    pub(crate) async fn wait_on_writeback(&self, id: InodeId) {
        loop {
            let entry = self.page_written.enter();
            if self.lock().inodes[id.0].writeback.is_empty() {
                return;
            }
            entry.await;
        }
    }
}
