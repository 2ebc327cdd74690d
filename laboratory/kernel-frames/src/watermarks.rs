//! The number of frames that the kernels keep free.
//!
//! Owns: the formulas of Linux 2.6.31 and 6.1 for watermarks and for the per-CPU lists' batch and high mark.
//! Does not own: the count of free frames.
//! Invariants: min ≤ low ≤ high. Divisions truncate, as in the kernel.

use afflux_frames::{FRAME_BYTES, Watermarks};

#[cfg(test)]
mod tests;

const KIB_PER_FRAME: u64 = FRAME_BYTES as u64 / 1024;
/// The kernel's default of `watermark_scale_factor`, in 1/10000.
const SCALE_FACTOR: u64 = 10;

/// The marks of Linux 2.6.31 for a zone with `managed` of the machine's `total` frames: a quarter of `min` apart.
pub fn linux_2009(managed: u64, total: u64) -> Watermarks {
    let min = zone_min(managed, total, 65_536);
    marks(min, min + min / 4, min + min / 2)
}

/// The marks of Linux 6.1: a quarter of `min` apart, or a thousandth of the zone if that is more.
pub fn linux_6_1(managed: u64, total: u64) -> Watermarks {
    let min = zone_min(managed, total, 262_144);
    let gap = (min / 4).max(managed * SCALE_FACTOR / 10_000);
    marks(min, min + gap, min + 2 * gap)
}

fn marks(min: u64, low: u64, high: u64) -> Watermarks {
    let narrow = |mark: u64| u32::try_from(mark).unwrap_or(u32::MAX);
    Watermarks { min: narrow(min), low: narrow(low), high: narrow(high) }
}

/// `min_free_kbytes` of a machine: the square root of 16 × its memory in KiB, between 128 and a cap that was 65,536 in
/// 2009 and is 262,144 in Linux 6.1.
pub fn min_free_kib(total_frames: u64, cap_kib: u64) -> u64 {
    (16 * total_frames * KIB_PER_FRAME).isqrt().clamp(128, cap_kib)
}

fn zone_min(managed: u64, total: u64, cap_kib: u64) -> u64 {
    (min_free_kib(total, cap_kib) / KIB_PER_FRAME) * managed / total.max(1)
}

/// The number of frames that move between a per-CPU list and the buddy lists at a time, by the formula of 2009
/// (`zone_batchsize`). May be 0 for tiny zones; a caller takes at least 1.
pub fn batch_2009(present_frames: u64) -> u32 {
    batch(present_frames, 512 << 10)
}

/// The same for Linux 6.1: of managed frames, with twice the cap.
pub fn batch_6_1(managed_frames: u64) -> u32 {
    batch(managed_frames, 1 << 20)
}

/// A 1024th of the zone up to the cap, a quarter of that, rounded to one less than a power of two.
fn batch(frames: u64, cap_bytes: u64) -> u32 {
    let share = (frames / 1024).min(cap_bytes / FRAME_BYTES as u64) / 4;
    let share = share.max(1);
    let power = 1 << (share + share / 2).ilog2();
    power - 1
}

/// The largest length of a per-CPU list, by the formula of 2009: six batches.
pub const fn high_2009(batch: u32) -> u32 {
    6 * batch
}

/// The same for Linux 6.1: the zone's low watermark shared by the CPUs, at least four batches. If `fraction`
/// (`percpu_pagelist_high_fraction`) is 8 or more, that fraction of the zone instead of the low watermark.
pub fn high_6_1(batch: u32, low: u32, managed: u32, cpus: u32, fraction: u32) -> u32 {
    let share = if fraction >= 8 { managed / fraction } else { low };
    (share / cpus.max(1)).max(4 * batch)
}
