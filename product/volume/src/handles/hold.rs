//! Objects that are used beyond their last name, and beyond the process.
//!
//! Owns: the holders of an object, its end with the last of them; which held objects the tree retains for a later
//! process, and when it releases them.
//! Does not own: the count (`objects::inode`), losing and gaining names (`names`, `coherence`), the host's descriptor
//! (the tree's node), the means to retain an object (the tree).
//! Invariants: while an object is held, every call on it works as with a name, and its handle finds it. Its dirty pages
//! are dropped with its last holder, and not before. An object that has ended gets no holder and no name. A held object
//! whose last name is removed by a call of ours is retained before the host removes the name. So after a kill at any
//! moment it has a name, or the tree retains it. An object that exceeds the tree's limit ends with the process.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use afflux_engine::Platform;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::inode::{Inode, LastUse};
use crate::tree::attributes::Kind;
use crate::tree::identity::Identity;
use crate::tree::names;
use crate::volume::Volume;

/// A holder of an object, as an open file is: until it is dropped, the object can be used even without a name.
///
/// The object is not durable without a name: it ends with the server, too.
pub struct Held<P: Platform> {
    volume: Weak<Volume<P>>,
    inode: Arc<Inode<P>>,
}

impl<P: Platform> Held<P> {
    /// Inode that the handle leads to.
    pub fn inode(&self) -> &Arc<Inode<P>> {
        &self.inode
    }
}

impl<P: Platform> Deref for Held<P> {
    type Target = Arc<Inode<P>>;

    fn deref(&self) -> &Self::Target {
        &self.inode
    }
}

impl<P: Platform> Clone for Held<P> {
    /// One more holder.
    fn clone(&self) -> Self {
        self.inode.hold_again();
        Self { volume: Weak::clone(&self.volume), inode: Arc::clone(&self.inode) }
    }
}

impl<P: Platform> Drop for Held<P> {
    fn drop(&mut self) {
        if let (Some(last), Some(volume)) = (self.inode.release(), self.volume.upgrade()) {
            volume.end(&self.inode, last);
        }
    }
}

impl<P: Platform> Volume<P> {
    /// Holds an object until the drop of the result. Asks the host nothing. [`VolumeError::Stale`] if the object is
    /// gone already.
    pub fn hold(&self, inode: &Arc<Inode<P>>) -> Result<Held<P>, VolumeError> {
        inode.hold()?;
        Ok(Held { volume: self.me.clone(), inode: Arc::clone(inode) })
    }

    /// An object has lost the last of its name and its holders: it cannot be found any more, and is discarded once no
    /// call uses it.
    pub(crate) fn end(&self, inode: &Arc<Inode<P>>, _: LastUse) {
        self.search.gone(&inode.identity);
        self.table.forget(inode);
    }
}

impl<P: Platform> Volume<P> {
    /// Holds an object that an earlier process held, by its handle. The object may have no name, if the tree has
    /// retained it. `Stale` if it is gone. Waits for the host.
    pub async fn hold_inherited(&self, handle: &[u8]) -> Result<Held<P>, VolumeError> {
        let inode = self.resolve(handle).await?;
        let held = self.hold(&inode)?;
        if inode.attributes().links == 0 {
            self.lose_name(&inode);
        }
        self.keep_unnamed(&inode).await;
        Ok(held)
    }

    /// Retains the object of a name before the name is removed, if that may be its last one. The result is for
    /// [`Volume::removal_ended`].
    pub(crate) async fn keep_before_removal(&self, directory: &Arc<Inode<P>>, name: &[u8]) -> Option<Arc<Inode<P>>> {
        if !self.tree.may_keep_unnamed() || names::check_entry(name).and(directory.require_directory()).is_err() {
            return None;
        }
        let inode = match self.try_lookup(directory, name) {
            Some(found) => found.0,
            // A held object is in memory, so no other is brought there.
            None => {
                let found = self.tree.lookup(&directory.node, Bytes::copy_from_slice(name)).await.ok()?;
                self.table.get(&found.identity)?
            }
        };
        let inode = Some(inode).filter(|inode| can_outlive(inode.kind()) && inode.is_held_by_a_last_name())?;
        // If the tree's limit is reached, the object is as one that nobody retains.
        let _ = self.tree.keep_unnamed(&inode.node).await;
        Some(inode)
    }

    /// The removal of a name of this object was tried: the tree releases it if it still has a name.
    pub(crate) async fn removal_ended(&self, kept: Option<Arc<Inode<P>>>) {
        if let Some(inode) = kept.filter(|inode| !inode.is_removed()) {
            let _ = self.tree.let_go_unnamed(&inode.node).await;
        }
    }

    /// Retains an object whose last name somebody has removed, if it is held.
    pub(crate) async fn keep_removed(&self, identity: &Identity) {
        if self.tree.may_keep_unnamed()
            && let Some(inode) = self.table.get(identity)
        {
            self.keep_unnamed(&inode).await;
        }
    }

    /// Retains a held object that has no name.
    pub(crate) async fn keep_unnamed(&self, inode: &Arc<Inode<P>>) {
        if self.tree.may_keep_unnamed() && can_outlive(inode.kind()) && inode.is_held_without_name() {
            let _ = self.tree.keep_unnamed(&inode.node).await;
        }
    }
}

/// Whether such objects have users beyond their last name. Programs have others open by their names alone.
fn can_outlive(kind: Kind) -> bool {
    matches!(kind, Kind::Regular | Kind::Directory)
}
