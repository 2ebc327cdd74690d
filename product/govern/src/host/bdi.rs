//! The limits of bdis, and those of the machine.
//!
//! Limits are read and written in `max_ratio_fine` instead of `max_bytes`, since the kernel stores the fraction. The
//! value of `max_bytes` moves with free memory, which would look like a change by another program.
//!
//! Owns: the root of the kernel's files, paths and formats of these, the words of errors about them.
//! Does not own: which device a bdi is of (`block`), decisions, also which errors end the governor.
//! Invariants: all paths lie below one root, so that tests can use a made-up tree. A device may go between two reads:
//! that is a value, not a failure. An error names the file, and tells the user what to do if something can be done.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::law::{MachineLimits, Values};

const PAGE_BYTES: u64 = 4096;

/// The root of the kernel's files.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) root: PathBuf,
}

impl Host {
    /// Uses the files below this directory: `/`, or one with a made-up `sys` and `proc` in it.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The directory with the bdis of all devices.
    pub fn bdi_directory(&self) -> PathBuf {
        self.path("sys/class/bdi")
    }

    /// The names of all bdis.
    ///
    /// # Errors
    /// Without sysfs.
    pub fn names(&self) -> Result<Vec<String>, FileUseError> {
        let directory = self.bdi_directory();
        let entries = fs::read_dir(&directory).map_err(|error| FileUseError::of(&directory, &error))?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// The values of a device's bdi; none if the device is gone.
    ///
    /// # Errors
    /// When the kernel has no such files, or their contents make no sense.
    pub fn values(&self, name: &str) -> Result<Option<Values>, FileUseError> {
        let directory = self.bdi_directory().join(name);
        let number = |file: &str| {
            let path = directory.join(file);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(FileUseError::of(&path, &error)),
            };
            let number = text.trim().parse::<u32>();
            number.map(Some).map_err(|_| FileUseError::Nonsense { path, text: text.trim().chars().take(40).collect() })
        };
        let (Some(strict), Some(ratio_ppm)) = (number("strict_limit")?, number("max_ratio_fine")?) else {
            let is_there = directory.join("max_ratio").exists();
            // The files of a new device appear one after another.
            return if is_there && !self.has_limits() {
                Err(FileUseError::TooOld { path: directory })
            } else {
                Ok(None)
            };
        };
        Ok(Some(Values { strict: strict != 0, ratio_ppm }))
    }

    /// Whether this kernel has limits for devices at all: then at least one bdi has this file.
    fn has_limits(&self) -> bool {
        let directory = self.bdi_directory();
        self.names().is_ok_and(|names| names.iter().any(|name| directory.join(name).join("max_ratio_fine").exists()))
    }

    /// The identity of the bdi that has the name now; unique within this boot.
    pub(crate) fn bdi_identity(&self, name: &str) -> Option<u64> {
        fs::metadata(self.bdi_directory().join(name)).ok().map(|found| found.ino())
    }

    /// Sets a device's values. The limit is written before it becomes strict, and stops being strict before it is
    /// lifted.
    ///
    /// # Errors
    /// When a file cannot be written, or the kernel refuses a value.
    pub fn set(&self, name: &str, values: Values) -> Result<(), FileUseError> {
        let directory = self.bdi_directory().join(name);
        let strict = ("strict_limit", u32::from(values.strict));
        let ratio = ("max_ratio_fine", values.ratio_ppm);
        for (file, value) in if values.strict { [ratio, strict] } else { [strict, ratio] } {
            let path = directory.join(file);
            let written =
                OpenOptions::new().write(true).truncate(true).open(&path).and_then(|mut file| write!(file, "{value}"));
            written.map_err(|error| FileUseError::of(&path, &error))?;
        }
        Ok(())
    }

    /// Checks in advance whether limits can be written.
    ///
    /// # Errors
    /// Without the right to write them, on a read-only sysfs, on a kernel that is too old.
    pub fn check_writable(&self) -> Result<(), FileUseError> {
        for name in self.names()? {
            if let Err(error) = self.values(&name)
                && error.is_general()
            {
                return Err(error);
            }
            let path = self.bdi_directory().join(name).join("strict_limit");
            match OpenOptions::new().write(true).open(&path) {
                Ok(_) => return Ok(()),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(FileUseError::of(&path, &error)),
            }
        }
        Ok(())
    }

    /// The machine's current dirty limits.
    ///
    /// # Errors
    /// Without `/proc/vmstat`.
    pub fn machine(&self) -> Result<MachineLimits, FileUseError> {
        let path = self.path("proc/vmstat");
        let text = fs::read_to_string(&path).map_err(|error| FileUseError::of(&path, &error))?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let pages: Option<u64> = line.and_then(|number| number.trim().parse().ok());
            pages.map(|pages| pages.saturating_mul(PAGE_BYTES))
        };
        let found = bytes("nr_dirty_threshold").zip(bytes("nr_dirty_background_threshold"));
        let (dirty_bytes, background_bytes) =
            found.ok_or_else(|| FileUseError::Nonsense { path, text: "no nr_dirty_threshold".to_owned() })?;
        Ok(MachineLimits { dirty_bytes, background_bytes })
    }

    /// The identity of this boot: values that were set before a reboot are gone.
    pub fn boot_id(&self) -> String {
        fs::read_to_string(self.path("proc/sys/kernel/random/boot_id")).unwrap_or_default().trim().to_owned()
    }
}

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
