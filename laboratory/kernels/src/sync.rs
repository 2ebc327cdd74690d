//! `sync(2)`.
//!
//! Owns: its passes over all superblocks. Does not own: the writing (`fs_writeback`, `flusher`).
//! Invariants: after it, no page that was dirty at its begin is dirty or under writeback.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::flusher::Work;
use crate::fs_writeback::WritebackControl;
use crate::inode::InodeId;
use crate::kernel::{Kernel, SuperBlock, Task};
use crate::release::Threads;
use crate::wait::WaitQueue;

impl Kernel {
    /// Writes all superblocks and waits for them, in their order; returns when each was written, in nanoseconds of
    /// virtual time. Without `starts_all` the passes that begin writing everywhere are left out.
    pub async fn sync(self: &Arc<Self>, task: &mut Task, all: &[SuperBlock], starts_all: bool) -> Vec<u64> {
        if starts_all {
            self.start_all(task, all).await;
        }
        let mut ends_ns = Vec::new();
        for sb in all {
            self.sync_inodes_sb(task, *sb).await;
            ends_ns.push(self.platform.now().0);
        }
        ends_ns
    }

    /// Wakes the threads for all dirty pages, then the pass that does not wait: the calling task itself submits until
    /// 2.6.31, the flushers do from 2.6.32 on.
    async fn start_all(self: &Arc<Self>, task: &mut Task, all: &[SuperBlock]) {
        let dirty = self.lock().vm.dirty;
        match self.release.threads {
            Threads::Pdflush => {
                self.start_background_writeout(dirty);
                for sb in all {
                    let mut wbc = WritebackControl::of(self.dirty_with_inodes());
                    self.sync_sb_inodes(sb.lists, &mut wbc, task).await;
                }
            }
            Threads::Flushers => all.iter().for_each(|sb| self.queue_work(sb.bdi, Work::Pages(dirty))),
        }
    }

    /// The pass that waits, for one superblock.
    async fn sync_inodes_sb(self: &Arc<Self>, task: &mut Task, sb: SuperBlock) {
        if self.release.threads == Threads::Flushers {
            let done = WaitQueue::default();
            let place = done.enter();
            self.queue_work(sb.bdi, Work::SyncAll(done));
            place.await;
        } else {
            let mut wbc = WritebackControl { sync_all: true, ..WritebackControl::of(u64::MAX) };
            self.sync_sb_inodes(sb.lists, &mut wbc, task).await;
        }
        let count = self.lock().inodes.len();
        for id in (0..count).map(InodeId) {
            if self.lock().inodes[id.0].lists == sb.lists {
                self.wait_on_writeback(id).await;
            }
        }
    }
}
