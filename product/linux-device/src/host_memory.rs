//! The memory that this host has for one process.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

/// Lower bound of what is believed of a host.
const TOTAL_BYTES_MIN: u64 = 16 << 20;

/// The host's memory, as far as this process may use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemory {
    /// All memory, or the control group's limit if that is lower.
    pub total_bytes: u64,
    /// Memory that can be taken without evicting other processes' pages.
    pub available_bytes: u64,
}

impl HostMemory {
    /// Asks the host. Assumes 1 GiB for a figure that the host does not give.
    pub fn measured() -> Self {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limits = limit_files(&membership).into_iter();
        let limit = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok()).min();
        Self::from_texts(&meminfo, limit)
    }

    fn from_texts(meminfo: &str, limit_bytes: Option<u64>) -> Self {
        let limit = limit_bytes.unwrap_or(u64::MAX).max(TOTAL_BYTES_MIN);
        let total = field(meminfo, "MemTotal:").unwrap_or(1 << 30).max(TOTAL_BYTES_MIN).min(limit);
        let available = field(meminfo, "MemAvailable:").unwrap_or(total).min(total);
        Self { total_bytes: total, available_bytes: available }
    }
}

/// The files with the memory limits of a process's control group, as `/proc/self/cgroup` names it, and of the groups
/// above: a service's own, a container's.
fn limit_files(membership: &str) -> Vec<PathBuf> {
    let files = membership.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (top, name) = match fields.next()? {
            "" => ("/sys/fs/cgroup", "memory.max"),
            controllers if controllers.split(',').any(|it| it == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let groups = Path::new(fields.next()?.trim_start_matches('/')).ancestors();
        Some(groups.map(|group| Path::new(top).join(group).join(name)).collect::<Vec<_>>())
    });
    files.flatten().collect()
}

/// A line of /proc/meminfo, in bytes.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
