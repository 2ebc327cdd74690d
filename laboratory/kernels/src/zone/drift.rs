//! The number of free frames as tasks see it, which lags behind the buddy lists (`vm_stat_diff`).
//!
//! Each CPU counts its changes locally until they pass a threshold. So a comparison with a watermark misses up to a
//! threshold for each CPU. Seed S3's failures depend on this: after a drain of all lists the frames are there, and the
//! count does not show them.
//!
//! Owns: the shared count, the pending changes of each CPU. Does not own: the lists.
//! Invariants: the count and all pending changes together equal the buddy lists.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

#[cfg(test)]
mod tests;

/// The kernel's threshold: it grows with the number of CPUs and the zone's size in units of 128 MiB, by their numbers
/// of bits.
pub(crate) fn drift_threshold(cpus: u32, zone_frames: u32) -> u32 {
    let bits = |value: u32| u32::BITS - value.leading_zeros();
    (2 * bits(cpus) * (1 + bits(zone_frames >> 15))).min(125)
}

pub(super) struct DriftingCount {
    global: AtomicI64,
    local: Box<[AtomicI32]>,
    threshold: i32,
}

impl DriftingCount {
    pub(super) fn new(frames: u32, cpus: usize, threshold: u32) -> Self {
        Self {
            global: AtomicI64::new(frames.into()),
            local: (0..cpus).map(|_| AtomicI32::new(0)).collect(),
            threshold: threshold.min(i32::MAX as u32) as i32,
        }
    }

    /// Adds this CPU's change of the lists. Called with the zone's lock held.
    pub(super) fn add(&self, cpu: usize, frames: i64) {
        let local = &self.local[cpu % self.local.len()];
        let now = i64::from(local.load(Ordering::Relaxed)) + frames;
        if now.abs() > i64::from(self.threshold) {
            self.global.fetch_add(now, Ordering::Relaxed);
            local.store(0, Ordering::Relaxed);
        } else {
            local.store(now as i32, Ordering::Relaxed);
        }
    }

    /// The count that all tasks see.
    pub(super) fn seen(&self) -> u32 {
        self.global.load(Ordering::Relaxed).clamp(0, u32::MAX.into()) as u32
    }
}
