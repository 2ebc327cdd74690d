//! Errors of operations on files and names, as values.
//!
//! Owns: the error of every operation of a volume, and the meaning of an engine's error here.
//! Does not own: protocol codes (front ends), host error numbers (each world translates its own).
//! Invariants: an error never means that acknowledged data was dropped.

use afflux_engine::{DeviceError, Error};

/// Why an operation on a volume failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// There is no entry of that name, or no export of that path.
    #[error("there is no such name")]
    NotFound,
    /// The name is taken.
    #[error("the name is taken")]
    Exists,
    /// The operation needs a directory.
    #[error("not a directory")]
    NotDirectory,
    /// The operation is not possible on a directory.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The serving user may not do this to the object.
    #[error("permission denied")]
    Denied,
    /// Only the owner, or a privileged user, may do this.
    #[error("operation not permitted")]
    NotPermitted,
    /// The host or the device failed.
    #[error("input/output error (errno {errno})")]
    Io {
        /// The host's error number, 0 if it gave none.
        errno: i32,
    },
    /// The device is full.
    #[error("no space left on the device")]
    NoSpace,
    /// The owner's quota is used up.
    #[error("disk quota exceeded")]
    Quota,
    /// The file would be larger than the largest file: 2^63 - 1 bytes, or the host's bound.
    #[error("file too large")]
    TooLarge,
    /// The file system is read-only.
    #[error("read-only file system")]
    ReadOnly,
    /// The object is gone; its handle was valid once.
    #[error("the object is gone")]
    Stale,
    /// This server did not give out the handle.
    #[error("not a handle of this server")]
    BadHandle,
    /// The name is longer than the bound.
    #[error("a name of {bytes} bytes is over 255")]
    NameTooLong {
        /// The name's length.
        bytes: usize,
    },
    /// An argument is invalid.
    #[error("invalid: {what}")]
    Invalid {
        /// The argument, and the reason.
        what: &'static str,
    },
    /// The object has no extended attribute of that name.
    #[error("there is no such extended attribute")]
    NoAttribute,
    /// The value of an extended attribute is longer than the bound, or than the file system's.
    #[error("an extended attribute of {bytes} bytes is over 65536, or over the file system's bound")]
    ValueTooLong {
        /// The value's length.
        bytes: usize,
    },
    /// The file ends at or before the offset, or has only a hole from there on.
    #[error("nothing to find from offset {offset} on")]
    PastData {
        /// Byte offset that was asked for.
        offset: u64,
    },
    /// The two names are on different file systems.
    #[error("the names are on different file systems")]
    CrossDevice,
    /// The object has the most names possible.
    #[error("too many links")]
    TooManyLinks,
    /// The host's file system cannot do this.
    #[error("not supported by the host")]
    NotSupported,
    /// The guard of a change does not match the change time.
    #[error("the change time is not the expected one")]
    NotSynchronised,
    /// No listing gave out the cookie.
    #[error("not a cookie of this directory")]
    BadCookie,
    /// The object is a symbolic link, and the operation needs another kind.
    #[error("is a symbolic link")]
    Symlink,
    /// A program of the host has a lease on the file. The host has asked it to give the lease up; a
    /// later call succeeds.
    #[error("a program of the host has a lease on the file")]
    Leased,
    /// A client of NFS version 4 conflicts, and gives up its state or a delegation, or may still reclaim what it had. A
    /// later call succeeds.
    #[error("a client that gives way, or that may reclaim an open file, is in the way")]
    Delayed,
    /// No memory is available now.
    #[error("out of memory")]
    NoMemory,
    /// The process or the host has no free descriptor. Others give theirs back: the call may be tried again.
    #[error("out of descriptors")]
    NoDescriptor,
}

/// Linux's errno for an operation that took too long.
const ETIMEDOUT: i32 = 110;

impl From<DeviceError> for VolumeError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Io { errno } => Self::Io { errno },
            DeviceError::NoSpace => Self::NoSpace,
            DeviceError::Quota => Self::Quota,
            DeviceError::TooLarge => Self::TooLarge,
            DeviceError::ReadOnly => Self::ReadOnly,
            DeviceError::Denied => Self::Denied,
            DeviceError::Stale => Self::Stale,
            DeviceError::Unsupported => Self::NotSupported,
            DeviceError::Hung => Self::Io { errno: ETIMEDOUT },
            _ => Self::Io { errno: 0 },
        }
    }
}

impl From<Error> for VolumeError {
    fn from(error: Error) -> Self {
        match error {
            Error::Device(error) => error.into(),
            Error::OutOfRange { .. } => Self::TooLarge,
            Error::Discarded => Self::Stale,
            _ => Self::Io { errno: 0 },
        }
    }
}
