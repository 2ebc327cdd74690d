//! The ways of a file system that its calls do not tell: which numbers its listings have, which names it holds equal,
//! and the unit of its times.
//!
//! Owns: the questions to one file system and one directory about them.
//! Does not own: the ways of each kind (`kinds`), the known file systems (`filesystems`), what follows from their ways
//! (`listing`, the volume).
//! Invariants: where the host does not answer, numbers are unsure and names are folded. So it costs calls, and never a
//! wrong answer.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use afflux_volume::VolumeError;
use rustix::fs::{StatxFlags, fstatfs};
use rustix::io::Errno;

use super::calls::{self, last_errno};
use afflux_linux_device::kinds::{FileSystemKind, Folding, TimeUnit, Unsure};

const SECOND_NS: u32 = 1_000_000_000;

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
        let kind = FileSystemKind::of(fd).unwrap_or(FileSystemKind::unknown());
        let names = match kind.folding {
            Folding::Never => Names::Exact,
            Folding::ByFlag(feature) => feature.map_or(Names::Flagged, flagged),
            Folding::ByGeometry if !does_fold_on_xfs(fd) => Names::Exact,
            Folding::ByGeometry | Folding::Always => Names::Folded,
            Folding::MayBe => Names::Unknown,
        };
        let time_unit_ns = match kind.time_unit {
            TimeUnit::Ns(unit) => unit,
            TimeUnit::ByInode => ext_time_unit_ns(fd),
        };
        Self { unsure: kind.unsure, names, time_unit_ns }
    }

    /// Whether other bytes may be the same name in this directory.
    pub(super) fn may_fold_names(self, directory: BorrowedFd<'_>) -> bool {
        self.names == Names::Unknown || self.is_folding_case(directory)
    }

    /// Whether names that differ in case are surely one name in this directory.
    pub(super) fn is_folding_case(self, directory: BorrowedFd<'_>) -> bool {
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

/// Whether a directory has the flag. A directory that the server cannot ask counts as flagged; a file has no names.
fn has_folding_flag(directory: BorrowedFd<'_>) -> bool {
    let directory = match calls::open_directory(directory) {
        Ok(directory) => directory,
        Err(error) => return error != VolumeError::NotDirectory,
    };
    let mut flags: libc::c_long = 0;
    // SAFETY: the call writes at most one long, and `flags` is one and outlives it.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), FS_IOC_GETFLAGS as _, &raw mut flags) };
    let knows_no_flags = result != 0 && matches!(last_errno(), Errno::NOTTY | Errno::OPNOTSUPP);
    !knows_no_flags && (result != 0 || flags & FS_CASEFOLD_FL != 0)
}

/// `XFS_IOC_FSGEOMETRY_V1`, and its structure as words: the UUID begins at the 15th, the flags are the 23rd.
const XFS_GEOMETRY: libc::c_ulong = 0x8070_5864;
const XFS_GEOMETRY_WORDS: usize = 28;
const XFS_UUID_WORDS: Range<usize> = 14..18;
const XFS_FLAGS_WORD: usize = 23;
const XFS_FOLDS_ASCII: u32 = 0x2000;

fn does_fold_on_xfs(fd: BorrowedFd<'_>) -> bool {
    let Ok(directory) = calls::open_directory(fd) else { return true };
    xfs_geometry(directory.as_fd()).is_none_or(|geometry| geometry[XFS_FLAGS_WORD] & XFS_FOLDS_ASCII != 0)
}

/// The UUID of an XFS. `opened` has not O_PATH.
pub(super) fn xfs_uuid(opened: BorrowedFd<'_>) -> Option<[u8; 16]> {
    if fstatfs(opened).ok()?.f_type as u32 != libc::XFS_SUPER_MAGIC as u32 {
        return None;
    }
    let geometry = xfs_geometry(opened)?;
    let mut uuid = [0; 16];
    let words = uuid.as_chunks_mut::<4>().0.iter_mut().zip(&geometry[XFS_UUID_WORDS]);
    words.for_each(|(bytes, word)| *bytes = word.to_ne_bytes());
    Some(uuid)
}

fn xfs_geometry(opened: BorrowedFd<'_>) -> Option<[u32; XFS_GEOMETRY_WORDS]> {
    let mut geometry = [0u32; XFS_GEOMETRY_WORDS];
    // SAFETY: the call writes 112 bytes, which is the size of `geometry`, and `geometry` outlives it.
    let result = unsafe { libc::ioctl(opened.as_raw_fd(), XFS_GEOMETRY as _, geometry.as_mut_ptr()) };
    (result == 0).then_some(geometry)
}
