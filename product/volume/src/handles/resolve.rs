//! From handles to inodes.
//!
//! Owns: the order of the ways from a handle back to its object; the check that a file is still inside the exports.
//! Does not own: the table and the layout of handles (`objects`); finding what the tree does not open (`search`).
//! Invariants: an object that is gone is `Stale`, never `NotFound`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Nanos, Platform};

use crate::error::VolumeError;
use crate::objects::handle;
use crate::objects::inode::Inode;
use crate::tree::identity::Identity;
use crate::tree::stat::Kind;
use crate::volume::Volume;

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
