//! Telling the listener what others changed.
//!
//! Owns: who is told, of what, and when.
//! Does not own: finding others' changes (`check`, `settle`), the front end's answer: what its kernel or client
//! forgets.
//! Invariants: the listener is told after the change can be seen in the volume, and before the reply to the call that
//! made it or found it. It does not hear of changes that its own callers asked for
//! ([`Caller::listening`]). It does hear of setuid bits that a write takes.

use std::sync::Arc;

use afflux_engine::Platform;
use bytes::Bytes;

use crate::objects::inode::Inode;
use crate::objects::listener::{ForeignChange, ForeignListener};
use crate::tree::caller::Caller;
use crate::tree::identity::Identity;
use crate::tree::stat::Kind;
use crate::volume::Volume;

impl<P: Platform> Volume<P> {
    /// Tells `listener` of others' changes from now on, in place of the last one; none: nobody is told.
    pub fn listen(&self, listener: Option<Arc<dyn ForeignListener>>) {
        self.listener.set(listener);
    }

    /// Tells of a change by a caller on the device of this object.
    #[inline]
    pub(crate) fn tell(&self, caller: &Caller, inode: &Inode<P>, change: impl FnOnce() -> ForeignChange) {
        if self.listener.is_taken() && !caller.is_listening() {
            self.listener.tell(inode.device, change());
        }
    }

    /// Tells that a look at the host found an object changed.
    pub(crate) fn tell_found(&self, inode: &Inode<P>) {
        self.tell(&Caller::SERVER, inode, || match inode.kind() {
            Kind::Regular => ForeignChange::Bytes(inode.handle),
            Kind::Directory => ForeignChange::Names(inode.handle),
            _ => ForeignChange::Attributes(inode.handle),
        });
    }

    /// Tells the listener if the mode or the owner differs from the last ones it was told.
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

    /// Tells of a changed name, and of the objects whose number of names or place that changed.
    pub(crate) fn tell_name(&self, caller: &Caller, directory: &Inode<P>, name: &Bytes, objects: &[Identity]) {
        self.tell(caller, directory, || ForeignChange::Name { directory: directory.handle, name: name.clone() });
        for object in objects {
            let changed = || ForeignChange::Attributes(self.key.seal(object, self.export_of(directory)));
            self.tell(caller, directory, changed);
        }
    }
}
