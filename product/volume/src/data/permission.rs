//! The rights of a caller on an object.
//!
//! Owns: when the host is asked, the answers to hits, the rights reported to a caller.
//! Does not own: the rules about mode bits and the remembered rights (`objects::rights`), calls that the host itself
//! makes as the caller's user (`names`, changes of attributes).
//! Invariants: nothing here restricts the server itself: the host checks its user's rights. A user's rights never rest
//! on attributes older than those reported to clients, plus the time between two calls of [`Volume::upkeep`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::rights::{self, Use};
use crate::tree::attributes::Attributes;
use crate::tree::caller::Caller;
use crate::volume::Volume;

impl<P: Platform> Volume<P> {
    /// The caller for a user of the host, with `groups` in addition to the first group. The caller is recognized again
    /// until too many others have come.
    pub fn caller(&self, uid: u32, gid: u32, groups: &[u32]) -> Caller {
        self.callers.of(uid, gid, groups)
    }

    /// Whether the caller has this right, if that is known without asking the host.
    #[inline]
    pub fn allows(&self, inode: &Arc<Inode<P>>, caller: &Caller, wanted: Use) -> Option<bool> {
        if caller.credentials().is_none() {
            return Some(!(caller.is_read_only() && wanted == Use::Write));
        }
        if wanted == Use::Write && caller.is_read_only() {
            return Some(false);
        }
        let epoch = self.rights_epoch.load(Ordering::Relaxed);
        let remembered = inode.remembers_allowing(caller, epoch, wanted);
        remembered.or_else(|| self.finds_allowing(inode, caller, wanted, epoch))
    }

    #[cold]
    fn finds_allowing(&self, inode: &Arc<Inode<P>>, caller: &Caller, wanted: Use, epoch: u64) -> Option<bool> {
        let uses = inode.known_uses(caller, epoch, self.now(), self.idle_ns())?;
        Some(uses & wanted as u8 != 0)
    }

    /// Refuses a use without the right to it.
    pub async fn permit(&self, inode: &Arc<Inode<P>>, caller: &Caller, wanted: Use) -> Result<(), VolumeError> {
        if wanted == Use::Write {
            self.check_change(caller)?;
        }
        let allowed = match self.allows(inode, caller, wanted) {
            Some(allowed) => allowed,
            None => {
                self.attributes(inode).await?;
                match self.allows(inode, caller, wanted) {
                    Some(allowed) => allowed,
                    None => {
                        let (rights, forgotten) = self.fetch_rights(inode, caller).await?;
                        inode.store_rights(caller, rights, forgotten) & wanted as u8 != 0
                    }
                }
            }
        };
        if allowed { Ok(()) } else { Err(VolumeError::Denied) }
    }

    /// Refuses a read-only caller.
    pub(crate) fn check_change(&self, caller: &Caller) -> Result<(), VolumeError> {
        if caller.is_read_only() { Err(VolumeError::ReadOnly) } else { Ok(()) }
    }

    /// Asks the host about the object now, so that rights found out after this are no older.
    pub async fn look_again(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        self.check(inode).await
    }

    /// The host's answer about a caller's rights.
    async fn fetch_rights(&self, inode: &Arc<Inode<P>>, caller: &Caller) -> Result<(u8, u64), VolumeError> {
        let forgotten = inode.rights_forgotten();
        Ok((self.tree.access(&inode.node.used_by(caller)).await?, forgotten))
    }

    /// As [`Volume::access_by`], if that is known without asking the host.
    pub fn try_access(&self, inode: &Arc<Inode<P>>, caller: &Caller) -> Option<(u8, Attributes)> {
        let attributes = self.try_attributes(inode)?;
        Some((shown_rights(inode.cached_rights(caller)?, caller), attributes))
    }

    /// The caller's rights, as a sum of read 1, write 2, execute or search 4. The host's answer counts as it is, also
    /// on a read-only file system.
    pub async fn access_by(&self, caller: &Caller, inode: &Arc<Inode<P>>) -> Result<(u8, Attributes), VolumeError> {
        let attributes = self.attributes(inode).await?;
        let rights = match inode.cached_rights(caller) {
            Some(rights) => rights,
            None => {
                let (rights, forgotten) = self.fetch_rights(inode, caller).await?;
                inode.store_rights(caller, rights, forgotten);
                rights
            }
        };
        Ok((shown_rights(rights, caller), attributes))
    }
}

fn shown_rights(rights: u8, caller: &Caller) -> u8 {
    if caller.is_read_only() { rights & !rights::WRITE } else { rights }
}
