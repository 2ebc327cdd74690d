//! What is under writeback of each device: the kernel tells it in debugfs alone.
//!
//! Owns: where that stands, and its form. Does not own: what it says of a device (`law`).
//! Invariants: nothing of the host is changed. Where debugfs is not mounted, one is used that no path of the host leads
//! to, and that goes with its descriptor. Who may not see it goes without.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::Host;
use crate::law::{Backlog, Flow};

const KIB: u64 = 1024;

/// Where the backlogs of devices are read.
#[derive(Debug)]
pub(crate) struct Backlogs {
    /// With a directory for each bdi; nothing where none can be seen.
    directory: Option<PathBuf>,
    /// Keeps a mount of our own.
    _mount: Option<OwnedFd>,
}

impl Host {
    /// Finds where the kernel tells them.
    pub(crate) fn backlogs(&self) -> Backlogs {
        let mounted = self.path("sys/kernel/debug/bdi");
        if mounted.is_dir() {
            return Backlogs { directory: Some(mounted), _mount: None };
        }
        // A made-up tree has what stands in it, and nothing else.
        let own = if self.root == Path::new("/") { debugfs().ok() } else { None };
        let directory = own.as_ref().map(|own| format!("/proc/self/fd/{}/bdi", own.as_raw_fd()).into());
        Backlogs { directory, _mount: own }
    }
}

/// A mount that stands nowhere.
fn debugfs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("debugfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
}

impl Backlogs {
    /// A device's, by its bdi; nothing where it cannot be seen, or makes no sense.
    pub(crate) fn of(&self, bdi: &str) -> Option<Backlog> {
        let directory = self.directory.as_ref()?.join(bdi);
        let read = |file: &str| fs::read_to_string(directory.join(file)).ok();
        // Kernels before 6.10 tell the sum of all cgroups only.
        let flows = match read("wb_stats") {
            Some(text) => flows(&text, "WbCgIno", "WbWriteback", "WbWritten"),
            None => flows(&read("stats")?, "BdiWriteback", "BdiWriteback", "BdiWritten"),
        };
        flows.map(Backlog::new)
    }
}

/// A flow begins with the line called `first`; of the sum of all there is one.
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

#[cfg(test)]
mod tests;
