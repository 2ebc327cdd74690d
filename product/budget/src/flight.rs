//! The amount of work in flight to a device, in device time.
//!
//! Owns: the limit of device time in flight, the size of a request.
//! Does not own: how many requests a device likes at once.
//! Invariants: an fsync waits behind the requests in flight, so they are a small part of the budget.

use crate::wide::mul_div;
use crate::{Cost, MIB, MILLISECOND};

/// Requests begin and end at pages.
const PAGE_BYTES: u64 = 4096;

/// L: device time that may be in flight. A sync finds one L ahead of it, and a second may pass it within the device. 30
/// ms keep the sum below a tenth of a second, and lose no throughput on disks (measured with 10 to 100 ms). For a
/// device with long calls, `parallel` finds how much more it needs.
pub fn in_flight_ns(budget_ns: Cost) -> Cost {
    (budget_ns / 10).min(30 * MILLISECOND)
}

/// Bytes of a request: a quarter of the device time in flight, between the device's preferred size and its maximum.
///
/// # Panics
/// If the preferred size exceeds the maximum.
pub fn request_bytes(in_flight_ns: Cost, mib_ns: u64, preferred: u64, most: u64) -> u64 {
    assert!(preferred <= most, "a request of {preferred} bytes at best and of {most} at most");
    let bytes = mul_div(in_flight_ns / 4, MIB, mib_ns.max(1)).min(most);
    (bytes / PAGE_BYTES * PAGE_BYTES).clamp(preferred, most)
}

#[cfg(test)]
mod tests;
