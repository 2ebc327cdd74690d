//! The limit that follows from a budget, in bytes.
//!
//! With a strict limit L, the kernel lets writers of the device run until (L + its background line) / 2 is dirty, and
//! then slows them down. With the kernel's usual ratios this is three quarters of L. Before the change of March 2026
//! ("start background writeback based on per-wb threshold for strictlimit BDIs") the kernel also writes nothing before
//! that line, unless the whole machine has passed its background line. With L equal to the budget, a device would stand
//! idle until three quarters of the budget are dirty, and the kernel would throttle writers that the device could
//! follow. So L is larger than the budget, such that the line is at the budget itself. Later kernels begin at the
//! device's own background line; there the same L costs nothing, because the backlog settles between the two lines in
//! both cases.
//!
//! Owns: bounds of budgets, floors, the limits that are not worth setting.
//! Does not own: speeds (`speed`), writing the limit.
//! Invariants: a limit lies between the floor and the kernel's own.

use super::{MILLISECOND, SECOND};

/// The default budget.
pub const DEFAULT_BUDGET_NS: u64 = SECOND;
/// Shortest budget: a shorter one would cost throughput.
pub const BUDGET_NS_MIN: u64 = 10 * MILLISECOND;
/// Longest budget: a longer one would govern nothing.
pub const BUDGET_NS_MAX: u64 = 3600 * SECOND;

/// Least device time of a limit; less would cost throughput. The kernel pauses writers for up to 200 ms, and meanwhile
/// the device needs dirty pages to write.
const FLOOR_NS: u64 = 200 * MILLISECOND;
/// Least bytes of a limit: per-CPU counts of dirty pages have errors of this size, and commits of ext4 are this large.
const FLOOR_BYTES: u64 = 4 << 20;

/// All of the machine's limit, in the kernel's finest unit.
const WHOLE_PPM: u64 = 1_000_000;
/// A limit moves when it is off by more than this part, since some writers must wait whenever it falls.
const SLACK_PART: u64 = 8;

/// The machine's current dirty limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineLimits {
    /// The dirty limit.
    pub dirty_bytes: u64,
    /// The background threshold.
    pub background_bytes: u64,
}

/// The target for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTarget {
    /// Time that it may owe.
    pub budget_ns: u64,
    /// Bytes that the device writes in that time, as far as its speed is known.
    pub budget_bytes: u64,
    /// Its speed in bytes a second.
    pub bytes_per_second: u64,
}

/// The limit for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitChoice {
    /// No limit: within its budget the device writes all that may be dirty on the machine.
    FastEnough,
    /// A limit in bytes, and as a fraction of the machine's dirty limit.
    Limit {
        /// Limit in bytes, as `max_bytes` takes it.
        bytes: u64,
        /// Millionths of the machine's dirty limit.
        ratio_ppm: u32,
    },
}

/// The limit that holds a device to its budget. `in_force_ppm` is its current fraction.
pub fn choose(wanted: &LimitTarget, machine: MachineLimits, in_force_ppm: Option<u32>) -> LimitChoice {
    let dirty = u128::from(machine.dirty_bytes.max(1));
    // The kernel does the same if the background line is not below the limit.
    let background = u128::from(machine.background_bytes).min(dirty / 2);
    let floor = u128::from(wanted.bytes_per_second) * u128::from(FLOOR_NS) / u128::from(SECOND);
    let owed = u128::from(wanted.budget_bytes).max(floor).max(u128::from(FLOOR_BYTES));
    let bytes = owed * 2 * dirty / (dirty + background);
    // A device near the bound retains its state, governed or not.
    let most = if in_force_ppm.is_some() { dirty } else { dirty / 8 * 7 };
    if bytes >= most {
        return LimitChoice::FastEnough;
    }
    let ppm = (bytes * u128::from(WHOLE_PPM)).div_ceil(dirty).clamp(1, u128::from(WHOLE_PPM)) as u64;
    let kept = in_force_ppm.filter(|kept| u64::from(*kept).abs_diff(ppm) <= ppm / SLACK_PART);
    let ratio_ppm = kept.unwrap_or(ppm as u32);
    let bytes = u128::from(ratio_ppm) * dirty / u128::from(WHOLE_PPM);
    LimitChoice::Limit { bytes: bytes as u64, ratio_ppm }
}

#[cfg(test)]
mod tests;
