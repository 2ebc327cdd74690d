//! The machine around the writer: figures that the simulated side of the case `kernel` takes from the measured one.
//!
//! Owns: properties of a machine that matter but are no part of the law: the dirty limit, the speed at which memory
//! fills, the other programs' writes to other devices, the length of a tick.
//! Does not own: the simulation (`kernel`), the measured run (`plain_writer`).
//! Invariants: nothing here depends on the writer's results once it was throttled.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::compare::{Look, last_before};
use crate::experiment::LabError;
use crate::host_memory::field;
use crate::statistics::percentile;

/// Seconds of watching the other programs before the writer begins. Gigabytes may have been written just before the
/// run; after this time a device's share keeps 1/256 of them.
pub(super) const BEFORE_S: u64 = 24;
/// The length of a piece of the time in which memory fills.
pub(super) const PIECE: Duration = Duration::from_millis(200);
/// Bytes of the kernel's page.
const PAGE_BYTES: u64 = 4096;
/// The tick rates that kernels for x86 are built with.
const TICK_RATES: [u64; 4] = [100, 250, 300, 1000];
/// The time for which ticks are counted.
const COUNTING: Duration = Duration::from_secs(1);

/// The surroundings of a writer.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// The mean of the kernel's dirty limit over the run.
    pub(super) dirty_limit_bytes: u64,
    /// Ticks a second.
    pub(super) hz: u64,
    /// Bytes accepted in each [`PIECE`] until writers were nearly throttled; empty if memory filled in an instant.
    pub(super) filling_bytes: Vec<u64>,
    /// Bytes that other programs wrote to other devices in each second, from [`BEFORE_S`] before the writer on.
    pub(super) others_bytes: Vec<u64>,
    /// How late sleepers ran again, at the 99th percentile. A delay beyond the ticks is a wait for a CPU; the simulated
    /// machine always has one.
    pub(super) late_p99_ns: u64,
}

/// The state of the machine at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineSample {
    pub(super) at_s: f64,
    pub(super) dirty_limit_bytes: u64,
    /// Bytes written since the start by all devices but the writer's.
    pub(super) others_bytes: u64,
    /// How late the watcher ran again after this look.
    pub(super) late_ns: u64,
}

impl Surroundings {
    /// The surroundings of a writer that wrote for `seconds`. The looks begin [`BEFORE_S`] seconds before 0.
    pub(super) fn of(around: &[MachineSample], looks: &[Look], seconds: u64, hz: u64) -> Self {
        let during = || around.iter().filter(|around| (0.0..=seconds as f64).contains(&around.at_s));
        let count = during().count();
        let limits: u64 = during().map(|around| around.dirty_limit_bytes).sum();
        let dirty_limit_bytes = limits / count.max(1) as u64;
        let mut late_ns: Vec<u64> = during().map(|around| around.late_ns).collect();
        late_ns.sort_unstable();
        let written = |at_s: f64| {
            let after = around.partition_point(|around| around.at_s <= at_s);
            around.get(after.saturating_sub(1)).map_or(0, |around| around.others_bytes)
        };
        let before = BEFORE_S as f64;
        let second = |second: u64| {
            let from_s = second as f64 - before;
            written(from_s + 1.0).saturating_sub(written(from_s))
        };
        Self {
            dirty_limit_bytes,
            hz,
            filling_bytes: filling(looks, dirty_limit_bytes),
            others_bytes: (0..BEFORE_S + seconds).map(second).collect(),
            late_p99_ns: percentile(&late_ns, 990),
        }
    }

    /// The time in which memory filled.
    pub(super) fn filling(&self) -> Duration {
        PIECE * self.filling_bytes.len() as u32
    }

    /// The other programs' bytes a second while the writer wrote.
    pub(super) fn others_bytes_per_s(&self) -> u64 {
        let during = self.others_bytes.get(BEFORE_S as usize..).unwrap_or_default();
        during.iter().sum::<u64>() / during.len().max(1) as u64
    }
}

/// Bytes accepted in each piece until memory was nearly full. That is just below three quarters of the limit, where
/// throttling begins.
fn filling(looks: &[Look], dirty_limit_bytes: u64) -> Vec<u64> {
    let Some(filled) = looks.iter().find(|look| look.dirty_bytes > dirty_limit_bytes / 100 * 73) else {
        return Vec::new();
    };
    let accepted = |at_s: f64| last_before(looks, at_s + 1e-6).map_or(0, |look| look.accepted_bytes);
    let pieces = (filled.at_s / PIECE.as_secs_f64()) as u64;
    let piece = |piece: u64| {
        let from_s = piece as f64 * PIECE.as_secs_f64();
        accepted(from_s + PIECE.as_secs_f64()) - accepted(from_s)
    };
    (0..pieces).map(piece).collect()
}

/// The kernel's dirty limit for the whole machine, and the bytes that it has written since its start.
pub(super) fn limit_and_written() -> Result<(u64, u64), LabError> {
    let text = fs::read_to_string("/proc/vmstat");
    let text = text.map_err(|error| LabError::Failed(format!("/proc/vmstat: {error}")))?;
    let bytes = |name: &str| {
        let pages = field(&text, name);
        pages.map(|pages| pages * PAGE_BYTES).ok_or_else(|| LabError::Failed(format!("/proc/vmstat has no {name}")))
    };
    Ok((bytes("nr_dirty_threshold ")?, bytes("nr_written ")?))
}

/// Ticks a second of this machine's kernel, counted for a second.
pub(super) fn tick_rate() -> Result<u64, LabError> {
    let ticks = || {
        let text = fs::read_to_string("/proc/timer_list").unwrap_or_default();
        field(&text, "jiffies:")
    };
    let unknown = || LabError::Failed("/proc/timer_list does not tell ticks".to_owned());
    let (start, first) = (Instant::now(), ticks().ok_or_else(unknown)?);
    thread::sleep(COUNTING);
    let counted = ticks().ok_or_else(unknown)?.saturating_sub(first) as f64 / start.elapsed().as_secs_f64();
    let nearest = TICK_RATES.into_iter().min_by_key(|rate| (*rate as f64 - counted).abs() as u64);
    nearest.ok_or_else(unknown)
}

#[cfg(test)]
mod tests;
