//! How fast a device writes, measured while it has something to write.
//!
//! The estimate is bytes completed over time with a write in flight. A window closes at a completion once it has 50 ms
//! of such time (5 ms as long as fewer than eight have closed, so that the first second teaches most). Until 3 s have
//! been measured, the estimate is the mean over all of that time. From then on a window of length w replaces w ÷ 3 s of
//! it.
//!
//! Owns: the estimate. Does not own: its use.
//! Invariants: time without a write in flight does not count, so a device with little to do does not look slow.
//! Integers only.

use afflux_device::platform::Nanos;

/// Measured time after which older measurements fade.
const MEMORY_NS: u64 = 3 * Nanos::SECOND;
const WINDOW_NS: u64 = 50 * Nanos::MILLISECOND;
const FIRST_WINDOWS: u32 = 8;
const FIRST_WINDOW_NS: u64 = 5 * Nanos::MILLISECOND;

/// A device's write bandwidth.
#[derive(Default)]
pub(crate) struct Bandwidth {
    in_flight: u32,
    since: Nanos,
    window_ns: u64,
    window_bytes: u64,
    windows: u32,
    measured_ns: u64,
    bytes_per_second: u64,
}

impl Bandwidth {
    pub(crate) fn begins(&mut self, now: Nanos) {
        if self.in_flight == 0 {
            self.since = now;
        }
        self.in_flight += 1;
    }

    pub(crate) fn ends(&mut self, now: Nanos, bytes: u64) {
        self.in_flight -= 1;
        self.window_ns += now.since(self.since);
        self.since = now;
        self.window_bytes += bytes;
        let enough = if self.windows < FIRST_WINDOWS { FIRST_WINDOW_NS } else { WINDOW_NS };
        if self.window_ns >= enough {
            self.close();
        }
    }

    fn close(&mut self) {
        let (window_ns, bytes) = (u128::from(self.window_ns), u128::from(self.window_bytes));
        let kept_ns = u128::from(self.measured_ns.min(MEMORY_NS.saturating_sub(self.window_ns)));
        let backed_bytes = u128::from(self.bytes_per_second) * kept_ns;
        let second = u128::from(Nanos::SECOND);
        self.bytes_per_second =
            u64::try_from((backed_bytes + bytes * second) / (kept_ns + window_ns)).unwrap_or(u64::MAX);
        self.measured_ns = self.measured_ns.saturating_add(self.window_ns);
        self.windows = self.windows.saturating_add(1);
        (self.window_ns, self.window_bytes) = (0, 0);
    }

    /// Bytes a second, once known.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        (self.windows > 0).then_some(self.bytes_per_second)
    }
}

#[cfg(test)]
mod tests;
