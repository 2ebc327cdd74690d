//! The state of this machine beside a measurement: the load of other programs, memory, dirty bytes.
//!
//! Owns: reading `/proc` and a device's part in debugfs, touching memory ahead of a measurement, a sentence about load.
//! Does not own: the measurement, the file system debugfs (`hardware`).
//! Invariants: nothing changes except that memory was touched. The load is read before a measurement, so that the
//! measurement itself does not count.

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

/// The recent load by other programs, if it is more than a tenth of a CPU; and the number of CPUs.
pub(crate) fn load() -> Option<(f64, usize)> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (load > 0.1).then_some((load, cpus))
}

/// A sentence for measurements on a busy machine.
pub(crate) fn busy(load: Option<(f64, usize)>) -> Option<String> {
    load.map(|(load, cpus)| {
        format!(
            "When this began the machine had other work: {load:.1} tasks on {cpus} CPUs in the minute before. Rates \
             without a throttle, and the longest calls, are worse for it."
        )
    })
}

#[cfg(test)]
mod tests;
