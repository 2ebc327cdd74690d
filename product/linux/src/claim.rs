//! Claims: that no other cache has a file that one writes.
//!
//! Owns: the place of the lock in a file, taking and changing it.
//! Does not own: when it is taken; the descriptor, with which it goes.
//! Invariants: an *open file description* lock (of `fcntl`), which belongs to the descriptor and not to the process, so
//! that two caches of one process see each other. It is on a byte where no file has data, so that it is nobody else's.
//!
//! A lease would tell us instead of refusing them, but only owners may take one, and it breaks with every open, also
//! that of a reader who does no harm. `flock` locks the whole file, and programs use it for their own ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The byte before the largest offset.
const PLACE: i64 = i64::MAX - 1;

/// What a cache does with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It reads: so may others.
    Shared,
    /// It writes, and is the only one.
    Alone,
}

/// Claims the file behind a descriptor: false if another cache has it in a way that does not go with this one. A claim
/// that the descriptor had becomes this one, or stays if that is refused. Where the host has no locks everything is
/// granted.
///
/// # Errors
/// A claim to write needs a descriptor that is open for writing, one to read a descriptor open for reading.
pub fn claim(fd: impl AsFd, claim: Claim) -> io::Result<bool> {
    let kind = match claim {
        Claim::Shared => libc::F_RDLCK,
        Claim::Alone => libc::F_WRLCK,
    };
    set(fd, kind)
}

/// Gives the claim back that a descriptor has.
pub fn unclaim(fd: impl AsFd) {
    let _ = set(fd, libc::F_UNLCK);
}

fn set(fd: impl AsFd, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: all bytes of it may be zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (PLACE, 1);
    // SAFETY: the descriptor is open, and the call reads the lock alone.
    let result = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        Some(libc::EBADF) => Err(error),
        // Some file systems have none.
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests;
