//! Position control: the distance of the dirty pages from their setpoint, as a factor on rates.
//!
//! Linux 6.1, `wb_position_ratio`, in fixed point with 1024 as 1. With a hard limit L and
//! the free-running ceiling F, the setpoint is S = (F + L)/2. The global factor is 1 + ((S − dirty)/(L − S))³: about 2
//! at F, 1 at S, 0 at L. A line then pulls the device to its own setpoint, its share of S. Along this line the factor
//! falls towards 0 over a span that grows with the device's bandwidth. From three quarters of the span on it is a
//! quarter of the global factor. The factor of a device with less than half its share is raised, up to 8 times, so that
//! the device does not run dry. Under a strict limit the device has a cubic of its own, and gets the lower of the two
//! factors.
//!
//! Linux 3.6 has the same law, but divides by (L − S) + 1 and thresh + 1 where 6.1 sets the last bit. It has no strict
//! limit.
//!
//! Owns: the factor. Does not own: the limits, the share, the bandwidth.
//! Invariants: at or above the hard limit the factor is 0; this test comes first. With the device's part the factor is
//! not capped at 2: values up to about 12 are intended.

use crate::limits::Limits;

/// 1 as a factor.
pub(crate) const ONE: u64 = 1024;
/// A strictly limited device with fewer pages is not compared with its own setpoint.
const FEW_PAGES: u64 = 8;

/// The method that prevents a divisor of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeverZero {
    /// 3.6: by adding 1.
    PlusOne,
    /// 6.1: by setting the last bit.
    LastBit,
}

impl NeverZero {
    fn apply(self, value: u64) -> u64 {
        match self {
            Self::PlusOne => value + 1,
            Self::LastBit => value | 1,
        }
    }
}

/// The inputs of the factor, in pages and pages a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) limits: Limits,
    /// The smoothed limit, never below the limit.
    pub(crate) hard_limit: u64,
    /// Dirty pages and those under writeback, of all devices.
    pub(crate) dirty: u64,
    /// The device's share of the limit.
    pub(crate) share: u64,
    /// The device's share of the background limit, for a strict limit only.
    pub(crate) share_background: u64,
    /// Dirty pages and those under writeback, of the device.
    pub(crate) device_dirty: u64,
    /// The device's smoothed bandwidth.
    pub(crate) bandwidth: u64,
    pub(crate) strict: bool,
    pub(crate) never_zero: NeverZero,
}

/// 1 + ((setpoint − dirty)/(limit − setpoint))³, between 0 and 2.
fn cubic(setpoint: u64, dirty: u64, limit: u64, never_zero: NeverZero) -> u64 {
    let divisor = never_zero.apply(limit.saturating_sub(setpoint)) as i64;
    // As in C, the quotient truncates and the shifts round down.
    let x = ((setpoint as i64 - dirty as i64) << 10) / divisor;
    let cube = (((x * x) >> 10) * x) >> 10;
    (cube + ONE as i64).clamp(0, 2 * ONE as i64) as u64
}

impl Position {
    /// The setpoint of all devices together.
    pub(crate) fn setpoint(&self) -> u64 {
        (self.limits.freerun() + self.hard_limit) / 2
    }

    /// The factor on the device's rate, in units of 1/[`ONE`].
    pub(crate) fn factor(&self) -> u64 {
        if self.dirty >= self.hard_limit {
            return 0;
        }
        let setpoint = self.setpoint();
        let global = cubic(setpoint, self.dirty, self.hard_limit, self.never_zero);
        if self.strict { self.strict_factor(global) } else { self.device_factor(global, setpoint) }
    }

    fn strict_factor(&self, global: u64) -> u64 {
        if self.device_dirty < FEW_PAGES {
            return (2 * global).min(2 * ONE);
        }
        let setpoint = (self.share + self.share_background) / 2;
        if self.device_dirty >= self.share || setpoint == 0 || setpoint == self.share {
            return 0;
        }
        global.min(cubic(setpoint, self.device_dirty, self.share, self.never_zero))
    }

    fn device_factor(&self, global: u64, setpoint: u64) -> u64 {
        let thresh = self.limits.dirty;
        let share = self.share.min(thresh).max((self.hard_limit - self.dirty) / 8);
        let x = (share << 16) / self.never_zero.apply(thresh);
        let device_setpoint = (setpoint * x) >> 16;
        let span = ((thresh.saturating_sub(share) + 8 * self.bandwidth) * x) >> 16;
        let intercept = device_setpoint + span;
        let mut factor = if self.device_dirty < intercept - span / 4 {
            global * (intercept - self.device_dirty) / self.never_zero.apply(intercept - device_setpoint)
        } else {
            global / 4
        };
        let reserve = share / 2;
        if self.device_dirty < reserve {
            factor = if self.device_dirty > reserve / 8 { factor * reserve / self.device_dirty } else { factor * 8 };
        }
        factor
    }
}

#[cfg(test)]
mod tests;
