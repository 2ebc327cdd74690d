//! The limit that a budget makes, in bytes.
//!
//! A device held to a strict limit L lets writers run until (L + its background line) / 2 is dirty, three quarters of L
//! with the kernel's usual ratios, and then slows them down. Before the change of March 2026 ("start background writeback
//! based on per-wb threshold for strictlimit BDIs") nothing is written before that line either, unless the whole machine
//! has passed its background line: with L at the budget a device would stand idle until three quarters of it are dirty, and
//! writers be held up there that it could follow. So L is as much above the budget as puts that line at the budget itself.
//! Later kernels begin at the device's own background line; there the same L costs nothing, because the backlog settles
//! between the two lines either way.
//!
//! Owns: bounds of budgets, floors, what is not worth a limit. Does not own: speeds (`speed`), who writes the limit.
//! Invariants: a limit lies between the floor and the kernel's own.

use super::{MILLISECOND, SECOND};

/// The budget unless another is asked for.
pub const DEFAULT_BUDGET_NS: u64 = SECOND;
/// Shortest budget that can be asked for: less would cost throughput.
pub const BUDGET_NS_MIN: u64 = 10 * MILLISECOND;
/// Longest: more would govern nothing.
pub const BUDGET_NS_MAX: u64 = 3600 * SECOND;

/// Device time below which throughput would suffer: pauses of the kernel are up to 200 ms long, and meanwhile the
/// device has to have something to write.
const FLOOR_NS: u64 = 200 * MILLISECOND;
/// The same in bytes: per-CPU counts of dirty pages are that inexact, and ext4 commits that large.
const FLOOR_BYTES: u64 = 4 << 20;

/// A share of the whole, in the kernel's finest unit.
const WHOLE_PPM: u64 = 1_000_000;
/// A limit moves when it is off by more than this part: each time that it falls somebody waits.
const SLACK_PART: u64 = 8;

/// What the kernel lets be dirty on the whole machine now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The dirty limit.
    pub dirty_bytes: u64,
    /// Where background writeback begins.
    pub background_bytes: u64,
}

/// What a device is asked to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Time that it may owe.
    pub budget_ns: u64,
    /// What it writes in that time, as far as is known.
    pub budget_bytes: u64,
    /// Bytes a second.
    pub bytes_per_second: u64,
}

/// The limit for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It writes all that the kernel lets be dirty within its budget: nothing to hold it to.
    FastEnough,
    /// So many bytes, and the share of the dirty limit that they are.
    Limit {
        /// Bytes.
        bytes: u64,
        /// Millionths of the machine's dirty limit.
        ratio_ppm: u32,
    },
}

/// The limit that keeps a device to its budget, given the share that is in force for it.
pub fn choose(wanted: &Wanted, machine: Machine, in_force_ppm: Option<u32>) -> Choice {
    let dirty = u128::from(machine.dirty_bytes.max(1));
    // The kernel does so itself where the background line is not below the limit.
    let background = u128::from(machine.background_bytes).min(dirty / 2);
    let floor = u128::from(wanted.bytes_per_second) * u128::from(FLOOR_NS) / u128::from(SECOND);
    let owed = u128::from(wanted.budget_bytes).max(floor).max(u128::from(FLOOR_BYTES));
    let bytes = owed * 2 * dirty / (dirty + background);
    // What is governed stays so until there is no doubt, and the reverse.
    let most = if in_force_ppm.is_some() { dirty } else { dirty / 8 * 7 };
    if bytes >= most {
        return Choice::FastEnough;
    }
    let ppm = (bytes * u128::from(WHOLE_PPM)).div_ceil(dirty).clamp(1, u128::from(WHOLE_PPM)) as u64;
    let kept = in_force_ppm.filter(|kept| u64::from(*kept).abs_diff(ppm) <= ppm / SLACK_PART);
    let ratio_ppm = kept.unwrap_or(ppm as u32);
    let bytes = u128::from(ratio_ppm) * dirty / u128::from(WHOLE_PPM);
    Choice::Limit { bytes: bytes as u64, ratio_ppm }
}

#[cfg(test)]
mod tests;
