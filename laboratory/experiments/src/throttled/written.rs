//! A run of the case `kernel`, and its figures.
//!
//! Owns: the forms, the figures of a run.
//! Does not own: the runs (`kernel`).
//! Invariants: figures cover the seconds after memory has filled.

use serde_json::Value;

use super::compare::{Look, last_before};

/// Seconds at the start that do not count, because memory fills.
pub(super) const FILLING_S: u64 = 10;
/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;

/// A setup of the machine.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) name: &'static str,
    /// `max_bytes`, with `strict_limit`; 0 for the kernel's default.
    pub(super) max_bytes: u64,
    /// `vm.dirty_bytes` and `vm.dirty_background_bytes`; `None` for the machine's settings.
    pub(super) limit_bytes: Option<(u64, u64)>,
}

/// The kernel of a run.
#[derive(Clone, Copy)]
pub(super) struct KernelOfRun {
    pub(super) dirty_limit_bytes: u64,
    /// Ticks a second.
    pub(super) hz: u64,
}

/// A run.
pub(super) struct Written {
    pub(super) looks: Vec<Look>,
    pub(super) p99_ns: u64,
    pub(super) max_ns: u64,
    pub(super) sync_ns: u64,
    /// The waits of each job for the disk.
    pub(super) delays: Value,
}

/// The figures of a run.
pub(super) struct Figures {
    pub(super) accepted_mb_per_s: f64,
    pub(super) plateau_mb: f64,
    pub(super) p99_ms: f64,
    pub(super) sync_s: f64,
}

/// Megabytes accepted in each second.
pub(super) fn by_second(written: &Written, seconds: u64) -> Vec<f64> {
    let accepted = |at_s| last_before(&written.looks, at_s).map_or(0.0, |look| look.accepted_bytes as f64);
    let each = |second: u64| (accepted((second + 1) as f64) - accepted(second as f64)) / 1e6;
    (0..seconds).map(each).collect()
}

pub(super) fn figures(written: &Written, seconds: u64) -> Figures {
    let settled = by_second(written, seconds).split_off(FILLING_S as usize);
    let within = |look: &&Look| look.at_s >= FILLING_S as f64 && look.at_s <= seconds as f64;
    let dirty: Vec<f64> = written.looks.iter().filter(within).map(|look| look.dirty_bytes as f64).collect();
    Figures {
        accepted_mb_per_s: settled.iter().sum::<f64>() / settled.len().max(1) as f64,
        plateau_mb: dirty.iter().sum::<f64>() / dirty.len().max(1) as f64 / 1e6,
        p99_ms: written.p99_ns as f64 / 1e6,
        sync_s: written.sync_ns as f64 / 1e9,
    }
}

#[cfg(test)]
mod tests;
