//! The changes that one sync of the host makes durable, by the kind of file system.
//!
//! Owns: the kinds, how they are told apart.
//! Does not own: the sharing (`stable`), the calls of a sync (`entries`).
//! Invariants: a kind counts for more than "the object itself" only where the kernel's code for it was read.
//!
//! - ext4 with a journal: `fsync` of any directory commits the running transaction (`ext4_fsync_journal` calls
//!   `ext4_force_commit` for any object but a regular file). ext3 and earlier ext4 did the same by
//!   `ext4_should_journal_data`. Each completed change of names and attributes is in that transaction or an earlier
//!   one. So one call suffices for the whole file system.
//! - XFS: `fsync` forces the log up to the object's last change (`xfs_log_force_inode`), and changes are in the log in
//!   their order. So the sync of the object changed last covers all objects changed before it, and `fsync` of those
//!   finds nothing to do. Objects changed at the same instant have no known order, so each is synced.
//! - All others (ext4 without a journal, overlayfs, btrfs with its log tree for one directory, ...): each directory is
//!   synced by itself.

use std::fs;
use std::os::fd::BorrowedFd;

use afflux_volume::{DeviceKey, Kind};
use rustix::fs::fstatfs;

use super::calls::device_name;

const EXT4_MAGIC: u64 = 0xef53;
const XFS_MAGIC: u64 = 0x5846_5342;

/// Further changes that the sync of one object makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SyncScope {
    /// Every earlier change of the file system, if the object is a directory.
    Everything,
    /// Every change made before the object's last.
    Earlier,
    /// No other change, as far as is known.
    Nothing,
}

/// The further changes that a sync covers on the file system of `directory`, its `device`.
pub(super) fn covered_on(directory: BorrowedFd<'_>, device: DeviceKey, kind: Kind) -> SyncScope {
    let Ok(found) = fstatfs(directory) else { return SyncScope::Nothing };
    // The field's type differs between architectures.
    match found.f_type as u64 {
        EXT4_MAGIC if kind == Kind::Directory && has_journal(device) => SyncScope::Everything,
        XFS_MAGIC => SyncScope::Earlier,
        _ => SyncScope::Nothing,
    }
}

/// Whether the ext4 on a device has a journal: then a kernel thread writes it.
fn has_journal(device: DeviceKey) -> bool {
    let task = fs::read_to_string(format!("/sys/fs/ext4/{}/journal_task", device_name(device)));
    task.is_ok_and(|task| task.trim().parse::<u32>().is_ok())
}
