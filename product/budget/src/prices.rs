//! The cost of a device's work in its own time, its correction by a measured time, and the amount of work in flight
//! that it allows.
//!
//! Owns: the two prices, their bounds, the step of learning; the limit of device time in flight, the size of a request;
//! products that may not fit in a word.
//! Does not own: which times are believed (`estimator`), how many requests a device likes at once (`parallel`).
//! Invariants: prices stay within their bounds. Blame for a wrong estimate is in proportion to the squared part of the
//! modelled cost, so that streams never touch the price of a run, and scattered pages never that of bytes. An fsync
//! waits behind the requests in flight, so they are a small part of the budget. Quotients are exact, however large the
//! product.

use afflux_device::policy::Completed;

use crate::{MIB, MILLISECOND, ONE};

/// Bounds of the price of a run: 1 µs to 10 s.
pub(crate) const RUN_NS: (u64, u64) = (1_000, 10_000_000_000);
/// Bounds of the price of a MiB: 10 µs (100 GB/s) to 10 s.
pub(crate) const MIB_NS: (u64, u64) = (10_000, 10_000_000_000);
/// The prices assumed for an unknown device: 10 ms a run and 25 MB/s.
const PRIOR: DirectionPrices = DirectionPrices { run_ns: 10_000_000, mib_ns: 41_943_040 };

/// Above this the products of a step are scaled down before they are multiplied.
const EXACT_MAX: u128 = 1 << 40;

/// Device time of a request in nanoseconds.
pub type Cost = u64;

/// Prices of one direction of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionPrices {
    /// Device time a run, in ns. A run is a maximal contiguous range; in flight, a request that does not continue the
    /// last.
    pub run_ns: u64,
    /// Device time a MiB, in ns.
    pub mib_ns: u64,
}

/// Work of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectionWork {
    pub(crate) runs: u64,
    pub(crate) bytes: u64,
}

impl DirectionWork {
    /// The work of a request that completed.
    pub(crate) fn of(done: &Completed) -> Self {
        Self { runs: done.runs, bytes: done.bytes }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.runs = self.runs.saturating_add(other.runs);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self { runs: self.runs.saturating_sub(other.runs), bytes: self.bytes.saturating_sub(other.bytes) }
    }

    pub(crate) fn cost_ns(&self, prices: &DirectionPrices) -> Cost {
        prices.cost_ns(self.runs, self.bytes)
    }
}

impl Default for DirectionPrices {
    fn default() -> Self {
        PRIOR
    }
}

impl DirectionPrices {
    /// Device time of `runs` runs with `bytes` bytes in all; saturates.
    pub fn cost_ns(&self, runs: u64, bytes: u64) -> Cost {
        if let (Some(of_runs), Some(of_bytes)) = (runs.checked_mul(self.run_ns), bytes.checked_mul(self.mib_ns)) {
            // Nearly always: all fits in a word.
            return of_runs.saturating_add(of_bytes / MIB);
        }
        let runs = u128::from(runs) * u128::from(self.run_ns);
        runs.saturating_add(self.byte_ns(bytes)).min(u128::from(Cost::MAX)) as Cost
    }

    fn byte_ns(&self, bytes: u64) -> u128 {
        u128::from(bytes) * u128::from(self.mib_ns) / u128::from(MIB)
    }

    /// `measured_ns` over the modelled cost in 1,024ths, between 64 and 16,384; 1,024 where nothing was modelled.
    pub fn ratio(&self, runs: u64, bytes: u64, measured_ns: u64) -> u64 {
        ratio(measured_ns, self.cost_ns(runs, bytes))
    }

    /// Moves the prices towards explaining `ratio` for this work; the more `damping`, the less.
    pub fn learn(&mut self, runs: u64, bytes: u64, ratio: u64, damping: u64) {
        let (mut of_runs, mut of_bytes) = (u128::from(runs) * u128::from(self.run_ns), self.byte_ns(bytes));
        while of_runs.max(of_bytes) > EXACT_MAX {
            (of_runs, of_bytes) = (of_runs >> 8, of_bytes >> 8);
        }
        let squares = (of_runs * of_runs + of_bytes * of_bytes) as i128;
        if squares == 0 {
            return;
        }
        let error = (of_runs + of_bytes) as i128 * (ratio as i128 - i128::from(ONE)) / i128::from(ONE);
        let step = |share: u128, price: u64| {
            let moved = div(error * share as i128 * i128::from(price), squares * i128::from(damping.max(1)));
            (i128::from(price) + moved).clamp(0, i128::from(u64::MAX)) as u64
        };
        *self = Self { run_ns: step(of_runs, self.run_ns), mib_ns: step(of_bytes, self.mib_ns) }.within_bounds();
    }

    /// The nearest prices that a device may have.
    #[must_use]
    pub fn within_bounds(self) -> Self {
        Self { run_ns: self.run_ns.clamp(RUN_NS.0, RUN_NS.1), mib_ns: self.mib_ns.clamp(MIB_NS.0, MIB_NS.1) }
    }

    /// How strongly a whole window's ratio moves prices: by a half where it is far off, by a quarter otherwise.
    pub fn window_damping(ratio: u64) -> u64 {
        if ratio >= 1536 || ratio <= 683 { 2 } else { 4 }
    }
}

/// A measured time over the modelled one in 1,024ths, between 64 and 16,384; 1,024 where nothing was modelled.
pub(crate) fn ratio(measured_ns: u64, modelled_ns: u64) -> u64 {
    if modelled_ns == 0 { ONE } else { mul_div(measured_ns, ONE, modelled_ns).clamp(64, 16 * ONE) }
}

/// `of * by / over`. Nearly every product fits in a word, and then the division is one instruction instead of a call:
/// decisions consist of these.
///
/// # Panics
/// If `over` is 0.
pub(crate) const fn mul_div(of: u64, by: u64, over: u64) -> u64 {
    if let Some(product) = of.checked_mul(by) {
        return product / over;
    }
    let quotient = of as u128 * by as u128 / over as u128;
    if quotient > u64::MAX as u128 { u64::MAX } else { quotient as u64 }
}

/// `of / by`, a call only if one of them does not fit in a word.
///
/// # Panics
/// If `by` is 0, or `of` is the least number and `by` is -1.
pub(crate) fn div(of: i128, by: i128) -> i128 {
    match (i64::try_from(of), i64::try_from(by)) {
        (Ok(of), Ok(by)) if by > 0 => (of / by).into(),
        _ => of / by,
    }
}

/// Requests begin and end at pages.
pub(crate) const PAGE_BYTES: u64 = 4096;

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
