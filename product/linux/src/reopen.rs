//! Opening files that others may have leases on.
//!
//! Owns: that no thread waits for the program that has the lease.
//! Does not own: when it is tried again (the volume), what is opened.
//! Invariants: what is opened is as if it had been waited for: its reads and writes wait.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fcntl_setfl, openat};
use rustix::io::Errno;

/// Opens a regular file. `AGAIN` where a program has a lease on it: the host has asked that program to give it up, and
/// takes it away after some time (`/proc/sys/fs/lease-break-time`).
pub(crate) fn open_without_waiting(directory: impl AsFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let fd = openat(directory, name, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    // With it the ring answers 'try again' in place of waiting.
    fcntl_setfl(&fd, flags & OFlags::DIRECT)?;
    Ok(fd)
}
