//! Kinds of file systems: what each does that its calls do not tell.
//!
//! Owns: one row for each kind that stores what is written to it; the question whether a file system does, the name of
//! its kind for people.
//! Does not own: questions to one file system or directory (`host::file_system_facts`, `device::hidden_limits`), the
//! consequences: the host shows others as empty directories, the library refuses their files.
//! Invariants: an unknown kind counts as one that stores nothing without a block device, lists unsure numbers, may fold
//! names and has limits that only a write shows. So it costs calls or is refused, and gives no wrong answer. In `/proc`
//! or `/sys` a write is an order to the kernel, and sizes say nothing about the bytes to read: neither can be cached.

use std::os::fd::BorrowedFd;

use rustix::fs::{fstat, fstatfs, major, minor};
use rustix::io::Errno;

use crate::kinds::Folding::{Always, ByFlag, ByGeometry, MayBe, Never};
use crate::kinds::FreeBytes::{Asked, OnDisk, Reported};
use crate::kinds::TimeUnit::{ByInode, Ns};
use crate::kinds::Unsure::{Directories, Everything, Nothing};

/// Entries of a listing whose object may have another number than the listed one. Mount points are such entries anyway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsure {
    /// No entry.
    Nothing,
    /// A subvolume is listed by its own number in a tree of subvolumes.
    Directories,
    /// Each entry of the directory.
    Everything,
}

/// Whether a directory holds other bytes for the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Folding {
    /// No directory does.
    Never,
    /// A flag of each directory says it, where the kernel knows the flag. The kernel shows that below `/sys/fs` and
    /// this name.
    ByFlag(Option<&'static str>),
    /// The geometry of an XFS says it.
    ByGeometry,
    /// Names that differ in case are one name.
    Always,
    /// Nothing shows it.
    MayBe,
}

/// All times are multiples of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// So many nanoseconds.
    Ns(u32),
    /// A small inode stores whole seconds alone.
    ByInode,
}

/// Whether the free bytes of a file system tell what a write may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FreeBytes {
    Reported,
    /// On a disk. Elsewhere the limits are a server's, or those of a file system below.
    OnDisk,
    /// Unless limits of subvolumes are counted.
    Asked,
}

/// A kind of file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSystemKind {
    /// The number that `statfs` gives.
    magic: u32,
    name: &'static str,
    /// What its listings are unsure of.
    pub unsure: Unsure,
    /// Whether names fold.
    pub folding: Folding,
    /// The unit of times.
    pub time_unit: TimeUnit,
    pub(crate) free: FreeBytes,
}

const SECOND: TimeUnit = Ns(1_000_000_000);

/// The kinds, each of which stores files. The list has autofs, whose directories are mount points of other file
/// systems.
static KINDS: &[FileSystemKind] = &[
    row(0xef53, "ext", Nothing, ByFlag(Some("ext4")), ByInode, OnDisk),
    row(0x5846_5342, "xfs", Nothing, ByGeometry, Ns(1), OnDisk),
    row(0x9123_683e, "btrfs", Directories, Never, Ns(1), Asked),
    row(0xf2f5_2010, "f2fs", Nothing, ByFlag(Some("f2fs")), Ns(1), OnDisk),
    row(0x0102_1994, "tmpfs", Nothing, ByFlag(Some("tmpfs")), Ns(1), Reported),
    row(0x8584_58f6, "ramfs", Nothing, Never, Ns(1), Reported),
    row(0x794c_7630, "overlay", Everything, ByFlag(None), Ns(1), OnDisk),
    row(0x7371_7368, "squashfs", Nothing, Never, SECOND, OnDisk),
    row(0xe0f5_e1e2, "erofs", Nothing, Never, Ns(1), OnDisk),
    row(0x4d44, "vfat", Everything, Always, Ns(2_000_000_000), OnDisk),
    row(0x2011_bab0, "exfat", Everything, Always, Ns(10_000_000), OnDisk),
    row(0x7366_746e, "ntfs3", Everything, MayBe, Ns(100), OnDisk),
    row(0x482b, "hfsplus", Everything, Always, SECOND, OnDisk),
    little_known(0xca45_1a4e, "bcachefs"),
    little_known(0x2fc1_2fc1, "zfs"),
    little_known(0x6573_5546, "fuse"), // virtiofs, too
    little_known(0x6969, "nfs"),
    little_known(0xff53_4d42, "cifs"),
    little_known(0xfe53_4d42, "smb3"),
    little_known(0x517b, "smbfs"),
    little_known(0x0102_1997, "9p"),
    little_known(0x00c3_6400, "ceph"),
    little_known(0x5346_414f, "openafs"),
    little_known(0x6b41_4653, "afs"),
    little_known(0x7375_7245, "coda"),
    little_known(0x0bd0_0bd0, "lustre"),
    little_known(0x4750_4653, "gpfs"),
    little_known(0x1983_0326, "beegfs"),
    little_known(0x2003_0528, "orangefs"),
    little_known(0xaad7_aaea, "panfs"),
    little_known(0x0116_1970, "gfs2"),
    little_known(0x7461_636f, "ocfs2"),
    little_known(0x6163_6673, "acfs"),
    little_known(0xbeef_dead, "snfs"),
    little_known(0xbacb_acbc, "vmhgfs"),
    little_known(0x786f_4256, "vboxsf"),
    little_known(0x7c7c_6673, "prl_fs"),
    little_known(0x00c0_ffee, "hostfs"),
    little_known(0x5346_4846, "wslfs"),
    little_known(0x2405_1905, "ubifs"),
    little_known(0xf15f, "ecryptfs"),
    little_known(0x6175_6673, "aufs"),
    little_known(0x6a65_6a62, "shiftfs"),
    little_known(0x0187, "autofs"),
];

/// Any other kind.
static UNKNOWN: FileSystemKind = little_known(0, "");

const fn row(
    magic: u32,
    name: &'static str,
    unsure: Unsure,
    folding: Folding,
    time_unit: TimeUnit,
    free: FreeBytes,
) -> FileSystemKind {
    FileSystemKind { magic, name, unsure, folding, time_unit, free }
}

const fn little_known(magic: u32, name: &'static str) -> FileSystemKind {
    row(magic, name, Everything, MayBe, Ns(1), OnDisk)
}

impl FileSystemKind {
    /// The kind of an open object's file system.
    pub fn of(object: BorrowedFd<'_>) -> Result<&'static Self, Errno> {
        // The kernel's type of the field differs between architectures.
        Ok(Self::with(fstatfs(object)?.f_type as u32))
    }

    /// The kind that is sure of nothing.
    pub fn unknown() -> &'static Self {
        &UNKNOWN
    }

    fn with(magic: u32) -> &'static Self {
        KINDS.iter().find(|kind| kind.magic == magic).unwrap_or(&UNKNOWN)
    }

    /// Whether it stores files, also without a block device.
    pub(crate) fn does_store_files(&self) -> bool {
        !self.name.is_empty()
    }
}

/// Whether the file system of an open object, in any way also by O_PATH, stores files. `device_major` is of the
/// object's device number: a file system on a block device stores files.
pub fn stores_files(device_major: u32, object: BorrowedFd<'_>) -> Result<bool, Errno> {
    let on_a_disk = device_major != 0;
    Ok(on_a_disk || FileSystemKind::of(object)?.does_store_files())
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
