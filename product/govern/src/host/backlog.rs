//! Bytes of each device that are dirty or under writeback, which the kernel shows only in debugfs.
//!
//! Owns: the location and format of these files.
//! Does not own: conclusions about a device (`law`).
//! Invariants: nothing of the host is changed. If debugfs is not mounted, the governor uses a mount of its own that no
//! path of the host leads to, and that ends with its descriptor. A user without the right to see debugfs works without
//! it: the figures are unknown then.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::host::bdi::Host;
use crate::law::{Backlog, Flow};

const KIB: u64 = 1024;

/// The location of the devices' backlogs.
#[derive(Debug)]
pub(crate) struct Backlogs {
    /// A directory with one entry for each bdi; none if debugfs cannot be seen.
    directory: Option<PathBuf>,
    /// Holds our own mount.
    _mount: Option<OwnedFd>,
}

impl Host {
    /// Finds the backlogs in debugfs.
    pub(crate) fn backlogs(&self) -> Backlogs {
        let mounted = self.path("sys/kernel/debug/bdi");
        if mounted.is_dir() {
            return Backlogs { directory: Some(mounted), _mount: None };
        }
        // A made-up tree may have its own debugfs; nothing is mounted for it.
        let own = if self.root == Path::new("/") { debugfs().ok() } else { None };
        let directory = own.as_ref().map(|own| format!("/proc/self/fd/{}/bdi", own.as_raw_fd()).into());
        Backlogs { directory, _mount: own }
    }
}

/// A mount without a path.
fn debugfs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("debugfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
}

impl Backlogs {
    /// The backlog of a bdi; none if it cannot be seen, or makes no sense.
    pub(crate) fn of(&self, bdi: &str) -> Option<Backlog> {
        let directory = self.directory.as_ref()?.join(bdi);
        let read = |file: &str| fs::read_to_string(directory.join(file)).ok();
        // Kernels before 6.10 show only the sum of all cgroups.
        let flows = match read("wb_stats") {
            Some(text) => flows(&text, "WbCgIno", "WbWriteback", "WbWritten"),
            None => flows(&read("stats")?, "BdiWriteback", "BdiWriteback", "BdiWritten"),
        };
        flows.map(Backlog::new)
    }
}

/// A flow begins with the line named `first`. The sum of all cgroups is one flow.
fn flows(text: &str, first: &str, writeback: &str, written: &str) -> Option<Vec<Flow>> {
    let mut flows: Vec<Flow> = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let number = || value.split_whitespace().next()?.parse::<u64>().ok();
        if name == first {
            let cgroup = if first == writeback { 0 } else { number()? };
            flows.push(Flow { cgroup, ..Flow::default() });
        }
        let Some(flow) = flows.last_mut() else { continue };
        if name == writeback {
            flow.writeback_bytes = number()?.saturating_mul(KIB);
        } else if name == written {
            flow.written_bytes = number()?.saturating_mul(KIB);
        }
    }
    Some(flows)
}

impl Host {
    /// Bytes of a device that are dirty or under writeback, by its bdi.
    pub fn dirty_bytes(&self, bdi: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path("sys/kernel/debug/bdi").join(bdi).join("stats")).ok()?;
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some((kib("BdiWriteback:")?.saturating_add(kib("BdiReclaimable:")?)).saturating_mul(1024))
    }
}

#[cfg(test)]
mod tests;
