//! A host file as a device knows it: one descriptor it was given, others opened when needed.
//!
//! Owns: the descriptors of one file, until its last user is gone.
//! Does not own: names and identity (whoever opened it), what is read or written.
//! Invariants: a file is opened for writing only once something is written to it. A descriptor in
//! use by the kernel stays open, since whoever uses it holds a reference.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::DeviceError;
use rustix::fs::{Mode, OFlags, fcntl_getfl, fstat, open};
use rustix::io::Errno;

use super::error_of;
use super::turns::Turns;

const PAGE_BYTES: u64 = 4096;

/// What a descriptor is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Read,
    Write,
}

/// Whether the host's page cache is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Path {
    Direct,
    Buffered,
}

/// What a write does to the size of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Growth {
    /// Nothing.
    None,
    /// It makes the file larger; the old end and the new one are pages' ends.
    WholePages,
    /// It makes the file larger, and one of them is not.
    WithinAPage,
}

/// An open host file; what `Backing` wraps for a [`HostDevice`](crate::HostDevice).
pub struct HostFile {
    given: Arc<OwnedFd>,
    descriptors: Mutex<Descriptors>,
    turns: Arc<Turns>,
    /// The host's file has at least this size, unless somebody else cut it.
    size_seen: AtomicU64,
    growth_refused: AtomicBool,
}

#[derive(Default)]
struct Descriptors {
    direct: Option<Descriptor>,
    buffered: Option<Descriptor>,
    /// The host does not take O_DIRECT for this file.
    direct_refused: bool,
}

#[derive(Clone)]
struct Descriptor {
    fd: Arc<OwnedFd>,
    writable: bool,
}

impl HostFile {
    /// The regular file behind `fd`, which may be open in any way, also with O_PATH. Other
    /// descriptors for it are opened through /proc when requests need them.
    pub fn new(fd: OwnedFd) -> Self {
        let given = Arc::new(fd);
        let unusable = OFlags::PATH | OFlags::DIRECT | OFlags::APPEND;
        let buffered = fcntl_getfl(&given).ok().filter(|flags| !flags.intersects(unusable)).and_then(|flags| {
            let writable = match flags & OFlags::RWMODE {
                OFlags::RDWR => true,
                OFlags::RDONLY => false,
                _ => return None,
            };
            Some(Descriptor { fd: Arc::clone(&given), writable })
        });
        let descriptors = Mutex::new(Descriptors { buffered, ..Descriptors::default() });
        Self {
            given,
            descriptors,
            turns: Arc::default(),
            size_seen: AtomicU64::new(0),
            growth_refused: AtomicBool::new(false),
        }
    }

    pub(super) fn turns(&self) -> &Arc<Turns> {
        &self.turns
    }

    /// What a write up to `end` does to the file's size. Asks the host, without blocking, when it is not known
    /// to be large enough already.
    pub(super) fn growth(&self, end: u64) -> Growth {
        if end <= self.size_seen.load(Ordering::Relaxed) {
            return Growth::None;
        }
        let Ok(stat) = fstat(&self.given) else { return Growth::WithinAPage };
        let size = stat.st_size as u64;
        self.size_seen.store(size, Ordering::Relaxed);
        match end {
            _ if end <= size => Growth::None,
            _ if size.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES) => Growth::WholePages,
            _ => Growth::WithinAPage,
        }
    }

    /// The file is about to get this size.
    pub(super) fn resized(&self, size: u64) {
        self.size_seen.fetch_min(size, Ordering::Relaxed);
    }

    /// Whether it can be made longer ahead of writes, as far as is known.
    pub(super) fn takes_growth(&self) -> bool {
        !self.growth_refused.load(Ordering::Relaxed)
    }

    /// It cannot.
    pub(super) fn refuse_growth(&self) {
        self.growth_refused.store(true, Ordering::Relaxed);
    }

    /// The file's path on this host at this moment, for people. A file without a name says so in it.
    pub fn host_path(&self) -> Option<std::path::PathBuf> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.given.as_raw_fd())).ok()?;
        path.is_absolute().then_some(path)
    }

    /// Opens what requests of `device` will need first, so that they find it open: for callers that
    /// may block. Not needed, and its failure is seen by the requests.
    pub fn prepare(&self, device: &crate::HostDevice, write: bool) {
        let path = if device.is_direct() { Path::Direct } else { Path::Buffered };
        let _ = self.open(path, if write { Use::Write } else { Use::Read });
    }

    fn lock(&self) -> MutexGuard<'_, Descriptors> {
        self.descriptors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path that is taken if `wanted` is.
    pub(super) fn path(&self, wanted: Path) -> Path {
        if self.lock().direct_refused { Path::Buffered } else { wanted }
    }

    /// Says that the host does not take O_DIRECT for this file.
    pub(super) fn refuse_direct(&self) {
        self.lock().direct_refused = true;
    }

    /// A descriptor that is open already.
    pub(super) fn opened(&self, path: Path, wanted: Use) -> Option<Arc<OwnedFd>> {
        let descriptors = self.lock();
        let descriptor = match path {
            Path::Direct => &descriptors.direct,
            Path::Buffered => &descriptors.buffered,
        };
        let usable = descriptor.as_ref().filter(|found| wanted == Use::Read || found.writable);
        usable.map(|found| Arc::clone(&found.fd))
    }

    /// A descriptor to make what was written durable: one that it was written with, since that one
    /// is told of write errors.
    pub(super) fn opened_for_sync(&self) -> Option<Arc<OwnedFd>> {
        [(Path::Buffered, Use::Write), (Path::Direct, Use::Write), (Path::Buffered, Use::Read)]
            .into_iter()
            .find_map(|(path, wanted)| self.opened(path, wanted))
    }

    /// Any descriptor that can change the file.
    pub(super) fn opened_for_change(&self) -> Option<Arc<OwnedFd>> {
        self.opened(Path::Buffered, Use::Write).or_else(|| self.opened(Path::Direct, Use::Write))
    }

    /// Opens a descriptor, or finds it open. May block. `None` is 'take the buffered path instead'.
    pub(super) fn open(&self, path: Path, wanted: Use) -> Result<Option<Arc<OwnedFd>>, DeviceError> {
        if let Some(fd) = self.opened(path, wanted) {
            return Ok(Some(fd));
        }
        let access = if wanted == Use::Write { OFlags::RDWR } else { OFlags::RDONLY };
        let direct = if path == Path::Direct { OFlags::DIRECT } else { OFlags::empty() };
        let name = format!("/proc/self/fd/{}", self.given.as_raw_fd());
        match open(name, access | direct | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Some(self.keep(path, Descriptor { fd: Arc::new(fd), writable: wanted == Use::Write }))),
            Err(Errno::INVAL) if path == Path::Direct => {
                self.refuse_direct();
                Ok(None)
            }
            // What we were given may be all that can be had: permission was asked when it was opened.
            Err(_) if path == Path::Direct && self.opened(Path::Buffered, wanted).is_some() => Ok(None),
            Err(error) => Err(error_of(error.raw_os_error())),
        }
    }

    fn keep(&self, path: Path, new: Descriptor) -> Arc<OwnedFd> {
        let mut descriptors = self.lock();
        let place = match path {
            Path::Direct => &mut descriptors.direct,
            Path::Buffered => &mut descriptors.buffered,
        };
        match place {
            // Another thread was faster.
            Some(found) if found.writable || !new.writable => Arc::clone(&found.fd),
            _ => Arc::clone(&place.insert(new).fd),
        }
    }
}
