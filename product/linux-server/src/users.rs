//! The privileges of this process.
//!
//! Owns: whether calls can be made as other users; giving up unneeded privileges at the start.
//! Does not own: making single calls as others (`host`), users' groups (`user_groups`).
//! Invariants: a privilege given up is gone for the calling thread and for threads that it starts later, and cannot be
//! regained.

use rustix::fs::Gid;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs, set_thread_groups,
};

/// The capabilities for making calls as other users.
const TO_ACT_AS_OTHERS: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// The capabilities that a server of files always needs. They are root's rights over files, for root's calls and to
/// open by handle; the right to act as others; and the right to lock its memory. CAP_FSETID is missing on purpose: the
/// kernel clears a file's setuid and setgid bits at each write by a thread without it. A server writes data that its
/// clients wrote earlier, and these bits may have been set since.
const NEEDED: CapabilitySet = TO_ACT_AS_OTHERS
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::IPC_LOCK);

/// Whether this process can make calls as other users.
pub fn may_act_as_others() -> bool {
    let effective = || capabilities(None).is_ok_and(|sets| sets.effective.contains(TO_ACT_AS_OTHERS));
    geteuid().is_root() && getegid().is_root() && effective()
}

/// Gives up all of root's privileges but unmounting, and reaching a mount point below other users' directories. A user
/// without privileges has a helper of the host unmount, and retains the privileges for that.
///
/// # Errors
/// The host's.
pub fn keep_right_to_unmount() -> Result<(), Errno> {
    if !geteuid().is_root() {
        return Ok(());
    }
    set_no_new_privs(true)?;
    let needed = CapabilitySet::SYS_ADMIN.union(CapabilitySet::DAC_READ_SEARCH);
    let kept = capabilities(None)?.permitted.intersection(needed);
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
}

/// Gives up privileges that a server of files does not need, for this thread and for threads started later. A program
/// that they run cannot have more rights, and of root's privileges only those about files and users stay. Call it once,
/// before other threads are started.
pub fn give_up_privileges() -> Result<(), Errno> {
    set_no_new_privs(true)?;
    let held = capabilities(None)?;
    if may_act_as_others() {
        // Root's own further groups must not help any caller.
        set_thread_groups(&[] as &[Gid])?;
    }
    let kept = CapabilitySets {
        effective: held.effective.intersection(NEEDED),
        permitted: held.permitted.intersection(NEEDED),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept)
}

#[cfg(test)]
mod tests;
