//! A file on a tmpfs for an arena.
//!
//! Owns: opening it by its path, the refusal of other file systems.
//! Does not own: its contents and the lock (`arena_file`).
//! Invariants: nothing is made on a disk. A link is not followed.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, StatFs, fstat, fstatfs, open, stat, statfs};
use rustix::io::Errno;

use super::error::{ArenaFileError, host};
use super::own_file::refuse_unfit;

/// The type of a tmpfs (statfs(2)).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Opens the file at the path, or makes it.
pub(super) fn opened(path: &Path) -> Result<OwnedFd, ArenaFileError> {
    // Before an empty file is made there.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    refuse_disks(statfs(directory).map_err(host("statfs"))?)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR).map_err(host("open"))?;
    refuse_unfit(&file)?;
    refuse_disks(fstatfs(&file).map_err(host("statfs"))?)?;
    Ok(file)
}

fn refuse_disks(file_system: StatFs) -> Result<(), ArenaFileError> {
    if file_system.f_type != TMPFS_MAGIC {
        return Err(ArenaFileError::Unfit(
            "it is not on a tmpfs, such as /dev/shm or /run; on a disk each page would be written twice",
        ));
    }
    Ok(())
}

/// Whether the path still names the file.
pub(super) fn is_at(file: &OwnedFd, path: &Path) -> Result<bool, ArenaFileError> {
    let opened = fstat(file).map_err(host("stat"))?;
    match stat(path) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(host("stat")(errno)),
    }
}
