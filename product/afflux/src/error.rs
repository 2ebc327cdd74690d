//! Errors: what went wrong, with which file, and the kind that `std::io` has for it.
//!
//! Owns: the errors of the library, what could not be written at the end.
//! Does not own: the engine's errors, which are carried along.
//! Invariants: every error that a call returns is an [`io::Error`] with a text that says what happened and to what; what
//! it was made from can be asked for ([`Error::of`]).

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use afflux_engine::DeviceError;
use afflux_linux::contain;
use rustix::io::Errno;

/// Why a call failed, inside the [`io::Error`] that it returned.
///
/// ```
/// # use afflux::{Cache, Error};
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// let cache = Cache::builder().memory(16 << 20).build()?;
/// let file = cache.create(place.path().join("file"))?;
/// cache.close().map_err(std::io::Error::from)?;
/// let error = file.write_at(b"too late", 0).unwrap_err();
/// assert!(matches!(Error::of(&error), Some(Error::Closed)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cache was closed, or the last handle of it is being dropped.
    #[error("the cache is closed")]
    Closed,
    /// A task of the cache panicked. What is in memory may be wrong, so nothing of it is read or written any more.
    #[error("the cache is out of use: {panic}; please report it")]
    Poisoned {
        /// Where, and what it said.
        panic: Arc<str>,
    },
    /// The cache belongs to the process that this one was forked from.
    #[error("the cache belongs to the parent process: a forked child makes its own")]
    Forked,
    /// A call that blocks was made on a thread of the cache itself, as by a waker that runs its task at once.
    #[error("a blocking call on a thread of the cache would stop it: use the async form, or another thread")]
    WaitInside,
    /// The handle was not opened for that.
    #[error("{}: not opened for {wanted}", path.display())]
    NotOpenedFor {
        /// Which file.
        path: PathBuf,
        /// Reading or writing.
        wanted: &'static str,
    },
    /// It is neither a regular file nor a block device.
    #[error("{}: {what}; the cache takes regular files and block devices", path.display())]
    NotAFile {
        /// Which file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Another cache has the file in a way that does not go with this one: of two caches that write, or one that writes
    /// and one that reads, each would miss what the other does.
    #[error("{}: another cache has it open{}", path.display(), if *writing { "" } else { " for writing" })]
    InUse {
        /// Which file.
        path: PathBuf,
        /// This one wanted to write.
        writing: bool,
    },
    /// The file has been deleted or replaced on the host, or its device is gone.
    #[error("{}: it is gone from the host", path.display())]
    Gone {
        /// Which file.
        path: PathBuf,
    },
    /// The process, or the host, has no descriptors left.
    #[error(
        "{}: no descriptors left: {held} of the cache's own could not be closed (files open, written, or in use); raise \
         the limit (ulimit -n), or open fewer files",
        path.display()
    )]
    OutOfDescriptors {
        /// Which file.
        path: PathBuf,
        /// How many the cache has.
        held: usize,
    },
    /// A range ends above the largest offset, or before it begins.
    #[error("{}: {from}..{to} is no range of a file of at most {max} bytes", path.display())]
    Range {
        /// Which file.
        path: PathBuf,
        /// First byte.
        from: u128,
        /// The byte after the last.
        to: u128,
        /// The largest size that the file can have.
        max: u64,
    },
    /// The host refused to open the file, or to tell of it.
    #[error("{}: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    Host {
        /// Which file.
        path: PathBuf,
        /// The host's number for why.
        errno: i32,
    },
    /// The host does not give what a cache begins with: memory, threads, descriptors, io_uring where nothing else will do.
    #[error("{what}")]
    Start {
        /// What was not given, and what the host said.
        what: String,
        /// The host's number for why, where it has one.
        errno: Option<i32>,
    },
    /// A setting of the cache, or of an opening, that cannot be.
    #[error("{what}")]
    Setting {
        /// Which, and what is allowed.
        what: String,
    },
    /// The device failed it, or the host's file system.
    #[error("{}: {error}", path.display())]
    Device {
        /// Which file.
        path: PathBuf,
        /// How.
        error: DeviceError,
    },
}

