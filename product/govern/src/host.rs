//! The host's files: which devices there are, what they have done, what their bdi is set to.
//!
//! Limits are read and written in `max_ratio_fine`, not in `max_bytes`: the kernel keeps the share, and what `max_bytes`
//! shows moves with free memory, so that nobody could tell whether others have changed it.
//!
//! Owns: paths and the form of what stands there. Does not own: what is decided.
//! Invariants: all lies below one root, so that a made-up tree does in its place. A device may go between two reads:
//! that is a value, not a failure. What may not be written is said with the file and with what to run.

mod backlog;
mod block;
mod dirty;
mod error;
mod mounts;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::law::{Counters, Machine, Values};

pub(crate) use backlog::Backlogs;
pub(crate) use block::NO_MEDIUM;
pub use block::{Disk, Kind};
pub use error::HostError;

const PAGE_BYTES: u64 = 4096;
/// A line of counters, or a value.
const SHORT_BYTES: usize = 1024;

/// Where the kernel's files are.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

/// A device's counters, kept open.
#[derive(Debug)]
pub(crate) struct CounterFile(File);

impl Host {
    /// Files below this directory: `/`, or one with a made-up `sys` and `proc` in it.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Where the bdi's of all devices are.
    pub fn bdi_directory(&self) -> PathBuf {
        self.path("sys/class/bdi")
    }

    /// The names of all of them.
    ///
    /// # Errors
    /// Without sysfs.
    pub fn names(&self) -> Result<Vec<String>, HostError> {
        let directory = self.bdi_directory();
        let entries = fs::read_dir(&directory).map_err(|error| HostError::of(&directory, &error))?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// What a device's bdi is set to; nothing if it has gone.
    ///
    /// # Errors
    /// When the kernel has no such files, or they say nonsense.
    pub fn values(&self, name: &str) -> Result<Option<Values>, HostError> {
        let directory = self.bdi_directory().join(name);
        let number = |file: &str| {
            let path = directory.join(file);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(HostError::of(&path, &error)),
            };
            let number = text.trim().parse::<u32>();
            number.map(Some).map_err(|_| HostError::Nonsense { path, text: text.trim().chars().take(40).collect() })
        };
        let (Some(strict), Some(ratio_ppm)) = (number("strict_limit")?, number("max_ratio_fine")?) else {
            let is_there = directory.join("max_ratio").exists();
            // The files of a device that comes appear one after another.
            return if is_there && !self.has_limits() { Err(HostError::TooOld { path: directory }) } else { Ok(None) };
        };
        Ok(Some(Values { strict: strict != 0, ratio_ppm }))
    }

    /// Whether the kernel has limits of devices at all: one of them has such a file.
    fn has_limits(&self) -> bool {
        let directory = self.bdi_directory();
        self.names().is_ok_and(|names| names.iter().any(|name| directory.join(name).join("max_ratio_fine").exists()))
    }

    /// Which of all bdi's of this boot has that name now: another one has another number.
    pub(crate) fn bdi_identity(&self, name: &str) -> Option<u64> {
        fs::metadata(self.bdi_directory().join(name)).ok().map(|found| found.ino())
    }

    /// Sets a device's bdi. The limit is there before it is strict, and is strict no more before it is lifted.
    ///
    /// # Errors
    /// When it may not be written, or the kernel refuses a value.
    pub fn set(&self, name: &str, values: Values) -> Result<(), HostError> {
        let directory = self.bdi_directory().join(name);
        let strict = ("strict_limit", u32::from(values.strict));
        let ratio = ("max_ratio_fine", values.ratio_ppm);
        for (file, value) in if values.strict { [ratio, strict] } else { [strict, ratio] } {
            let path = directory.join(file);
            let written =
                OpenOptions::new().write(true).truncate(true).open(&path).and_then(|mut file| write!(file, "{value}"));
            written.map_err(|error| HostError::of(&path, &error))?;
        }
        Ok(())
    }

    /// Says what would keep any limit from being written, before one is.
    ///
    /// # Errors
    /// Without the right to, on a read-only sysfs, on a kernel that is too old.
    pub fn may_write(&self) -> Result<(), HostError> {
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
                Err(error) => return Err(HostError::of(&path, &error)),
            }
        }
        Ok(())
    }

    /// What the kernel lets be dirty on the whole machine now.
    ///
    /// # Errors
    /// Without `/proc/vmstat`.
    pub fn machine(&self) -> Result<Machine, HostError> {
        let path = self.path("proc/vmstat");
        let text = fs::read_to_string(&path).map_err(|error| HostError::of(&path, &error))?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let pages: Option<u64> = line.and_then(|number| number.trim().parse().ok());
            pages.map(|pages| pages.saturating_mul(PAGE_BYTES))
        };
        let found = bytes("nr_dirty_threshold").zip(bytes("nr_dirty_background_threshold"));
        let (dirty_bytes, background_bytes) =
            found.ok_or_else(|| HostError::Nonsense { path, text: "no nr_dirty_threshold".to_owned() })?;
        Ok(Machine { dirty_bytes, background_bytes })
    }

    /// By what this boot is known: what was set before another is gone.
    pub fn boot_id(&self) -> String {
        fs::read_to_string(self.path("proc/sys/kernel/random/boot_id")).unwrap_or_default().trim().to_owned()
    }

    /// A block device's counters.
    pub(crate) fn counters(&self, disk: &Disk) -> Option<CounterFile> {
        File::open(disk.directory.join("stat")).ok().map(CounterFile)
    }
}

/// Whether that says that the device is no more.
fn is_gone(error: &std::io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(ENODEV)
}

impl CounterFile {
    /// What they say now; nothing once the device has gone, or where they say nonsense.
    pub(crate) fn read(&self) -> Option<Counters> {
        let mut bytes = [0; SHORT_BYTES];
        let len = self.0.read_at(&mut bytes, 0).ok()?;
        block::counters(std::str::from_utf8(&bytes[..len]).ok()?)
    }
}

#[cfg(test)]
mod tests;
