//! How much longer writes take beside reads than by themselves.
//!
//! Prices are those of writes alone. A device that serves readers too has less time for writes: a second's work takes
//! two if reads take half of the time. The promise is in wall time, so dirty data is counted at prices that are as many
//! times higher. The factor is measured, not derived from the time with reads in flight. A drive of many dies reads and
//! writes at once, and a head that goes back and forth takes more than either.
//!
//! Owns: the factor. Does not own: prices (the crate's other modules), the limit in flight and the size of requests.
//! These stay as without readers, since a seek for each small write would only add to the work.
//! Invariants: 1 to [`FACTOR_MAX`]; 1 where reads are rare beside writes.

use afflux_device::policy::BusyTimes;

use crate::wide::mul_div;
use crate::{Cost, DirectionPrices, MILLISECOND, ONE};

/// Time with writes in flight after which the factor is updated.
const WINDOW_NS: u64 = 250 * MILLISECOND;
/// The part of that time that reads must share.
const SHARED_PART: u64 = 8;
/// A larger factor means that readers starve writes: the backlog must not vanish for that.
const FACTOR_MAX: u64 = 8 * ONE;

/// The factor of a device, and the window that will correct it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadInterference {
    factor: u64,
    /// The cost of the window's writes by themselves.
    cost_ns: Cost,
    writes_ns: u64,
    both_ns: u64,
}

impl Default for ReadInterference {
    fn default() -> Self {
        Self { factor: ONE, cost_ns: 0, writes_ns: 0, both_ns: 0 }
    }
}

impl ReadInterference {
    /// A write of this cost has ended.
    pub(super) fn completed(&mut self, busy: &BusyTimes, cost_ns: Cost) {
        self.cost_ns = self.cost_ns.saturating_add(cost_ns);
        let writes_ns = busy.writes_ns.saturating_sub(self.writes_ns);
        if writes_ns < WINDOW_NS {
            return;
        }
        let both_ns = (busy.reads_ns + busy.writes_ns).saturating_sub(busy.transfers_ns);
        let shared = both_ns.saturating_sub(self.both_ns) >= writes_ns / SHARED_PART;
        let measured = mul_div(writes_ns, ONE, self.cost_ns.max(1));
        let measured = if shared { measured.clamp(ONE, FACTOR_MAX) } else { ONE };
        *self = Self { factor: self.factor.midpoint(measured), cost_ns: 0, writes_ns: busy.writes_ns, both_ns };
    }

    /// The prices of writes beside the readers of the moment.
    pub(super) fn applied(&self, prices: DirectionPrices) -> DirectionPrices {
        DirectionPrices { run_ns: self.times(prices.run_ns), mib_ns: self.times(prices.mib_ns) }
    }

    /// The wall time that this device time takes.
    pub(super) fn times(&self, ns: u64) -> u64 {
        mul_div(ns, self.factor, ONE)
    }
}

#[cfg(test)]
mod tests;
