//! The kernel's estimate of a device's write bandwidth.
//!
//! Linux 6.1, `wb_update_write_bandwidth`, the same in 3.6. P is the power of two not below
//! 3 s in ticks, and w pages were written in e ticks since the last update. If e > P, the estimate and the average are
//! w·HZ/e. Otherwise the estimate is (w·HZ + old·(P − e))/P. The average then moves by an eighth of its distance to the
//! old estimate, and only if the new estimate does not move back towards it. So the average trails one update behind,
//! and the first step never moves it. Both start at 100 MiB/s for every device.
//!
//! Owns: the estimate and its average. Does not own: the times of updates.
//! Invariants: the average is never 0.

use crate::jiffies::{log2, pow2ceil};

/// 100 MiB a second in pages.
pub(crate) const START: u64 = 25_600;

/// A device's bandwidth in pages a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bandwidth {
    pub(crate) now: u64,
    pub(crate) average: u64,
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self { now: START, average: START }
    }
}

impl Bandwidth {
    /// Updates the estimate: `written` pages in `elapsed` ticks (at least 1) of `hz` a second.
    pub(crate) fn update(&mut self, hz: u64, elapsed: u64, written: u64) {
        let period = pow2ceil(3 * hz);
        let old = self.now;
        if elapsed > period {
            self.now = written * hz / elapsed;
            self.average = self.now.max(1);
            return;
        }
        self.now = (written * hz + old * (period - elapsed)) >> log2(period);
        if self.average > old && old >= self.now {
            self.average -= (self.average - old) >> 3;
        } else if self.average < old && old <= self.now {
            self.average += (old - self.average) >> 3;
        }
        self.average = self.average.max(1);
    }
}

#[cfg(test)]
mod tests;
