//! Throttled disks for contenders, in a directory of their own.
//!
//! Owns: making disks where there is space for them, their rates.
//! Does not own: the disks themselves (`hardware`), what is written to them.
//! Invariants: a new disk is empty and not throttled yet.

use std::path::Path;

use afflux_scratch::Scratch;

use super::{Kernel, KernelMethod};
use crate::hardware::{DiskRates, KernelDebug, SlowDisk, free_bytes};

/// Smallest and largest image of a disk.
const IMAGE_BYTES_MIN: u64 = 128 << 20;
const IMAGE_BYTES_MAX: u64 = 8 << 30;
/// Bytes to leave free on the file system with the images.
const SPARE_BYTES: u64 = 2 << 30;

/// The surroundings of all runs.
pub(crate) struct Stage {
    // Dropped in this order: debugfs is mounted inside the directory.
    debug: Option<KernelDebug>,
    scratch: Scratch,
}

impl Stage {
    /// A directory in `directory`, named after the experiment.
    pub(crate) fn new(directory: &Path, name: &str) -> Result<Self, String> {
        let scratch = Scratch::guarded(directory, name).map_err(|error| error.to_string())?;
        Ok(Self { debug: KernelDebug::new(scratch.path()).ok(), scratch })
    }

    pub(crate) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// A disk of `bytes` in a directory of this name.
    pub(crate) fn disk(&self, name: &str, bytes: u64) -> Result<SlowDisk, String> {
        let directory = self.path().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let free = free_bytes(&directory).map_err(|error| error.to_string())?;
        if bytes + SPARE_BYTES > free {
            let (bytes, free) = (afflux_report::units::data(bytes + SPARE_BYTES), afflux_report::units::data(free));
            return Err(format!("{}: {bytes} are needed and {free} are free", directory.display()));
        }
        SlowDisk::queued(&directory, bytes, DiskRates::default()).map_err(|error| error.to_string())
    }

    /// The kernel over these directories.
    pub(crate) fn kernel(&self, method: KernelMethod, on: &[&Path]) -> Kernel {
        Kernel::new(method, on, self.debug.as_ref())
    }
}

/// Bytes of a slow disk's image: the kernel's dirty limit, and what a writer writes meanwhile, at three times the rate.
/// A quick run does not wait until that limit is reached.
pub(crate) fn image_bytes(limit_bytes: u64, written_bytes: u64, is_quick: bool) -> u64 {
    let (dirty, times) = if is_quick { (0, 1) } else { (limit_bytes, 3) };
    let bytes = dirty.saturating_add(times * written_bytes) / 7 * 8;
    bytes.next_multiple_of(1 << 20).clamp(IMAGE_BYTES_MIN, IMAGE_BYTES_MAX)
}

/// Most bytes of a file on a disk with such an image; the file system has the rest.
pub(crate) fn file_bytes_max(image_bytes: u64) -> u64 {
    image_bytes / 8 * 7 - (16 << 20)
}

/// Makes a disk write its file system's data, and throttles it.
pub(crate) fn slow_down(disk: &SlowDisk, bytes_per_s: u64) -> Result<(), String> {
    disk.settle().map_err(|error| error.to_string())?;
    set_rate(disk, Some(bytes_per_s))
}

/// Throttles a disk at once, or lifts the throttle, so that it writes the rest at the host's speed.
pub(crate) fn set_rate(disk: &SlowDisk, bytes_per_s: Option<u64>) -> Result<(), String> {
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: bytes_per_s };
    disk.throttle(rates).map_err(|error| error.to_string())
}
