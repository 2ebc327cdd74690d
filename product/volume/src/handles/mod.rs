//! From handles and identities to objects in memory.
//!
//! Owns: the order of the methods to find a handle's object, the check that a file is still inside the exports; making
//! inodes of the host's answers, and which inodes go when there are too many.
//! Does not own: searches where the host opens nothing by handle (`search`), names (`names`), the state of objects, the
//! table of inodes and its bounds (`objects`), making dirty files clean (`data::sync`).
//! Invariants: a handle names one object while that lives, and nothing afterwards. An object that is gone is `Stale`,
//! never `NotFound`. An inode is dropped only if it has no other users and all of it is on the host.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Nanos, Platform};
use futures_util::future::{join_all, select};

use crate::error::VolumeError;
use crate::objects::handle;
use crate::objects::inode::Inode;
use crate::objects::table::Sweep;
use crate::task::to_the_end;
use crate::tree::attributes::{DeviceKey, Kind};
use crate::tree::directory::{Found, Location};
use crate::tree::identity::Identity;
use crate::volume::Volume;

pub(crate) mod adopt;
pub(crate) mod hold;

impl<P: Platform> Volume<P> {
    /// The object of a handle, if it is in memory. Asks the host nothing.
    pub fn try_resolve(&self, handle: &[u8]) -> Option<Arc<Inode<P>>> {
        let (identity, _) = handle::peek(handle).ok()?;
        // The whole handle is compared, with its hash: a forged one is never equal.
        let inode = self.table.get(&identity).filter(|inode| inode.handle.as_bytes() == handle);
        inode.filter(|inode| !self.may_be_outside(inode))
    }

    /// Whether a handle leads to this object, to which an equal one has led a moment ago. Asks the host nothing.
    pub fn is_still_at(&self, inode: &Inode<P>, handle: &[u8]) -> bool {
        inode.handle.as_bytes() == handle && !self.may_be_outside(inode)
    }

    /// Whether the tree has to be asked if a file is still inside. For directories the tree checks this itself.
    fn may_be_outside(&self, inode: &Inode<P>) -> bool {
        self.confines_files
            && inode.kind() != Kind::Directory
            && self.now().since(Nanos(inode.confined.load(Ordering::Relaxed))) >= self.idle_ns()
    }

    /// Asks the tree whether a file is still inside.
    async fn confine(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if !self.may_be_outside(inode) {
            return Ok(());
        }
        let now = self.now();
        match self.tree.stat(&inode.node).await {
            Ok(_) => inode.confined.store(now.0, Ordering::Relaxed),
            Err(error) => {
                // A second name of it may be inside, so the object must be found anew.
                self.table.drop_idle(inode, |_| {});
                return Err(error);
            }
        }
        Ok(())
    }

    /// The object of a handle. [`VolumeError::BadHandle`] if the handle was not given out by this
    /// server, [`VolumeError::Stale`] if the object is gone or its export is not served any more.
    pub async fn resolve(&self, handle: &[u8]) -> Result<Arc<Inode<P>>, VolumeError> {
        if let Some(inode) = self.try_resolve(handle) {
            return Ok(inode);
        }
        let (identity, export) = self.key.open(handle)?;
        if !self.exports.iter().any(|served| served.tag == export) {
            return Err(VolumeError::Stale);
        }
        let inode = self.resolve_identity(identity, export).await?;
        self.confine(&inode).await?;
        Ok(inode)
    }

    pub(crate) async fn resolve_identity(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        if let Some(inode) = self.table.get(&identity) {
            return Ok(inode);
        }
        self.trim_inodes().await;
        if self.tree.may_open(&identity) {
            match self.tree.open_identity(identity).await {
                Ok(found) => return self.admit(found, export, None).await,
                Err(VolumeError::NotSupported) => {}
                Err(error) => return Err(gone(error)),
            }
        }
        Box::pin(self.find_by_search(identity, export)).await
    }
}

/// Maps errors for an object behind a handle: it is gone; its name was not wrong.
fn gone(error: VolumeError) -> VolumeError {
    match error {
        VolumeError::NotFound | VolumeError::NotDirectory => VolumeError::Stale,
        error => error,
    }
}

