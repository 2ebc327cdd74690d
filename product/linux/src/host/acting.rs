//! Calls made as a user of the host, on a thread of the pool.
//!
//! Owns: a thread's user and groups for the file system, during one call.
//! Does not own: which calls are made so (`entries`), the choice of the user (the volume, by [`Node::user`]).
//! Invariants: a thread has its own identity again before it does anything else, also when the call panics; where that
//! cannot be, the process ends. If the kernel does not take the identity, the call is not made at all. While a thread's
//! user is not root, the kernel withholds the capabilities about files. So such a call has exactly the user's rights,
//! except for signals.

use std::process::abort;
use std::sync::Arc;

use afflux_volume::{Credentials, Node, VolumeError};
use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::set_thread_groups;

/// A thread's own identity.
struct OwnIdentity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

thread_local! {
    /// Read right before the thread's first call as another user.
    static OWN: OwnIdentity =
        OwnIdentity { uid: geteuid(), gid: getegid(), groups: getgroups().unwrap_or_default() };
}

/// The identity for the calls of one operation.
#[derive(Clone)]
pub(super) struct Acting {
    user: Option<Arc<Credentials>>,
}

impl Acting {
    /// The identity of a node's user.
    pub(super) fn on(node: &Node) -> Self {
        Self { user: node.user().cloned() }
    }

    /// The user whose rights the calls have; none for the process's own.
    pub(super) fn user(&self) -> Option<&Credentials> {
        self.user.as_deref()
    }

    /// Makes a call.
    pub(super) fn call<T>(&self, call: impl FnOnce() -> Result<T, VolumeError>) -> Result<T, VolumeError> {
        let Some(user) = &self.user else { return call() };
        OWN.with(|own| {
            // Groups give root no further rights.
            if user.is_root() && (own.uid.as_raw(), own.gid.as_raw()) == (user.uid, user.gid) {
                return call();
            }
            let _changed = Changed::to(user, own)?;
            call()
        })
    }

    /// Makes a call inside [`Acting::call`] as a member of this group, if it is made with root's rights. Root may set a
    /// file's setgid bit whatever its group. The process has no CAP_FSETID, so the kernel requires membership of the
    /// group.
    pub(super) fn call_in_group<T>(&self, group: u32, call: impl FnOnce() -> T) -> T {
        let user = self.user();
        let is_root = user.map_or_else(|| OWN.with(|own| own.uid.is_root()), Credentials::is_root);
        let own_group = user.map_or_else(|| OWN.with(|own| own.gid.as_raw()), |user| user.gid);
        // If the kernel refuses the group, it decides about the bit as for any user.
        let _in_group = (is_root && own_group != group && set_group(group)).then_some(InGroup { own_group });
        call()
    }
}

/// A thread that is in another group until this is dropped.
struct InGroup {
    own_group: u32,
}

impl Drop for InGroup {
    fn drop(&mut self) {
        if !set_group(self.own_group) {
            // The thread's further calls would have that group's rights.
            abort();
        }
    }
}

/// A thread that acts as another user until this is dropped.
struct Changed<'a> {
    own: &'a OwnIdentity,
    groups: bool,
}

impl<'a> Changed<'a> {
    fn to(user: &Credentials, own: &'a OwnIdentity) -> Result<Self, VolumeError> {
        let groups = !user.groups.iter().copied().eq(own.groups.iter().map(|group| group.as_raw()));
        // A drop on failure puts back the parts changed so far.
        let mut changed = Self { own, groups: false };
        if groups {
            let wanted: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
            set_thread_groups(&wanted).map_err(|_| VolumeError::Denied)?;
            changed.groups = true;
        }
        // The user comes last, since its change takes the rights to set the others.
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
            // The thread's further calls would run as another user.
            abort();
        }
    }
}

/// No user's number: the kernel treats it as a query.
const ASK: u32 = u32::MAX;

/// Sets the thread's user for the file system. False if the kernel did not take it, which the call itself does not
/// report.
fn set_user(uid: u32) -> bool {
    // SAFETY: numbers alone are passed; the call acts on this thread's credentials and on no memory of ours.
    unsafe {
        libc::syscall(libc::SYS_setfsuid, uid);
        libc::syscall(libc::SYS_setfsuid, ASK) == i64::from(uid)
    }
}

/// Sets the thread's group likewise.
fn set_group(gid: u32) -> bool {
    // SAFETY: as above.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsgid, ASK) == i64::from(gid)
    }
}

#[cfg(test)]
mod tests;
