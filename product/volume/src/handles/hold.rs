//! Objects that are used beyond their last name.
//!
//! Owns: the holders of an object, its end with the last of them.
//! Does not own: the count (`objects::inode`), losing and gaining names (`names`, `coherence`), the host's descriptor
//! (the tree's node).
//! Invariants: while an object is held, every call on it works as with a name, and its handle finds it. Its dirty pages
//! are dropped with its last holder, and not before. An object that has ended gets no holder and no name.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::inode::{Inode, LastUse};
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
