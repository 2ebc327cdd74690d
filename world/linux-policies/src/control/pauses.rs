//! The length of a writer's pause, and the pages that it may dirty until its next check.
//!
//! Linux 6.1, `wb_max_pause`, `wb_min_pause` and `dirty_poll_interval`, the same in 3.6.
//! Pauses are in ticks. The longest is 200 ms, and shorter for a device with so few dirty pages that it would run dry.
//! The shortest is 10 ms, and longer if many writers share the device. The pages between checks follow from it: at
//! least 32 if a longer pause allows that.
//!
//! Owns: the formulas. Does not own: the writer's credit and debt (`control`).
//! Invariants: no pause is longer than a fifth of a second.

use crate::jiffies::{log2, pow2ceil};

/// Pages between checks below which longer pauses are tried.
const PAGES_WANTED: u64 = 32;

/// The longest pause.
pub(crate) fn max_pause(hz: u64, bandwidth: u64, device_dirty: u64) -> u64 {
    let until_dry = device_dirty / (1 + bandwidth / pow2ceil(1 + hz / 8)) + 1;
    until_dry.min((hz / 5).max(1))
}

/// The shortest pause worth a sleep, and the pages until the next check.
pub(crate) fn min_pause(hz: u64, bandwidth: u64, limit: u64, task_rate: u64, max_pause: u64) -> (u64, u64) {
    let mut ticks = (hz / 100).max(1);
    let (high, low) = (u64::from(log2(bandwidth)), u64::from(log2(limit)));
    if high > low {
        ticks += (high - low) * (10 * hz) / 1024;
    }
    ticks = ticks.min(1 + max_pause / 2);
    let second = pow2ceil(hz);
    let mut pages = limit * ticks / second;
    if pages < PAGES_WANTED {
        ticks = max_pause;
        pages = limit * ticks / second;
        if pages > PAGES_WANTED {
            pages = PAGES_WANTED;
            ticks = hz * PAGES_WANTED / limit;
        }
    }
    if hz * pages / (task_rate + 1) > max_pause {
        ticks = max_pause;
        pages = task_rate * ticks / second;
    }
    (if pages >= PAGES_WANTED { 1 + ticks / 2 } else { ticks }, pages)
}

/// Pages until the next check while no writer is throttled: about the square root of the pages left.
pub(crate) fn poll_pages(dirty: u64, limit: u64) -> u64 {
    if limit > dirty { 1 << (log2(limit - dirty) / 2) } else { 1 }
}

/// Pages of one file that a flusher writes before it goes on with the next: half a second of bandwidth, at most an
/// eighth of the limit. 1,024 are added, and the sum is rounded down to a multiple of 1,024 (Linux 6.1,
/// `writeback_chunk_size`).
pub(crate) fn chunk_pages(bandwidth: u64, hard_limit: u64, asked: u64) -> u64 {
    const UNIT: u64 = 1024;
    let pages = (bandwidth / 2).min(hard_limit / 8).min(asked);
    (pages + UNIT) / UNIT * UNIT
}

#[cfg(test)]
mod tests;
