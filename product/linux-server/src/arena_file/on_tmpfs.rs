//! A file on a tmpfs for an arena.
//!
//! Owns: opening it by its path, the refusal of other file systems.
//! Does not own: its contents and the lock (`arena_file`).
//! Invariants: nothing is made on a disk. A link is not followed.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Access, Mode, OFlags, StatFs, access, fstat, fstatfs, open, stat, statfs};
use rustix::io::Errno;

use super::error::{ArenaFileError, host};
use super::own_file::refuse_unfit;

/// The type of a tmpfs (statfs(2)).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Opens the file at the path, or makes it.
pub(super) fn opened(path: &Path) -> Result<OwnedFd, ArenaFileError> {
    // Before an empty file is made there.
    refuse_disks(&statfs(directory(path)).map_err(host("statfs"))?)?;
    fit(open(path, FLAGS | OFlags::CREATE, Mode::RUSR | Mode::WUSR).map_err(host("open"))?)
}

/// Opens the file at the path, if it is there.
pub(super) fn found(path: &Path) -> Result<Option<OwnedFd>, ArenaFileError> {
    refuse_disks(&statfs(directory(path)).map_err(host("statfs"))?)?;
    match open(path, FLAGS, Mode::empty()) {
        Ok(file) => fit(file).map(Some),
        Err(Errno::NOENT) => {
            access(directory(path), Access::WRITE_OK | Access::EXEC_OK).map_err(host("open"))?;
            Ok(None)
        }
        Err(errno) => Err(host("open")(errno)),
    }
}

/// Fails if the file system of the path has no room for so many bytes.
pub(super) fn check_free_space(path: &Path, bytes: u64) -> Result<(), ArenaFileError> {
    let found = statfs(directory(path)).map_err(host("statfs"))?;
    let is_bounded = found.f_blocks > 0;
    let free = found.f_bavail.saturating_mul(found.f_bsize.unsigned_abs());
    if is_bounded && free < bytes { Err(ArenaFileError::NoSpace { bytes }) } else { Ok(()) }
}

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn fit(file: OwnedFd) -> Result<OwnedFd, ArenaFileError> {
    refuse_unfit(&file)?;
    refuse_disks(&fstatfs(&file).map_err(host("statfs"))?)?;
    Ok(file)
}

fn refuse_disks(file_system: &StatFs) -> Result<(), ArenaFileError> {
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
