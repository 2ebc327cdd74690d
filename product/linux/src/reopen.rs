//! Opening files that other programs may have leases on.
//!
//! Owns: the rule that no thread waits for the program that has the lease.
//! Does not own: the retry (the volume), the opened file.
//! Invariants: the descriptor is as if the open had waited: its reads and writes wait.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fcntl_setfl, openat};
use rustix::io::Errno;

/// Opens a regular file. `AGAIN` if a program has a lease on it: the host has asked that program to give it up, and
/// takes it away after some time (`/proc/sys/fs/lease-break-time`).
pub(crate) fn open_without_waiting(directory: impl AsFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let fd = openat(directory, name, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    // With O_NONBLOCK the ring would answer 'try again' instead of waiting.
    fcntl_setfl(&fd, flags & OFlags::DIRECT)?;
    Ok(fd)
}
