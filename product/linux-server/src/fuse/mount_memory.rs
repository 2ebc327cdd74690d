//! The memory of a mount that outlives its server: the mount's location, and the words of the machine.
//!
//! Owns: the mapping of the memory file, the record of the location.
//! Does not own: the machine's words (front ends), the service manager's store (`persisted_mount`).
//! Invariants: the file's size is sealed, so that the mapping stays whole. Everybody uses the memory as atomic numbers.
//! Its pages come with their first use, as those of a program's own memory: a memory file has no limit of its own.

use std::ffi::{OsStr, c_void};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::fstat;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::arena_file::ArenaFileError;
use crate::arena_file::backing_file::{self, MemoryReservation};

const NAME: &str = "afflux-mount";
const MAGIC: u64 = u64::from_le_bytes(*b"AFXPLACE");
/// Words before those of the machine.
const LOCATION_WORDS: usize = 1024;
/// The longest path of a point.
const PATH_BYTES_MAX: usize = 4096;
const PATH_AT: usize = 8;
/// The location is valid once its check is there.
const CHECK_AT: usize = PATH_AT + PATH_BYTES_MAX / 8;
/// More bytes than any server makes.
const BYTES_MAX: u64 = 1 << 32;

/// A mount of the host's kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MountLocation {
    /// The directory that it is mounted on.
    pub(super) point: PathBuf,
    /// The kernel's id of the mount.
    pub(super) mount_id: u64,
    /// Major and minor number of the file system, in one.
    pub(super) file_system: u64,
}

/// Memory of a mount that outlives its server.
#[derive(Clone)]
pub struct MountMemory {
    file: Arc<OwnedFd>,
    mapped: Arc<Mapped>,
}

/// Words of a file.
struct Mapped {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the words are a fixed range that its owner holds until drop; it has no thread affinity.
unsafe impl Send for Mapped {}
// SAFETY: shared use reads and writes atomic numbers.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn of(file: BorrowedFd<'_>, words: usize) -> Result<Self, ArenaFileError> {
        let (bytes, flags) = (words * size_of::<AtomicU64>(), MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice aliases no memory of this process. The file has
        // the bytes, and its size is sealed.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) };
        let failed = |source: rustix::io::Errno| ArenaFileError::Host { call: "map", source: source.into() };
        let start = start.map_err(failed)?;
        // SAFETY: the range was mapped just now; the advice changes no contents.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxDontDump) };
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM).map_err(failed)?;
        Ok(Self { start, words })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and each user of its words held a reference to it.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.words * size_of::<AtomicU64>()) };
    }
}

impl AsRef<[AtomicU64]> for Mapped {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins on a page, has so many words, and lives as long as `self`. Any bytes are atomic
        // numbers, and all users read and write them as such.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

/// The words of the machine.
struct Behind(Arc<Mapped>);

impl AsRef<[AtomicU64]> for Behind {
    fn as_ref(&self) -> &[AtomicU64] {
        &(*self.0).as_ref()[LOCATION_WORDS..]
    }
}

impl MountMemory {
    /// Memory with so many words for the machine, all zero.
    ///
    /// # Errors
    /// The host refuses it.
    pub fn made(words: usize) -> Result<Self, ArenaFileError> {
        let words = words + LOCATION_WORDS;
        let file = backing_file::made(NAME, (words * size_of::<AtomicU64>()) as u64, MemoryReservation::AsUsed)?;
        let mapped = Mapped::of(file.as_fd(), words)?;
        Ok(Self { file: Arc::new(file), mapped: Arc::new(mapped) })
    }

    /// Memory that an earlier server has made.
    pub(super) fn inherited(file: OwnedFd) -> Result<Self, ArenaFileError> {
        backing_file::refuse_foreign(&file)?;
        let bytes = fstat(&file).map_err(|errno| ArenaFileError::Host { call: "stat", source: errno.into() })?.st_size;
        let words = bytes as u64 / size_of::<AtomicU64>() as u64;
        if bytes as u64 > BYTES_MAX || words <= LOCATION_WORDS as u64 {
            return Err(ArenaFileError::Unfit("its size is none of a mount's memory"));
        }
        let mapped = Mapped::of(file.as_fd(), words as usize)?;
        Ok(Self { file: Arc::new(file), mapped: Arc::new(mapped) })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The words of the machine.
    pub fn words(&self) -> Arc<dyn AsRef<[AtomicU64]> + Send + Sync> {
        Arc::new(Behind(Arc::clone(&self.mapped)))
    }

    fn all(&self) -> &[AtomicU64] {
        (*self.mapped).as_ref()
    }

    /// Writes the location. False if its path is too long.
    pub(super) fn try_note_location(&self, location: &MountLocation) -> bool {
        let path = location.point.as_os_str().as_bytes();
        if path.len() > PATH_BYTES_MAX {
            return false;
        }
        let head = [MAGIC, location.mount_id, location.file_system, path.len() as u64];
        let words = path.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let put = |at: usize, value| self.all()[at].store(value, Ordering::Relaxed);
        head.into_iter().enumerate().for_each(|(at, value)| put(at, value));
        words.enumerate().for_each(|(at, value)| put(PATH_AT + at, value));
        self.all()[CHECK_AT].store(self.check(), Ordering::Release);
        true
    }

    /// The location that an earlier server has written.
    pub(super) fn location(&self) -> Option<MountLocation> {
        let value = |at: usize| self.all()[at].load(Ordering::Relaxed);
        if value(0) != MAGIC || value(CHECK_AT) != self.check() {
            return None;
        }
        let bytes: Vec<u8> = (PATH_AT..CHECK_AT).flat_map(|at| value(at).to_le_bytes()).collect();
        let path = bytes.get(..usize::try_from(value(3)).ok()?)?;
        let point = Path::new(OsStr::from_bytes(path)).to_owned();
        point.is_absolute().then_some(MountLocation { point, mount_id: value(1), file_system: value(2) })
    }

    fn check(&self) -> u64 {
        // FNV-1a: a hash that no library's next version changes.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let words = self.all()[..CHECK_AT].iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        words.fold(0xcbf2_9ce4_8422_2325, step)
    }
}

#[cfg(test)]
mod tests;
