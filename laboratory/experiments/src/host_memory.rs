//! What the kernel of this machine says of its memory, and having it find some.
//!
//! Owns: reading `/proc/meminfo` and a device's part in debugfs, touching memory ahead of a measurement.
//! Does not own: what is measured, the file system debugfs (`hardware`).
//! Invariants: nothing is changed but that memory was touched.

use std::fs;
use std::path::PathBuf;

use crate::hardware::KernelDebug;

const PAGE_BYTES: u64 = 4096;

/// The first number on the line that begins with this.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What the kernel lets be dirty on the whole machine now, in bytes.
pub(crate) fn dirty_limit_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    field(&text, "nr_dirty_threshold ").map(|pages| pages * PAGE_BYTES)
}

/// Has the kernel find so much memory and touch it, and gives it back at once. Memory that was not used for a
/// while costs a virtual machine a fault of its host a page, and finding it takes reclaim; both are no part of
/// what is compared. Nothing happens where less than twice as much is to be had.
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

/// Where dirty bytes are looked up.
pub(crate) enum Dirty {
    /// The device's own, in this file of debugfs.
    Device(PathBuf),
    /// All of the machine's less so many.
    Machine(u64),
}

/// Dirty on the whole machine, those being written included.
fn machine_dirty() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    (field(&text, "Dirty:").unwrap_or(0) + field(&text, "Writeback:").unwrap_or(0)) * 1024
}

impl Dirty {
    /// Of the device with this number, as `7:0`, where debugfs has it; else of the machine, from now on.
    pub(crate) fn of(number: &str, debug: Option<&KernelDebug>) -> Self {
        let path = debug.map(|debug| debug.path().join("bdi").join(number).join("stats"));
        path.filter(|path| path.exists()).map_or_else(|| Self::Machine(machine_dirty()), Self::Device)
    }

    /// Dirty, and written since the device was there; the latter only if debugfs tells.
    pub(crate) fn bytes(&self) -> (u64, Option<u64>) {
        match self {
            Self::Machine(before) => (machine_dirty().saturating_sub(*before), None),
            Self::Device(path) => {
                let text = fs::read_to_string(path).unwrap_or_default();
                let bytes = |name| field(&text, name).map(|kib| kib * 1024);
                let dirty = bytes("BdiWriteback:").unwrap_or(0) + bytes("BdiReclaimable:").unwrap_or(0);
                (dirty, bytes("BdiWritten:"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
