//! The mount points of file systems, as the host's table of mounts has them.
//!
//! Owns: reading the table, and knowing when it has changed.
//! Does not own: the file systems there (`filesystems`).
//! Invariants: nothing here asks a file system. A table that cannot be read is an error, not an empty table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use afflux_volume::{DeviceKey, VolumeError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::makedev;

use super::calls::{error_of, io_error};

/// A mount point below an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MountPoint {
    pub(super) device: DeviceKey,
    pub(super) export: PathBuf,
    pub(super) below: PathBuf,
}

/// The host's mount points.
pub(super) struct MountPoints {
    /// The names of mount points, by the path of their directory.
    names: BTreeMap<PathBuf, Vec<OsString>>,
    pub(super) below_exports: Vec<MountPoint>,
}

impl MountPoints {
    /// The names of the mount points in the directory at a path.
    pub(super) fn names_in(&self, directory: &Path) -> &[OsString] {
        self.names.get(directory).map_or(&[], Vec::as_slice)
    }
}

/// The host's table of mounts.
pub(super) struct HostMounts {
    /// The exports' paths on the host.
    exports: Vec<PathBuf>,
    read: Mutex<Option<(File, Arc<MountPoints>)>>,
}

impl HostMounts {
    pub(super) fn below(exports: Vec<PathBuf>) -> Self {
        Self { exports, read: Mutex::new(None) }
    }

    /// The mount points now. Reads the table if it has changed since the last call.
    pub(super) fn points(&self) -> Result<Arc<MountPoints>, VolumeError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match read.take() {
            Some((file, points)) => {
                if !has_changed(&file)? {
                    *read = Some((file, Arc::clone(&points)));
                    return Ok(points);
                }
                file
            }
            None => File::open("/proc/self/mountinfo").map_err(|error| io_error(&error))?,
        };
        let mut table = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut table)).map_err(|error| io_error(&error))?;
        let points = Arc::new(self.points_in(&table));
        *read = Some((file, Arc::clone(&points)));
        Ok(points)
    }

    fn points_in(&self, table: &[u8]) -> MountPoints {
        let mut points = MountPoints { names: BTreeMap::new(), below_exports: Vec::new() };
        for (device, path) in table.split(|&byte| byte == b'\n').filter_map(mount_point) {
            if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
                points.names.entry(directory.to_owned()).or_default().push(name.to_owned());
            }
            let below = self.exports.iter().filter_map(|export| Some((export, path.strip_prefix(export).ok()?)));
            for (export, below) in below.filter(|(_, below)| !below.as_os_str().is_empty()) {
                points.below_exports.push(MountPoint { device, export: export.clone(), below: below.to_owned() });
            }
        }
        points
    }
}

/// Whether the table has changed since it was read.
fn has_changed(table: &File) -> Result<bool, VolumeError> {
    let mut polled = [PollFd::new(table, PollFlags::PRI)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map_err(error_of)?;
    Ok(polled[0].revents().intersects(PollFlags::PRI | PollFlags::ERR))
}

/// The device and the mount point in a line of mountinfo: its third and its fifth field, this with octal escapes.
pub(super) fn mount_point(line: &[u8]) -> Option<(DeviceKey, PathBuf)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let (major, minor) = str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
    let device = DeviceKey(makedev(major.parse().ok()?, minor.parse().ok()?));
    Some((device, unescaped(fields.nth(1)?)))
}

/// A path in a field of mountinfo, which has octal escapes.
pub(super) fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal =
            tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match octal {
            Some(digits) => {
                path.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &tail[3..];
            }
            None => {
                path.push(first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests;
