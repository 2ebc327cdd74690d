//! Looking after unused objects.
//!
//! Owns: the bounds on an idle inode's effect on the host: it must not keep a removed file's space, or keep a program
//! from being run.
//! Does not own: the moment (the code that runs the volume), room in the table (`handles::admit`).
//! Invariants: an inode that is used, dirty or unsynced is left alone. One round at a time looks after the objects of a
//! device, and waits for no other device.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Platform;
use futures_util::future::join_all;

use crate::objects::inode::Inode;
use crate::tree::attributes::Kind;
use crate::volume::Volume;

/// Objects that one call of the tree asks about.
const BATCH: usize = 256;

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

    /// Called every few seconds: see [`Volume::upkeep_every`]. Asks the host about objects that were not used since the
    /// last call. An object without a name is released, so that its space becomes free. An object that others changed
    /// is not served from the cache any more. Executable files that were written are closed, so that the host can run
    /// them. Callers' rights are looked up anew from now on. A device that an earlier call still asks is left out.
    pub async fn upkeep(&self) {
        self.rights_epoch.fetch_add(1, Ordering::Relaxed);
        let mut unused = self.table.unused();
        unused.sort_by_key(|inode| inode.device);
        let of_devices = unused.chunk_by(|one, next| one.device == next.device);
        let tended = of_devices.filter_map(|unused| {
            let turn = self.devices.turn_to_tend(unused.first()?.device)?;
            // An object in these hands counts as used.
            let unused = unused.to_vec();
            Some(async move {
                self.tend(&unused).await;
                drop(turn);
            })
        });
        let tended = join_all(tended);
        drop(unused);
        tended.await;
    }

    /// Looks after unused objects of one device.
    async fn tend(&self, unused: &[Arc<Inode<P>>]) {
        for batch in unused.chunks(BATCH) {
            let nodes = batch.iter().map(|inode| inode.node.clone()).collect();
            let Ok(stats) = self.tree.stat_all(nodes).await else {
                return;
            };
            for (inode, stat) in batch.iter().zip(stats) {
                let Some(stat) = stat else { continue };
                if stat.links == 0 || inode.differs(&stat, self.now()) {
                    // An error means that the object is gone, and then it was released.
                    let _ = self.check(inode).await;
                }
                self.close_program(inode);
            }
            self.engine.platform().preemption_point().await;
        }
    }

    fn close_program(&self, inode: &Arc<Inode<P>>) {
        let program = inode.kind() == Kind::Regular && inode.attributes().mode & 0o111 != 0;
        if program && inode.writable_file().is_some() {
            self.table.drop_idle(inode, |inode| self.known_locations.remember(inode));
        }
    }
}