/// The longest wait for inodes to become clean. Then the caller's inode exceeds the bound.
const CLEAN_WAIT_NS: u64 = Nanos::SECOND;

impl<P: Platform> Volume<P> {
    /// The export in an object's handle.
    pub(crate) fn export_of(&self, inode: &Inode<P>) -> u16 {
        handle::peek(inode.handle.as_bytes()).map_or(0, |(_, export)| export)
    }

    /// The inode of an object that the host returned. Its attributes are the host's, or ours while they are unwritten.
    pub(crate) async fn admit(
        &self,
        found: Found,
        export: u16,
        location: Option<Location>,
    ) -> Result<Arc<Inode<P>>, VolumeError> {
        if let Some(inode) = self.adopted(&found).await? {
            return Ok(inode);
        }
        let (identity, stat, now) = (found.identity, found.stat, self.now());
        let (inode, new) = self.inode_of(found, export)?;
        if new {
            self.search.note_found(&identity);
        }
        if let Some(location) = location {
            self.search.found_at(&inode, location);
        }
        if !new && inode.does_differ(&stat, now) {
            // The host's answer may be older than a change of ours: it only raises suspicion.
            self.check(&inode).await?;
        }
        Ok(inode)
    }

    /// The inode of an object: the present one, or a new one with these attributes. The flag marks a new one.
    pub(crate) fn inode_of(&self, found: Found, export: u16) -> Result<(Arc<Inode<P>>, bool), VolumeError> {
        let Found { node, identity, stat } = found;
        let stat = self.file_ids.with_fileid(&identity, stat)?;
        let handle = self.key.seal(&identity, export);
        let unit = self.devices.time_unit(stat.device, self.tree.time_unit_ns(&node));
        let make =
            || Inode::new(&self.engine, identity, handle, node, stat, self.now(), &self.table.sums).with_times_in(unit);
        Ok(self.table.get_or_insert(&identity, make))
    }

    /// Drops idle inodes while there are too many. If that is not enough, tasks make some dirty ones clean. The caller
    /// waits for these tasks at most [`CLEAN_WAIT_NS`].
    pub(crate) async fn trim_inodes(&self) {
        if !self.table.is_worth_a_search() {
            return;
        }
        let _one_at_a_time = self.sweeping.lock().await;
        if !self.table.is_worth_a_search() {
            return;
        }
        let unwritten = self.sweep_inodes().await;
        if !self.table.is_full() {
            return;
        }
        self.clean_unused(unwritten).await;
        self.sweep_inodes().await;
        if self.table.is_full() {
            self.table.searched_in_vain();
        }
    }

    /// Drops idle inodes until some capacity is free. Returns some that are unused, but partly unwritten, by device.
    async fn sweep_inodes(&self) -> BTreeMap<DeviceKey, Vec<Arc<Inode<P>>>> {
        let mut sweep = Sweep::begin();
        while self.table.sweep_on(&mut sweep, |inode| self.search.dropped(inode)).is_some() {
            self.engine.platform().preemption_point().await;
        }
        sweep.unwritten
    }

    /// Has unused inodes made clean, those of each device by a task. A device that hangs occupies its task, so the next
    /// search passes it over.
    async fn clean_unused(&self, unwritten: BTreeMap<DeviceKey, Vec<Arc<Inode<P>>>>) {
        let platform = self.engine.platform();
        let tasks = unwritten.into_iter().filter_map(|(device, inodes)| {
            let (claim, volume) = (self.devices.claim_cleaning(device)?, self.me.upgrade()?);
            Some(to_the_end(&**platform, "make room", async move {
                for inode in inodes {
                    if volume.try_clean(&inode).await {
                        inode.recent.store(false, Ordering::Relaxed);
                    }
                }
                drop(claim);
            }))
        });
        let tasks: Vec<_> = tasks.collect();
        if !tasks.is_empty() {
            select(join_all(tasks), pin!(platform.sleep_until(platform.now().after(CLEAN_WAIT_NS)))).await;
        }
    }
}
