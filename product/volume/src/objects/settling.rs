//! Files whose modification time on the host is that of the writeback.
//!
//! Owns: a queue of such files for each device, and whether a task goes through it.
//! Does not own: the tasks (`coherence::settle`).
//! Invariants: a file is in a queue once. While a device has a queue, one task goes through it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use afflux_engine::Platform;

use super::inode::Inode;
use crate::lock::lock;
use crate::tree::stat::DeviceKey;

/// Files to be settled. Bounded by the inode table, which keeps these inodes and may clean them to make room.
pub(crate) struct Settling<P: Platform>(Mutex<BTreeMap<DeviceKey, VecDeque<Weak<Inode<P>>>>>);

impl<P: Platform> Default for Settling<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Platform> Settling<P> {
    /// Queues a file whose times must be set, unless it is queued. Returns the device whose task the
    /// caller has to start.
    pub(crate) fn push(&self, inode: &Arc<Inode<P>>) -> Option<DeviceKey> {
        if !inode.state().unsettled || inode.settling.swap(true, Ordering::Relaxed) {
            return None;
        }
        let mut queues = lock(&self.0);
        let has_task = queues.contains_key(&inode.device);
        queues.entry(inode.device).or_default().push_back(Arc::downgrade(inode));
        (!has_task).then_some(inode.device)
    }

    pub(crate) fn len(&self, device: DeviceKey) -> usize {
        lock(&self.0).get(&device).map_or(0, VecDeque::len)
    }

    /// Takes the device's first file out; `None` if it was dropped since, or if the queue is empty.
    pub(crate) fn pop(&self, device: DeviceKey) -> Option<Arc<Inode<P>>> {
        let inode = lock(&self.0).get_mut(&device)?.pop_front()?.upgrade()?;
        inode.settling.store(false, Ordering::Relaxed);
        Some(inode)
    }

    /// Called after a round; returns whether the device has more files. If not, the next caller that queues one starts
    /// a new task.
    pub(crate) fn try_go_on(&self, device: DeviceKey) -> bool {
        let mut queues = lock(&self.0);
        let has_more = queues.get(&device).is_some_and(|queue| !queue.is_empty());
        if !has_more {
            queues.remove(&device);
        }
        has_more
    }
}
