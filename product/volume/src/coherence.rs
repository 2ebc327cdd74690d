//! Keeping the volume's state and the host's in agreement.
//!
//! Owns: the detection of others' changes on the host and the notices to the listener, giving written files the times
//! that were reported to clients, the upkeep of unused objects; a task for each device does the last two.
//! Does not own: which changes are ours, and the values of times (`objects::inode`); which files wait for their times
//! (`objects::devices`); the moment of an upkeep (the code that runs the volume). The rules are in
//! `docs/use/coherence.md`.
//! Invariants: unwritten bytes are never given up for others' changes. An object with neither name nor holder cannot be
//! found. The listener is notified after the change can be seen in the volume, and before the reply to the call that
//! made it or found it. It is not notified of changes that its own callers asked for ([`Caller::listening`]), but it is
//! notified of setuid bits that a write clears. A file with unwritten data or a time to set is in the queue of its
//! device. A task ends when its queue is empty, and holds no volume alive while it sleeps. A device that hangs stops
//! its own task alone. An idle inode holds neither a removed file's space nor a file open for writing: that would
//! prevent programs from being run and file systems from becoming read-only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;
use futures_util::future::join_all;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::inode_state::HostView;
use crate::objects::listener::{ForeignChange, ForeignListener};
use crate::tree::attributes::{AttributeChange, DeviceKey, Kind, SetTime, Stat};
use crate::tree::caller::Caller;
use crate::tree::identity::Identity;
use crate::volume::Volume;

impl<P: Platform> Volume<P> {
    /// Asks the host whether others changed an object, and if so forgets its cached data.
    pub(crate) async fn check(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if inode.has_ended() {
            return Err(VolumeError::Stale);
        }
        let changing = inode.changing.lock().await;
        let (told, look) = (inode.mode_and_owner(), inode.look());
        let stat = self.tree.stat(&inode.node).await?;
        let seen = inode.observe(stat, &look, self.now());
        if seen == HostView::Busy {
            inode.asked(self.now());
            inode.observe_rights(&stat);
            self.tell_if_others(inode, told);
        }
        if seen == HostView::Foreign {
            self.forget_cached(inode, stat.size, look.written).await;
            inode.listed().forget();
            self.tell_found(inode);
        }
        drop(changing);
        if stat.links == 0 {
            self.lose_name(inode);
            if inode.has_ended() {
                return Err(VolumeError::Stale);
            }
            self.keep_unnamed(inode).await;
        }
        Ok(())
    }

    /// Others changed a file: its cached bytes are void. `size` is the host's size, and `written` the count of the
    /// engine's changes from before the host was asked.
    pub(crate) async fn forget_cached(&self, inode: &Arc<Inode<P>>, size: u64, written: Option<u64>) {
        let Some(file) = inode.file() else { return };
        // A file that was opened meanwhile began with the new contents.
        let taken = self.engine.try_invalidate(file, size, written.unwrap_or(0)).await;
        if !taken {
            // We were writing: the size is compared again after that.
            inode.state().unsettled = true;
            self.settle_later(inode);
        }
    }

    /// The object has lost its last name. A held object can still be found by handle.
    pub(crate) fn lose_name(&self, inode: &Arc<Inode<P>>) {
        if let Some(last) = inode.lose_name() {
            self.end(inode, last);
        }
    }
}

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
            // The server may write to this file but does not own it: its time stays the host's.
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

    /// Gives the host times that are no earlier than those reported to clients, so that times do not go back when the
    /// server restarts.
    async fn store_reported_times(&self, inode: &Arc<Inode<P>>) -> Result<Stat, VolumeError> {
        let (mtime, ctime) = inode.times();
        let set = |mtime| AttributeChange { mtime: SetTime::To(mtime), ..AttributeChange::default() };
        let stat = self.set_past(&inode.node, set(mtime), false, |stat| stat.ctime >= ctime).await?.stat;
        // A file system with a coarser unit than the tree knew: clients get the times of this unit from now on.
        inode.learn_time_unit(mtime, stat.mtime);
        Ok(stat)
    }

    /// Makes every written file durable on the host, with its times; after the engine was drained, little work remains.
    /// Also writes the record of locations. Returns the number of files that failed; their data stays dirty.
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

