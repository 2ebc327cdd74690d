//! When a device that completes nothing counts as hung.
//!
//! Owns: the time that is too long. Does not own: the watching, the consequences (the engine).
//! Invariants: requests in flight have eight times their cost, 2 s at least and 30 s at most: without a ceiling a price
//! learned from a stall would excuse the next one.

use afflux_device::policy::{HangLimits, View};

use super::device::DeviceMemory;
use super::rates::PAGE_BYTES;
use crate::knobs::BudgetKnob;
use crate::{Cost, MILLISECOND};

const LEAST_NS: u64 = 2000 * MILLISECOND;
const MOST_NS: u64 = 30_000 * MILLISECOND;
const TIMES: u64 = 8;

/// How long a device with this much in flight may complete nothing.
fn stalled_after_ns(in_flight_ns: Cost) -> u64 {
    in_flight_ns.saturating_mul(TIMES).clamp(LEAST_NS, MOST_NS)
}

/// The limits in force for the device.
pub(super) fn hang_limits(view: &View, device: &mut DeviceMemory) -> HangLimits {
    let (counts, prices) = (view.device(), device.rates(view).prices);
    let in_flight_ns = prices.cost_ns(counts.runs_in_flight, counts.writeback * PAGE_BYTES);
    let refused_ns = match view.knobs.own.get(BudgetKnob::HangErrorMs) {
        0 => u64::MAX,
        ms => ms * MILLISECOND,
    };
    HangLimits { stalled_ns: stalled_after_ns(in_flight_ns), refused_ns }
}

#[cfg(test)]
mod tests;
