//! What fsync(2) and close(2) of a program ask beyond a sync of bytes.
//!
//! Owns: the sync of one object's names and attributes at a caller's request; the kept error of a file.
//! Does not own: bytes (`sync`), when names are durable by themselves (`Volume::set_names_durable`).
//! Invariants: success means that the object's attributes, and a directory's entries, are durable as they were at the
//! call.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::volume::Volume;

impl<P: Platform> Volume<P> {
    /// Makes the object's attributes, and a directory's entries, durable, whether or not calls that change them wait
    /// for that.
    pub async fn sync_object(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        self.tree.sync(&inode.node).await
    }

    /// The error of an earlier write of the file that is not written yet.
    pub fn pending_error(&self, inode: &Arc<Inode<P>>) -> Option<VolumeError> {
        inode.file()?.write_error().map(VolumeError::from)
    }

    /// Whether a limit may refuse bytes of the file that were accepted, such as a quota of another computer. Then a
    /// close has to wait until they are written.
    pub fn may_be_refused(&self, inode: &Arc<Inode<P>>) -> bool {
        inode.file().is_some_and(afflux_engine::File::may_be_refused)
    }
}
