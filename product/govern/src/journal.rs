//! The original values of devices, written down before they change.
//!
//! The file is in `/run`, which a reboot empties, as it resets the kernel's values. The boot's id in the file confirms
//! it.
//!
//! Owns: the file, the lock that excludes a second governor, putting back the values of a governor that could not do
//! so.
//! Does not own: the values, and when they are set.
//! Invariants: a value is put back only if it is one that a governor wrote: later changes by others stay. The file is
//! replaced whole or not at all.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::host::{FileUseError, Host};
use crate::law::Values;

const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 1 << 20;
const NAME: &str = "govern.json";
const LOCK: &str = "govern.lock";

/// The entry of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    /// The device's name.
    pub name: String,
    /// Its disk's number.
    pub number: String,
    /// The kernel's sequence number of the disk.
    pub sequence: Option<u64>,
    /// The identity of its bdi. The bdi of a drive retains its values when the medium changes.
    #[serde(default)]
    pub bdi_identity: Option<u64>,
    /// The values to put back.
    pub original: Values,
    /// Fractions that the governor wrote, in millionths: the one in force, and possibly the next one. Empty if the
    /// governor has set none.
    pub ours_ppm: Vec<u32>,
    /// Values that others have set meanwhile.
    pub foreign: Option<Values>,
    /// The budget in force for it.
    pub budget_ns: u64,
    /// Its last measured write speed.
    pub bytes_per_second: Option<u64>,
    /// The limit, if one is set.
    pub limit_bytes: Option<u64>,
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    version: u32,
    boot_id: String,
    /// The governor's process.
    pub pid: u32,
    /// Entries of the devices, by the name of their bdi.
    pub devices: BTreeMap<String, JournalEntry>,
}

/// Errors of the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another governor runs.
    #[error("another governor runs{}: stop that one first, or look at it with --status", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Taken {
        /// Its process, if known.
        pid: Option<u32>,
    },
    /// The file makes no sense.
    #[error(
        "{path} makes no sense ({why}), so the governor cannot put back the earlier values. A device whose strict_limit is \
         1 has its own way again after: echo 0 > /sys/class/bdi/NAME/strict_limit; echo 100 > /sys/class/bdi/NAME/max_ratio"
    )]
    Nonsense {
        /// Path of the journal.
        path: PathBuf,
        /// The defect in it.
        why: String,
    },
    /// A file of the host cannot be used.
    #[error(transparent)]
    Host(#[from] FileUseError),
}

/// The outcome of putting a device back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The device's bdi.
    pub bdi: String,
    /// The device's name.
    pub name: String,
    /// Values that others have set; these stay.
    pub foreign: Option<Values>,
}

impl Journal {
    /// Reads the file in the directory. A file of an earlier boot counts as none.
    ///
    /// # Errors
    /// When it makes no sense, or cannot be read.
    pub fn read(host: &Host, directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join(NAME);
        let empty = || Self { version: VERSION, boot_id: host.boot_id(), ..Self::default() };
        let mut text = String::new();
        let read = opened(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(empty()),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(JournalError::Nonsense { path, why: error.to_string() });
            }
            Err(error) => return Err(FileUseError::of(&path, &error).into()),
        }
        let journal: Self = serde_json::from_str(&text)
            .map_err(|error| JournalError::Nonsense { path: path.clone(), why: error.to_string() })?;
        if journal.version != VERSION {
            let why = format!("version {}, and this program knows {VERSION}", journal.version);
            return Err(JournalError::Nonsense { path, why });
        }
        Ok(if journal.boot_id == host.boot_id() { journal } else { empty() })
    }

    /// Renames a file that makes no sense, so that a new one can begin.
    pub(crate) fn put_aside(directory: &Path) {
        let path = directory.join(NAME);
        // A missing file needs no renaming.
        let _ = fs::rename(&path, path.with_extension("json.bad"));
    }

    /// Whether any device has values that must be put back.
    pub fn is_in_force(&self) -> bool {
        self.devices.values().any(|entry| !entry.ours_ppm.is_empty())
    }
}

/// The directory of one governor, locked.
#[derive(Debug)]
pub(crate) struct Locked {
    directory: PathBuf,
    lock: File,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A child that has not begun its program yet has the file, too. Closing it would leave the lock to the child.
        let _ = self.lock.unlock();
    }
}

