//! What one sync of the host makes durable, by the kind of file system.
//!
//! Owns: the kinds, how they are told apart, the calls of a shared sync.
//! Does not own: who shares it (`stable`), the sync of one object (`entries`).
//! Invariants: a kind is taken for more than "the object itself" only where the kernel's code for it was read.
//!
//! - ext4 with a journal: `fsync` of any directory commits the running transaction (`ext4_fsync_journal` calls
//!   `ext4_force_commit` for what is no regular file; ext3 and earlier ext4 did the same by
//!   `ext4_should_journal_data`), and every change of names and attributes that has returned is in it or in one
//!   before. So one call for the whole file system.
//! - XFS: `fsync` forces the log up to the object's last change (`xfs_log_force_inode`), and changes stand in the log
//!   in their order. So the object that was changed last takes along all changed before it, and `fsync` of those
//!   finds nothing to do; of those changed at the same instant the order is not known, so each is asked.
//! - Everything else (ext4 without a journal, btrfs, whose log is a tree of one directory's, overlayfs, ...): each
//!   directory for itself.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use afflux_volume::{DeviceKey, Kind, VolumeError};
use rustix::fs::{fstatfs, fsync};

use super::Core;
use super::calls::error_of;
use super::filesystems::device_name;
use super::node::HostNode;

const EXT4_MAGIC: u64 = 0xef53;
const XFS_MAGIC: u64 = 0x5846_5342;

/// What the sync of one object makes durable beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Covers {
    /// Every change of the file system made before, if the object is a directory.
    Everything,
    /// Every change made before the object's last.
    Earlier,
    /// Nothing that is known.
    Nothing,
}

/// What syncs cover on the file system of `directory`, its `device`.
pub(super) fn covered_on(directory: BorrowedFd<'_>, device: DeviceKey, kind: Kind) -> Covers {
    let Ok(found) = fstatfs(directory) else { return Covers::Nothing };
    // The field's type differs between architectures.
    match found.f_type as u64 {
        EXT4_MAGIC if kind == Kind::Directory && has_journal(device) => Covers::Everything,
        XFS_MAGIC => Covers::Earlier,
        _ => Covers::Nothing,
    }
}

/// Whether the ext4 on a device has a journal: then a thread of the kernel's writes it.
fn has_journal(device: DeviceKey) -> bool {
    let task = fs::read_to_string(format!("/sys/fs/ext4/{}/journal_task", device_name(device)));
    task.is_ok_and(|task| task.trim().parse::<u32>().is_ok())
}

impl Core {
    /// Makes durable what was changed, in the order of the changes, on a file system of this kind with this
    /// directory.
    pub(super) fn sync_all(
        &self,
        covers: Covers,
        directory: &OwnedFd,
        changed: &[Arc<HostNode>],
    ) -> Result<(), VolumeError> {
        if covers == Covers::Everything {
            return fsync(directory.as_fd()).map_err(error_of);
        }
        changed.iter().rev().try_for_each(|node| self.sync(node))
    }
}
