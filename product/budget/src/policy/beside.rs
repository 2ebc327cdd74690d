//! How much longer writes take beside reads than by themselves.
//!
//! Prices are those of writes alone, and a device that serves readers too has less time for them: what would take it a
//! second takes two where it reads half of the time. The promise is in wall time, so what is dirty is counted at
//! prices that are as many times higher. It is measured, not derived from how long reads were in flight: a drive of
//! many dies reads and writes at once, and a head that goes back and forth takes more than either.
//!
//! Owns: the factor. Does not own: prices (the crate's other modules), what is in flight and how large requests are,
//! which stay as without readers, since a seek for each small write would only add to what is to be done.
//! Invariants: 1 to [`FACTOR_MAX`]; 1 where reads are rare beside writes.

use afflux_engine::policy::BusyTimes;

use crate::wide::mul_div;
use crate::{Cost, MILLISECOND, ONE, Prices};

/// Time with writes in flight after which the factor is looked at.
const WINDOW_NS: u64 = 250 * MILLISECOND;
/// The part of that time which reads have to share.
const SHARED_PART: u64 = 8;
/// Where writes get less of the device, readers starve them: the backlog is not to vanish for that.
const FACTOR_MAX: u64 = 8 * ONE;

/// What is remembered of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    factor: u64,
    /// What writes since the last look would have cost by themselves.
    cost_ns: Cost,
    writes_ns: u64,
    both_ns: u64,
}

impl Default for Beside {
    fn default() -> Self {
        Self { factor: ONE, cost_ns: 0, writes_ns: 0, both_ns: 0 }
    }
}

impl Beside {
    /// A write of so much cost has ended.
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

    /// The prices of writes as they come to beside the reads of the moment.
    pub(super) fn applied(&self, prices: Prices) -> Prices {
        Prices { run_ns: self.times(prices.run_ns), mib_ns: self.times(prices.mib_ns) }
    }

    /// So much device time as wall time.
    pub(super) fn times(&self, ns: u64) -> u64 {
        mul_div(ns, self.factor, ONE)
    }
}

#[cfg(test)]
mod tests;
