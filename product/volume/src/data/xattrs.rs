//! Extended attributes and access control lists: the host's, read and changed for clients.
//!
//! Owns: the order of a change with the object's other changes, and what follows from it here.
//! Does not own: namespaces, lists and rights: the host decides, as for a program of the caller's user.
//! Invariants: nothing is kept here, so the host's answer is always the current one. A change ends all remembered
//! rights on the object.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Platform;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::inode::{Inode, Times};
use crate::tree::attributes::{Consistency, Outcome};
use crate::tree::caller::Caller;
use crate::tree::directory::{ChangedAttributes, Node, Stable};
use crate::tree::xattr::{XattrChange, check_name};
use crate::volume::{STOPPED, Volume};

/// The host drops it when it gets bytes of the file.
const CAPABILITY: &[u8] = b"security.capability";

impl<P: Platform> Volume<P> {
    /// The value of an extended attribute; lists of access control are `system.posix_acl_access` and
    /// `system.posix_acl_default`. [`VolumeError::NoAttribute`] if there is none, or none that the caller may see;
    /// [`VolumeError::NotSupported`] if the file system has none of this name's kind.
    pub async fn xattr_by(&self, caller: &Caller, inode: &Arc<Inode<P>>, name: &[u8]) -> Result<Bytes, VolumeError> {
        check_name(name)?;
        let node = self.used(caller, inode)?;
        self.tree.xattr(&node, Bytes::copy_from_slice(name)).await
    }

    /// The names of the extended attributes that the caller may see, in any order.
    pub async fn xattrs_by(&self, caller: &Caller, inode: &Arc<Inode<P>>) -> Result<Vec<Bytes>, VolumeError> {
        let node = self.used(caller, inode)?;
        self.tree.xattrs(&node).await
    }

    /// Changes an extended attribute, as the host allows the caller: `trusted.` and `security.` are
    /// [`VolumeError::NotPermitted`] for all but root. The change is durable on return, and remembered rights are
    /// looked up anew. Further errors: [`VolumeError::Exists`] and [`VolumeError::NoAttribute`] as `change` says,
    /// [`VolumeError::ValueTooLong`], [`VolumeError::NoSpace`], [`VolumeError::NotSupported`].
    pub async fn change_xattr_by(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        name: &[u8],
        change: XattrChange,
    ) -> Outcome<()> {
        let checked = self.check_change(caller).and_then(|()| check_name(name)).and_then(|()| change.check());
        if let Err(error) = checked {
            return Outcome { result: Err(error), consistency: inode.unchanged() };
        }
        let (caller, target, name) = (caller.clone(), Arc::clone(inode), Bytes::copy_from_slice(name));
        let work = |volume: Arc<Self>| async move { volume.change_xattr_now(&caller, &target, name, change).await };
        self.carried_through("change an extended attribute", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    async fn change_xattr_now(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        name: Bytes,
        change: XattrChange,
    ) -> Outcome<()> {
        if let Err(error) = self.attributes(inode).await {
            return Outcome { result: Err(error), consistency: inode.unchanged() };
        }
        if let Some(result) = self.done_before(caller, &[inode]).await {
            return Outcome { result, consistency: Consistency::default() };
        }
        let changing = inode.changing.lock().await;
        let made = self.make_xattr_change(caller, inode, name, change).await;
        let (consistency, stable) = match made {
            Ok(made) => made,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        drop(changing);
        Outcome { result: self.made_durable(&[inode], stable).await, consistency }
    }

    /// With `changing` held.
    async fn make_xattr_change(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        name: Bytes,
        change: XattrChange,
    ) -> Result<(Consistency, Stable), VolumeError> {
        if let Some(file) = inode.writable_file().filter(|file| name == CAPABILITY && !file.is_clean()) {
            // If earlier bytes cannot be written now, the host decides about the attribute when it gets them.
            let _ = self.engine.sync(file, 0..u64::MAX).await;
        }
        let look = inode.look();
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let node = self.used(caller, inode)?;
        let ChangedAttributes { stat, stable } =
            self.tree.change_xattr(&node, name, change, self.are_names_durable()).await?;
        caller.note_done();
        let consistency = inode.changed(stat, self.now(), Times::Keep, Some(&look));
        self.settle_later(inode);
        self.tell_attributes(caller, inode);
        Ok((consistency, stable))
    }

    /// The node of an object that has not ended, for a caller.
    fn used(&self, caller: &Caller, inode: &Inode<P>) -> Result<Node, VolumeError> {
        if inode.has_ended() { Err(VolumeError::Stale) } else { Ok(inode.node.used_by(caller)) }
    }
}
