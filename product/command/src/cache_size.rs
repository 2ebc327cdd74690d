//! The memory that the cache gets.
//!
//! Owns: the default, the range, reading a size.
//! Does not own: the memory (the arena takes it).
//! Invariants: a size is a whole number of frames, at least [`BYTES_MIN`], at most what this process may use.

#[cfg(test)]
mod tests;

use afflux_frames::FRAME_BYTES;
use afflux_linux_device::HostMemory;
use afflux_report::{quantity, units};

/// Smallest cache that serves: it holds some requests of the largest size on every connection beside the dirty pages.
pub(crate) const BYTES_MIN: u64 = 16 << 20;

/// Lower bound of the default.
const DEFAULT_BYTES_MIN: u64 = 64 << 20;

/// A quarter of all memory or half of the available memory, whichever is less, but at least 64 MiB.
pub(crate) fn default_bytes(host: HostMemory) -> u64 {
    let bytes = (host.total_bytes / 4).min(host.available_bytes / 2).max(DEFAULT_BYTES_MIN);
    whole_frames(bytes.min(host.total_bytes))
}

/// Reads a size such as `512MiB`.
pub(crate) fn bytes(host: HostMemory, text: &str) -> Result<u64, String> {
    let (min, max) = (BYTES_MIN, host.total_bytes);
    let range = format!("{} to {}", units::memory(min), units::memory(max));
    let bytes = quantity::bytes(text).map_err(|why| format!("{why} ({range})"))?;
    if bytes < min || bytes > max {
        return Err(format!("out of range ({range}, all memory here)"));
    }
    Ok(whole_frames(bytes))
}

fn whole_frames(bytes: u64) -> u64 {
    bytes - bytes % FRAME_BYTES as u64
}
