//! Errors: the failure, the file, and the kind in `std::io`.
//!
//! Owns: the errors of the library, the report of unwritten bytes at the end.
//! Does not own: the engine's errors, which are carried along.
//! Invariants: every error that a call returns is an [`io::Error`] whose text names the failure and its object.
//! [`Error::of`] returns the error that it was made from.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use afflux_engine::DeviceError;
use afflux_linux_device::contain;
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
    /// A task of the cache panicked. The memory may be wrong, so that no page is read or written any more.
    #[error("the cache is out of use: {panic}; please report it")]
    Poisoned {
        /// The location and the message of the panic.
        panic: Arc<str>,
    },
    /// The cache belongs to the process that this one was forked from.
    #[error("the cache belongs to the parent process: a forked child makes its own")]
    Forked,
    /// A call that blocks was made on a thread of the cache itself, for example by a waker that runs its task at once.
    #[error("a blocking call on a thread of the cache would stop it: use the async form, or another thread")]
    WaitInside,
    /// The handle was not opened for this.
    #[error("{}: not opened for {wanted}", path.display())]
    NotOpenedFor {
        /// Path that the file was opened by.
        path: PathBuf,
        /// Reading or writing.
        wanted: &'static str,
    },
    /// It is neither a regular file nor a block device.
    #[error("{}: {what}; the cache takes regular files and block devices", path.display())]
    NotAFile {
        /// Path that the file was opened by.
        path: PathBuf,
        /// What is at the path, such as "is a directory".
        what: &'static str,
    },
    /// It is a file of `/proc`, `/sys` or the like: the kernel makes its bytes at each read, and its length says
    /// nothing.
    #[error("{}: it is on {kind}, which stores no files: read and write it without a cache", path.display())]
    StoresNothing {
        /// Path that the file was opened by.
        path: PathBuf,
        /// The kind of its file system.
        kind: String,
    },
    /// Another cache has the file, and one of the two writes: each would miss the other's changes.
    #[error("{}: another cache has it open{}", path.display(), if *writing { "" } else { " for writing" })]
    InUse {
        /// Path that the file was opened by.
        path: PathBuf,
        /// Whether this cache wanted to write.
        writing: bool,
    },
    /// The file has been deleted or replaced on the host, or its device is gone.
    #[error("{}: it is gone from the host", path.display())]
    Gone {
        /// Path that the file was opened by.
        path: PathBuf,
    },
    /// The process, or the host, has no descriptors left.
    #[error(
        "{}: no descriptors left: {held} of the cache's own could not be closed (files open, written, or in use); raise \
         the limit (ulimit -n), or open fewer files",
        path.display()
    )]
    OutOfDescriptors {
        /// Path that the file was opened by.
        path: PathBuf,
        /// Number of descriptors that the cache has.
        held: usize,
    },
    /// A range ends above the largest offset, or before it begins.
    #[error("{}: {from}..{to} is no range of a file of at most {max} bytes", path.display())]
    Range {
        /// Path that the file was opened by.
        path: PathBuf,
        /// First byte of the range that the caller gave.
        from: u128,
        /// The byte after the last.
        to: u128,
        /// The largest size that the file can have.
        max: u64,
    },
    /// The host refused to open the file, to report its state, or to give memory for a copy of its bytes.
    #[error("{}: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    Host {
        /// Path that the file was opened by.
        path: PathBuf,
        /// The host's error number.
        errno: i32,
    },
    /// The host does not provide a resource for the start of a cache: memory, threads, descriptors, or io_uring if the
    /// settings demand it.
    #[error("{what}")]
    Start {
        /// The missing resource, and the host's message.
        what: String,
        /// The host's error number, if there is one.
        errno: Option<i32>,
    },
    /// An invalid setting of the cache, or of an opening.
    #[error("{what}")]
    Setting {
        /// The setting, and the allowed values.
        what: String,
    },
    /// Bytes of the file are withheld from the disk, so they cannot become durable: let go of them first.
    #[error("{}: bytes are withheld from the disk: let go of them first", path.display())]
    Withheld {
        /// Path that the file was opened by.
        path: PathBuf,
    },
    /// Withheld bytes have all the room that they may have on the file's disk: let go of some first.
    #[error("{}: withheld bytes have all their room ({max_bytes} bytes): let go of some first", path.display())]
    TooMuchWithheld {
        /// Path that the file was opened by.
        path: PathBuf,
        /// The most bytes that may be withheld on the disk.
        max_bytes: u64,
    },
    /// The file has as many withheld ranges as it may: let go of some first.
    #[error("{}: {max} ranges are withheld, and there may be no more: let go of some first", path.display())]
    TooManyWithheld {
        /// Path that the file was opened by.
        path: PathBuf,
        /// The most withheld ranges of a file.
        max: usize,
    },
    /// Bytes would wait for themselves: the bytes that are to be durable first wait for them.
    #[error("{}: the bytes to be durable first wait for these bytes themselves", path.display())]
    OrderCycle {
        /// Path that the file was opened by.
        path: PathBuf,
    },
    /// The other file of the call is a file of another cache.
    #[error("{}: it is a file of another cache", path.display())]
    OtherCache {
        /// The other file.
        path: PathBuf,
    },
    /// The device or the host's file system failed the call.
    #[error("{}: {error}", path.display())]
    Device {
        /// Path that the file was opened by.
        path: PathBuf,
        /// Failure of the device, as the file stores it.
        error: DeviceError,
    },
}

