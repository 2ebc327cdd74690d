//! What a caller may do with an object.
//!
//! Owns: when the host is asked, the answers to hits, what is told as a caller's rights.
//! Does not own: the rules about mode bits and what is remembered (`objects::rights`), calls that the host carries out
//! as their user by itself (`names`, changes of attributes).
//! Invariants: the server itself is held back by nothing here: its user's rights are the host's to check. Nothing is
//! allowed to a user by attributes that are older than clients are told them, plus the time between two calls of
//! [`Volume::tend`].

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
    /// The caller that is this user of the host, with these groups beside its first one. Known again for as long
    /// as not too many others come.
    pub fn caller(&self, uid: u32, gid: u32, groups: &[u32]) -> Caller {
        self.callers.of(uid, gid, groups)
    }

    /// Whether the caller may, if that is known without asking the host.
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

    /// Refuses what the caller may not do.
    pub async fn permit(&self, inode: &Arc<Inode<P>>, caller: &Caller, wanted: Use) -> Result<(), VolumeError> {
        if wanted == Use::Write {
            self.may_change(caller)?;
        }
        let allowed = match self.allows(inode, caller, wanted) {
            Some(allowed) => allowed,
            None => {
                self.attributes(inode).await?;
                match self.allows(inode, caller, wanted) {
                    Some(allowed) => allowed,
                    None => {
                        let (rights, forgotten) = self.ask_rights(inode, caller).await?;
                        inode.keep_asked(caller, rights, forgotten) & wanted as u8 != 0
                    }
                }
            }
        };
        if allowed { Ok(()) } else { Err(VolumeError::Denied) }
    }

    /// Refuses a caller that must not change anything.
    pub(crate) fn may_change(&self, caller: &Caller) -> Result<(), VolumeError> {
        if caller.is_read_only() { Err(VolumeError::ReadOnly) } else { Ok(()) }
    }

    /// The host's word on a caller's rights.
    async fn ask_rights(&self, inode: &Arc<Inode<P>>, caller: &Caller) -> Result<(u8, u64), VolumeError> {
        let forgotten = inode.rights_forgotten();
        Ok((self.tree.access(&inode.node.used_by(caller)).await?, forgotten))
    }

    /// As [`Volume::access_by`], if that is known without asking the host.
    pub fn try_access(&self, inode: &Arc<Inode<P>>, caller: &Caller) -> Option<(u8, Attributes)> {
        let attributes = self.try_attributes(inode)?;
        Some((told(inode.asked_rights(caller)?, caller), attributes))
    }

    /// Which of read 1, write 2, execute or search 4 the caller may do, as the host tells it: of a file system that
    /// takes no changes, too.
    pub async fn access_by(&self, caller: &Caller, inode: &Arc<Inode<P>>) -> Result<(u8, Attributes), VolumeError> {
        let attributes = self.attributes(inode).await?;
        let rights = match inode.asked_rights(caller) {
            Some(rights) => rights,
            None => {
                let (rights, forgotten) = self.ask_rights(inode, caller).await?;
                inode.keep_asked(caller, rights, forgotten);
                rights
            }
        };
        Ok((told(rights, caller), attributes))
    }
}

fn told(rights: u8, caller: &Caller) -> u8 {
    if caller.is_read_only() { rights & !rights::WRITE } else { rights }
}
