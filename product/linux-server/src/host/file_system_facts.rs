//! Facts of a file system: the id, the numbers in listings, the names that count as equal, and the unit of times.
//!
//! Owns: the choice among the facts that a host reports about a file system; the questions to one file system and one
//! directory about the other facts.
//! Does not own: the file systems that are known (`filesystems`), the properties of each kind (`kinds`), the
//! consequences (`listing`, the volume).
//! Invariants: an id is the same one over restarts of the server and of the host. The number of a device alone is no
//! id. The host gives it to another disk at its next start, or when disks are plugged in again. Where the host reports
//! no lasting identity, the id is valid until somebody detaches the disk or the host restarts. So a handle of an
//! earlier server leads to its own disk or nowhere (`host::tests::moved_disks`). Where the host does not answer,
//! numbers are unsure and names are folded. So it costs calls, and never a wrong answer.
//!
//! The server asks the host for an id in this order: for the file system's own id of 64 bits (`f_fsid`); for the UUID,
//! by a call; for the UUID that udev has read; for the source of a file system of a network. On ext4 and Btrfs the own
//! id is a digest of the UUID. On Btrfs each subvolume has an id of its own.

use std::fs;
use std::hash::Hasher;
use std::io::Read;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use afflux_linux_device::kinds::{FileSystemKind, Folding, TimeUnit, Unsure};
use afflux_volume::{DeviceKey, VolumeError};
use rustix::fs::{StatxFlags, fstatfs, fstatvfs, major, minor};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use siphasher::sip::SipHasher24;

use crate::host::calls::{self, error_of, last_errno};

/// `FS_IOC_GETFSUUID`, since Linux 6.9: a byte with the length, and 16 bytes.
const GET_UUID: libc::c_ulong = 0x8011_1500;
const UUID_BYTES: usize = 16;
/// Most bytes that are read of a file about a device, and of the table of mounts.
const FACTS_BYTES_MAX: u64 = 64 << 10;
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// File systems whose source names a location on another machine, the same one at each mount.
const OF_A_NETWORK: &[&str] = &["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre", "beegfs"];

/// The lasting id of a file system. `any` is on it; `opened` is, too, and has not O_PATH. `None` if the host reports no
/// lasting identity.
pub(super) fn lasting(
    device: DeviceKey,
    any: BorrowedFd<'_>,
    opened: Option<BorrowedFd<'_>>,
) -> Result<Option<u64>, VolumeError> {
    let statistics = fstatvfs(any).map_err(error_of)?;
    if is_digest(statistics.f_fsid) {
        return Ok(Some(statistics.f_fsid));
    }
    let bytes = statistics.f_blocks.wrapping_mul(statistics.f_frsize);
    let asked = || opened.and_then(|opened| uuid(opened).or_else(|| xfs_uuid(opened).map(Vec::from)));
    let uuid = asked().or_else(|| uuid_of_udev(Path::new("/run/udev/data"), device));
    Ok(uuid.and_then(|uuid| id_of_uuid(&uuid, bytes)).or_else(|| id_of_source(device, any)))
}

/// An id for as long as the disk stays in the host, at most until the host's next start. A file system without a disk
/// has it while it is mounted from the same source.
pub(super) fn of_stay(device: DeviceKey, any: BorrowedFd<'_>) -> u64 {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let stay = match major(device.0) {
        0 => mounted_as(any).map(|(kind, source)| [kind, source].concat()),
        _ => disk_sequence(Path::new("/sys/dev/block"), device).map(String::into_bytes),
    };
    match (boot, stay) {
        (Some(boot), Some(stay)) => digest(&[boot.as_bytes(), &device.0.to_le_bytes(), &stay]),
        _ => random(),
    }
}

/// Whether an id of the host is a digest: numbers of devices have 32 bits.
fn is_digest(id: u64) -> bool {
    id >> 32 != 0
}

/// The UUID of a file system, by a call.
fn uuid(opened: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut told = [0u8; 1 + UUID_BYTES];
    // SAFETY: the call writes 17 bytes, which is the size of `told`, and `told` outlives it.
    let result = unsafe { libc::ioctl(opened.as_raw_fd(), GET_UUID as _, told.as_mut_ptr()) };
    let length = usize::from(told[0]).min(UUID_BYTES);
    (result == 0).then(|| told[1..=length].to_vec())
}

