//! The file that an arena or a mount can have for its memory: one on a tmpfs, or a memory file that the service manager
//! stores; and why a file cannot be that.
//!
//! Owns: opening a file by its path, making a memory file, the check of a file from the manager, the second description
//! for the lock; the refusal of other files and file systems, its words, which of the reasons are the file's own;
//! reserving memory for all bytes.
//! Does not own: the contents and the lock (`arena_file`), the manager's store.
//! Invariants: nothing is made on a disk. A link is not followed. A file that passes is regular, and no other user can
//! open it. The size of a memory file is sealed, so that no mapping loses its memory. The lock is on a description that
//! the manager does not have: with the manager's, it would outlive its holder. An error of the file itself also holds
//! at the next try. Another version's memory is never dropped.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use afflux_frames::{ArenaError, HeaderError};
use rustix::fs::{
    Access, FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, StatFs, access, fallocate, fchmod,
    fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate, memfd_create, open, stat, statfs,
};
use rustix::io::Errno;
use rustix::process::geteuid;

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

/// Fails if the file system of the path lacks free space for so many bytes.
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

/// Why a file cannot hold the memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaFileError {
    /// The host refuses a call.
    #[error("{call}: {source}")]
    Host {
        /// Name of the system call that failed.
        call: &'static str,
        /// The host's answer.
        source: io::Error,
    },
    /// The file system has too little free space.
    #[error("there is no room for its {bytes} bytes")]
    NoSpace {
        /// The bytes of the memory.
        bytes: u64,
    },
    /// The file is not of a kind that can hold memory.
    #[error("{0}")]
    Unfit(&'static str),
    /// It belongs to another user.
    #[error("it belongs to user {owner}, and this server runs as user {user}")]
    Owner {
        /// The file's owner.
        owner: u32,
        /// This process's user.
        user: u32,
    },
    /// Others may open it.
    #[error("its mode is {mode:o}, so that others may change the cache: chmod 600")]
    Mode {
        /// The mode bits.
        mode: u32,
    },
    /// Another server uses it.
    #[error("process {process} uses it")]
    InUse {
        /// Process number of the server that has the file.
        process: u32,
    },
    /// Its contents are no arena for this program.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// It was made for a header's sizes, and has another length.
    #[error("it has {found} bytes, and its header says {wanted}")]
    Length {
        /// The file's length.
        found: u64,
        /// The length that belongs to the header.
        wanted: u64,
    },
    /// It cannot be mapped.
    #[error(transparent)]
    Memory(#[from] ArenaError),
}

impl ArenaFileError {
    /// Whether nobody can use the file, now or later.
    pub(super) fn is_of_file(&self) -> bool {
        match self {
            Self::Header(_) => !self.is_of_another_version(),
            Self::Unfit(_) | Self::Owner { .. } | Self::Mode { .. } | Self::Length { .. } => true,
            _ => false,
        }
    }

    /// Whether the file has the memory of another version. That version, or a later one than both, can write its data
    /// home.
    pub fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Header(HeaderError::Form { .. }))
    }
}

/// The host's refusal of a call.
pub(super) fn host(call: &'static str) -> impl Fn(Errno) -> ArenaFileError {
    move |errno| ArenaFileError::Host { call, source: errno.into() }
}
