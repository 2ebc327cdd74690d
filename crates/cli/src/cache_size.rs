//! The memory that the cache gets.
//!
//! Owns: the default, the range, reading a size.
//! Does not own: the memory (the arena takes it).
//! Invariants: a size is a whole number of frames, at least [`BYTES_MIN`], at most what this process may use.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use frames::FRAME_BYTES;

use crate::units;

/// Smallest cache that serves: it holds some requests of the largest size on every connection beside the dirty pages.
pub(crate) const BYTES_MIN: u64 = 16 << 20;

/// Lower bound of the default.
const DEFAULT_BYTES_MIN: u64 = 64 << 20;

/// The host's memory, as far as this process may use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostMemory {
    /// All memory, or the control group's limit if that is lower.
    pub(crate) total_bytes: u64,
    /// Memory that can be taken without evicting other processes' pages.
    pub(crate) available_bytes: u64,
}

impl HostMemory {
    /// Asks the host. Assumes 1 GiB for a figure that the host does not give.
    pub(crate) fn measured() -> Self {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limits = limit_files(&membership).into_iter();
        let limit = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok()).min();
        Self::from_texts(&meminfo, limit)
    }

    fn from_texts(meminfo: &str, limit_bytes: Option<u64>) -> Self {
        let limit = limit_bytes.unwrap_or(u64::MAX).max(BYTES_MIN);
        let total = field(meminfo, "MemTotal:").unwrap_or(1 << 30).max(BYTES_MIN).min(limit);
        let available = field(meminfo, "MemAvailable:").unwrap_or(total).min(total);
        Self { total_bytes: total, available_bytes: available }
    }

    /// A quarter of all memory or half of the available memory, whichever is less, but at least 64 MiB.
    pub(crate) fn default_cache_bytes(self) -> u64 {
        let bytes = (self.total_bytes / 4).min(self.available_bytes / 2).max(DEFAULT_BYTES_MIN);
        whole_frames(bytes.min(self.total_bytes))
    }

    /// Reads a size such as `512MiB`. `origin` names its source in errors.
    pub(crate) fn cache_bytes(self, origin: &str, text: &str) -> Result<u64, String> {
        let (min, max) = (BYTES_MIN, self.total_bytes);
        let range = format!("{} to {}", units::memory(min), units::memory(max));
        let bytes = text
            .trim()
            .parse::<ByteSize>()
            .map_err(|_| format!("{origin}: '{text}' is not a size such as 512MiB or 2GiB ({range})"))?
            .as_u64();
        if bytes < min || bytes > max {
            return Err(format!("{origin}: '{text}' is out of range ({range}, all memory here)"));
        }
        Ok(whole_frames(bytes))
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

fn whole_frames(bytes: u64) -> u64 {
    bytes - bytes % FRAME_BYTES as u64
}

/// A line of /proc/meminfo, in bytes.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