/// The UUID that udev has read from a device, in the order of the bytes that the call would return.
fn uuid_of_udev(database: &Path, device: DeviceKey) -> Option<Vec<u8>> {
    let entry = database.join(format!("b{}:{}", major(device.0), minor(device.0)));
    let facts = read(&entry, FACTS_BYTES_MAX)?;
    let facts = String::from_utf8_lossy(&facts);
    let uuid = facts.lines().find_map(|line| line.strip_prefix("E:ID_FS_UUID="))?.to_ascii_lowercase();
    let digits: String = uuid.chars().filter(|letter| *letter != '-').collect();
    let pairs = digits.as_bytes().as_chunks::<2>().0.iter();
    let bytes = pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect::<Option<Vec<u8>>>();
    match bytes {
        Some(bytes) if digits.len() == 2 * UUID_BYTES => Some(bytes),
        // The number of a FAT is written with its last byte first.
        Some(bytes) if digits.len() == 8 => Some(bytes.into_iter().rev().collect()),
        _ => Some(uuid.into_bytes()),
    }
}

/// The id of a UUID: the kernel's own digest of a whole one. So a host that begins to report the digest changes
/// nothing. A short one is not unique, so the file system's size counts, too. `None` if nobody has set it.
fn id_of_uuid(uuid: &[u8], bytes: u64) -> Option<u64> {
    if uuid.iter().all(|byte| [0, b'0', b'-'].contains(byte)) {
        return None;
    }
    Some(match uuid.as_chunks::<8>() {
        ([first, last], []) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last),
        _ => digest(&[uuid, &bytes.to_le_bytes()]),
    })
}

/// The id of a file system of a network.
fn id_of_source(device: DeviceKey, any: BorrowedFd<'_>) -> Option<u64> {
    let (kind, source) = mounted_as(any).filter(|_| major(device.0) == 0)?;
    let is_of_network = OF_A_NETWORK.iter().any(|known| known.as_bytes() == kind);
    is_of_network.then(|| digest(&[&kind, &source]))
}

/// The kind and the source of the mount of an object.
fn mounted_as(any: BorrowedFd<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mount = calls::raw_stat(any, "", StatxFlags::MNT_ID).ok()?.stx_mnt_id;
    kind_and_source(&read(Path::new("/proc/self/mountinfo"), TABLE_BYTES_MAX)?, mount)
}

fn kind_and_source(table: &[u8], mount: u64) -> Option<(Vec<u8>, Vec<u8>)> {
    let number = mount.to_string();
    let lines = table.split(|&byte| byte == b'\n');
    let mut lines = lines.map(|line| line.split(|&byte| byte == b' ').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.first() == Some(&number.as_bytes()))?;
    let end = fields.iter().position(|field| *field == b"-")?;
    Some((fields.get(end + 1)?.to_vec(), fields.get(end + 2)?.to_vec()))
}

/// The number of a disk's stay in the host, which the host gives once (Linux 5.15). A partition has its disk's.
pub(super) fn disk_sequence(sysfs: &Path, device: DeviceKey) -> Option<String> {
    let entry = fs::canonicalize(sysfs.join(format!("{}:{}", major(device.0), minor(device.0)))).ok()?;
    let disk = |entry: PathBuf| fs::read_to_string(entry.join("diskseq")).ok();
    disk(entry.clone()).or_else(|| disk(entry.parent()?.to_path_buf()))
}

fn read(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn digest(parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher24::new();
    for part in parts {
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part);
    }
    hasher.finish()
}

/// An id of this process alone.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    while getrandom(&mut bytes, GetRandomFlags::empty()) != Ok(bytes.len()) {}
    u64::from_le_bytes(bytes)
}

const SECOND_NS: u32 = 1_000_000_000;

/// The names in a directory that the file system holds equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    /// Equal bytes alone.
    Exact,
    /// A flag of each directory reports it.
    Flagged,
    /// Names that differ in case are one name.
    Folded,
    /// Other bytes may be the same name.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileSystemTraits {
    pub(super) unsure: Unsure,
    names: Names,
    /// All times are multiples of it.
    pub(super) time_unit_ns: u32,
}

impl FileSystemTraits {
    /// The properties of the file system of `fd`.
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

/// An inode of 128 bytes holds whole seconds alone, and no time of birth.
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

#[cfg(test)]
mod tests;