impl Error {
    /// The error that an [`io::Error`] of this library was made from.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The host's own number (`errno`), where it was the host that failed the call.
    ///
    /// ```
    /// # use afflux::{Cache, Error};
    /// # fn main() -> std::io::Result<()> {
    /// # let cache = Cache::builder().memory(16 << 20).build()?;
    /// let error = cache.open_read("/not/there").unwrap_err();
    /// assert_eq!(Error::of(&error).and_then(Error::errno), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn errno(&self) -> Option<i32> {
        match *self {
            Self::Host { errno, .. } => Some(errno),
            Self::Start { errno, .. } => errno,
            Self::Device { error: DeviceError::Io { errno }, .. } => Some(errno).filter(|errno| *errno > 0),
            _ => None,
        }
    }

    /// What `std::io` calls it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Closed | Self::Poisoned { .. } => ErrorKind::NotConnected,
            Self::Forked | Self::NotAFile { .. } => ErrorKind::Unsupported,
            Self::WaitInside => ErrorKind::Deadlock,
            Self::NotOpenedFor { .. } => ErrorKind::PermissionDenied,
            Self::InUse { .. } => ErrorKind::ResourceBusy,
            Self::Gone { .. } => ErrorKind::NotFound,
            Self::OutOfDescriptors { .. } => ErrorKind::QuotaExceeded,
            Self::Range { to, max, .. } if *to > u128::from(*max) => ErrorKind::FileTooLarge,
            Self::Range { .. } | Self::Setting { .. } => ErrorKind::InvalidInput,
            Self::Host { errno, .. } => io::Error::from_raw_os_error(*errno).kind(),
            Self::Start { errno, .. } => match errno.map(Errno::from_raw_os_error) {
                Some(Errno::MFILE | Errno::NFILE) => ErrorKind::QuotaExceeded,
                // What a thread is refused with.
                Some(Errno::AGAIN) => ErrorKind::OutOfMemory,
                Some(errno) => io::Error::from(errno).kind(),
                None => ErrorKind::Unsupported,
            },
            Self::Device { error, .. } => match *error {
                DeviceError::NoSpace => ErrorKind::StorageFull,
                DeviceError::Quota => ErrorKind::QuotaExceeded,
                DeviceError::TooLarge => ErrorKind::FileTooLarge,
                DeviceError::ReadOnly => ErrorKind::ReadOnlyFilesystem,
                DeviceError::Denied => ErrorKind::PermissionDenied,
                DeviceError::Stale => ErrorKind::StaleNetworkFileHandle,
                DeviceError::Unsupported => ErrorKind::Unsupported,
                DeviceError::Hung => ErrorKind::TimedOut,
                DeviceError::Io { errno } if errno > 0 => io::Error::from_raw_os_error(errno).kind(),
                _ => ErrorKind::Other,
            },
        }
    }

    /// What the engine said of a call to that file.
    pub(crate) fn from_engine(path: &Path, error: afflux_engine::Error, file_bytes_max: u64) -> Self {
        let path = path.to_owned();
        match error {
            afflux_engine::Error::Device(error) => Self::Device { path, error },
            afflux_engine::Error::OutOfRange { offset, len, max } => {
                Self::Range { path, from: offset.into(), to: u128::from(offset) + u128::from(len), max }
            }
            afflux_engine::Error::Discarded => Self::Gone { path },
            _ => Self::Range { path, from: 0, to: 0, max: file_bytes_max },
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What a cache could not make durable before it ended, file by file.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub struct Unwritten {
    /// The files.
    pub files: Vec<UnwrittenFile>,
    /// The cache went out of use by a panic: this one.
    pub panic: Option<Arc<str>>,
    /// The kernel still had requests of the cache when its time was over: they may yet be carried out.
    pub still_in_flight: bool,
    /// How long the cache had.
    pub time: Duration,
}

/// Foreign code that is told what could not be written.
#[derive(Clone)]
pub(crate) struct Hook(Option<Arc<OnUnwritten>>);

/// What a user has called about lost bytes.
type OnUnwritten = dyn Fn(&Unwritten) + Send + Sync;

impl Hook {
    pub(crate) fn new(told: impl Fn(&Unwritten) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Called where no lock is held.
    pub(crate) fn tell(&self, unwritten: &Unwritten) {
        contain(|| self.0.iter().for_each(|told| told(unwritten)));
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // The last goes with the cache, perhaps on a thread of it.
        let told = self.0.take();
        contain(|| drop(told));
    }
}

/// A file that a cache could not write, or not make durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnwrittenFile {
    /// As it was opened.
    pub path: PathBuf,
    /// Bytes that are lost, in whole pages; 0 where all was written and only its durability is in doubt.
    pub bytes: u64,
    /// Why; nothing where only the time was over.
    pub error: Option<String>,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        let (count, plural) = (self.files.len(), if self.files.len() == 1 { "" } else { "s" });
        write!(f, "{bytes} bytes of {count} file{plural} could not be written")?;
        if let Some(panic) = &self.panic {
            write!(f, " ({panic})")?;
        } else if self.files.iter().all(|file| file.error.is_none()) {
            write!(f, " within {:?}", self.time)?;
        }
        if self.still_in_flight {
            write!(f, "; some requests are still with the kernel")?;
        }
        for file in self.files.iter().take(8) {
            let reason = file.error.as_deref().unwrap_or("no time was left");
            write!(f, "\n  {}: {} bytes: {reason}", file.path.display(), file.bytes)?;
        }
        if count > 8 {
            write!(f, "\n  and {} more", count - 8)?;
        }
        Ok(())
    }
}

impl From<Unwritten> for io::Error {
    fn from(unwritten: Unwritten) -> Self {
        Self::other(unwritten)
    }
}

#[cfg(test)]
mod tests;
