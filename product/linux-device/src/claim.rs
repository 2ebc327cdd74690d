//! Claims: at most one cache writes a host file.
//!
//! Owns: the offset of the lock in a file, taking and changing it.
//! Does not own: the moment of a claim; the descriptor (its close ends the claim).
//! Invariants: a claim is an *open file description* lock (of `fcntl`). It belongs to the descriptor and not to the
//! process, so that two caches of one process see each other. The locked byte is one where no file has data, so other
//! programs lock other bytes.
//!
//! A lease would notify us instead of refusing the other cache. But only the owner of a file may take one, and every
//! open breaks it, also that of a harmless reader. `flock` locks the whole file, and programs use it for their own
//! ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The byte before the largest offset.
const CLAIM_OFFSET: i64 = i64::MAX - 1;

/// How a cache uses a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileClaim {
    /// It reads; other caches may read, too.
    Shared,
    /// It writes, and no other cache has the file.
    Alone,
}

/// Claims the file behind a descriptor. Returns false if another cache has a claim that conflicts. The new claim
/// replaces an earlier one of the same descriptor; a refused claim leaves the earlier one in place. A host without
/// locks grants every claim.
///
/// # Errors
/// A claim to write needs a descriptor that is open for writing, one to read a descriptor open for reading.
pub fn claim(fd: impl AsFd, claim: FileClaim) -> io::Result<bool> {
    let kind = match claim {
        FileClaim::Shared => libc::F_RDLCK,
        FileClaim::Alone => libc::F_WRLCK,
    };
    set(fd, kind)
}

/// Gives back the claim of a descriptor.
pub fn unclaim(fd: impl AsFd) {
    let _ = set(fd, libc::F_UNLCK);
}

fn set(fd: impl AsFd, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: a `flock` may be all zero bytes.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (CLAIM_OFFSET, 1);
    // SAFETY: the descriptor is open, and the call reads the lock alone.
    let result = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        Some(libc::EBADF) => Err(error),
        // Some file systems have no locks.
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests;