impl<P: Platform> Volume<P> {
    /// Notifies `listener` of others' changes from now on, in place of the last one; none: nobody is notified.
    pub fn listen(&self, listener: Option<Arc<dyn ForeignListener>>) {
        self.listener.set(listener);
    }

    /// Notifies the listener of a change by a caller on the device of this object.
    #[inline]
    pub(crate) fn tell(&self, caller: &Caller, inode: &Inode<P>, change: impl FnOnce() -> ForeignChange) {
        if self.listener.is_taken() && !caller.is_listening() {
            self.listener.tell(inode.device, change());
        }
    }

    /// Notifies the listener that the host's answer shows an object changed.
    pub(crate) fn tell_found(&self, inode: &Inode<P>) {
        self.tell(&Caller::SERVER, inode, || match inode.kind() {
            Kind::Regular => ForeignChange::Bytes(inode.handle),
            Kind::Directory => ForeignChange::Names(inode.handle),
            _ => ForeignChange::Attributes(inode.handle),
        });
    }

    /// Notifies the listener if the mode or the owner differs from the last ones that were reported.
    pub(crate) fn tell_if_others(&self, inode: &Inode<P>, told: (u32, u32, u32)) {
        if inode.mode_and_owner() != told {
            self.tell_attributes(&Caller::SERVER, inode);
        }
    }

    pub(crate) fn tell_bytes(&self, caller: &Caller, inode: &Inode<P>) {
        self.tell(caller, inode, || ForeignChange::Bytes(inode.handle));
    }

    pub(crate) fn tell_attributes(&self, caller: &Caller, inode: &Inode<P>) {
        self.tell(caller, inode, || ForeignChange::Attributes(inode.handle));
    }

    /// Notifies the listener of a changed name, and of the objects whose number of names or location that changed.
    pub(crate) fn tell_name(&self, caller: &Caller, directory: &Inode<P>, name: &Bytes, objects: &[Identity]) {
        self.tell(caller, directory, || ForeignChange::Name { directory: directory.handle, name: name.clone() });
        for object in objects {
            let changed = || ForeignChange::Attributes(self.key.seal(object, self.export_of(directory)));
            self.tell(caller, directory, changed);
        }
    }
}

/// Objects that one call of the tree asks about.
const BATCH: usize = 256;
/// Files of a device that one round makes durable and closes for writing: the syncs of a copied tree must not occupy
/// its disk all the time.
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

    /// From now on, ends offers to waiting owners when their time is over, and goes on with long ticks and ends of
    /// holders.
    pub(crate) fn end_offers_in_time(&self) {
        let (me, platform) = (self.me.clone(), Arc::clone(self.engine.platform()));
        // A pending task for the end of an offer does not replace one that goes on at once.
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
    /// is not served from the cache any more. Files that were written are made durable, and not held open for writing:
    /// then the host can run programs among them, and make their file system read-only. Callers' rights are looked up
    /// anew from now on. Locks that nobody uses any more go to the waiters. A device that an earlier call still asks is
    /// skipped.
    pub async fn upkeep(&self) {
        self.rights_epoch.fetch_add(1, Ordering::Relaxed);
        self.locks.tick(self.now());
        // An object that is held here counts as used.
        let mut unused: BTreeMap<DeviceKey, Vec<Arc<Inode<P>>>> = BTreeMap::new();
        for some in self.table.unused() {
            some.into_iter().for_each(|inode| unused.entry(inode.device).or_default().push(inode));
            self.engine.platform().preemption_point().await;
        }
        let tended = unused.into_iter().filter_map(|(device, unused)| {
            let claim = self.devices.claim_tending(device)?;
            Some(async move {
                self.tend(&unused).await;
                drop(claim);
            })
        });
        join_all(tended).await;
    }

    /// Checks and tidies up unused objects of one device.
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

    /// Closes a file for writing, if its bytes are on the host. Returns whether it had to be done. The bytes stay in
    /// the cache.
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
