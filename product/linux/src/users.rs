//! Users of the host, and what this process may do as which of them.
//!
//! Owns: a user's groups, as the host's own files have them; whether calls can be made as other users; giving up, at
//! the start, what the process does not need to do them.
//! Does not own: making single calls as others (`host`).
//! Invariants: what is given up is gone for the thread that asks for it and for those that it starts later, and cannot
//! be had again. Users of directory services (LDAP and others), which those files do not list, are in no group but
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

/// What making calls as others takes.
const TO_ACT_AS_OTHERS: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// What a server of files needs all its life: root's rights over files, for root's calls and to open by handle; to act
/// as others; to keep its memory in place. Not CAP_FSETID: the kernel takes the setuid and setgid bits from a file at
/// each write by a thread without it. A server writes what its clients wrote earlier, and who may act as the owner of the
/// file may have been set since.
const NEEDED: CapabilitySet = TO_ACT_AS_OTHERS
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::IPC_LOCK);

/// The first group and the further ones of the user with this number, by /etc/passwd and /etc/group as they are now.
/// Blocks for as long as reading these takes.
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
pub fn acts_as_others() -> bool {
    let effective = || capabilities(None).is_ok_and(|sets| sets.effective.contains(TO_ACT_AS_OTHERS));
    geteuid().is_root() && getegid().is_root() && effective()
}

/// Gives up what a server of files does not need, for this thread and those it starts: no program that it might run
/// could have more rights than it, and of root's privileges it keeps those about files and users alone. To be called
/// once, before other threads are started.
pub fn give_up_privileges() -> Result<(), Errno> {
    set_no_new_privs(true)?;
    let held = capabilities(None)?;
    if acts_as_others() {
        // Root's own further groups are no caller's.
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
