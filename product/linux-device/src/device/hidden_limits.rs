//! Limits of a file system that its free bytes do not show.
//!
//! Owns: the question to the host whether there can be such limits, and when a write reaches them.
//! Does not own: the kinds of file systems (`kinds`), reservations (the engine), the wait at a close (front ends).
//! Invariants: where the host does not say, there can be limits. A disk without quotas pays one call for each check of
//! its free space.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, major, minor};

use crate::kinds::{FileSystemKind, FreeBytes};

/// How a limit may refuse bytes that were accepted from a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum HiddenLimits {
    /// None does: the free bytes tell, and a reservation does when there are few.
    None,
    /// None does while there are plenty of free bytes. A rewrite takes new blocks, and no reservation covers them.
    AtRewriting,
    /// One of an owner, a group or a project: a reservation before the acceptance counts against it.
    Reservable,
    /// A limit that the host checks when bytes are written: a limit of a server, of a subvolume, of a file system
    /// below, of a pool that several disks share.
    AtWriting,
}

/// Options of a mount with quotas, on one kind of file system or another.
const QUOTA_OPTIONS: [&str; 8] =
    ["usrquota", "grpquota", "prjquota", "uquota", "gquota", "pquota", "usrjquota", "grpjquota"];

impl HiddenLimits {
    /// The limits on the file system of a directory.
    pub(super) fn on(directory: BorrowedFd<'_>) -> Self {
        let (Ok(kind), Ok(stat)) = (FileSystemKind::of(directory), fstat(directory)) else { return Self::AtWriting };
        let on_a_disk = major(stat.st_dev) != 0;
        match kind.free {
            FreeBytes::Asked if has_subvolume_limits(directory) => Self::AtWriting,
            FreeBytes::Asked => Self::AtRewriting,
            FreeBytes::OnDisk if !on_a_disk => Self::AtWriting,
            _ if on_a_disk && is_on_pool(&disk_of(stat.st_dev)) => Self::AtWriting,
            _ if has_quotas(directory).unwrap_or_else(|| has_quota_options(stat.st_dev)) => Self::Reservable,
            _ => Self::None,
        }
    }

    /// The limits now, where they were these: quotas may be turned on and off while a disk is mounted.
    pub(super) fn again(self, directory: BorrowedFd<'_>) -> Self {
        match self {
            Self::None if has_quotas(directory) == Some(true) => Self::Reservable,
            Self::AtRewriting => Self::on(directory),
            limits => limits,
        }
    }
}

/// Whether quotas of users, groups or projects are enforced. `None` if the host does not say: it also gives this answer
/// where no quota is counted.
fn has_quotas(directory: BorrowedFd<'_>) -> Option<bool> {
    /// `Q_XGETQSTAT` for users; the answer is about all three kinds.
    const GET_STATE: i32 = 0x5805 << 8;
    /// Limits for users, groups and projects are enforced.
    const ENFORCED: u16 = 0b10_1010;
    /// `struct fs_quota_stat` with its flags, and memory for more than it has.
    #[repr(C, align(8))]
    struct State {
        version: i8,
        flags: u16,
        rest: [u8; 124],
    }
    let mut state = State { version: 1, flags: 0, rest: [0; 124] };
    // SAFETY: the kernel fills the state, which is larger than its own and outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_quotactl_fd, directory.as_raw_fd(), GET_STATE, 0, &raw mut state) };
    (result == 0).then_some(state.flags & ENFORCED != 0)
}

/// Whether the options of the mount tell of quotas.
fn has_quota_options(device: u64) -> bool {
    let device = format!("{}:{}", major(device), minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut lines = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&device));
    lines.any(|line| {
        let options = line.rsplit(' ').next().unwrap_or_default();
        options.split(',').any(|option| QUOTA_OPTIONS.iter().any(|known| option.split('=').next() == Some(known)))
    })
}

/// Whether limits of subvolumes are counted on a Btrfs. True if the host does not say.
fn has_subvolume_limits(directory: BorrowedFd<'_>) -> bool {
    /// `BTRFS_IOC_FS_INFO`.
    const FILE_SYSTEM_INFO: u64 = 0x8400_941f;
    /// `struct btrfs_ioctl_fs_info_args`; its identity comes after two numbers.
    #[repr(C, align(8))]
    struct Info([u8; 1024]);
    let mut info = Info([0; 1024]);
    let Ok(opened) = rustix::fs::openat(
        directory,
        ".",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    ) else {
        return true;
    };
    // SAFETY: the kernel fills the structure, which outlives the call.
    let result = unsafe { libc::ioctl(opened.as_raw_fd(), FILE_SYSTEM_INFO as libc::Ioctl, &raw mut info) };
    if result != 0 {
        return true;
    }
    let hex: String = info.0[16..32].iter().map(|byte| format!("{byte:02x}")).collect();
    let name = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    let told = Path::new("/sys/fs/btrfs").join(name);
    !told.is_dir() || told.join("qgroups").is_dir()
}

/// The host's directory about a disk.
fn disk_of(device: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", major(device), minor(device)).into()
}

/// Whether a disk, or one below it, takes its blocks from a pool when they are written (LVM's thin volumes and VDO).
fn is_on_pool(disk: &Path) -> bool {
    const POOLS: [&str; 3] = ["-tpool", "-vpool", "-pool"];
    let id = std::fs::read_to_string(disk.join("dm/uuid")).unwrap_or_default();
    let name = std::fs::read_to_string(disk.join("dm/name")).unwrap_or_default();
    let is_pool = [id.trim(), name.trim()].iter().any(|name| POOLS.iter().any(|pool| name.ends_with(pool)))
        || id.starts_with("VDO-");
    let below = std::fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    is_pool || below.into_iter().any(|disk| is_on_pool(&disk.path()))
}

#[cfg(test)]
mod tests;
