//! Mounts of this host's kernel by FUSE.
//!
//! Owns: mounting and unmounting, the device, the threads that move its messages; facts about requesters.
//! Does not own: the protocol (front ends, behind [`afflux_frontend::MessageMachine`]), files.
//! Invariants: a message is answered on its own descriptor, where the kernel searches for it. While a thread waits for
//! something else, another one reads messages.

use std::fs::File;
use std::io::Read;

mod device;
mod mount_memory;
mod mounting;
mod own_mounts;
mod persisted_mount;
mod session;

pub use mount_memory::MountMemory;
pub use mounting::{FuseMount, MountError, MountFlags, MountTarget, SyncFlags, unmount};
pub use own_mounts::OwnMounts;
pub use persisted_mount::{MOUNT_DESCRIPTORS, PersistedMount, remove_mount};
pub use session::FuseSession;

/// Bytes of a thread's status that surely hold its process: the name and two short lines come before.
const STATUS_BYTES: usize = 256;

/// The process of a thread; none if it is gone, or in no process namespace of ours.
pub fn process_of(thread: u32) -> Option<u32> {
    // The main thread bears the number of its process, and most programs have no other.
    if is_main(thread) {
        return Some(thread);
    }
    let mut status = [0; STATUS_BYTES];
    let len = File::open(format!("/proc/{thread}/status")).ok()?.read(&mut status).ok()?;
    value(&status[..len], b"Tgid:")?.parse().ok()
}

/// Whether a thread is being killed: SIGKILL waits for it, as after every signal that ends a process. True for a thread
/// that is gone.
pub fn is_killed(thread: u32) -> bool {
    std::fs::read(format!("/proc/{thread}/status")).map_or(true, |status| has_sigkill(&status))
}

/// The further groups of a thread that acts as this user, and its capabilities as the kernel's bits. None if it is
/// gone, acts as another user, or is in no process namespace of ours.
pub fn rights_of(thread: u32, user: u32) -> Option<(Vec<u32>, u64)> {
    rights_in(&std::fs::read(format!("/proc/{thread}/status")).ok()?, user)
}

/// Whether the thread's capabilities count for objects of this user and this group: its user namespace must have both.
pub fn is_over(thread: u32, uid: u32, gid: u32) -> bool {
    let has = |map: &str, id| std::fs::read(format!("/proc/{thread}/{map}")).is_ok_and(|map| has_id(&map, id));
    has("uid_map", uid) && has("gid_map", gid)
}

/// Whether a map of a user namespace has this number. A row has the first number inside, the first one outside, and how
/// many there are.
fn has_id(map: &[u8], id: u32) -> bool {
    str::from_utf8(map).unwrap_or_default().lines().any(|row| {
        let mut numbers = row.split_ascii_whitespace().skip(1).map_while(|number| number.parse::<u64>().ok());
        let (Some(first), Some(count)) = (numbers.next(), numbers.next()) else { return false };
        (first..first + count).contains(&id.into())
    })
}

fn rights_in(status: &[u8], user: u32) -> Option<(Vec<u32>, u64)> {
    // The last of the four numbers is that for the file system.
    let acts_as: u32 = value(status, b"Uid:")?.split_ascii_whitespace().nth(3)?.parse().ok()?;
    let groups = value(status, b"Groups:")?.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let capabilities = u64::from_str_radix(value(status, b"CapEff:")?, 16).ok()?;
    (acts_as == user).then_some((groups, capabilities))
}

/// Whether SIGKILL waits for the thread with this status.
fn has_sigkill(status: &[u8]) -> bool {
    let pending = value(status, b"SigPnd:").and_then(|signals| u64::from_str_radix(signals, 16).ok());
    pending.is_some_and(|signals| signals & 1 << (libc::SIGKILL - 1) != 0)
}

/// The value of a row of a thread's status.
fn value<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let value = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    Some(str::from_utf8(value).ok()?.trim())
}

/// Whether a thread is the main one of its process. Asks for a signal that is never sent.
fn is_main(thread: u32) -> bool {
    // SAFETY: numbers alone are passed, and signal 0 has no effect.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, thread, thread, 0) };
    found == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

#[cfg(test)]
mod tests;
