//! Costs of work on a device at one instant.
//!
//! Owns: the prices for all questions of the instant, the size of a request.
//! Does not own: the device's learned prices (`device`).
//! Invariants: pure.

use afflux_device::policy::{Cost as Amount, Prices as PagePrices, View};

use crate::prices::{PAGE_BYTES, mul_div};
use crate::{Cost, DirectionPrices, Knobs, MIB, request_bytes};

/// Fewest bytes of a request where the device has no preference.
const REQUEST_BYTES_MIN: u64 = 128 << 10;
/// A device with requests of this size takes whole runs in one.
const WHOLE_BYTES: u64 = 8 * MIB;

/// Costs of work on a device at one instant: enough for some questions.
pub(super) struct Rates {
    pub(super) knobs: Knobs,
    /// Prices of writes by themselves.
    pub(super) alone: DirectionPrices,
    /// Prices of writes beside the readers of the moment: all costs are counted at these.
    pub(super) prices: DirectionPrices,
    /// Device time that may be in flight, at the prices of writes alone.
    pub(super) in_flight_ns: Cost,
}

/// Whether the device is like an object store: its calls overlap, and small ones share one.
pub(super) fn must_take_whole_runs(view: &View) -> bool {
    view.request_bytes_max >= WHOLE_BYTES
}

impl Rates {
    pub(super) fn page_prices(&self) -> PagePrices {
        let page_ns = self.prices.cost_ns(0, PAGE_BYTES).max(1);
        PagePrices { page: Amount(page_ns), run: Amount(self.prices.run_ns) }
    }

    /// Bytes that take `ns`, written alone.
    pub(super) fn bytes_in(&self, ns: Cost) -> u64 {
        mul_div(ns, MIB, self.alone.mib_ns.max(1))
    }

    pub(super) fn request_bytes(&self, view: &View) -> u64 {
        let most = view.request_bytes_max.max(PAGE_BYTES);
        if must_take_whole_runs(view) {
            // A large call delays no other.
            return request_bytes(self.knobs.budget_ns / 2, self.alone.mib_ns, MIB, most);
        }
        let preferred = if view.request_bytes < most { view.request_bytes } else { REQUEST_BYTES_MIN.min(most) };
        request_bytes(self.in_flight_ns, self.alone.mib_ns, preferred, most)
    }
}
