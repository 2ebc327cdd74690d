//! Calls made as a user of the host, on a thread of the pool.
//!
//! Owns: a thread's user and groups for the file system, for as long as one call takes.
//! Does not own: which calls are made so (`entries`), as whom (the volume, by [`Node::user`]).
//! Invariants: a thread has its own identity again before it does anything else, also when the call panics; where that
//! cannot be, the process ends. A call whose identity the kernel does not take is not made at all. The kernel takes
//! the capabilities about files from a thread whose user is not root, and gives them back; so such a call is that
//! user's in all respects but signals.

use std::process::abort;
use std::sync::Arc;

use afflux_volume::{Credentials, Node, VolumeError};
use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::set_thread_groups;

/// Who a thread is by itself.
struct OwnIdentity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

thread_local! {
    /// Of a thread that makes a call as somebody else: looked at right before its first one.
    static OWN: OwnIdentity =
        OwnIdentity { uid: geteuid(), gid: getegid(), groups: getgroups().unwrap_or_default() };
}

/// As whom calls of one operation are made.
#[derive(Clone)]
pub(super) struct Acting {
    user: Option<Arc<Credentials>>,
}

impl Acting {
    /// As a node's user.
    pub(super) fn on(node: &Node) -> Self {
        Self { user: node.user().cloned() }
    }

    /// Whose rights the calls have; none where they are the process's own.
    pub(super) fn user(&self) -> Option<&Credentials> {
        self.user.as_deref()
    }

    /// Makes a call.
    pub(super) fn call<T>(&self, call: impl FnOnce() -> Result<T, VolumeError>) -> Result<T, VolumeError> {
        let Some(user) = &self.user else { return call() };
        OWN.with(|own| {
            // Root's groups give it nothing.
            if user.is_root() && (own.uid.as_raw(), own.gid.as_raw()) == (user.uid, user.gid) {
                return call();
            }
            let _changed = Changed::to(user, own)?;
            call()
        })
    }

    /// Makes a call inside [`Acting::call`] as a member of this group, if it is made with root's rights. Root sets a
    /// file's setgid bit whatever its group; the process has no CAP_FSETID, so the kernel wants the group for it.
    pub(super) fn call_in_group<T>(&self, group: u32, call: impl FnOnce() -> T) -> T {
        let user = self.user();
        let is_root = user.map_or_else(|| OWN.with(|own| own.uid.is_root()), Credentials::is_root);
        let own_group = user.map_or_else(|| OWN.with(|own| own.gid.as_raw()), |user| user.gid);
        // Where the group is not taken, the kernel decides about the bit as for anybody.
        let _in_group = (is_root && own_group != group && set_group(group)).then_some(InGroup { own_group });
        call()
    }
}

/// A thread that is in another group, until it is dropped.
struct InGroup {
    own_group: u32,
}

impl Drop for InGroup {
    fn drop(&mut self) {
        if !set_group(self.own_group) {
            // Anything that it did from here on would be done with that group's rights.
            abort();
        }
    }
}

/// A thread that acts as somebody else, until it is dropped.
struct Changed<'a> {
    own: &'a OwnIdentity,
    groups: bool,
}

impl<'a> Changed<'a> {
    fn to(user: &Credentials, own: &'a OwnIdentity) -> Result<Self, VolumeError> {
        let groups = !user.groups.iter().copied().eq(own.groups.iter().map(|group| group.as_raw()));
        // Dropped on failure: whatever was changed by then is put back.
        let mut changed = Self { own, groups: false };
        if groups {
            let wanted: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
            set_thread_groups(&wanted).map_err(|_| VolumeError::Denied)?;
            changed.groups = true;
        }
        // The user last: with it go the rights to set the others.
        if set_group(user.gid) && set_user(user.uid) { Ok(changed) } else { Err(VolumeError::Denied) }
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        let own = self.own;
        let restored = set_user(own.uid.as_raw())
            && set_group(own.gid.as_raw())
            && (!self.groups || set_thread_groups(&own.groups).is_ok());
        if !restored {
            // Anything that it did from here on would be done as somebody else.
            abort();
        }
    }
}

/// Nobody's number: the kernel takes it for a question.
const ASK: u32 = u32::MAX;

/// Sets the thread's user for the file system. False if the kernel did not take it: it says so by nothing else.
fn set_user(uid: u32) -> bool {
    // SAFETY: numbers alone are passed; the call acts on this thread's credentials and on no memory of ours.
    unsafe {
        libc::syscall(libc::SYS_setfsuid, uid);
        libc::syscall(libc::SYS_setfsuid, ASK) == i64::from(uid)
    }
}

/// The same with its group.
fn set_group(gid: u32) -> bool {
    // SAFETY: as above.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsgid, ASK) == i64::from(gid)
    }
}

#[cfg(test)]
mod tests;
