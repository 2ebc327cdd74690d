//! Opening files that other programs may have leases on.
//!
//! Owns: the rule that no thread waits for the program that has the lease; a descriptor's end of writing.
//! Does not own: the retry (the volume), the opened file.
//! Invariants: the descriptor is as if the open had waited: its reads and writes wait.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, fcntl_setfl, openat};
use rustix::io::Errno;

use crate::shortage::{open_or_close_spare, open_with_reserve};

/// Opens a regular file. `AGAIN` if a program has a lease on it: the host has asked that program to give it up, and
/// takes it away after some time (`/proc/sys/fs/lease-break-time`).
pub fn open_without_waiting(directory: impl AsFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let open = || openat(&directory, name, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let fd = open_or_close_spare(open)?;
    // With O_NONBLOCK the ring would answer 'try again' instead of waiting.
    fcntl_setfl(&fd, flags & OFlags::DIRECT)?;
    Ok(fd)
}

/// Makes a descriptor of a regular file read-only. The number stays, so requests with this descriptor go on. It works
/// also if the process has no free descriptor.
pub fn make_read_only(fd: &OwnedFd) -> Result<(), Errno> {
    let flags = fcntl_getfl(fd)?;
    if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == OFlags::RDONLY {
        return Ok(());
    }
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open_with_reserve(|| {
        let reads = open_without_waiting(CWD, &name, OFlags::RDONLY | flags & OFlags::DIRECT)?;
        // SAFETY: both numbers are open, and belong to the two owners for the whole call. The number of `fd` stays
        // open, on the same file.
        let made = unsafe { libc::dup3(reads.as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) };
        if made < 0 { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) } else { Ok(()) }
    })
}
