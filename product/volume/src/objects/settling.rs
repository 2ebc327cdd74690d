//! Files whose modification time on the host is that of the writeback.
//!
//! Owns: the queue of such files, and whether a task goes through it.
//! Does not own: the task (`coherence::settle`).
//! Invariants: a file is in the queue once. While the queue is not empty, one task goes through it.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use afflux_engine::Platform;

use super::inode::Inode;
use crate::lock::lock;

/// Files to be settled. Bounded by the inode table.
pub(crate) struct Settling<P: Platform>(Mutex<Queue<P>>);

struct Queue<P: Platform> {
    /// Weak: the table keeps these inodes, and may clean them to make room.
    inodes: VecDeque<Weak<Inode<P>>>,
    running: bool,
}

impl<P: Platform> Default for Settling<P> {
    fn default() -> Self {
        Self(Mutex::new(Queue { inodes: VecDeque::new(), running: false }))
    }
}

impl<P: Platform> Settling<P> {
    /// Queues a file whose times must be set, unless it is queued. True if the caller has to start
    /// the task.
    pub(crate) fn push(&self, inode: &Arc<Inode<P>>) -> bool {
        if !inode.state().unsettled || inode.settling.swap(true, Ordering::Relaxed) {
            return false;
        }
        let mut queue = lock(&self.0);
        queue.inodes.push_back(Arc::downgrade(inode));
        !mem::replace(&mut queue.running, true)
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).inodes.len()
    }

    /// Takes the first file out; `None` if it was dropped since, or if the queue is empty.
    pub(crate) fn pop(&self) -> Option<Arc<Inode<P>>> {
        let inode = lock(&self.0).inodes.pop_front()?.upgrade()?;
        inode.settling.store(false, Ordering::Relaxed);
        Some(inode)
    }

    /// Called after a round; returns whether there are more. If not, the next caller that queues a
    /// file starts a new task.
    pub(crate) fn has_more(&self) -> bool {
        let mut queue = lock(&self.0);
        queue.running = !queue.inodes.is_empty();
        queue.running
    }
}
