//! The number of frames that a kernel of 2009 to 2011 reserves.
//!
//! Owns: the formulas for watermarks, and for the per-CPU lists' batch and high mark.
//! Does not own: the count of free frames.
//! Invariants: min ≤ low ≤ high. Divisions truncate, as in the kernel.

use afflux_frames::Watermarks;

use crate::sysctl::PAGE_BYTES;

#[cfg(test)]
mod tests;

const KIB_PER_FRAME: u64 = PAGE_BYTES / 1024;
/// Most frames of a zone's share from which the batch is computed: 512 KiB.
const BATCH_SHARE_MAX: u64 = (512 << 10) / PAGE_BYTES;

/// The marks of a zone with `managed` of the machine's `total` frames: a quarter of `min` apart
/// (`setup_per_zone_wmarks`). `min_free_kbytes` is the square root of 16 × the memory in KiB, 128 to 65,536.
pub(crate) fn linux_2009(managed: u64, total: u64) -> Watermarks {
    let min_free_kib = (16 * total * KIB_PER_FRAME).isqrt().clamp(128, 65_536);
    let min = (min_free_kib / KIB_PER_FRAME) * managed / total.max(1);
    let narrow = |mark: u64| u32::try_from(mark).unwrap_or(u32::MAX);
    Watermarks { min: narrow(min), low: narrow(min + min / 4), high: narrow(min + min / 2) }
}

/// The number of frames that move between a per-CPU list and the buddy lists at a time (`zone_batchsize`): a 1024th of
/// the zone, a quarter of that, rounded to one less than a power of two. 0 for tiny zones; a caller takes at least 1.
pub(super) fn batch_2009(present_frames: u64) -> u32 {
    let share = ((present_frames / 1024).min(BATCH_SHARE_MAX) / 4).max(1);
    (1 << (share + share / 2).ilog2()) - 1
}

/// The largest length of a per-CPU list: six batches.
pub(super) const fn high_2009(batch: u32) -> u32 {
    6 * batch
}