impl Error {
    /// The error that an [`io::Error`] of this library was made from.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The host's own error number (`errno`), if the host failed the call.
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

    /// The kind in `std::io`.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Closed | Self::Poisoned { .. } => ErrorKind::NotConnected,
            Self::Forked | Self::NotAFile { .. } | Self::StoresNothing { .. } => ErrorKind::Unsupported,
            Self::WaitInside | Self::OrderCycle { .. } => ErrorKind::Deadlock,
            Self::Withheld { .. } => ErrorKind::ResourceBusy,
            Self::TooMuchWithheld { .. } | Self::TooManyWithheld { .. } => ErrorKind::QuotaExceeded,
            Self::NotOpenedFor { .. } => ErrorKind::PermissionDenied,
            Self::InUse { .. } => ErrorKind::ResourceBusy,
            Self::Gone { .. } => ErrorKind::NotFound,
            Self::OutOfDescriptors { .. } => ErrorKind::QuotaExceeded,
            Self::Range { to, max, .. } if *to > u128::from(*max) => ErrorKind::FileTooLarge,
            Self::Range { .. } | Self::Setting { .. } | Self::OtherCache { .. } => ErrorKind::InvalidInput,
            Self::Host { errno, .. } => io::Error::from_raw_os_error(*errno).kind(),
            Self::Start { errno, .. } => match errno.map(Errno::from_raw_os_error) {
                Some(Errno::MFILE | Errno::NFILE) => ErrorKind::QuotaExceeded,
                // The host refuses a new thread with this.
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

    /// Converts the engine's error of a call to that file.
    pub(crate) fn from_engine(path: &Path, error: afflux_engine::Error, file_bytes_max: u64) -> Self {
        let path = path.to_owned();
        match error {
            afflux_engine::Error::Device(error) => Self::Device { path, error },
            afflux_engine::Error::OutOfRange { offset, len, max } => {
                Self::Range { path, from: offset.into(), to: u128::from(offset) + u128::from(len), max }
            }
            afflux_engine::Error::Discarded => Self::Gone { path },
            afflux_engine::Error::Withheld => Self::Withheld { path },
            afflux_engine::Error::TooMuchWithheld { max_bytes } => Self::TooMuchWithheld { path, max_bytes },
            afflux_engine::Error::TooManyWithheld { max } => Self::TooManyWithheld { path, max },
            afflux_engine::Error::OrderCycle => Self::OrderCycle { path },
            _ => Self::Range { path, from: 0, to: 0, max: file_bytes_max },
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

/// The bytes that a cache could not make durable before it ended, file by file.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub struct Unwritten {
    /// The files with such bytes.
    pub files: Vec<UnwrittenFile>,
    /// The panic that took the cache out of use, if there was one.
    pub panic: Option<Arc<str>>,
    /// The kernel still had requests of the cache at the end of its time: it may yet carry them out.
    pub still_in_flight: bool,
    /// The time that the cache had.
    pub time: Duration,
}

/// The user's function for unwritten bytes.
#[derive(Clone)]
pub(crate) struct Hook(Option<Arc<OnUnwritten>>);

/// The function's type.
type OnUnwritten = dyn Fn(&Unwritten) + Send + Sync;

impl Hook {
    pub(crate) fn new(told: impl Fn(&Unwritten) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Calls the function. No lock is held.
    pub(crate) fn notify(&self, unwritten: &Unwritten) {
        contain(|| self.0.iter().for_each(|told| told(unwritten)));
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // The function is dropped with the cache, perhaps on one of the cache's threads.
        let told = self.0.take();
        contain(|| drop(told));
    }
}

/// A file that a cache could not write, or not make durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnwrittenFile {
    /// The path at its opening.
    pub path: PathBuf,
    /// Lost bytes, in whole pages; 0 if all was written and only its durability is in doubt.
    pub bytes: u64,
    /// The error; none if only the time was over.
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
