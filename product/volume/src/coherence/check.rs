//! Detecting that others changed an object on the host, and reacting to it.
//!
//! Owns: the question to the host, forgetting the cached data of changed bytes and of removed objects.
//! Does not own: telling others' changes from ours (`objects::inode`).
//! Invariants: unwritten data is never forgotten. An object with neither name nor holder cannot be found.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::inode::{HostView, Inode};
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
