//! Files without a name.
//!
//! Owns: their creation.
//! Does not own: giving them a name (`entries`), their end (`handles::hold`).
//! Invariants: a file without a name has a holder from its creation on.

use std::sync::Arc;

use afflux_engine::Platform;

use super::entries::check_directory;
use crate::error::VolumeError;
use crate::handles::hold::Held;
use crate::objects::inode::Inode;
use crate::tree::attributes::{AttributeChange, Attributes};
use crate::tree::caller::Caller;
use crate::tree::directory::Unnamed;
use crate::volume::{STOPPED, Volume};

impl<P: Platform> Volume<P> {
    /// Makes an empty regular file without a name, on the file system of `directory`; the caller needs the right to
    /// make names there. [`Volume::link_by`] gives it a name later, and makes that durable. Without a name the file is
    /// not durable: it ends with its last holder, with the server, and in a crash. The attributes may not have a size.
    /// [`VolumeError::NotSupported`] if the host's file system has no such files.
    pub async fn create_unnamed_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        attributes: AttributeChange,
    ) -> Result<(Held<P>, Attributes), VolumeError> {
        let (caller, parent) = (caller.clone(), Arc::clone(directory));
        let work = |volume: Arc<Self>| async move { volume.create_unnamed_now(&caller, &parent, attributes).await };
        self.carried_through("create without a name", work).await.unwrap_or(Err(STOPPED))
    }

    async fn create_unnamed_now(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        attributes: AttributeChange,
    ) -> Result<(Held<P>, Attributes), VolumeError> {
        self.check_change(caller)?;
        check_directory(parent)?;
        attributes.check()?;
        if attributes.size.is_some() {
            return Err(VolumeError::Invalid { what: "a size of a file without a name" });
        }
        self.trim_inodes().await;
        let Unnamed { found, data } = self.tree.create_unnamed(&parent.node.used_by(caller), attributes).await?;
        let (inode, _) = self.inode_of(found, self.export_of(parent))?;
        // Held before it has lost its name, so it does not end in between.
        let held = self.hold(&inode)?;
        self.lose_name(&inode);
        self.attach_made(&inode, data).await?;
        self.keep_unnamed(&inode).await;
        let attributes = inode.attributes();
        Ok((held, attributes))
    }
}
