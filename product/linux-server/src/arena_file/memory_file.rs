//! A memory file for an arena or a mount, which the service manager keeps.
//!
//! Owns: making the file, the check of a file from the manager, the second description for the lock.
//! Does not own: its contents (`arena_file`), the manager's store.
//! Invariants: the size is sealed, so that no mapping loses its memory. The lock is on a description that the manager
//! does not have: with the manager's, it would outlive its holder.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fchmod, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create, open,
};
use rustix::io::Errno;

use super::error::{ArenaFileError, host};
use super::own_file::{refuse_unfit, reserve_memory};

const SIZE_SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK);

/// The memory of a memory file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryReservation {
    /// All of it, from the start.
    Taken,
    /// Page by page, as a program's own memory.
    AsUsed,
}

/// A memory file of this size.
pub(crate) fn made(name: &str, bytes: u64, reservation: MemoryReservation) -> Result<OwnedFd, ArenaFileError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Before Linux 6.3.
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    let file = made.map_err(host("memfd_create"))?;
    fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(host("fchmod"))?;
    match reservation {
        MemoryReservation::Taken => reserve_memory(&file, bytes)?,
        MemoryReservation::AsUsed => ftruncate(&file, bytes).map_err(host("truncate"))?,
    }
    fcntl_add_seals(&file, SIZE_SEALS | SealFlags::SEAL).map_err(host("seal"))?;
    Ok(file)
}

/// Fails if the manager's file is none that [`made`] has made.
pub(crate) fn refuse_foreign(file: &OwnedFd) -> Result<(), ArenaFileError> {
    refuse_unfit(file)?;
    match fcntl_get_seals(file) {
        Ok(seals) if seals.contains(SIZE_SEALS) => Ok(()),
        Ok(_) | Err(Errno::INVAL) => Err(ArenaFileError::Unfit("its size is not sealed")),
        Err(errno) => Err(host("read the seals")(errno)),
    }
}

/// The same file by a description of this process alone.
pub(super) fn reopened(file: &OwnedFd) -> Result<OwnedFd, ArenaFileError> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(host("open"))
}

/// Gives the memory of a file that nobody needs back to the host, before the manager closes its descriptor.
pub(super) fn give_back(file: &OwnedFd) {
    let all = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = fstat(file).and_then(|found| fallocate(file, all, 0, found.st_size as u64));
}
