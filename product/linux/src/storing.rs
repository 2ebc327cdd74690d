//! File systems that store what is written to them.
//!
//! Owns: which kinds of file systems do, the name of a kind for people.
//! Does not own: the consequences (`host` shows others as empty directories, the library refuses their files).
//! Invariants: an unknown kind counts as a kind without storage. In `/proc` or `/sys` a write is an order to
//! the kernel, and sizes say nothing about the bytes to read: neither can be cached.

use std::os::fd::BorrowedFd;

use rustix::fs::{fstat, fstatfs, major, minor};
use rustix::io::Errno;

/// Magic numbers of kinds that store files without a block device. The list has autofs, whose directories are mount
/// points of other file systems.
const STORING: &[u64] = &[
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x9123_683e, // Btrfs
    0xca45_1a4e, // bcachefs
    0x2fc1_2fc1, // ZFS
    0x6573_5546, // FUSE, virtiofs
    0x6969,      // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB 2 and 3
    0x517b,      // smbfs
    0x0102_1997, // 9P
    0x00c3_6400, // Ceph
    0x5346_414f, // OpenAFS
    0x6b41_4653, // AFS of Linux
    0x7375_7245, // Coda
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x2003_0528, // OrangeFS
    0xaad7_aaea, // PanFS
    0x0116_1970, // GFS2
    0x7461_636f, // OCFS2
    0x6163_6673, // ACFS
    0xbeef_dead, // SNFS
    0xbacb_acbc, // vmhgfs
    0x786f_4256, // vboxsf
    0x7c7c_6673, // prl_fs
    0x00c0_ffee, // hostfs
    0x5346_4846, // WslFs
    0x2405_1905, // UBIFS
    0xe0f5_e1e2, // EROFS over a file
    0xf15f,      // eCryptfs
    0x6175_6673, // AUFS
    0x6a65_6a62, // shiftfs
    0x0187,      // autofs
];

/// Whether the file system of an open object, in any way also by O_PATH, stores files. `device_major` is of the object's
/// device number: a file system on a block device stores files.
pub fn stores_files(device_major: u32, object: BorrowedFd<'_>) -> Result<bool, Errno> {
    let on_a_disk = device_major != 0;
    Ok(on_a_disk || STORING.contains(&(fstatfs(object)?.f_type as u64 & u64::from(u32::MAX))))
}

/// The kind of an object's file system, for people: as `mount` names it, or its magic number.
pub fn file_system_kind(object: BorrowedFd<'_>) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let named = fstat(object).ok().and_then(|stat| kind_in(&mounts, stat.st_dev));
    let number = || fstatfs(object).map_or_else(|error| error.to_string(), |found| format!("{:#x}", found.f_type));
    named.map_or_else(number, str::to_owned)
}

/// The kind of the file system with this device number: the third field, and the first one after a dash.
fn kind_in(mounts: &str, device: u64) -> Option<&str> {
    let device = format!("{}:{}", major(device), minor(device));
    let mut lines = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&device));
    lines.find_map(|line| line.split_once(" - ")?.1.split(' ').next())
}

#[cfg(test)]
mod tests;
