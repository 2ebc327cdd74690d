//! Whether others changed an object on the host, and what becomes of one that they did change.
//!
//! Owns: the question to the host, forgetting what is cached of changed bytes and of removed objects.
//! Does not own: how the host's answer is told from changes of ours (`objects::inode`).
//! Invariants: what we have not written yet is never forgotten. An object whose last name is gone is found by nobody.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::inode::{Inode, Seen};
use crate::volume::Volume;

impl<P: Platform> Volume<P> {
    /// Asks the host whether others changed an object, and if so forgets what was cached of it.
    pub(crate) async fn check(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if inode.is_removed() {
            return Err(VolumeError::Stale);
        }
        let changing = inode.changing.lock().await;
        let look = inode.look();
        let stat = self.tree.stat(&inode.node).await?;
        let seen = inode.observe(stat, &look, self.now());
        if seen == Seen::Busy {
            inode.observe_rights(&stat, self.now());
        }
        if seen == Seen::Foreign {
            self.forget_cached(inode, stat.size, look.written).await;
            inode.listed().forget();
        }
        drop(changing);
        if stat.links == 0 {
            self.gone(inode);
            return Err(VolumeError::Stale);
        }
        Ok(())
    }

    /// Others changed a file: what is cached of its bytes is void. `size` is what the host says, and
    /// `written` the count of the engine's changes from before it was asked.
    pub(crate) async fn forget_cached(&self, inode: &Arc<Inode<P>>, size: u64, written: Option<u64>) {
        let Some(file) = inode.file() else { return };
        // A file that was opened meanwhile began with what was there then.
        let taken = self.engine.invalidate(file, size, written.unwrap_or(0)).await;
        if !taken {
            // We were writing: the size is compared again once that is over.
            inode.state().unsettled = true;
            self.settle_later(inode);
        }
    }

    /// Its last name is gone: nobody finds it any more, those who hold it end with it.
    pub(crate) fn gone(&self, inode: &Arc<Inode<P>>) {
        {
            let mut state = inode.state();
            state.removed = true;
            state.location = None;
        }
        self.sightings.remember_gone(&inode.identity);
        self.table.forget(inode);
    }
}
