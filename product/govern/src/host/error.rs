//! Errors of the host's files.
//!
//! Owns: the words.
//! Does not own: the decision which errors end the governor.
//! Invariants: each names the file, and tells the user what to do if something can be done.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileUseError {
    /// This user has no right to it.
    #[error("{path}: permission denied: run this as root (sudo); without root, --dry-run shows what would be set")]
    NoPermission {
        /// Path of the kernel's file.
        path: PathBuf,
    },
    /// A read-only file system.
    #[error(
        "{path} is read-only, as in a container: run this on the host, or mount sysfs writable (mount -o remount,rw /sys)"
    )]
    ReadOnly {
        /// Path of the kernel's file.
        path: PathBuf,
    },
    /// A kernel without these files.
    #[error("{path} has no strict_limit and max_ratio_fine: that takes Linux 6.2 or later")]
    TooOld {
        /// The bdi's directory.
        path: PathBuf,
    },
    /// Text that makes no sense.
    #[error("{path}: '{text}' makes no sense")]
    Nonsense {
        /// Path of the kernel's file.
        path: PathBuf,
        /// Its contents, cut to a bound.
        text: String,
    },
    /// The kernel refuses for another reason.
    #[error("{path}: {error}")]
    Failed {
        /// Path of the kernel's file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The device has gone.
    #[error("{path} has gone")]
    Gone {
        /// Path of the kernel's file.
        path: PathBuf,
    },
}

impl FileUseError {
    pub(crate) fn of(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::PermissionDenied => Self::NoPermission { path },
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ if is_gone(error) => Self::Gone { path },
            kind => Self::Failed {
                path,
                error: error.raw_os_error().map_or_else(|| kind.into(), io::Error::from_raw_os_error),
            },
        }
    }

    /// Whether it concerns all devices alike.
    pub fn is_general(&self) -> bool {
        matches!(self, Self::NoPermission { .. } | Self::ReadOnly { .. } | Self::TooOld { .. })
    }
}

/// Whether the error means that the device is gone.
pub(super) fn is_gone(error: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(ENODEV)
}
