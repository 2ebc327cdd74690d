//! Users of the host, and the privileges of this process.
//!
//! Owns: a user's groups, from the host's own files; whether calls can be made as other users; giving up unneeded
//! privileges at the start.
//! Does not own: making single calls as others (`host`).
//! Invariants: a privilege given up is gone for the calling thread and for threads that it starts later, and cannot be
//! regained. Users of directory services (LDAP and others), which those files do not list, are in no group but
//! nobody's.

use std::fs;

use rustix::fs::Gid;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs, set_thread_groups,
};

/// The group of users that are in no other.
const NO_GROUP: u32 = 65_534;

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

/// The first group and the further ones of the user with this number, by the current /etc/passwd and /etc/group. Blocks
/// while it reads them.
pub fn groups_of(uid: u32) -> (u32, Vec<u32>) {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    groups_in(uid, &read("/etc/passwd"), &read("/etc/group"))
}

fn groups_in(uid: u32, users: &str, groups: &str) -> (u32, Vec<u32>) {
    let user = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number, first) = (fields.next()?, fields.nth(1)?, fields.next()?);
        (number.parse() == Ok(uid)).then_some((name, first.parse().ok()?))
    });
    let Some((name, first)) = user else { return (NO_GROUP, Vec::new()) };
    let further = groups.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (number, members) = (fields.nth(2)?, fields.next()?);
        members.split(',').any(|member| member == name).then(|| number.parse().ok())?
    });
    (first, further.filter(|group| *group != first).collect())
}

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
