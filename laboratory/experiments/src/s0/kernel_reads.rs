//! How many shared counters the kernel's code reads on a path through a call.
//!
//! Owns: the numbers, counted by hand from the code. Does not own: the reads of the model's laws (`kernels`).
//! Invariants: there is no number for a path that was not counted.

use afflux_kernels::{Path, Reads};

use super::parts::BASE;

/// Whether the path was counted by hand: let through at once, or after the write of one chunk.
pub(super) fn is_counted(path: &Path) -> bool {
    matches!(path.0.trim_end_matches('f'), "C" | "WC")
}

/// The first three of a path's reads, for which the kernel's code has numbers, too.
pub(super) fn read_on(path: &Path) -> [u64; 3] {
    let Reads { global, dirty, device, .. } = path.1;
    [global, dirty, device]
}

/// The reads of the kernel's code on the path, counted by hand.
pub(super) fn expected(variant: &str, path: &Path) -> Option<[u64; 3]> {
    let is_flushing = path.0.ends_with('f');
    match (variant, path.0.trim_end_matches('f')) {
        // The two reads of the tail happen unless the device's writeback is in progress.
        (BASE, "C") => Some(if is_flushing { [12, 7, 4] } else { [14, 9, 4] }),
        // Two computations of limits, one test, and the tail.
        (BASE, "WC") => Some(if is_flushing { [21, 11, 8] } else { [23, 13, 8] }),
        // After a write, August's and September's forms go round once more.
        ("s0-august" | "s0-september", "WC") => Some([18, 8, 4]),
        // Below the half-way mark the law reads no counter of the device.
        ("s0-merged", "C") if path.1.device == 0 => Some([8, 3, 0]),
        ("s0-merged", "C" | "WC") => Some([8, 3, 2]),
        (_, "C" | "WC") => Some([9, 4, 2]),
        _ => None,
    }
}
