//! Where the exports are: on the host, and on their file systems.
//!
//! Owns: the location of a directory on its file system, under any mount of that.
//! Does not own: the comparison of locations (the command).
//! Invariants: a bind mount, another mount point or a symbolic link changes no location on a file system.

use std::path::{Path, PathBuf};

use afflux_volume::{DeviceKey, Directory, Identity};
use rustix::fs::{StatxFlags, major, minor};

use super::file_system_facts::disk_sequence;
use super::mounts::{mount_point, unescaped};
use super::node::host_node;
use super::{HostTree, calls};

/// Most mounts below the exports that count.
const MOUNTS_MAX: usize = 512;

/// The location of an export, or of a mount below one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportedDirectory {
    /// The directory, with its file system. `None` for a mount below an export: nothing here asks its file system.
    pub identity: Option<Identity>,
    /// The path on the host, free of symbolic links.
    pub path: PathBuf,
    /// Where it is on its file system.
    pub on_file_system: Option<OnFileSystem>,
}

/// A location on a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnFileSystem {
    /// The file system, for as long as its disk stays in the host. All subvolumes of a Btrfs are one. `None` for a disk
    /// that the host does not distinguish from the next one of its number.
    pub stay: Option<String>,
    /// The path from its root.
    pub below: PathBuf,
}

/// A line of the table of mounts.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ListedMount {
    id: u64,
    device: DeviceKey,
    root: PathBuf,
    point: PathBuf,
}

impl HostTree {
    /// The locations of the exports and of the mounts below them now.
    pub fn exported_directories(&self) -> Vec<ExportedDirectory> {
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<ListedMount> = table.split(|&byte| byte == b'\n').filter_map(ListedMount::of).collect();
        let exports = self.exports().iter().zip(self.directories());
        let exported = exports.map(|(export, path)| {
            let stat = calls::raw_stat(host_node(&export.root.node).fd(), "", StatxFlags::MNT_ID).ok();
            let mount = stat.and_then(|stat| mounts.iter().find(|mount| mount.id == stat.stx_mnt_id));
            let on_file_system = mount.and_then(|mount| mount.on_file_system_of(path));
            ExportedDirectory { identity: Some(export.root.identity), path: path.clone(), on_file_system }
        });
        let is_below = |mount: &&ListedMount| {
            self.directories().iter().any(|path| mount.point != *path && mount.point.starts_with(path))
        };
        let below = mounts.iter().filter(is_below).take(MOUNTS_MAX).map(|mount| ExportedDirectory {
            identity: None,
            path: mount.point.clone(),
            on_file_system: mount.on_file_system_of(&mount.point),
        });
        exported.chain(below).collect()
    }
}

impl ListedMount {
    fn of(line: &[u8]) -> Option<Self> {
        let (device, point) = mount_point(line)?;
        let mut fields = line.split(|&byte| byte == b' ');
        let id = str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        Some(Self { id, device, root: unescaped(fields.nth(2)?), point })
    }

    /// The location of a path below the mount point.
    fn on_file_system_of(&self, path: &Path) -> Option<OnFileSystem> {
        let below = self.root.join(path.strip_prefix(&self.point).ok()?).components().collect();
        let number = format!("{}:{}", major(self.device.0), minor(self.device.0));
        let stay = match major(self.device.0) {
            0 => Some(number),
            _ => disk_sequence(Path::new("/sys/dev/block"), self.device)
                .map(|sequence| format!("{number}.{}", sequence.trim())),
        };
        Some(OnFileSystem { stay, below })
    }
}

#[cfg(test)]
mod tests;
