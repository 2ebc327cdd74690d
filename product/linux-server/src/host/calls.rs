//! The host's calls, one by one, in the volume's terms.
//!
//! Owns: the translation of error numbers, attributes and times; single calls on a descriptor.
//! Does not own: whether a call may be made (`climb`), which calls make up an operation
//! (`entries`).
//! Invariants: no call here takes a path with more than one name, but for climbing up with "..".

use std::ffi::CStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use afflux_volume::{DeviceKey, Kind, PathLimits, Space, Stat, Timestamp, VolumeError};
use bytes::Bytes;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags, fstatvfs, major, makedev, minor, openat, readlinkat, statx,
};
use rustix::io::Errno;

use afflux_linux_device::shortage::open_or_close_spare;

/// Bytes of directory entries read at a time.
const ENTRIES_BYTES: usize = 32 * 1024;

/// The volume's error for an error number.
pub(super) fn error_of(errno: Errno) -> VolumeError {
    match errno {
        Errno::NOENT => VolumeError::NotFound,
        Errno::EXIST => VolumeError::Exists,
        Errno::NOTDIR => VolumeError::NotDirectory,
        Errno::ISDIR => VolumeError::IsDirectory,
        Errno::NOTEMPTY => VolumeError::NotEmpty,
        // Busy: a mount point, or a program that runs.
        Errno::ACCESS | Errno::BUSY | Errno::TXTBSY => VolumeError::Denied,
        Errno::PERM => VolumeError::NotPermitted,
        Errno::NOSPC => VolumeError::NoSpace,
        Errno::DQUOT => VolumeError::Quota,
        Errno::FBIG | Errno::OVERFLOW => VolumeError::TooLarge,
        Errno::ROFS => VolumeError::ReadOnly,
        Errno::STALE => VolumeError::Stale,
        Errno::NAMETOOLONG => VolumeError::NameTooLong { bytes: afflux_volume::NAME_BYTES_MAX },
        Errno::XDEV => VolumeError::CrossDevice,
        Errno::MLINK => VolumeError::TooManyLinks,
        Errno::LOOP => VolumeError::Symlink,
        Errno::NODATA => VolumeError::NoAttribute,
        Errno::INVAL => VolumeError::Invalid { what: "refused by the host" },
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY => VolumeError::NotSupported,
        Errno::NOMEM => VolumeError::NoMemory,
        Errno::MFILE | Errno::NFILE => VolumeError::NoDescriptor,
        errno => VolumeError::Io { errno: errno.raw_os_error() },
    }
}

/// The volume's error for an error of the standard library.
pub(super) fn io_error(error: &std::io::Error) -> VolumeError {
    Errno::from_io_error(error).map_or(VolumeError::Io { errno: 0 }, error_of)
}

/// The error number of a call that rustix lacks.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn kind_of(mode: u16) -> Kind {
    match FileType::from_raw_mode(mode.into()) {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::CharDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        _ => Kind::Regular,
    }
}

fn stamp(time: rustix::fs::StatxTimestamp) -> Timestamp {
    Timestamp { seconds: time.tv_sec, nanos: time.tv_nsec }
}

/// The device of an object, as `stat` gives it.
fn device_of(major: u32, minor: u32) -> DeviceKey {
    DeviceKey(makedev(major, minor))
}

/// The attributes of the object at `path` (empty: the descriptor itself; else only "..").
pub(super) fn stat(fd: BorrowedFd<'_>, path: &str) -> Result<Stat, VolumeError> {
    Ok(stat_of(&raw_stat(fd, path, StatxFlags::BASIC_STATS)?))
}

pub(super) fn raw_stat(
    fd: BorrowedFd<'_>,
    path: impl rustix::path::Arg,
    wanted: StatxFlags,
) -> Result<rustix::fs::Statx, VolumeError> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(fd, path, flags, wanted).map_err(error_of)
}

/// The attributes of an entry as far as the host knows them without asking a server, or a process that serves files.
pub(super) fn known_stat(directory: BorrowedFd<'_>, name: &CStr) -> Result<Stat, VolumeError> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    Ok(stat_of(&statx(directory, name, flags, StatxFlags::BASIC_STATS).map_err(error_of)?))
}

pub(super) fn stat_of(raw: &rustix::fs::Statx) -> Stat {
    Stat {
        kind: kind_of(raw.stx_mode),
        mode: u32::from(raw.stx_mode) & 0o7777,
        links: raw.stx_nlink,
        uid: raw.stx_uid,
        gid: raw.stx_gid,
        size: raw.stx_size,
        used: raw.stx_blocks.saturating_mul(512),
        device_major: raw.stx_rdev_major,
        device_minor: raw.stx_rdev_minor,
        device: device_of(raw.stx_dev_major, raw.stx_dev_minor),
        // Clients treat 0 as 'none'; no host inode has `u64::MAX`.
        fileid: if raw.stx_ino == 0 { u64::MAX } else { raw.stx_ino },
        atime: stamp(raw.stx_atime),
        mtime: stamp(raw.stx_mtime),
        ctime: stamp(raw.stx_ctime),
    }
}

/// A directory, opened to read its entries or to sync them.
pub(super) fn open_directory(fd: BorrowedFd<'_>) -> Result<OwnedFd, VolumeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open_or_close_spare(|| openat(fd, ".", flags, Mode::empty())).map_err(error_of)
}

/// Shows every entry but "." and ".." of a directory that is open for reading: its name, its number, and whether it may
/// be a directory. `Stale` for a removed directory.
pub(super) fn each_entry(directory: BorrowedFd<'_>, mut show: impl FnMut(&[u8], u64, bool)) -> Result<(), VolumeError> {
    let mut buffer = vec![MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|errno| if errno == Errno::NOENT { VolumeError::Stale } else { error_of(errno) })?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            let may_be_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            show(name, if entry.ino() == 0 { u64::MAX } else { entry.ino() }, may_be_directory);
        }
    }
    Ok(())
}

pub(super) fn read_link(fd: BorrowedFd<'_>) -> Result<Bytes, VolumeError> {
    let target = readlinkat(fd, "", Vec::new()).map_err(error_of)?;
    Ok(Bytes::from(target.into_bytes()))
}

pub(super) fn space(fd: BorrowedFd<'_>) -> Result<Space, VolumeError> {
    let stat = fstatvfs(fd).map_err(error_of)?;
    Ok(Space {
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        free_bytes: stat.f_bfree.saturating_mul(stat.f_frsize),
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_files: stat.f_files,
        free_files: stat.f_ffree,
        available_files: stat.f_favail,
    })
}

pub(super) fn path_limits(fd: BorrowedFd<'_>, is_folding: impl FnOnce() -> bool) -> Result<PathLimits, VolumeError> {
    let stat = fstatvfs(fd).map_err(error_of)?;
    let name_max = stat.f_namemax.min(afflux_volume::NAME_BYTES_MAX as u64);
    Ok(PathLimits {
        // ext4's bound, the smallest among usual file systems; others report an error when theirs
        // is passed.
        links_max: 65_000,
        name_max: name_max as u32,
        no_trunc: true,
        case_insensitive: is_folding(),
        case_preserving: true,
    })
}

/// A device's name for people: the host's name if there is one, else the numbers.
pub(super) fn device_name(key: DeviceKey) -> String {
    let (major, minor) = (major(key.0), minor(key.0));
    let named = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let named = named.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    named.unwrap_or_else(|| format!("{major}:{minor}"))
}
