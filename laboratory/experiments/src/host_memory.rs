//! The memory of this machine: its figures in the kernel, and warming it up.
//!
//! Owns: reading `/proc/meminfo` and a device's part in debugfs, touching memory ahead of a measurement.
//! Does not own: the measurement, the file system debugfs (`hardware`).
//! Invariants: nothing changes except that memory was touched.

use std::fs;
use std::path::PathBuf;

use crate::hardware::KernelDebug;

const PAGE_BYTES: u64 = 4096;

/// The first number on the line that begins with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The kernel's current dirty threshold for the whole machine, in bytes.
pub(crate) fn dirty_limit_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    field(&text, "nr_dirty_threshold ").map(|pages| pages * PAGE_BYTES)
}

/// Allocates and touches that much memory, and frees it at once. In a virtual machine, each page that was not used for
/// a while costs a fault of the host, and finding such a page takes reclaim. Neither belongs to the comparison. Does
/// nothing if less than twice as much is available.
pub(crate) fn warm_memory(bytes: u64) {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if field(&text, "MemAvailable:").unwrap_or(0) * 1024 < 2 * bytes {
        return;
    }
    let mut memory = vec![0_u8; bytes as usize];
    for page in memory.chunks_mut(PAGE_BYTES as usize) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
}

/// The source of a count of dirty bytes.
pub(crate) enum Dirty {
    /// The device's own count, in this file of debugfs.
    Device(PathBuf),
    /// The whole machine's count, less this many bytes.
    Machine(u64),
}

/// Dirty bytes of the whole machine, those under writeback included.
fn machine_dirty() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    (field(&text, "Dirty:").unwrap_or(0) + field(&text, "Writeback:").unwrap_or(0)) * 1024
}

impl Dirty {
    /// The count of the device with this number, as `7:0`, if debugfs has it. Otherwise the machine's, from now on.
    pub(crate) fn of(number: &str, debug: Option<&KernelDebug>) -> Self {
        let path = debug.map(|debug| debug.path().join("bdi").join(number).join("stats"));
        path.filter(|path| path.exists()).map_or_else(|| Self::Machine(machine_dirty()), Self::Device)
    }

    /// Dirty bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Machine(before) => machine_dirty().saturating_sub(*before),
            Self::Device(path) => {
                let text = fs::read_to_string(path).unwrap_or_default();
                let bytes = |name| field(&text, name).unwrap_or(0) * 1024;
                bytes("BdiWriteback:") + bytes("BdiReclaimable:")
            }
        }
    }
}

#[cfg(test)]
mod tests;
