//! The ways of a file system that its calls do not tell: which numbers its listings have, which names it holds equal,
//! and the unit of its times.
//!
//! Owns: these ways of each kind of file system; the question about one directory's names.
//! Does not own: the known file systems (`filesystems`), what follows from their ways (`listing`, the volume).
//! Invariants: a file system of a kind that is not listed here counts as one with unsure numbers and folded names. So an
//! unknown kind costs calls, and never a wrong answer.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{StatxFlags, fstatfs};
use rustix::io::Errno;

use super::calls::{self, last_errno};

const SECOND_NS: u32 = 1_000_000_000;

/// The magic numbers of `statfs`.
mod magic {
    pub(super) const EXT: u64 = 0xef53;
    pub(super) const XFS: u64 = 0x5846_5342;
    pub(super) const BTRFS: u64 = 0x9123_683e;
    pub(super) const F2FS: u64 = 0xf2f5_2010;
    pub(super) const TMPFS: u64 = 0x0102_1994;
    pub(super) const RAMFS: u64 = 0x8584_58f6;
    pub(super) const OVERLAYFS: u64 = 0x794c_7630;
    pub(super) const SQUASHFS: u64 = 0x7371_7368;
    pub(super) const EROFS: u64 = 0xe0f5_e1e2;
    pub(super) const FAT: u64 = 0x4d44;
    pub(super) const EXFAT: u64 = 0x2011_bab0;
    pub(super) const NTFS3: u64 = 0x7366_746e;
    pub(super) const HFSPLUS: u64 = 0x482b;
}

/// Entries of a listing whose object may have another number than the listed one. Mount points are such entries anyway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unsure {
    Nothing,
    /// A subvolume is listed by its own number in a tree of subvolumes.
    Directories,
    Everything,
}

/// The names in a directory that the file system holds equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    /// Equal bytes alone.
    Exact,
    /// A flag of each directory says it.
    Flagged,
    /// Names that differ in case are one name.
    Folded,
    /// Other bytes may be the same name.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ways {
    pub(super) unsure: Unsure,
    names: Names,
    /// All times are multiples of it.
    pub(super) time_unit_ns: u32,
}

impl Ways {
    /// The ways of the file system of `fd`.
    pub(super) fn of(fd: BorrowedFd<'_>) -> Self {
        // The kernel's type of the field differs between architectures.
        let kind = fstatfs(fd).map_or(0, |stat| stat.f_type as u64 & u64::from(u32::MAX));
        let ways = |unsure, names, time_unit_ns| Self { unsure, names, time_unit_ns };
        match kind {
            magic::EXT => ways(Unsure::Nothing, flagged("ext4"), ext_time_unit_ns(fd)),
            magic::F2FS => ways(Unsure::Nothing, flagged("f2fs"), 1),
            magic::TMPFS => ways(Unsure::Nothing, flagged("tmpfs"), 1),
            magic::XFS if folds_on_xfs(fd) => ways(Unsure::Nothing, Names::Folded, 1),
            magic::XFS | magic::RAMFS | magic::EROFS => ways(Unsure::Nothing, Names::Exact, 1),
            magic::SQUASHFS => ways(Unsure::Nothing, Names::Exact, SECOND_NS),
            magic::BTRFS => ways(Unsure::Directories, Names::Exact, 1),
            magic::OVERLAYFS => ways(Unsure::Everything, Names::Flagged, 1),
            magic::FAT => ways(Unsure::Everything, Names::Folded, 2 * SECOND_NS),
            magic::EXFAT => ways(Unsure::Everything, Names::Folded, SECOND_NS / 100),
            magic::NTFS3 => ways(Unsure::Everything, Names::Unknown, 100),
            magic::HFSPLUS => ways(Unsure::Everything, Names::Folded, SECOND_NS),
            _ => ways(Unsure::Everything, Names::Unknown, 1),
        }
    }

    /// Whether other bytes may be the same name in this directory.
    pub(super) fn may_fold_names(self, directory: BorrowedFd<'_>) -> bool {
        self.names == Names::Unknown || self.fold_case(directory)
    }

    /// Whether names that differ in case are surely one name in this directory.
    pub(super) fn fold_case(self, directory: BorrowedFd<'_>) -> bool {
        match self.names {
            Names::Exact | Names::Unknown => false,
            Names::Flagged => has_folding_flag(directory),
            Names::Folded => true,
        }
    }
}

/// A kernel without this feature has no directories with the flag.
fn flagged(kind: &str) -> Names {
    let feature = Path::new("/sys/fs").join(kind).join("features/casefold");
    // In a sandbox nobody may see it.
    let is_known = Path::new("/sys/fs").join(kind).join("features").exists();
    if is_known && !feature.exists() { Names::Exact } else { Names::Flagged }
}

/// An inode of 128 bytes has room for whole seconds alone, and for no time of birth.
fn ext_time_unit_ns(fd: BorrowedFd<'_>) -> u32 {
    let born = calls::raw_stat(fd, "", StatxFlags::BTIME).map(|stat| stat.stx_mask & StatxFlags::BTIME.bits() != 0);
    if born == Ok(false) { SECOND_NS } else { 1 }
}

const FS_IOC_GETFLAGS: libc::c_ulong = 0x8008_6601;
const FS_CASEFOLD_FL: libc::c_long = 0x4000_0000;

/// Whether a directory has the flag. A directory that the server cannot ask counts as flagged.
fn has_folding_flag(directory: BorrowedFd<'_>) -> bool {
    let Ok(directory) = calls::open_directory(directory) else { return true };
    let mut flags: libc::c_long = 0;
    // SAFETY: the call writes at most one long, and `flags` is one and outlives it.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), FS_IOC_GETFLAGS as _, &raw mut flags) };
    let knows_no_flags = result != 0 && matches!(last_errno(), Errno::NOTTY | Errno::OPNOTSUPP);
    !knows_no_flags && (result != 0 || flags & FS_CASEFOLD_FL != 0)
}

/// `XFS_IOC_FSGEOMETRY_V1`, and its structure as words: the flags are the 23rd.
const XFS_GEOMETRY: libc::c_ulong = 0x8070_5864;
const XFS_GEOMETRY_WORDS: usize = 28;
const XFS_FLAGS_WORD: usize = 23;
const XFS_FOLDS_ASCII: u32 = 0x2000;

fn folds_on_xfs(fd: BorrowedFd<'_>) -> bool {
    let Ok(directory) = calls::open_directory(fd) else { return true };
    let mut geometry = [0u32; XFS_GEOMETRY_WORDS];
    // SAFETY: the call writes 112 bytes, which is the size of `geometry`, and `geometry` outlives it.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), XFS_GEOMETRY as _, geometry.as_mut_ptr()) };
    result != 0 || geometry[XFS_FLAGS_WORD] & XFS_FOLDS_ASCII != 0
}
