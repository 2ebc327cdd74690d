//! Calls made as a user of the host, on a thread of the pool.
//!
//! Owns: a thread's effective user and groups, during one call.
//! Does not own: which calls are made so (`entries`), the choice of the user (the volume, by [`Node::user`]).
//! Invariants: a thread has its own identity again before it does anything else, also when the call panics; where that
//! cannot be, the process ends. If the kernel does not take the identity, the call is not made at all. While a thread's
//! user is not root, the thread has no capability. So every check of the kernel that asks for the effective user or for
//! a capability finds the user, and no other program of that user may send the thread a signal: the real user stays.

use std::process::abort;
use std::sync::Arc;

use afflux_volume::{ChangeNote, Credentials, Node, VolumeError};
use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// A thread's own identity.
struct OwnIdentity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    capabilities: Capabilities,
}

/// A thread's own capabilities, while it acts as a user who is not root.
enum Capabilities {
    /// The kernel takes them at the change of the user, and gives them back.
    FollowTheUser,
    /// They stay, or come back changed: a supervisor has set this in the kernel (`SECBIT_NO_SETUID_FIXUP`), or the
    /// thread does not use all that it has.
    Stay(CapabilitySets),
    /// The kernel does not report them. The thread acts as nobody else.
    Unknown,
}

impl Capabilities {
    fn read() -> Self {
        let (Ok(sets), Ok(rules)) = (capabilities(None), capabilities_secure_bits()) else { return Self::Unknown };
        let follow = !rules.contains(CapabilitiesSecureBits::NO_SETUID_FIXUP) && geteuid().is_root();
        if follow && sets.effective == sets.permitted { Self::FollowTheUser } else { Self::Stay(sets) }
    }

    /// Takes all of them from the thread, which has changed its user.
    fn try_withhold(&self) -> bool {
        match self {
            Self::FollowTheUser => true,
            Self::Stay(own) => {
                let none = CapabilitySets { effective: CapabilitySet::empty(), ..*own };
                set_capabilities(None, none).is_ok()
            }
            Self::Unknown => false,
        }
    }

    /// Gives them back to the thread, which has its own user again.
    fn try_give_back(&self) -> bool {
        match self {
            Self::FollowTheUser | Self::Unknown => true,
            Self::Stay(own) => set_capabilities(None, *own).is_ok(),
        }
    }
}

impl OwnIdentity {
    fn read() -> Self {
        let groups = getgroups().unwrap_or_default();
        Self { uid: geteuid(), gid: getegid(), groups, capabilities: Capabilities::read() }
    }
}

thread_local! {
    /// Read right before the thread's first call as another user.
    static OWN: OwnIdentity = OwnIdentity::read();
}

/// The identity for the calls of one operation, and the note of its change.
#[derive(Clone)]
pub(super) struct Acting {
    user: Option<Arc<Credentials>>,
    note: ChangeNote,
}

impl Acting {
    /// The identity of a node's user.
    pub(super) fn on(node: &Node) -> Self {
        Self { user: node.user().cloned(), note: node.note().clone() }
    }

    /// The process's own identity.
    pub(super) fn server() -> Self {
        Self { user: None, note: ChangeNote::default() }
    }

    /// The note of the operation's change.
    pub(super) fn note(&self) -> &ChangeNote {
        &self.note
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
        let _in_group = (is_root && own_group != group && try_set_group(group)).then_some(InGroup { own_group });
        call()
    }
}

/// A thread that is in another group until this is dropped.
struct InGroup {
    own_group: u32,
}

impl Drop for InGroup {
    fn drop(&mut self) {
        if !try_set_group(self.own_group) {
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
        let taken = try_set_effective_group(user.gid) && try_set_effective_user(user.uid);
        if !taken || !user.is_root() && !own.capabilities.try_withhold() {
            return Err(VolumeError::Denied);
        }
        Ok(changed)
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        let own = self.own;
        let restored = try_set_effective_user(own.uid.as_raw())
            && own.capabilities.try_give_back()
            && try_set_effective_group(own.gid.as_raw())
            && (!self.groups || set_thread_groups(&own.groups).is_ok());
        if !restored {
            // The thread's further calls would run as another user.
            abort();
        }
    }
}

/// Sets the thread's effective user, and with it the one for the file system. The real and the saved user stay: by
/// these the thread comes back.
fn try_set_effective_user(uid: u32) -> bool {
    uid != ASK && set_thread_res_uid(None, Uid::from_raw(uid), None).is_ok()
}

/// Sets the thread's effective group likewise.
fn try_set_effective_group(gid: u32) -> bool {
    gid != ASK && set_thread_res_gid(None, Gid::from_raw(gid), None).is_ok()
}

/// No user's number: the kernel treats it as a query.
const ASK: u32 = u32::MAX;

/// Sets the thread's group for the file system alone. False if the kernel did not take it, which the call itself does
/// not report.
fn try_set_group(gid: u32) -> bool {
    // SAFETY: numbers alone are passed; the call acts on this thread's credentials and on no memory of ours.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsgid, ASK) == i64::from(gid)
    }
}

#[cfg(test)]
mod tests;
