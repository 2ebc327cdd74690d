//! Giving written files the times that clients were told.
//!
//! Owns: the tasks that correct the modification time on the host, once a file is clean: one for each device.
//! Does not own: the values of the times (`objects::inode`), which files wait (`objects::settling`).
//! Invariants: a file with unwritten data or a time to set is in the queue of its device. A task ends when its queue is
//! empty, and holds no volume alive while it sleeps. A device that hangs stops its own task alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Nanos, Platform};
use futures_util::future::join_all;

use crate::error::VolumeError;
use crate::objects::inode::{HostView, Inode};
use crate::tree::attributes::{AttributeChange, SetTime};
use crate::tree::stat::{DeviceKey, Stat};
use crate::volume::Volume;

/// Files of a device that are made durable at the same time.
const AT_A_TIME: usize = 16;
/// The interval of the passes through the queue.
const ROUND_NS: u64 = Nanos::SECOND;

impl<P: Platform> Volume<P> {
    /// Queues a file that was written to; one load if it is queued already.
    #[inline]
    pub(crate) fn settle_later(&self, inode: &Arc<Inode<P>>) {
        if !inode.settling.load(Ordering::Relaxed) {
            self.queue(inode);
        }
    }

    #[cold]
    fn queue(&self, inode: &Arc<Inode<P>>) {
        let Some(device) = self.settling.push(inode) else { return };
        let (me, platform) = (self.me.clone(), Arc::clone(self.engine.platform()));
        self.engine.platform().spawn("settle file times", async move {
            loop {
                platform.sleep_until(platform.now().after(ROUND_NS)).await;
                let Some(volume) = me.upgrade() else { return };
                if !volume.try_settle_round(device).await {
                    return;
                }
            }
        });
    }

    /// Goes through a device's queue once. False if it is empty: the next file queued starts a new task.
    async fn try_settle_round(&self, device: DeviceKey) -> bool {
        for _ in 0..self.settling.len(device) {
            let Some(inode) = self.settling.pop(device) else {
                continue;
            };
            if !inode.has_ended() && !self.try_settle(&inode).await {
                self.queue(&inode);
            }
        }
        self.settling.try_go_on(device)
    }

    /// Sets a clean file's modification time on the host, and takes over the host's attributes. False if it has to be
    /// tried again later.
    pub(crate) async fn try_settle(&self, inode: &Arc<Inode<P>>) -> bool {
        if !inode.is_clean() {
            return false;
        }
        let changing = inode.changing.lock().await;
        if !inode.needs_settling() {
            return inode.is_clean();
        }
        let (told, look) = (inode.mode_and_owner(), inode.look());
        let stat = match self.store_reported_times(inode).await {
            // We may write to this file but do not own it: it keeps the host's time.
            Err(VolumeError::NotPermitted | VolumeError::Denied | VolumeError::ReadOnly) => {
                self.tree.stat(&inode.node).await
            }
            result => result,
        };
        let Ok(stat) = stat else {
            // Times are not worth a retry that may never end.
            inode.state().unsettled = false;
            return true;
        };
        let seen = inode.settled(stat, &look, self.now());
        if seen == Some(HostView::Foreign) {
            self.forget_cached(inode, stat.size, look.written).await;
            self.tell_found(inode);
        } else {
            self.tell_if_others(inode, told);
        }
        drop(changing);
        self.settle_later(inode);
        if stat.links == 0 {
            // Others removed its last name.
            self.lose_name(inode);
        }
        seen.is_some()
    }

    /// Gives the host times that are no earlier than those told to clients, so that times do not go back when the
    /// server restarts.
    async fn store_reported_times(&self, inode: &Arc<Inode<P>>) -> Result<Stat, VolumeError> {
        let (mtime, ctime) = inode.times();
        let set = |mtime| AttributeChange { mtime: SetTime::To(mtime), ..AttributeChange::default() };
        let stat = self.set_past(&inode.node, set(mtime), false, |stat| stat.ctime >= ctime).await?.stat;
        // A file system with a coarser unit than the tree knew: clients are told its times from now on.
        inode.learn_time_unit(mtime, stat.mtime);
        Ok(stat)
    }

    /// Makes every written file durable on the host, with its times; after the engine was drained, little is left to
    /// do. Also writes the record of locations. Returns the number of files that failed; their data stays dirty.
    pub async fn settle_all(&self) -> usize {
        let mut devices: BTreeMap<DeviceKey, Vec<Arc<Inode<P>>>> = BTreeMap::new();
        for inode in self.table.all().into_iter().filter(|inode| !inode.is_removed() && !inode.is_idle()) {
            devices.entry(inode.device).or_default().push(inode);
        }
        let left = join_all(devices.into_values().map(|inodes| Box::pin(self.settle_files(inodes)))).await;
        self.write_locations().await;
        left.into_iter().sum()
    }

    /// As [`Volume::settle_all`], for these files, some at a time.
    async fn settle_files(&self, inodes: Vec<Arc<Inode<P>>>) -> usize {
        let mut left = 0;
        for inodes in inodes.chunks(AT_A_TIME) {
            let cleaned = join_all(inodes.iter().map(|inode| Box::pin(self.try_clean(inode)))).await;
            left += cleaned.into_iter().filter(|is_clean| !is_clean).count();
        }
        left
    }
}
