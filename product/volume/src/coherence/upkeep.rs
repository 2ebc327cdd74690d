//! Looking after unused objects.
//!
//! Owns: the bounds on an idle inode's effect on the host: it must not keep a removed file's space, or keep a file open
//! for writing, which keeps programs from being run and file systems from becoming read-only.
//! Does not own: the moment (the code that runs the volume), room in the table (`handles::admit`).
//! Invariants: an inode that is used or dirty is left alone. One round at a time looks after the objects of a
//! device, and waits for no other device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_engine::Platform;
use futures_util::future::join_all;

use crate::objects::inode::Inode;
use crate::volume::Volume;

/// Objects that one call of the tree asks about.
const BATCH: usize = 256;
/// Files of a device that one round makes durable and closes for writing: a copied tree must not keep its disk busy
/// with syncs.
const CLOSED_MAX: usize = 1024;

impl<P: Platform> Volume<P> {
    /// Calls [`Volume::upkeep`] every `every_ns` nanoseconds, in a task of the world, until the volume is
    /// dropped.
    pub fn upkeep_every(&self, every_ns: u64) {
        let (me, platform) = (self.me.clone(), Arc::clone(self.engine.platform()));
        self.engine.platform().spawn("tend", async move {
            loop {
                platform.sleep_until(platform.now().after(every_ns)).await;
                let Some(volume) = me.upgrade() else { return };
                platform.spawn("tend once", async move { volume.upkeep().await });
            }
        });
    }

    /// From now on, ends turns of waiting owners when their time is over, and goes on with long ticks and ends of
    /// holders.
    pub(crate) fn end_offers_in_time(&self) {
        let (me, platform) = (self.me.clone(), Arc::clone(self.engine.platform()));
        // The task for the end of a turn does not stand for one that goes on at once.
        let (later, at_once) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        self.locks.tell_offers(Box::new(move |end| {
            let is_told = if end > platform.now() { &later } else { &at_once };
            if is_told.swap(true, Ordering::AcqRel) {
                return;
            }
            let (me, clock, is_told) = (me.clone(), Arc::clone(&platform), Arc::clone(is_told));
            platform.spawn("end turns", async move {
                clock.sleep_until(end).await;
                is_told.store(false, Ordering::Release);
                if let Some(volume) = me.upgrade() {
                    volume.locks.go_on(volume.now());
                }
            });
        }));
    }

    /// Called every few seconds: see [`Volume::upkeep_every`]. Asks the host about objects that were not used since the
    /// last call. An object without a name is released, so that its space becomes free. An object that others changed
    /// is not served from the cache any more. Files that were written are made durable, and not kept open for writing:
    /// then the host can run programs among them, and make their file system read-only. Callers' rights are looked up
    /// anew from now on. Locks that nobody uses any more go to those who wait. A device that an earlier call still asks
    /// is left out.
    pub async fn upkeep(&self) {
        self.rights_epoch.fetch_add(1, Ordering::Relaxed);
        self.locks.tick(self.now());
        let mut unused = self.table.unused();
        unused.sort_by_key(|inode| inode.device);
        let of_devices = unused.chunk_by(|one, next| one.device == next.device);
        let tended = of_devices.filter_map(|unused| {
            let claim = self.devices.claim_tending(unused.first()?.device)?;
            // An object in these hands counts as used.
            let unused = unused.to_vec();
            Some(async move {
                self.tend(&unused).await;
                drop(claim);
            })
        });
        let tended = join_all(tended);
        drop(unused);
        tended.await;
    }

    /// Looks after unused objects of one device.
    async fn tend(&self, unused: &[Arc<Inode<P>>]) {
        let mut closed = 0;
        for batch in unused.chunks(BATCH) {
            let nodes = batch.iter().map(|inode| inode.node.clone()).collect();
            let Ok(stats) = self.tree.stat_all(nodes).await else {
                return;
            };
            for (inode, stat) in batch.iter().zip(stats) {
                let Some(stat) = stat else { continue };
                if stat.links == 0 || inode.does_differ(&stat, self.now()) {
                    // An error means that the object is gone, and then it was released.
                    let _ = self.check(inode).await;
                }
                if closed < CLOSED_MAX && self.try_stop_writing(inode).await {
                    closed += 1;
                }
            }
            self.engine.platform().preemption_point().await;
        }
    }

    /// Closes a file for writing, if its bytes are on the host. Returns whether it had to be done. The cache keeps the
    /// bytes.
    async fn try_stop_writing(&self, inode: &Arc<Inode<P>>) -> bool {
        if inode.writable_file().is_none_or(|file| !file.is_clean()) {
            return false;
        }
        // Who wants to write meanwhile waits, and then opens the file again.
        let _opening = inode.opening.lock().await;
        let is_durable = inode.is_idle() || self.try_clean(inode).await;
        if is_durable && self.table.try_forbid_writing(inode) && self.tree.stop_writing(&inode.node).await.is_err() {
            // The next round tries again.
            inode.allow_writing();
        }
        true
    }
}
