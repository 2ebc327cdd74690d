//! The rate at which each writer to a device may dirty, before position control.
//!
//! Linux 6.1, `wb_update_dirty_ratelimit`, the same in 3.6. The allowed rate is rate ×
//! position. Scaled by the device's writes over the writers' dirtying, it gives the balanced rate. The rate limit
//! compares itself with three rates: the balanced rate, the previous balanced rate, and the allowed rate. It moves by
//! an eighth of the smallest difference, and only in the direction that brings dirty pages back to the setpoint; a
//! shift damps small differences. So the limit rests a little above the device's part. This dead band is intended.
//!
//! Owns: the limit and the last balanced rate. Does not own: the times of updates.
//! Invariants: the limit is never 0.

use super::bandwidth::START;

/// Pages a second that each writer may dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    pub(crate) limit: u64,
    pub(crate) balanced: u64,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { limit: START, balanced: START }
    }
}

/// The inputs of an update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    /// The factor of position control.
    pub(crate) factor: u64,
    /// Pages a second dirtied since the last update.
    pub(crate) dirty_rate: u64,
    /// The device's smoothed bandwidth.
    pub(crate) bandwidth: u64,
    pub(crate) dirty: u64,
    pub(crate) setpoint: u64,
}

impl RateLimit {
    pub(crate) fn update(&mut self, observed: &Observed) {
        let Observed { factor, dirty_rate, bandwidth, dirty, setpoint } = *observed;
        let limit = self.limit;
        let allowed = ((limit * factor) >> 10) + 1;
        let balanced = (allowed * bandwidth / (dirty_rate | 1)).min(bandwidth);
        let step = if dirty < setpoint {
            self.balanced.min(balanced).min(allowed).saturating_sub(limit)
        } else {
            limit.saturating_sub(self.balanced.max(balanced).max(allowed))
        };
        let shift = limit / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        let moved = if limit < balanced { limit + step } else { limit - step };
        *self = Self { limit: moved.max(1), balanced };
    }
}

#[cfg(test)]
mod tests;
