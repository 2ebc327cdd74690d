//! What can go wrong with a file or a name, as values.
//!
//! Owns: the error of every operation of a volume, and what an engine's error means here.
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
    /// A directory is needed and this is none.
    #[error("not a directory")]
    NotDirectory,
    /// This is a directory and the operation is not for one.
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
    /// The file would be larger than files can be: 2^63 - 1 bytes, or less where the host says so.
    #[error("file too large")]
    TooLarge,
    /// The file system takes no changes.
    #[error("read-only file system")]
    ReadOnly,
    /// The object is gone, whatever its handle was.
    #[error("the object is gone")]
    Stale,
    /// The handle is none that this server gave out.
    #[error("not a handle of this server")]
    BadHandle,
    /// The name is longer than names can be.
    #[error("a name of {bytes} bytes is over 255")]
    NameTooLong {
        /// How long it was.
        bytes: usize,
    },
    /// An argument makes no sense.
    #[error("invalid: {what}")]
    Invalid {
        /// Which argument, and why.
        what: &'static str,
    },
    /// The two names are on different file systems.
    #[error("the names are on different file systems")]
    CrossDevice,
    /// The object has as many names as it can have.
    #[error("too many links")]
    TooManyLinks,
    /// The host's file system cannot do this.
    #[error("not supported by the host")]
    NotSupported,
    /// The guard of a change does not hold: the change time is another.
    #[error("the change time is not the expected one")]
    NotSynchronised,
    /// The cookie is none that a listing gave out.
    #[error("not a cookie of this directory")]
    BadCookie,
    /// A symbolic link stands where something else is needed.
    #[error("is a symbolic link")]
    Symlink,
    /// A program of the host has a lease on the file. It was asked to give it up; a later call finds the file free.
    #[error("a program of the host has a lease on the file")]
    Leased,
    /// No memory, or no descriptor, can be had now.
    #[error("out of memory or descriptors")]
    NoMemory,
}

/// Linux's errno of an operation that took too long.
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
