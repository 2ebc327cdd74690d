//! Bringing objects into memory, and making room for them.
//!
//! Owns: making inodes of the host's answers, and which inodes go when there are too many.
//! Does not own: the table and its bounds (`objects::table`), making dirty files clean (`data::sync`).
//! Invariants: an inode is dropped only if it has no other users and all of it is on the host.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::handle;
use crate::objects::inode::Inode;
use crate::objects::location::Location;
use crate::tree::directory::Found;
use crate::volume::Volume;

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
        let Found { node, identity, stat } = found;
        let now = self.now();
        let make = || {
            Inode::new(
                &self.engine,
                identity,
                self.key.seal(&identity, export),
                node,
                stat,
                now,
                &self.table.descriptors,
            )
        };
        let (inode, new) = self.table.get_or_insert(&identity, make);
        if new {
            self.known_locations.met(&identity);
        }
        if let Some(location) = location {
            self.known_locations.found_at(&inode, location);
        }
        if !new && inode.differs(&stat, now) {
            // The host's answer may be older than a change of ours: it only raises suspicion.
            self.check(&inode).await?;
        }
        Ok(inode)
    }

    /// Drops idle inodes while there are too many. If that is not enough, it makes some dirty ones clean, which waits
    /// for the devices.
    pub(crate) async fn make_room(&self) {
        if !self.table.is_worth_a_search() {
            return;
        }
        let _one_at_a_time = self.sweeping.lock().await;
        if !self.table.is_worth_a_search() {
            return;
        }
        let sweep = self.table.sweep(|inode| self.known_locations.remember(inode));
        drop(sweep.dropped);
        if !self.table.is_full() {
            return;
        }
        for inode in sweep.unwritten {
            if self.clean(&inode).await {
                inode.recent.store(false, Ordering::Relaxed);
            }
        }
        drop(self.table.sweep(|inode| self.known_locations.remember(inode)).dropped);
        if self.table.is_full() {
            self.table.searched_in_vain();
        }
    }
}
