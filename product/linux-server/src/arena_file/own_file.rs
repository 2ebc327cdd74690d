//! A file of this user alone, with memory for all of its bytes.
//!
//! Owns: the refusal of other files, taking the room.
//! Does not own: the place of the file (`on_tmpfs`, `memory_file`), its contents.
//! Invariants: a file that passes is regular, and no other user can open it.

use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, FileType, fallocate, fstat, ftruncate};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::error::{ArenaFileError, host};

/// Fails if the file is another kind of file, or if others can open it.
pub(super) fn refuse_unfit(file: &OwnedFd) -> Result<(), ArenaFileError> {
    let found = fstat(file).map_err(host("stat"))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(ArenaFileError::Unfit("it is no regular file"));
    }
    let user = geteuid().as_raw();
    if found.st_uid != user {
        return Err(ArenaFileError::Owner { owner: found.st_uid, user });
    }
    if found.st_mode & 0o077 != 0 {
        return Err(ArenaFileError::Mode { mode: found.st_mode & 0o777 });
    }
    if found.st_nlink > 1 {
        return Err(ArenaFileError::Unfit("it has a second name"));
    }
    Ok(())
}

/// Makes an empty file of this size, with memory for all of it.
pub(super) fn reserve_memory(file: &OwnedFd, bytes: u64) -> Result<(), ArenaFileError> {
    ftruncate(file, bytes).map_err(host("truncate"))?;
    fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(|errno| match errno {
        Errno::NOSPC | Errno::NOMEM => ArenaFileError::NoSpace { bytes },
        errno => host("fallocate")(errno),
    })
}