impl Locked {
    /// Takes the lock, and makes the directory if needed.
    pub(crate) fn new(directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join(LOCK);
        let failed = |error: std::io::Error| JournalError::Host(FileUseError::of(&path, &error));
        // A server's control socket is in the same directory, and others may not even lock it.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644).custom_flags(nofollow());
        let mut lock = options.open(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
                return Err(JournalError::Taken { pid });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        lock.set_len(0).map_err(failed)?;
        writeln!(lock, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { directory: directory.to_owned(), lock })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Replaces the old file with a whole new one.
    pub(crate) fn write(&self, host: &Host, devices: BTreeMap<String, JournalEntry>) -> Result<(), FileUseError> {
        let journal = Journal { version: VERSION, boot_id: host.boot_id(), pid: std::process::id(), devices };
        let path = self.directory.join(NAME);
        let new = path.with_extension("json.new");
        let written = serde_json::to_string_pretty(&journal).map_err(std::io::Error::from).and_then(|text| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o644).custom_flags(OFlags::NOFOLLOW.bits() as i32);
            let mut file = match options.open(&new) {
                // A link is not followed. It goes.
                Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                    fs::remove_file(&new)?;
                    options.create_new(true).open(&new)?
                }
                opened => opened?,
            };
            file.write_all(text.as_bytes())?;
            fs::rename(&new, &path)
        });
        written.map_err(|error| FileUseError::of(&path, &error))
    }
}

/// A file that is there, unless it is a link.
fn opened(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(nofollow()).open(path)
}

fn nofollow() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32
}

/// The process of the governor that uses this directory, if one runs.
pub fn running(directory: &Path) -> Option<u32> {
    let path = directory.join(LOCK);
    let is_taken = matches!(opened(&path).ok()?.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_taken.then(|| fs::read_to_string(&path).ok()?.trim().parse().ok()).flatten()
}

/// Puts back the values that a governor has set and could not put back itself.
///
/// # Errors
/// When another governor runs, or when the old values are unknown or cannot be written.
pub fn restore(host: &Host, directory: &Path) -> Result<Vec<Restored>, JournalError> {
    let locked = Locked::new(directory)?;
    restore_locked(host, &locked)
}

pub(crate) fn restore_locked(host: &Host, locked: &Locked) -> Result<Vec<Restored>, JournalError> {
    let journal = Journal::read(host, locked.directory())?;
    let (mut all, mut left, mut first_error) = (Vec::new(), BTreeMap::new(), None);
    for (bdi, entry) in journal.devices {
        match put_back(host, &bdi, &entry) {
            Ok(restored) => all.extend(restored),
            // The other devices are still put back; this device's entry stays.
            Err(error) => {
                first_error.get_or_insert(error);
                left.insert(bdi, entry);
            }
        }
    }
    locked.write(host, left)?;
    first_error.map_or(Ok(all), |error| Err(error.into()))
}

/// Puts one device back, if it is the same device and still has a governor's values. None if there was nothing to do.
fn put_back(host: &Host, bdi: &str, entry: &JournalEntry) -> Result<Option<Restored>, FileUseError> {
    if entry.ours_ppm.is_empty() {
        return Ok(None);
    }
    let is_same_disk = || host.disk(&entry.number).is_some_and(|disk| disk.sequence == entry.sequence);
    let is_same = match entry.bdi_identity {
        Some(identity) => host.bdi_identity(bdi) == Some(identity),
        None => is_same_disk(),
    };
    let Some(found) = host.values(bdi)?.filter(|_| is_same) else { return Ok(None) };
    // The governor may have died between the two files of a device. `Host::set` writes the fraction first and lifts
    // strictness first, so that our fraction is there as long as any value is ours.
    let is_ours = entry.ours_ppm.contains(&found.ratio_ppm);
    if is_ours {
        match host.set(bdi, entry.original) {
            Err(FileUseError::Gone { .. }) => return Ok(None),
            result => result?,
        }
    }
    let foreign = (!is_ours && found != entry.original).then_some(found);
    Ok((is_ours || foreign.is_some()).then(|| Restored { bdi: bdi.to_owned(), name: entry.name.clone(), foreign }))
}

#[cfg(test)]
mod tests;
